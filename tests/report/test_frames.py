"""`harness.load_results`: one row for each run, check, call and visit."""

import json
import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import harness
from harness.report.results import ResultsWriter
from tests.report.fixtures import MakeCheck, MakeOutcome

KEY = ["run", "id", "variant", "repeat"]


def write(folder: Path, *outcomes: Any) -> Path:
    with ResultsWriter(folder) as writer:
        for outcome in outcomes:
            writer.add(outcome)
    return folder


USAGE = {
    "llm_calls": 2,
    "input_tokens": 30,
    "output_tokens": 12,
    "cost": 0.5,
    "by_model": {
        "small": {"llm_calls": 1, "input_tokens": 10, "output_tokens": 2, "cost": 0.1},
        "large": {"llm_calls": 1, "input_tokens": 20, "output_tokens": 10, "cost": 0.4},
    },
}
CALLS = [
    {"kind": "llm", "name": "small", "node": "a", "args": {}, "ok": True, "latency": 1.5, "reply": "Hi."},
    {
        "kind": "tool",
        "name": "find",
        "node": "b",
        "args": {"n": 7},
        "ok": False,
        "latency": 0,
        "reason": "no",
    },
]


@pytest.fixture
def folder(tmp_path: Path, outcome: MakeOutcome, failed_check: MakeCheck) -> Path:
    """Return results of a run that passed, and of one that failed."""
    passed = outcome(
        tags=["mail", "fast"],
        variant="terse",
        usage=USAGE,
        calls=CALLS,
        path=["a", ["b", "c"], "a"],
        latency={"total": 3.25, "nodes": {"a": 2.0, "b": 1.25, "c": 0.0}, "visits": {"a": [0.5, 1.5]}},
    )
    failed = outcome("failed", scenario="other", checks=[failed_check(), failed_check("state")], repeat=1)
    return write(tmp_path / "monday", passed, failed)


def test_a_row_is_a_run(folder: Path) -> None:
    frame = harness.load_results(folder).frame()
    first, second = (row for _, row in frame.iterrows())
    assert (first["suite"], first["variant"], first["verdict"]) == ("triage.scenario.yaml", "terse", "passed")
    assert (first["tags"], first["models"]) == (("mail", "fast"), ("small", "large"))
    assert (first["latency"], first["cost"], first["input_tokens"]) == (timedelta(seconds=3.25), 0.5, 30)
    assert (first["calls"], first["visits"], first["checks"]) == (2, 4, 0)
    assert (second["repeat"], second["passed"], second["failed_checks"]) == (1, False, ("path", "state"))
    assert pd.isna(second["variant"])
    assert first["run"] == str(folder)


def test_columns_have_the_documented_types(folder: Path) -> None:
    results = harness.load_results(folder)
    document = (Path(__file__).parents[2] / "docs/python.md").read_text(encoding="utf-8")
    for method in ("frame", "checks", "calls", "visits"):
        table = document.partition(f"| `{method}()` ")[2].partition("\n\n")[0]
        rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
        documented = {
            name.strip(" `"): kind.split("(")[0].strip(" `")
            for names, kind in rows
            for name in names.split(",")
        }
        frame = getattr(results, method)()
        assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == documented, method


def test_a_row_is_a_check_a_call_a_visit(folder: Path) -> None:
    results = harness.load_results(folder)
    assert results.checks()[["id", "name", "passed", "message"]].to_dict("records") == [
        {
            "id": "triage.scenario.yaml::other",
            "name": name,
            "passed": False,
            "message": "expected b, was c",
        }
        for name in ("path", "state")
    ]
    calls = results.calls()
    assert calls["args"].tolist() == [{}, {"n": 7}]
    assert calls[["number", "kind", "ok"]].values.tolist() == [[1, "llm", True], [2, "tool", False]]
    assert calls["reply"].isna().tolist() == [False, True]
    visits = results.visits()
    of_first = visits[visits["variant"] == "terse"]
    assert of_first[["step", "node", "visit"]].values.tolist() == [
        [1, "a", 1],
        [2, "b", 1],
        [2, "c", 1],
        [3, "a", 2],
    ]
    assert of_first["latency"].dt.total_seconds().tolist() == [0.5, 1.25, 0.0, 1.5]
    assert len(visits.merge(results.frame(), on=KEY)) == len(visits)


