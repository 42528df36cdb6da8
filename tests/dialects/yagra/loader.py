"""Loading workflows that are given as text."""

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
from tests.dialects.yagra.valid import PROMPTS, changed


class Loader:
    """A loader of `flows/main.yaml` in a temporary project; `files` are further files by path."""

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
        """Return the problems of a workflow, which must be refused."""
        with pytest.raises(ManifestError) as refusal:
            self.graph(text, files)
        return refusal.value.problems

    def assert_problem(self, change: tuple[str, str], code: str, message: str, place: str, hint: str) -> None:
        """Assert that the valid workflow with this change has exactly one problem.

        `message` is a part of its message, `place` the text at its location.
        """
        (problem,) = self.problems(changed(change), PROMPTS)
        assert problem.code == code
        assert message in problem.message
        assert (text_at(problem), problem.hint.replace(f"{self.folder.parent}/", "")) == (place, hint)

    place = staticmethod(text_at)
