"""Loading graph agents that are given as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.graph.model import Graph
from tests.dialects.places import text_at


class Loader:
    """A loader of `agents/desk/graph.yaml` in a temporary project; `files` are further files by path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.write({"pyproject.toml": ""})

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def graph(self, text: str, files: dict[str, str] | None = None, **options: Any) -> Graph:
        self.write({"agents/desk/graph.yaml": text, **(files or {})})
        return load_graph(LoadRequest((self.folder / "agents/desk",), **options), "loki")

    def problems(self, text: str, files: dict[str, str] | None = None) -> Sequence[Problem]:
        """Return the problems of an agent, which must be refused."""
        self.write({"agents/desk/graph.yaml": text, **(files or {})})
        return self.reloaded()

    def reloaded(self) -> Sequence[Problem]:
        """Return the problems of the agent in its folder, which must be refused."""
        with pytest.raises(ManifestError) as refusal:
            load_graph(LoadRequest((self.folder / "agents/desk",)), "loki")
        return refusal.value.problems

    place = staticmethod(text_at)
