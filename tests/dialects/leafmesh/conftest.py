import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dialects.leafmesh.opener import Opener
from tests.dialects.leafmesh.project import MESH, Project


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    return Opener(tmp_path)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project with one programmatic agent. Importing its files must leave nothing behind."""
    path = list(sys.path)
    yield Project(tmp_path / "project")
    assert not any(name.partition(".")[0] == "leafmesh" for name in sys.modules)
    assert sys.path == path


@pytest.fixture
def studio(project: Project) -> Project:
    """The same project, with an LLM agent that has the tool `weigh`."""
    project.write(
        {"configs/config.yaml": MESH.replace("agent_type: programmatic", "agent_type: llm, tools: [weigh]")}
    )
    return project
