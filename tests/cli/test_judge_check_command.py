"""`harness judge-check`: figures of a judge, remarks on the rows, refused input. Source: docs/judges.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from click.testing import Result

from tests.cli.fixtures import Invoke, WriteFile

Check = Callable[..., Result]
HEAD = "judge: {rubric: It is good., model: grader}\n"


def stub(output: str, grade: Any) -> str:
    return f"- {{when: 'request.prompt.contains(\"{output}\")', json: {{reason: so {output}, grade: {grade}}}}}\n"


@pytest.fixture
def check(invoke: Invoke, write: WriteFile) -> Check:
    """A function that measures a judge with these grades: rows of output, label and grade."""

    def run(rows: Sequence[tuple[str, Any, Any]], *options: str, head: str = HEAD) -> Result:
        stubs = "".join(stub(output, grade) for output, _, grade in rows)
        table = "".join(f"- {{output: {output}, label: {label}}}\n" for output, label, _ in rows)
        write("labels.yaml", f"{head}llm:\n{stubs}rows:\n{table}")
        return invoke("judge-check", "labels.yaml", *options)

    return run


def rows(*counts: int) -> list[tuple[str, str, float]]:
    """Return this many rows that both pass, only people pass, only the judge passes, and both fail."""
    kinds = (("pass", 0.9), ("pass", 0.2), ("fail", 0.8), ("fail", 0.1))
    return [
        (f"x{kind}-{number}.", *kinds[kind]) for kind, count in enumerate(counts) for number in range(count)
    ]


def figures(result: Result) -> Any:
    assert result.exit_code in (0, 1, 3), result.output
    return json.loads(result.stdout)


def test_the_figures_match_the_table_of_ratings(check: Check) -> None:
    found = figures(check(rows(5, 1, 2, 4), "--json", "-"))
    assert found["format"] == "harness-judge-check/1"
    assert found["judge"] == {"metric": None, "rubric": "It is good.", "model": "grader", "threshold": 0.5}
    assert (found["rows"], found["judged"], found["agreement"]) == (12, 12, 0.75)
    assert found["confusion"] == {
        "people_pass": {"judge_pass": 5, "judge_fail": 1},
        "people_fail": {"judge_pass": 2, "judge_fail": 4},
    }
    assert found["kappa"]["value"] == 0.5
    assert -1 <= found["kappa"]["low"] < 0.5 < found["kappa"]["high"] <= 1
    assert found["fail"] == {"precision": 0.8, "recall": 0.666666667}
    assert (found["graded"], found["not_judged"]) == (None, [])


def test_rows_rated_differently_are_shown_with_the_judge_s_reason(check: Check) -> None:
    result = check(rows(5, 1, 2, 4))
    assert result.exit_code == 0
    assert "3 rows rated differently, the furthest apart first:" in result.stdout
    assert "  labels.yaml:21  people pass, judge 0.2: so x1-0.\n" in result.stdout
    assert "the judge is milder than people" in result.stdout


def test_a_better_threshold_is_suggested_with_a_note_on_its_selection(
    check: Check,
) -> None:
    result = check(rows(6, 0, 6, 3))
    assert "a threshold of 0.85 in place of 0.5 would agree in 1.000 of these rows.\n" in result.stdout
    assert "  It was chosen from them: check it on other rows" in result.stdout
    assert "a threshold of" not in check(rows(6, 0, 0, 6)).stdout


def test_a_threshold_that_is_better_by_chance_is_not_suggested(check: Check) -> None:
    """One of two equal thresholds rates three rows as people do in one case of eight."""
    result = check(rows(6, 0, 3, 3), "--json", "-")
    assert figures(result)["best_threshold"] is None


def test_the_threshold_option_overrides_that_of_the_file(check: Check) -> None:
    assert figures(check(rows(6, 0, 3, 3), "--threshold", "0.85", "--json", "-"))["agreement"] == 1


def test_graded_labels_are_compared_as_numbers_too(check: Check) -> None:
    graded = [(f"x{number}.", number / 10, number / 10 + 0.1) for number in range(10)]
    found = figures(check(graded, "--json", "-"))
    assert found["graded"] == {"correlation": 1, "mean_absolute_error": 0.1}
    assert found["confusion"]["people_fail"] == {"judge_pass": 1, "judge_fail": 4}


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (rows(12, 1, 0, 0), "people say 'pass' of every row: label some of the other kind"),
        (rows(0, 0, 3, 9), "people say 'fail' of every row: label some of the other kind"),
        (rows(3, 0, 0, 3), "6 rows are too few: label at least 10, preferably 50"),
    ],
)
def test_an_undefined_kappa_is_explained_and_cannot_be_required(
    check: Check, table: list[tuple[str, str, float]], why: str
) -> None:
    result = check(table, "--require-kappa", "0.1")
    assert result.exit_code == 3
    assert f"kappa      not reported: {why}" in result.stdout
    assert result.stderr == f"kappa 0.1 is required, but not reported: {why}\n"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--require-agreement", "0.75"), 0),
        (("--require-agreement", "0.76"), 1),
        (("--require-kappa", "0.5"), 0),
        (("--require-kappa", "0.51"), 1),
    ],
)
def test_agreement_below_the_requirement_fails_the_command(
    check: Check, options: tuple[str, ...], code: int
) -> None:
    result = check(rows(5, 1, 2, 4), *options)
    assert result.exit_code == code
    assert ("is below the required" in result.stderr) == (code == 1)


def test_an_answer_without_a_grade_counts_as_0_and_is_reported(check: Check) -> None:
    result = check([*rows(5, 0, 0, 5), ("y.", "pass", "none")])
    assert "1 answer without a grade, which counts as 0" in result.stdout
    assert "people pass, judge 0: no grade in the answer" in result.stdout


def test_a_row_whose_judge_fails_is_an_error_and_not_counted(invoke: Invoke, write: WriteFile) -> None:
    stubs = "llm:\n- {error: server_error}\n- {json: {reason: r, grade: 1}, times: any}\n"
    write("labels.yaml", HEAD + stubs + "rows: [{output: a, label: pass}, {output: b, label: pass}]\n")
    result = invoke("judge-check", "labels.yaml", "--json", "-")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert (found["rows"], found["judged"], found["agreement"]) == (2, 1, 1)
    assert found["not_judged"][0]["reason"] == "the judge failed: 500 internal server error"


def test_an_unanswered_call_ends_the_command(check: Check, invoke: Invoke, write: WriteFile) -> None:
    write("labels.csv", "output,label\na,pass\n")
    result = invoke("judge-check", "labels.csv", "--rubric", "r", "--model", "m")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "cassette 'labels.csv.cassette' is not recorded" in result.stderr
    again = "harness judge-check labels.csv --rubric=r --model=m --record-mode=new_episodes"
    assert f"record it: {again}" in result.stderr


METRIC = "judge: {metric: faithfulness, model: g}\nllm: [{json: {reason: r, grade: 1}, times: any}]\n"


def test_a_metric_is_shown_the_columns_it_needs(invoke: Invoke, write: WriteFile) -> None:
    shown = json.dumps({"context": ["rain", "12 mm"], "output": "wet"})
    write(
        "labels.jsonl",
        json.dumps(
            {
                "judge": {"metric": "faithfulness", "model": "g"},
                "llm": [{"when": f"request.prompt == '{shown}'", "json": {"reason": "r", "grade": 1}}],
            }
        )
        + '\n{"output": "wet", "context": ["rain", "12 mm"], "label": true, "note": "clear"}\n',
    )
    assert figures(invoke("judge-check", "labels.jsonl", "--json", "-"))["agreement"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            METRIC + "rows: [{output: a, label: pass}]",
            "3:8: error: row 1 has no 'context', which faithfulness needs",
        ),
        (METRIC + "rows: [{ouput: a, label: pass}]", "3:8: error: row 1 has no 'output'"),
        (
            HEAD + "rows: [{output: a, label: mybe}]",
            "2:8: error: the label of row 1 is pass or fail, or a grade from",
        ),
        (
            HEAD + "rows: [{output: a, label: 2}]",
            "2:8: error: the label of row 1 is pass or fail, or a grade from",
        ),
        (HEAD + "row: []", "2:1: error: unknown key 'row' in a file of labels"),
        (HEAD + "rows: []", "error: no rows in labels.yaml"),
        ("judge: {metric: tones, model: g}\nrows: []", "1:17: error: unknown metric 'tones'"),
        ("judge: {metric: tone}\nrows: [{output: a, label: 1}]", "error: which model is the judge?"),
        ("[{output: a, label: 1}]", "error: labels.yaml: which judge is to be measured?"),
        (
            "judge: {metric: tone, model: g, threshold: 0}\nrows: [{output: a, label: 1}]",
            "1:44: error: every grade reaches a threshold of 0",
        ),
    ],
)
def test_invalid_rows_are_errors_with_their_place(
    invoke: Invoke, write: WriteFile, text: str, message: str
) -> None:
    write("labels.yaml", text)
    result = invoke("judge-check", "labels.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_an_empty_or_unknown_file_is_refused(invoke: Invoke, write: WriteFile) -> None:
    write("labels.csv", "")
    write("labels.txt", "a")
    for file, message in (
        ("labels.csv", "no rows in"),
        ("labels.txt", "its name must end in one of .csv, .jsonl"),
    ):
        result = invoke("judge-check", file, "--rubric", "r", "--model", "m")
        assert (result.exit_code, message in result.stderr) == (2, True)