def test_the_latency_of_a_visit_is_missing_if_results_only_have_the_sum(
    tmp_path: Path, outcome: MakeOutcome
) -> None:
    older = outcome(path=["a", "b", "a"], latency={"total": 3.0, "nodes": {"a": 2.0, "b": 1.0}})
    visits = harness.load_results(write(tmp_path / "monday", older)).visits()
    assert visits["latency"].isna().tolist() == [True, False, True]


def test_missing_figures_are_missing_not_zero(tmp_path: Path, outcome: MakeOutcome) -> None:
    unpriced = {
        **USAGE,
        "by_model": {"ours": {"llm_calls": 2, "input_tokens": 30, "output_tokens": 12, "cost": None}},
    }
    skipped = outcome("skipped", scenario="skipped", status="skipped", latency={"total": None, "nodes": {}})
    frame = harness.load_results(write(tmp_path / "r", outcome(usage=unpriced), skipped)).frame()
    assert frame["cost"].isna().tolist() == [True, False]
    assert frame["latency"].isna().tolist() == [False, True]


def test_a_seed_of_more_than_64_bits_is_exact(tmp_path: Path, outcome: MakeOutcome) -> None:
    frame = harness.load_results(write(tmp_path / "r", outcome(seed=2**70 + 1))).frame()
    assert frame["seed"].tolist() == [2**70 + 1]


def test_several_folders_are_one_frame_and_a_copy_counts_once(folder: Path, outcome: MakeOutcome) -> None:
    tuesday = write(folder.with_name("tuesday"), outcome(latency={"total": 9.0, "nodes": {}}))
    shutil.copytree(folder, folder.with_name("copy"))
    with pytest.warns(UserWarning, match="copy is a copy of .*monday"):
        results = harness.load_results(folder, tuesday, folder.with_name("copy"))
    assert results.frame()["run"].value_counts().to_dict() == {str(folder): 2, str(tuesday): 1}


def test_without_a_folder_it_is_the_last_run(
    tmp_path: Path, outcome: MakeOutcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("[tool.harness]\n")
    write(Path("reports/latest"), outcome())
    assert len(harness.load_results().frame()) == 1


def test_results_without_a_run_are_empty_frames_of_the_same_types(folder: Path, tmp_path: Path) -> None:
    empty, results = harness.load_results(write(tmp_path / "empty")), harness.load_results(folder)
    for method in ("frame", "checks", "calls", "visits"):
        none, some = getattr(empty, method)(), getattr(results, method)()
        assert len(none) == 0
        assert [*none.dtypes.map(str)] == [*some.dtypes.map(str)]


def test_no_results_are_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(harness.FormatError, match="cannot read the results"):
        harness.load_results(tmp_path)


def test_groups_have_the_figures_of_summary_json(folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    [fast, mail] = harness.load_results(folder).groups("tag").to_dict("records")
    for row in (fast, mail):
        of_tag = summary["tags"][row["tag"]]
        assert [row[name] for name in ("runs", "pass_rate", "fitness", "cost")] == [
            of_tag[name] for name in ("runs", "pass_rate", "fitness", "cost")
        ]
        assert row["latency_p95"] == timedelta(seconds=of_tag["latency"]["p95"])


def test_a_model_has_its_own_usage(folder: Path) -> None:
    groups = harness.load_results(folder).groups("model", "variant")
    assert groups[["model", "variant", "input_tokens", "cost"]].values.tolist() == [
        ["large", "terse", 20, 0.4],
        ["small", "terse", 10, 0.1],
    ]


def test_an_unknown_key_has_a_suggestion(folder: Path) -> None:
    with pytest.raises(harness.FormatError, match=r"cannot be grouped by 'modle'.*\n.*did you mean 'model'"):
        harness.load_results(folder).groups("modle")


def test_pandas_is_loaded_for_a_frame_only(folder: Path) -> None:
    code = (
        "import sys, harness; results = harness.load_results(sys.argv[1]); before = 'pandas' in sys.modules; "
        "results.frame(); print(before, 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert done.stdout == "False True\n"
