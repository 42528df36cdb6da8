"""The work of a command, as every worker is told before its first task: versions, files and settings."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from harness import DISTRIBUTION, __version__
from harness.cluster.project import Project
from harness.settings import Projects
from harness.workers.worker import Work

_PACKAGES: Final = ("langgraph", "langchain", "langchain-core")
"""The packages that change what a run does, besides this one and Python."""


@dataclass(frozen=True)
class Setup:
    """The settings of the runs, what is done in place of them, and the variables that scenarios ask for."""

    projects: Projects
    work: Work | None
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Job:
    """The work of one command. `setup` is a packed `Setup`."""

    id: str
    versions: Mapping[str, str]
    project: Project
    setup: bytes


def versions() -> dict[str, str]:
    """Return the versions of this process that results depend on; "" for what is not installed."""
    return {DISTRIBUTION: __version__, "Python": platform.python_version()} | {
        name: _installed(name) for name in _PACKAGES
    }


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Return the first package whose versions differ, with both; "" if none."""
    for name, own in here.items():
        other = there.get(name, "")
        if own != other:
            return f"{name} is {other or 'not installed'} there, and {own or 'not installed'} here"
    return ""
