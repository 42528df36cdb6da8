"""The suites of a run on the terminal."""

from typing import Any

import pytest

from harness.report.summary_text import suite_table


def _group(
    passed: int = 3, failed: int = 0, errors: int = 0, fitness: float | None = 1.0, skipped: int = 0
) -> dict[str, Any]:
    return {
        "runs": passed + failed + errors + skipped,
        "skipped": skipped,
        "passed": passed,
        "failed": failed,
        "errors": errors,
        "fitness": fitness,
        "latency": {"p95": 1.5},
    }


def test_suites_with_failures_come_first_then_the_lowest_fitness() -> None:
    suites = {
        "a.scenario.yaml": _group(),
        "b.scenario.yaml": _group(fitness=0.5),
        "c.scenario.yaml": _group(2, 1, 1, 0.75),
        "d.scenario.yaml": _group(0, 0, 0, None),
    }
    assert suite_table(suites, 80) == [
        "suite            passed  fitness     p95",
        "c.scenario.yaml     2/4    0.750  1.50 s",
        "b.scenario.yaml     3/3    0.500  1.50 s",
        "a.scenario.yaml     3/3    1.000  1.50 s",
        "d.scenario.yaml     0/0        –  1.50 s",
        "",
    ]


def test_nothing_is_padded_if_output_is_no_terminal() -> None:
    suites = {"a.scenario.yaml": _group(), "much/longer.scenario.yaml": _group()}
    assert suite_table(suites)[0] == "a.scenario.yaml  3/3 passed  fitness 1.000  p95 1.50 s"


def test_skipped_runs_are_not_in_the_denominator() -> None:
    suites = {"a.scenario.yaml": _group(skipped=4), "b.scenario.yaml": _group()}
    assert suite_table(suites)[0].startswith("a.scenario.yaml  3/3 passed")


def test_no_table_for_a_single_suite() -> None:
    assert suite_table({"a.scenario.yaml": _group()}, 80) == []


@pytest.mark.parametrize(("failing", "told"), [(4, "none with failures"), (13, "3 of them with failures")])
def test_ten_suites_are_shown_and_the_others_counted(failing: int, told: str) -> None:
    suites = {f"s{number:02}.scenario.yaml": _group(1, int(number < failing)) for number in range(25)}
    lines = suite_table(suites)
    assert len(lines) == 12
    assert lines[10] == f"… and 15 more suites, {told}"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_lines_fit_and_names_keep_their_end(width: int) -> None:
    suites = {f"a/long/way/down/to/the/folder/{name}.scenario.yaml": _group() for name in ("desk", "triage")}
    lines = suite_table(suites, width)
    assert max(map(len, lines)) <= width
    assert "desk" in lines[1]
    assert "triage" in lines[2]


def test_control_characters_in_names_are_escaped() -> None:
    assert "\x1b" not in "".join(suite_table({"a\x1b[2J": _group(), "b": _group()}, 80))


def test_latencies_of_zero_are_left_out() -> None:
    quick = {"latency": {"p95": 0.0}}
    assert suite_table({"a": _group(1) | quick, "b": _group(1) | quick}) == [
        "a  1/1 passed  fitness 1.000",
        "b  1/1 passed  fitness 1.000",
        "",
    ]
