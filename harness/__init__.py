"""harness: run declarative agents for real, offline, in a simulated world, and test what they do.

The public API is `__all__`: see docs/python.md. Everything is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api.run import AlreadyContinued, Call, Run, arun, run
    from harness.errors import FormatError
    from harness.plugin.agent_run import AgentRun
    from harness.report.frames import Results, load_results

__version__ = "0.1.0"
DISTRIBUTION = "agent-scenarios"  # what pip installs; the package and the command are `harness`

_PUBLIC = {
    **dict.fromkeys(("AlreadyContinued", "Call", "Run", "arun", "run"), "harness.api.run"),
    **dict.fromkeys(("Results", "load_results"), "harness.report.frames"),
    "AgentRun": "harness.plugin.agent_run",
    "FormatError": "harness.errors",
}
__all__ = [
    "AgentRun",
    "AlreadyContinued",
    "Call",
    "FormatError",
    "Results",
    "Run",
    "arun",
    "load_results",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
