import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.errors import FormatError, Span
from harness.report.encoding import encode
from harness.report.reading import read_lines
from harness.report.results import ResultsWriter, line
from harness.scenario.outcome import CheckResult
from tests.report.fixtures import MakeOutcome

TABLE = """
format suite scenario id manifest dialect agent variant tags repeat seed status verdict passed score weight
latency_penalty checks path state output error interrupts warnings latency wall usage calls coverage digest
"""
FIELDS = list(TABLE.split())

ROWS = '{"rows":[[' + '"ab",' * 49 + '"ab"],[' + '"ab",' * 50
KEYS = "{" + "".join(f'"key {n}":1,' for n in range(100))


def test_a_line_has_the_documented_fields_in_their_order(outcome: MakeOutcome) -> None:
    assert list(line(outcome()))[: len(FIELDS)] == FIELDS


def test_additional_fields_are_reason_and_shape(outcome: MakeOutcome) -> None:
    assert list(line(outcome()))[len(FIELDS) :] == [
        "reason", "cause", "fault", "recording", "varies", "seeded", "now", "expectations", "where", "shape",
        "trace",
    ]  # fmt: skip


def test_line_identifies_the_run_and_its_result(outcome: MakeOutcome) -> None:
    made = line(
        outcome("failed", variant="terse", repeat=2, seed=7, status="interrupted", interrupts=["ok?"])
    )
    assert made["format"] == "harness-results/1"
    assert made["id"] == "triage.scenario.yaml::a double charge"
    assert (made["variant"], made["repeat"], made["seed"]) == ("terse", 2, 7)
    assert (made["status"], made["verdict"], made["passed"]) == ("interrupted", "failed", False)
    assert made["interrupts"] == ["ok?"]


def test_check_is_a_mapping_with_its_location(outcome: MakeOutcome) -> None:
    check = CheckResult("path", False, 0.5, 2.0, ["a"], ["b"], "not in order", Span("x.yaml", 1, 1))
    assert line(outcome(checks=[check]))["checks"] == [
        {
            "name": "path",
            "passed": False,
            "score": 0.5,
            "weight": 2.0,
            "expected": ["a"],
            "actual": ["b"],
            "message": "not in order",
            "where": "x.yaml:1:1",
        }
    ]


def test_error_and_calls_always_have_all_their_keys(outcome: MakeOutcome) -> None:
    made = line(
        outcome(error={"message": "boom", "type": "ToolError"}, calls=[{"kind": "llm", "name": "gpt"}])
    )
    assert list(made["error"]) == ["type", "code", "message", "node", "where", "traceback"]
    assert list(made["calls"][0]) == ["kind", "name", "node", "args", "ok", "latency"]
    assert made["error"]["node"] is None


@pytest.mark.parametrize(
    ("args", "written"),
    [
        ({"city": "Bergen", "days": [1, 2]}, {"city": "Bergen", "days": [1, 2]}),
        ({"items": [0] * 100_000}, {"items": [*[0] * 50, "… 99950 more"]}),
        ({"text": "a" * 100_000}, {"text": f"{'a' * 500}… (100000 characters)"}),
        ({"rows": [["ab"] * 50] * 50}, {"…": f"{ROWS[:499]}…"}),
        ({f"key {n}": 1 for n in range(10_000)}, {"…": f"{KEYS[:499]}…"}),
    ],
)
def test_long_arguments_and_expected_values_are_cut(outcome: MakeOutcome, args: Any, written: Any) -> None:
    check = CheckResult("state", True, 1.0, 1.0, args, None)
    made = line(outcome(checks=[check], calls=[{"kind": "tool", "name": "f", "args": args}]))
    assert made["calls"][0]["args"] == written
    assert made["checks"][0]["expected"] == written


def test_coverage_is_sorted(outcome: MakeOutcome) -> None:
    coverage = {"nodes": {"b", "a"}, "edges": [["b", "c"], ["a", "b"]], "branches": []}
    assert line(outcome(coverage=coverage))["coverage"] == {
        "nodes": ["a", "b"],
        "edges": [["a", "b"], ["b", "c"]],
        "branches": [],
    }


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.nan, '"nan"'),
        (-math.inf, '"-inf"'),
        ("ünï \U0001f389", '"ünï \U0001f389"'),
        ("\ud800", '"\\\\ud800"'),
        ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
        ({1: "x", (2, 3): "y"}, '{"1":"x","(2, 3)":"y"}'),
        pytest.param(10**5000, f'"{hex(10**5000)}"', id="a very large number"),
        ({3, 1, 2}, "[1,2,3]"),
        ((1, [2]), "[1,[2]]"),
        (ValueError("bad"), '"ValueError: bad"'),
        (True, "true"),
    ],
)
def test_every_value_becomes_strict_json(value: Any, written: Any) -> None:
    assert encode(value) == written


def test_objects_are_written_without_their_address() -> None:
    assert "0x" not in encode(object())


