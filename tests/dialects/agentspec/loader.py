"""Loading configurations that are given as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.dialects.agentspec.agents import Agent
from harness.dialects.agentspec.compile import configuration_of, load
from harness.dialects.agentspec.configuration import Configuration
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.graph.model import Graph
from tests.dialects.places import text_at


class Loader:
    """A loader of a main document and its disaggregated documents, given as text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def request(self, *texts: str, json: bool = False, **options: Any) -> LoadRequest:
        paths = []
        for at, text in enumerate(texts):
            path = self.folder / f"document_{at}.{'json' if json else 'yaml'}"
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return LoadRequest(tuple(paths), **options)

    def graph(self, *texts: str, **options: Any) -> Graph:
        return load(self.request(*texts, **options))

    def configuration(self, *texts: str, **options: Any) -> Configuration:
        """Read documents that must have no errors."""
        found = configuration_of(self.request(*texts, **options))
        assert found.problems.errors == []
        return found

    def agent(self, *texts: str, **options: Any) -> Agent:
        """Return the root agent of documents that must have no errors."""
        root = self.configuration(*texts, **options).root
        assert isinstance(root, Agent)
        return root

    def problems(self, *texts: str, **options: Any) -> Sequence[Problem]:
        """Return the problems of documents, which must be refused."""
        with pytest.raises(ManifestError) as refusal:
            self.graph(*texts, **options)
        return refusal.value.problems

    def problem(self, *texts: str, **options: Any) -> Problem:
        """Return the only problem of documents, which must be refused."""
        found = self.problems(*texts, **options)
        assert len(found) == 1, "\n".join(map(str, found))
        return found[0]

    place = staticmethod(text_at)
