"""Files and folders that manifests name, names that no file can have, and cached graphs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Span
from harness.scenario.load import load_file
from harness.scenario.model import load_request
from harness.settings import Settings

HERE = Span("agent.yaml", 3, 7)
IMPOSSIBLE = ["long" * 5000, "a\0b.md"]


@pytest.mark.parametrize("name", IMPOSSIBLE, ids=["too long", "with a zero byte"])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        LoadRequest((tmp_path / "agent.yaml",)).resolve(name, HERE)
    [problem] = refusal.value.problems
    assert (problem.code, problem.span) == ("unreadable-file", HERE)


@pytest.mark.parametrize("name", IMPOSSIBLE, ids=["too long", "with a zero byte"])
def test_a_missing_manifest(tmp_path: Path, name: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        load_graph(LoadRequest((tmp_path / name,), named_at=HERE))
    assert [problem.span for problem in refusal.value.problems] == [HERE]


# ------------------------------------------------------------------ folders


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadRequest:
    """Return the request for a manifest beside the folder `parts`."""
    project = tmp_path / "project"
    for name in ("b.py", "a.py", "a.md", ".hidden.py", "deep/c.py", ".git/d.py", "__pycache__/e.py"):
        path = project / "parts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.chdir(project)
    (project / "pyproject.toml").touch()
    return LoadRequest((project / "agent.yaml",))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["a.md", "a.py", "b.py", "deep/c.py"]),
        ({"pattern": "*.py"}, ["a.py", "b.py", "deep/c.py"]),
        ({"recursive": False}, ["a.md", "a.py", "b.py"]),
        ({"pattern": "*.txt"}, []),
    ],
)
def test_a_folder_lists_its_files_in_order(
    request_: LoadRequest, options: dict[str, Any], names: list[str]
) -> None:
    folder = request_.resolve_folder("parts", HERE, **options)
    assert [file.relative_to(folder.path).as_posix() for file in folder.files] == names
    assert request_.files() == folder.files


@pytest.mark.parametrize(
    ("written", "code", "message"),
    [
        ("prts", "missing-file", "folder 'prts' does not exist"),
        ("parts/a.md", "not-a-folder", "'parts/a.md' is a file, and a folder is needed"),
        ("../..", "path-outside", "'../..' is outside the folders a manifest may read"),
        ("long" * 5000, "unreadable-file", "this path cannot be looked up: File name too long"),
    ],
)
def test_a_folder_that_cannot_be_listed(request_: LoadRequest, written: str, code: str, message: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        request_.resolve_folder(written, HERE)
    [problem] = refusal.value.problems
    assert (problem.code, problem.message, problem.span) == (code, message, HERE)


def test_a_path_that_cannot_be_read_as_a_file(request_: LoadRequest) -> None:
    Path("loop.md").symlink_to("loop.md")
    with pytest.raises(ManifestError, match="this path cannot be looked up: Too many levels"):
        request_.resolve("loop.md", HERE)
    os.mkfifo("pipe.md")
    with pytest.raises(ManifestError, match=r"'pipe\.md' is a pipe, a socket or a device, not a file"):
        request_.resolve("pipe.md", HERE)


def test_a_folder_instead_of_a_file(request_: LoadRequest) -> None:
    with pytest.raises(ManifestError, match="'parts' is a folder, and a file is needed"):
        request_.resolve("parts", HERE)


def test_a_link_in_a_folder_may_not_lead_outside(request_: LoadRequest, tmp_path: Path) -> None:
    (tmp_path / "secret.md").touch()
    Path("parts/z.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(ManifestError, match=r"'z\.md' is outside"):
        request_.resolve_folder("parts", HERE)


# ------------------------------------------------------------------ graphs that are kept

AGENT = """\
manifest_version: 1
prompts: [{id: p, instructions_path: p.md}]
agents:
  a:
    state: {fields: [{name: said, type: str}]}
    graph:
      entry_point: say
      nodes: [{name: say, type: set_state, args: {values: {said: 'prompts["p"]["instructions"]'}}}]
      edges: []
"""


def test_a_graph_is_recompiled_when_a_file_that_its_manifest_names_changes(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(AGENT)
    (tmp_path / "p.md").write_text("one")
    request = LoadRequest((tmp_path / "a.yaml",))
    graph = load_graph(request)
    assert load_graph(request) is graph
    (tmp_path / "p.md").write_text("two!")
    assert load_graph(request) is not graph
    (tmp_path / "p.md").unlink()
    with pytest.raises(ManifestError, match=r"'p\.md' does not exist"):
        load_graph(request)


def test_all_scenarios_of_a_manifest_run_one_graph(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(AGENT)
    (tmp_path / "p.md").write_text("one")
    file = tmp_path / "a.scenario.yaml"
    file.write_text(
        "harness: 1\nmanifest: a.yaml\nscenarios: [{name: one, input: hi}, {name: two, input: hi}]"
    )
    first, second = (load_graph(load_request(each, Settings())) for each in load_file(file).scenarios)
    assert first is second
