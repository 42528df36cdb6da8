"""A value of a manifest that can be tuned: a temperature, or a list of tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.source.document import DocumentPath


@dataclass(frozen=True)
class Tunable:
    """A temperature, or a list of tools, of the main document of a manifest.

    kind   `temperature` or `tools`
    owner  the agent, node or model that it belongs to, by its name
    path   where it is in the document; a temperature need not be written yet
    value  the temperature (None: not written), or the names of the tools in order
    pool   of tools: what the list may have, by name, as the document writes each
    """

    kind: Literal["temperature", "tools"]
    owner: str
    path: DocumentPath
    value: Any = None
    pool: Mapping[str, Any] = field(default_factory=dict)
