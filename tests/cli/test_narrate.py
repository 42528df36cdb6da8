"""`harness run --narrate`: each run in words on standard error, in Loki's format, for every dialect."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke

SCENARIOS = Path(__file__).parents[2] / "scenarios"
CASES = Path(__file__).parents[1] / "dialects"


@pytest.fixture
def tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(SCENARIOS / "tutorial", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_is_narrated_step_by_step_with_its_slowest_nodes_first(tutorial: Path, invoke: Invoke) -> None:
    result = invoke("run", "complaints.scenario.yaml", "-k", "signed", "--narrate")
    assert result.stderr.splitlines() == [
        "complaints.scenario.yaml::a broken piece is replaced, once somebody has signed",
        "▸ graph: complaints (start: read)",
        "▸ read (llm)",
        "▸ llm call: model=claude-sonnet-4-6 tools=<none>",
        "▸ read -> decide",
        "▸ decide (script)",
        "▸ script call: decide",
        "▸ decide -> write",
        "▸ write (llm)",
        "▸ llm call: model=claude-sonnet-4-6 tools=<none>",
        "▸ write -> sign",
        "▸ sign (approval)",
        "▸ human call: sign",
        "▸ sign -> sent",
        "▸ sent (end)",
        "▸ graph done in 3.20s",
        "[graph:complaints] performance summary (slowest first):",
        "[graph:complaints] write: 1 visit(s), total 2000ms, avg 2000ms, max 2000ms",
        "[graph:complaints] read: 1 visit(s), total 1200ms, avg 1200ms, max 1200ms",
        "[graph:complaints] decide: 1 visit(s), total 0ms, avg 0ms, max 0ms",
        "[graph:complaints] sign: 1 visit(s), total 0ms, avg 0ms, max 0ms",
        "[graph:complaints] sent: 1 visit(s), total 0ms, avg 0ms, max 0ms",
    ]
    assert "passed" in result.stdout


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("refunds", "▸ llm call: model=gpt-4o tools=find_charges"),
        ("returns", "▸ handler call: look_at"),
        ("parcels", "▸ graph done in 0.00s"),
    ],
)
def test_runs_of_every_dialect_are_narrated(file: str, line: str, tutorial: Path, invoke: Invoke) -> None:
    assert line in invoke("run", f"{file}.scenario.yaml", "--narrate").stderr.splitlines()


def test_runs_in_workers_are_narrated(tutorial: Path, invoke: Invoke) -> None:
    told = invoke("run", "complaints.scenario.yaml", "--narrate", "-j", "2").stderr
    assert told.count("performance summary") == 4


def test_nothing_is_narrated_without_the_option(tutorial: Path, invoke: Invoke) -> None:
    assert "▸" not in invoke("run", "complaints.scenario.yaml", "-k", "signed").stderr


def test_a_failure_has_its_node_and_nested_nodes_have_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    shutil.copytree(CASES / "loki" / "cases", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    told = invoke("run", "agents.scenario.yaml", "-k", "pauses the run", "--narrate").stderr.splitlines()
    assert "▸ ask/draft -> ask/sign" in told
    assert told.count("▸ ask (agent)") == 1
    assert "▸ llm call: model=<active> tools=<none>" in told
    assert [line for line in told if line.startswith("▸ graph")] == [
        "▸ graph: front-desk (start: ask)",
        "▸ graph interrupted in 0.00s",
        "▸ graph: front-desk (resumed)",
        "▸ graph interrupted in 0.00s",
        "▸ graph: front-desk (resumed)",
        "▸ graph done in 0.00s",
    ]