def test_a_value_that_contains_itself_is_cut_off() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert "…" in encode(loop)


def test_object_with_a_failing_repr_is_named_by_its_type() -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    assert encode(Broken()) == '"<Broken>"'


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=12,
)


@given(values)
@example({"a": 1e-07, "b": "\ud800"})
@example([1e-07, math.nan])
@example([1e-07, 1 << 70])
def test_reading_and_writing_again_yields_the_same_text(value: Any) -> None:
    written = encode(value)
    assert encode(json.loads(written.encode())) == written


def test_lines_are_on_disk_as_soon_as_they_are_added(tmp_path: Path, outcome: MakeOutcome) -> None:
    with ResultsWriter(tmp_path) as results:
        for seed in (1, 2):
            results.add(outcome(seed=seed))
            assert [read["seed"] for read in read_lines(results.path)] == list(range(1, seed + 1))


def test_starting_a_run_removes_the_files_of_the_previous_one(tmp_path: Path, outcome: MakeOutcome) -> None:
    with ResultsWriter(tmp_path) as results:
        results.add(outcome())
    (tmp_path / "notes.txt").write_text("mine")
    with ResultsWriter(tmp_path):
        assert sorted(path.name for path in tmp_path.glob("*.*")) == ["notes.txt", "results.jsonl"]
        assert not list(read_lines(tmp_path))


def test_finish_writes_all_files_and_leaves_no_temporary_ones(tmp_path: Path, outcome: MakeOutcome) -> None:
    with ResultsWriter(tmp_path / "reports" / "latest") as results:
        results.add(outcome())
        summary = results.finish()
    written = sorted(path.name for path in results.folder.iterdir())
    assert written == ["junit.xml", "report.html", "results.jsonl", "summary.json", "summary.md"]
    assert json.loads((results.folder / "summary.json").read_text()) == summary
    assert summary["total"]["runs"] == 1


def test_interrupted_run_is_summarised(tmp_path: Path, outcome: MakeOutcome) -> None:
    def interrupted() -> None:
        with ResultsWriter(tmp_path) as results:
            results.add(outcome())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert json.loads((tmp_path / "summary.json").read_text())["total"]["runs"] == 1


def test_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(FormatError, match="cannot write the report") as caught,
        ResultsWriter(tmp_path / "file"),
    ):
        pass
    assert caught.value.code == "report-folder"
    assert "--report DIR" in caught.value.problems[0].hint


@pytest.mark.parametrize("report", ["file", "file/inside/it"])
def test_a_file_in_the_way_of_the_folder_is_named(tmp_path: Path, report: Any) -> None:
    (tmp_path / "file").write_text("")
    told = f"cannot write the report {tmp_path / report}: {tmp_path / 'file'} is a file, not a folder"
    with pytest.raises(FormatError, match=re.escape(told)), ResultsWriter(tmp_path / report):
        pass


def test_incomplete_last_line_is_skipped_with_a_warning(tmp_path: Path, outcome: MakeOutcome) -> None:
    with ResultsWriter(tmp_path) as results:
        results.add(outcome(seed=1))
        results.add(outcome(seed=2))
    results.path.write_bytes(results.path.read_bytes()[:-30])
    with pytest.warns(UserWarning, match=r"results.jsonl:2: the last line was cut off"):
        assert [read["seed"] for read in read_lines(results.path)] == [1]


def test_line_cut_inside_a_character_is_skipped(tmp_path: Path, outcome: MakeOutcome) -> None:
    with ResultsWriter(tmp_path) as results:
        results.add(outcome(output="ü"))
    whole = results.path.read_bytes()
    results.path.write_bytes(whole[: whole.index("ü".encode()) + 1])
    with pytest.warns(UserWarning, match="cut off"):
        assert not list(read_lines(tmp_path))


@pytest.mark.parametrize("broken", ["{", "[1]", '{"format": "harness-results/9"}', "3"])
def test_broken_line_before_the_last_is_an_error_with_its_location(tmp_path: Path, broken: Any) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f"\n{broken}\n")
    with pytest.raises(FormatError, match=r"results.jsonl:2:1: not a line") as caught:
        list(read_lines(path))
    assert caught.value.code == "results-line"


def test_missing_results_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot read the results") as caught:
        list(read_lines(tmp_path / "nowhere"))
    assert caught.value.code == "results-missing"


def test_folder_in_use_by_another_run_is_rejected(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path), pytest.raises(FormatError, match="another run"), ResultsWriter(tmp_path):
        pass
    with ResultsWriter(tmp_path):
        pass


def test_long_prompts_and_replies_are_cut(outcome: MakeOutcome) -> None:
    call = {"kind": "llm", "name": "m", "node": "n", "args": {}, "ok": True, "latency": 0.0}
    [written] = line(outcome(calls=[{**call, "prompt": "p" * 900, "reply": "fine"}]))["calls"]
    assert (written["prompt"], written["reply"]) == ("p" * 500 + "… (900 characters)", "fine")
