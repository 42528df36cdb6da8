"""Mutated manifests that contain scenarios give an error with its place, or run."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.errors import SourceError
from harness.scenario.load import load_file
from tests.fuzz.mutations import mutated
from tests.fuzz.test_mutations import CHUNKS, SCENARIOS, at_most, cases, check_run

MESHES = ("leafmesh/meshes/cider_press.yaml", "tutorial/agents/workshop/configs/config.yaml")
FOLDERS = ("leafmesh/agency", "tutorial/agents/workshop/agency")


@pytest.fixture(scope="module")
def project(tmp_path_factory: Any) -> Path:
    root: Path = tmp_path_factory.mktemp("meshes")
    for name in (*MESHES, *FOLDERS):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if name in FOLDERS else shutil.copy)(SCENARIOS / name, root / name)
    return root


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutated_manifests_with_scenarios_are_refused_with_a_place_or_run(project: Path, chunk: int) -> None:
    for seed in cases(chunk):
        draw = random.Random(seed)
        name = draw.choice(MESHES)
        text = (SCENARIOS / name).read_text(encoding="utf-8")
        at = text.index("evolution:")  # half of the mutations hit the scenarios themselves
        changed = (
            mutated(text, draw) if draw.random() < 0.5 else text[:at].encode() + mutated(text[at:], draw)
        )
        (project / name).write_bytes(changed)
        with at_most(20):
            for scenario in loaded(project / name, seed):
                check_run(scenario, seed)


def loaded(mesh: Path, seed: int) -> Any:
    """Return the scenarios in a mesh, or none if it is invalid; assert that each problem has a place."""
    try:
        return load_file(mesh).scenarios
    except SourceError as error:
        problems = error.problems
    nowhere = [problem for problem in problems if problem.span is None and problem.code != "no-scenarios"]
    assert not nowhere, f"seed {seed}: {nowhere}"
    return ()
