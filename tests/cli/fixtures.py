"""What the fixtures of these tests give."""

import subprocess
from pathlib import Path
from typing import Protocol

from click.testing import Result


class WriteFile(Protocol):
    """Writes a file, and the folders it is in."""

    def __call__(self, name: str, text: str) -> Path: ...


class WriteSuite(Protocol):
    """Writes a scenario file with these scenarios, and the manifests that they run."""

    def __call__(self, *scenarios: str, file: str = "a.scenario.yaml") -> None: ...


class Invoke(Protocol):
    """Runs a command in this process."""

    def __call__(self, *args: str) -> Result: ...


class RunCommand(Protocol):
    """Runs the installed command in a process of its own, with these variables besides those of the environment."""

    def __call__(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]: ...
