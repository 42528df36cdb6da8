"""A helper that writes mesh files and opens them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from harness.dialects.leafmesh.mesh_file import MeshFile, open_mesh
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from tests.dialects.places import text_at


class Opener:
    """Writes `mesh.yaml` into a folder and opens it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "mesh.yaml"

    def open(self, text: str, env: Mapping[str, str] | None = None) -> MeshFile:
        self.path.write_text(text, encoding="utf-8", newline="")
        return open_mesh(LoadRequest((self.path,), env=env or {}))

    def problems(self, text: str, env: Mapping[str, str] | None = None) -> Sequence[Problem]:
        """Return the problems of a mesh, which must be refused."""
        with pytest.raises(ManifestError) as refusal:
            self.open(text, env)
        return refusal.value.problems

    place = staticmethod(text_at)
