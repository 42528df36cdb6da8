"""The front ends of the dialects, a package each, and `DIALECTS`, the table of those that come with the harness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DIALECTS: Final[Mapping[str, str]] = {
    "sherma": "harness.dialects.sherma.dialect",
    "loki": "harness.dialects.loki.dialect",
    "leafmesh": "harness.dialects.leafmesh.dialect",
    "yagra": "harness.dialects.yagra.dialect",
    "agentspec": "harness.dialects.agentspec.dialect",
    "langgraph": "harness.dialects.langgraph.dialect",
    "python": "harness.dialects.langgraph.plain",
}
"""The module that implements `harness.dialects.dialect.Dialect`, by the name of the dialect."""
