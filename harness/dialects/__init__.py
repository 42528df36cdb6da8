"""The dialects: one front end each. `DIALECTS` is the one table that names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DIALECTS: Final[Mapping[str, str]] = {
    "sherma": "harness.dialects.sherma.dialect",
    "loki": "harness.dialects.loki.dialect",
    "leafmesh": "harness.dialects.leafmesh.dialect",
    "yagra": "harness.dialects.yagra.dialect",
    "agentspec": "harness.dialects.agentspec.dialect",
}
"""The module of each dialect, which has the members of `harness.dialects.dialect.Dialect`."""
