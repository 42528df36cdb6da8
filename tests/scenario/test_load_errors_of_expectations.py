"""Problems of the expectations and matchers of a scenario file, with locations and hints."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.scenario.load import load_file
from tests.scenario.load_errors import in_scenario


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("a.scenario.yaml")


@pytest.mark.parametrize(
    ("expect", "expected"),
    [
        ("{sate: 1}", "5:10 unknown key 'sate' in 'expect'|did you mean 'state'?"),
        (
            "{status: complete}",
            "5:18 status: expected one of completed, interrupted, failed, timeout, invalid, "
            "found text 'complete'|did you mean 'completed'?",
        ),
        ("{path: a}", "5:16 path: expected a list, found text 'a'|a list of one is written [a]"),
        ("{path: [[[a]]]}", "5:18 path[0][0]: expected text, found a list|write path: [classify, answer]"),
        (
            "{path: [3]}",
            "5:17 path[0]: expected a node, or a list of the nodes of one superstep, found the number 3|"
            "write path: [classify, answer]",
        ),
        ("{visits: {a: -1}}", "5:22 expected a count, or a matcher for one, found the number -1|"),
        ("{routes: [{from: a, to: b, tow: b}]}", "5:36 unknown key 'tow' in a route|did you mean 'to'?"),
        ("{calls: [{tol: x}]}", "5:19 unknown key 'tol' in a call|did you mean 'tool'?"),
        (
            "{calls: [{node: x}]}",
            "5:18 a call needs one of llm, tool, mcp, http, agent, script, human, retrieval|",
        ),
        ("{calls: [{tool: a, llm: b}]}", "5:19 a call has one kind: 'tool' cannot be combined with 'llm'|"),
        ("{call_counts: {'tols:a': 1}}", "5:24 'tols:a' is not a kind of call|did you mean 'tool'?"),
        (
            "{calls_order: sorted}",
            "5:23 calls_order: expected one of in_order, any, exact, found text 'sorted'|",
        ),
        ("{latency: {totl: 1}}", "5:20 unknown key 'totl' in latency bounds|did you mean 'total'?"),
        ("{usage: {cost: -1}}", "5:24 cost: must be greater than or equal to 0, found the number -1|"),
        (
            "{checks: [{that: 'a =='}]}",
            "5:31 not valid CEL: the expression ends too early (line 1, column 5)|",
        ),
        (
            "{checks: [{that: 'siz(path) == 1'}]}",
            "5:27 not valid CEL: no function 'siz' in siz(path) (did you mean 'size'?)|",
        ),
        (
            "{checks: [{that: 'true || stat.count > 2'}]}",
            "5:35 not valid CEL: undeclared name 'stat' (did you mean 'state'?)|",
        ),
        (
            "{output: {$cel: 'valu > 2'}}",
            "5:25 $cel wants an expression (undeclared name 'valu' (did you mean 'value'?)), not \"valu > 2\"|",
        ),
        (
            "{judge: [{model: m}]}",
            "5:18 a judge needs a metric or a rubric|metrics are listed by `harness judges`",
        ),
        ("{judge: [{metric: tones, model: m}]}", "5:27 unknown metric 'tones'|did you mean 'tone'?"),
        (
            "{judge: {metric: tone, rubric: a, model: m}}",
            "5:32 a judge has a metric or a rubric: 'rubric' cannot be combined with 'metric'|",
        ),
        (
            "{judge: {rubric: a, model: m, prompt: {file: a.txt}}}",
            "5:39 'prompt' replaces the prompt of a metric, so it needs 'metric'|",
        ),
        (
            "{judge: 3}",
            "5:17 judge: expected a judge, or a list of judges, found the number 3|"
            "write judge: [{rubric: It is polite., model: gpt-4o}]",
        ),
        ("{total: 2}", "5:10 unknown key 'total' in 'expect'|'total' belongs under 'latency'"),
        (
            "{tool: a}",
            "5:10 unknown key 'tool' in 'expect'|'tool' belongs in an item of 'calls' or 'never_calls'",
        ),
        ("{latency: 2}", "5:19 latency: expected a mapping, found the number 2|write latency: {total: 2}"),
        (
            "{checks: [a]}",
            "5:19 checks[0]: expected a mapping, found text 'a'|write checks: [{that: 'state.count > 2'}]",
        ),
        (
            "{judge: [{rubric: a}]}",
            "5:18 missing key 'model' in a judge|or set judge_model in [tool.harness]",
        ),
        ("{unused: false}", "5:18 'unused' is always checked|write 'allow_unused: true' in the scenario"),
        ("{weights: {paht: 1}}", "5:20 'paht' is not a check|did you mean 'path'?"),
        ("{weights: {path: -1}}", "5:26 path: must be greater than or equal to 0, found the number -1|"),
        ("{error: {kind: x}}", "5:18 unknown key 'kind' in an expected error|known: type, message, node"),
    ],
)
def test_mistakes_in_expectations(file: Path, expect: str, expected: str) -> None:
    assert in_scenario(file, f"expect: {expect}") == [expected]


@pytest.mark.parametrize("place", ["state", "output", "interrupt"])
def test_matchers_are_checked_wherever_they_stand(file: Path, place: str) -> None:
    (text,) = in_scenario(file, f"expect: {{{place}: {{a: [{{$not: {{$conatins: 1}}}}]}}}}")
    assert text.endswith("unknown matcher '$conatins'|did you mean '$contains'?")


@pytest.mark.parametrize(
    "keys",
    [
        "llm: [{reply: a, args: {a: {$foo: 1}}}]",
        "tools: {t: {args: {a: {$foo: 1}}, return: 1}}",
        "expect: {calls: [{tool: t, args: {a: {$foo: 1}}}]}",
        "expect: {warnings: [{$foo: 1}]}",
        "expect: {error: {message: {$foo: 1}}}",
        "turns: [{input: x, expect: {state: {a: {$foo: 1}}}}]",
    ],
)
def test_a_misspelled_matcher_is_found_in_every_place_for_one(file: Path, keys: str) -> None:
    (text,) = in_scenario(file, keys)
    assert "unknown matcher '$foo'" in text


@pytest.mark.parametrize(
    "written", ["{$gt: []}", "{$regex: '('}", "{$approx: 3}", "{$cel: 'value >'}", "{$len: -1}", "{$all: 1}"]
)
def test_a_matcher_with_a_bad_argument_is_refused(file: Path, written: str) -> None:
    assert len(in_scenario(file, f"expect: {{output: {written}}}")) == 1


def test_a_matcher_beside_other_keys_is_refused(file: Path) -> None:
    (text,) = in_scenario(file, "expect: {output: {$gt: 1, $lt: 3}}")
    assert text.endswith(
        "is a matcher only when it is the only key of its mapping|write $all: [{$gt: …}, {$lt: …}]"
    )


def test_a_mapping_with_dollar_keys_that_are_no_matchers_is_data(file: Path) -> None:
    file.write_text("harness: 1\nmanifest: m\nscenarios: [{name: x, expect: {output: {$ref: a, type: b}}}]")
    assert load_file(file).scenarios[0].expect.values == {"output": {"$ref": "a", "type": "b"}}


def test_schemas_are_checked(file: Path) -> None:
    for keys in ("expect: {state_schema: {type: strin}}", "expect: {output: {$schema: {type: strin}}}"):
        (text,) = in_scenario(file, keys)
        assert "not a JSON Schema (2020-12)" in text or "$schema" in text
