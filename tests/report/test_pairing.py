import json
from pathlib import Path

import pytest

from harness.errors import FormatError
from harness.report.reading import RESULTS
from harness.report.scenario_runs import pair, read_run
from tests.gate.runs import RunSpec, write_run


def test_scenarios_are_paired_by_id_and_repeats_by_number(tmp_path: Path) -> None:
    before = read_run(
        write_run(tmp_path / "before", {"x": RunSpec(repeats=2), "y": RunSpec(), "old": RunSpec()})
    )
    after = read_run(
        write_run(tmp_path / "after", {"new": RunSpec(), "y": RunSpec(), "x": RunSpec(repeats=3)})
    )

    pairing = pair(before, after)

    assert [each.after.id for each in pairing.pairs] == ["a.scenario.yaml::y", "a.scenario.yaml::x"]
    assert [len(each.repeats) for each in pairing.pairs] == [1, 2]
    assert [each.unpaired for each in pairing.pairs] == [0, 1]
    assert [each.id for each in pairing.gone] == ["a.scenario.yaml::old"]
    assert [each.id for each in pairing.added] == ["a.scenario.yaml::new"]


def test_variants_are_paired_separately(tmp_path: Path) -> None:
    before = read_run(write_run(tmp_path / "before", {"x": RunSpec()}))
    after = read_run(write_run(tmp_path / "after", {"x": RunSpec(variant="terse")}))

    assert not pair(before, after).pairs
    assert [each.label for each in pair(before, after).added] == ["a.scenario.yaml::x [terse]"]


def test_a_scenario_that_is_skipped_now_is_gone(tmp_path: Path) -> None:
    before = read_run(write_run(tmp_path / "before", {"x": RunSpec(), "y": RunSpec("skipped")}))
    after = read_run(write_run(tmp_path / "after", {"x": RunSpec("skipped"), "y": RunSpec("skipped")}))

    assert [each.id for each in pair(before, after).gone] == ["a.scenario.yaml::x"]


def test_unreadable_file_is_not_paired(tmp_path: Path) -> None:
    before = read_run(
        write_run(tmp_path / "before", {"x": RunSpec(), "(file)": RunSpec("error", suite="b.scenario.yaml")})
    )
    after = read_run(write_run(tmp_path / "after", {"x": RunSpec()}))

    assert before.unread == ["b.scenario.yaml"]
    assert not pair(before, after).gone


def test_changed_checks_are_those_that_did_not_fail_before(tmp_path: Path) -> None:
    before = read_run(write_run(tmp_path / "1", {"x": RunSpec("failed", failed={"output": "no"})}))
    after = read_run(
        write_run(tmp_path / "2", {"x": RunSpec("failed", failed={"output": "no", "path": "was b"})})
    )

    assert pair(before, after).pairs[0].changed_checks == ["path: was b"]
    assert pair(after, after).pairs[0].changed_checks == ["output: no", "path: was b"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"verdict": "splendid"}, "verdict cannot be 'splendid'"),
        ({"verdict": "failed"}, "verdict is 'failed', and passed is true"),
        ({"passed": False}, "verdict is 'passed', and passed is false"),
        ({"score": float("nan")}, "not a line of JSON: 'NaN,"),
        ({"score": 95}, "score cannot be 95"),
        ({"latency": {"total": "fast", "nodes": {}}}, "latency.total must be a number or null, found 'fast'"),
        ({"usage": None}, "usage must be a mapping, found null"),
        ({"tags": None}, "tags must be a list, found null"),
    ],
)
def test_damaged_line_is_rejected_with_its_location(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    file = write_run(tmp_path / "run", {"x": RunSpec(), "y": RunSpec()}) / RESULTS
    first, second = file.read_text(encoding="utf-8").splitlines()
    file.write_text(f"{first}\n{json.dumps({**json.loads(second), **change})}\n", encoding="utf-8")

    with pytest.raises(FormatError, match=said) as refused:
        read_run(tmp_path / "run")

    assert refused.value.code == "results-line"
    assert refused.value.problems[0].span is not None
    assert refused.value.problems[0].span.line == 2


def test_results_that_lack_lines_are_damaged(tmp_path: Path) -> None:
    file = write_run(tmp_path / "run", {"x": RunSpec(), "y": RunSpec()}) / RESULTS
    file.write_text(file.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")

    with pytest.raises(FormatError, match=r"has 1 run, and its summary\.json counts 2"):
        read_run(tmp_path / "run")


def test_duplicate_repeat_is_rejected(tmp_path: Path) -> None:
    file = write_run(tmp_path / "run", {"x": RunSpec()}) / RESULTS
    file.write_text(file.read_text(encoding="utf-8") * 2, encoding="utf-8")

    with pytest.raises(FormatError, match="is listed twice"):
        read_run(tmp_path / "run")


def test_empty_results_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="nothing ran"):
        read_run(write_run(tmp_path / "run", {}))
