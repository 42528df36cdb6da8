"""Files that manifests name, and manifests themselves, under names that no file can have."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Span

HERE = Span("agent.yaml", 3, 7)
IMPOSSIBLE = ["long" * 5000, "a\0b.md"]


@pytest.mark.parametrize("name", IMPOSSIBLE, ids=["too long", "with a zero byte"])
def test_a_file_a_manifest_names_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        LoadRequest((tmp_path / "agent.yaml",)).resolve(name, HERE)
    [problem] = refusal.value.problems
    assert (problem.code, problem.span) == ("missing-file", HERE)


@pytest.mark.parametrize("name", IMPOSSIBLE, ids=["too long", "with a zero byte"])
def test_a_manifest_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        load_graph(LoadRequest((tmp_path / name,), named_at=HERE))
    assert [problem.span for problem in refusal.value.problems] == [HERE]
