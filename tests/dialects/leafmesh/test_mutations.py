"""Mutated mesh files are either opened or refused with problems located in the file."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from harness.dialects.leafmesh.mesh_file import open_mesh
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from tests.dialects.leafmesh.meshes import MESH
from tests.dialects.leafmesh.opener import Opener
from tests.fuzz.mutations import ODD_VALUES, mutated

SAFE = MESH.replace("${REDIS_PORT:6379}", "6379")  # mutations of its data read it as YAML first


def refusals(opener: Opener, env: Mapping[str, str]) -> Sequence[Problem]:
    """Return the problems of the file; empty if it is opened."""
    try:
        open_mesh(LoadRequest((opener.path,), env=env))
    except ManifestError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("seed", range(40))
def test_mutated_files(opener: Opener, seed: int) -> None:
    draw = random.Random(seed)
    data = mutated(SAFE, draw)
    opener.path.write_bytes(data)
    env = {"X": str(draw.choice(ODD_VALUES)), "WHO": str(draw.choice(ODD_VALUES))}
    lines = len(data.decode("utf-8", "replace").splitlines())
    for problem in refusals(opener, env):
        assert problem.span is not None
        assert 1 <= problem.span.line <= lines + 1


def test_files_that_are_cut_off(opener: Opener) -> None:
    for end in range(0, len(SAFE), 97):
        opener.path.write_text(SAFE[:end])
        assert all(problem.span is not None for problem in refusals(opener, {}))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "not a text file: it contains zero bytes"),
        (b"name: \xff", "not UTF-8: the byte 0xff"),
        (b"a: b\n" * 3_000_000, "larger than 10 MiB"),
    ],
)
def test_files_that_are_no_text(opener: Opener, data: bytes, message: str) -> None:
    opener.path.write_bytes(data)
    with pytest.raises(ManifestError, match=message):
        open_mesh(LoadRequest((opener.path,)))
