"""Workflows written into files, and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.dialects.registry import dialect_of
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.graph.model import Graph
from tests.dialects.places import text_at
from tests.dialects.yagra.sound import PROMPTS, changed


class Loader:
    """Loads `flows/main.yaml` of a project of its own; `files` are written by their paths in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.write({"pyproject.toml": "", "flows/main.yaml": ""})

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def graph(self, text: str, files: dict[str, str] | None = None, **options: Any) -> Graph:
        self.write({"flows/main.yaml": text, **(files or {})})
        request = LoadRequest((self.folder / "flows/main.yaml",), **options)
        return dialect_of(request.path).load(request)

    def problems(self, text: str, files: dict[str, str] | None = None) -> Sequence[Problem]:
        """What is said against a workflow, which must be refused."""
        with pytest.raises(ManifestError) as refusal:
            self.graph(text, files)
        return refusal.value.problems

    def finds(self, change: tuple[str, str], code: str, message: str, place: str, hint: str) -> None:
        """The sound workflow with this change has one problem: its code, part of its message, place and hint."""
        (problem,) = self.problems(changed(change), PROMPTS)
        assert problem.code == code
        assert message in problem.message
        assert (text_at(problem), problem.hint.replace(f"{self.folder.parent}/", "")) == (place, hint)

    place = staticmethod(text_at)
