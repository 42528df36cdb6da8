"""A value of a manifest that a search can vary: a temperature, or a list of tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.source.document import DocumentPath


@dataclass(frozen=True)
class Tunable:
    """A temperature, or a list of tools, in the main document of a manifest.

    kind   `temperature` or `tools`
    owner  the name of the agent, node or model that it belongs to
    path   its path in the document; a temperature need not be written yet
    value  the temperature (None: not written), or the names of the tools in order
    pool   for `tools`: the tools that the list may contain, by name, as they are written in the document
    """

    kind: Literal["temperature", "tools"]
    owner: str
    path: DocumentPath
    value: Any = None
    pool: Mapping[str, Any] = field(default_factory=dict)
