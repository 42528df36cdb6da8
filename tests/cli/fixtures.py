"""Types of the fixtures of these tests."""

import subprocess
from pathlib import Path
from typing import Protocol

from click.testing import Result


class WriteFile(Protocol):
    """A function that writes a file, and creates its folders."""

    def __call__(self, name: str, text: str) -> Path: ...


class WriteSuite(Protocol):
    """A function that writes a scenario file with these scenarios, and the manifests that they run."""

    def __call__(self, *scenarios: str, file: str = "a.scenario.yaml") -> None: ...


class Invoke(Protocol):
    """A function that runs a command in this process."""

    def __call__(self, *args: str) -> Result: ...


class RunCommand(Protocol):
    """A function that runs the installed command in another process, with these additional environment variables."""

    def __call__(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]: ...
