"""Warnings about expectations that cannot fail, when a file is read and of every run."""

from pathlib import Path

import pytest

from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from tests.scenario.reading import read, warning


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (
            "pass_score: 0, expect: {path: []}",
            "5:1 pass_score: 0 cannot fail: this scenario passes whatever its run does",
        ),
        ("expect: {never: []}", "5:10 'never' lists nothing, so it cannot fail"),
        ("expect: {latency: {}}", "5:10 'latency' lists nothing"),
        ("expect: {calls: [], calls_order: any}", "5:10 'calls' lists nothing"),
        ("turns: [{expect: {never_calls: []}}]", "5:19 'never_calls' lists nothing"),
        (
            "expect: {judge: [{rubric: r, model: m, threshold: 0}]}",
            "5:51 every grade reaches a threshold of 0",
        ),
        (
            "expect: {path: [add], weights: {path: 0, status: 0, unused: 0}}",
            "5:23 the weight of every check is 0",
        ),
        (
            "expect: {path: [add], state: {count: 1}, weights: {path: 0}}",
            "5:58 a check of weight 0 counts nothing: it cannot fail the scenario",
        ),
        (
            "expect: {checks: [{that: state.count == 1}], weights: {checks: 0}}",
            "5:64 a check of weight 0 counts nothing: it cannot fail the scenario",
        ),
        ("input: hi", "3:20 nothing is expected: this scenario passes whenever its run completes"),
        ("expect: {}", "5:9 'expect' lists nothing"),
        ("expect: {custom: []}", "5:10 'custom' lists nothing"),
        ("expect: {latency: {nodes: {}}}", "5:20 'latency.nodes' lists nothing"),
        ("expect: {state: {}}", "5:17 an empty mapping is contained in every mapping"),
        ("expect: {state: {count: {}}}", "5:25 an empty mapping"),
        ("expect: {calls: [{llm: '*', args: {}}]}", "5:35 an empty mapping"),
        ("expect: {state: {a: {$contains: ''}}}", "5:33 every text contains ''"),
        ("expect: {state: {a: {$regex: '.*'}}}", "5:30 the pattern '.*' is found in every text"),
        ("expect: {state: {a: {$regex: '^'}}}", "5:30 the pattern '^' is found in every text"),
        (
            "expect: {state: {a: {$regex: '^(?:a|)b*'}}}",
            "5:30 the pattern '^(?:a|)b*' is found in every text",
        ),
        (
            "expect: {state_schema: {properties: {mail: {format: email}}}}",
            "5:53 'format: email' is not checked: JSON Schema takes it as a remark, so it cannot fail",
        ),
        ("expect: {warnings: [{$regex: 'x?'}]}", "5:30 the pattern 'x?' is found in every text"),
        ("expect: {state: {a: {$regex: '(?s).*$'}}}", "5:30 the pattern '(?s).*$' is found in every text"),
        ("expect: {state: {a: {$regex: 'done|'}}}", "5:30 the pattern 'done|' is found in every text"),
        ("expect: {state: {a: {$len: {$gte: 0}}}}", "5:28 every length matches"),
        ("expect: {state: {a: {$len: {$not: {$lt: 0}}}}}", "5:28 every length matches"),
        ("expect: {state: {a: {$all: []}}}", "5:22 '$all' lists nothing"),
        ("expect: {state: {a: {$cel: 'value == value'}}}", "5:28 'value == value' is true of every value"),
        ("expect: {state: {a: {$not: {$in: []}}}}", "5:28 nothing is in an empty list"),
        ("expect: {state: {a: {$schema: {title: A}}}}", "5:31 this schema accepts everything"),
        ("expect: {output_schema: true}", "5:25 this schema accepts everything"),
        ("expect: {state_schema: {requierd: [x]}}", "5:25 'requierd' is not a keyword of JSON Schema"),
        (
            "expect: {state_schema: {properties: {count: {minimun: 1}}}}",
            "5:46 'minimun' is not a keyword of JSON Schema",
        ),
        ("expect: {calls_order: exact}", "5:10 'calls_order' does nothing without 'calls'"),
        (
            "expect: {path: [], weights: {output: 2}}",
            "5:30 this weight has no effect: there is no check 'output' here",
        ),
        (
            "expect: {path: [], checks: [{that: state.count == 1, weight: 0}]}",
            "5:62 a check of weight 0 counts nothing",
        ),
    ],
)
def test_what_cannot_fail_is_told(tmp_path: Path, keys: str, told: str) -> None:
    code, text = warning(read(tmp_path, keys))
    assert code == "cannot-fail"
    assert text.startswith(told)


@pytest.mark.parametrize(
    "keys",
    [
        "pass_score: 0.1, expect: {path: []}",
        "turns: [{input: hi, expect: {path: []}}]",
        "expect: {status: completed}",
        "cassette: c",
        "expect: {calls: [], calls_order: exact}",
        "expect: {path: [], state: {$exact: {}}, error: {}}",
        "expect: {state: {a: {$any: true}, b: {$contains: x}, c: {$regex: '^$'}, d: [{}, {e: 1}]}}",
        "expect: {state: {a: {$regex: '^[^x]*$'}, b: {$regex: '^(?!x)'}, c: {$regex: '^x'}, d: {$regex: 'a*+^'}}}",
        "expect: {state_schema: {properties: {n: {type: integer, format: int64}, m: {format: email, pattern: '@'}}}}",
        "expect: {state: {a: {$regex: '(?=x)'}, b: {$len: {$gt: 0}}, c: {$not: {}}}}",
        "expect: {state: {a: {$regex: '^(?!sec.?ret)'}, b: {$regex: '^.{0,500}$'}, c: {$len: {$not: 5}}}}",
        "expect: {state_schema: {type: object, x-note: mine, note: mine, example: {a: 1}}, output_schema: false}",
        "expect: {visits: {add: {$not: 2}}, call_counts: {llm: {$gte: 1}}, interrupt: []}",
        "expect: {checks: [{that: size(path) > 0}, {that: 'state.a >= 0'}, {that: '!(1 in path)'}]}",
        "expect: {never_calls: [{llm: '*', args: {}}]}",
        "expect: {checks: [{that: 'false'}, {that: 'state.count == 1'}]}",
        "expect: {path: [add], weights: {status: 0}}",
        "expect: {checks: [{that: state.count == 1, weight: 1}], weights: {checks: 0, status: 0, unused: 0}}",
    ],
)
def test_what_can_fail(tmp_path: Path, keys: str) -> None:
    assert read(tmp_path, keys).warnings == ()


def test_a_weight_of_0_under_defaults_is_told_of_each_scenario_whose_check_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.scenario.yaml").write_text(
        "harness: 1\nmanifest: agent.yaml\ndefaults: {expect: {weights: {state: 0}}}\nscenarios:\n"
        "  - {name: x, expect: {path: [add], state: {count: 1}}}\n  - {name: y, expect: {path: [add]}}\n"
    )
    warnings = [each.warnings for each in load_file(tmp_path / "a.scenario.yaml").scenarios]
    assert [[(each.span.line, each.span.column) for each in found if each.span] for found in warnings] == [
        [(3, 38)],
        [],
    ]


def test_every_run_tells_it(tmp_path: Path) -> None:
    outcomes = run_scenario(read(tmp_path, "pass_score: 0, repeat: 2, expect: {state: {count: 7}}"))
    assert [outcome.verdict for outcome in outcomes] == ["passed", "passed"]
    assert all("pass_score: 0 cannot fail" in outcome.observed.warnings[0] for outcome in outcomes)


def test_a_scenario_that_expects_a_refusal_is_warned_of_as_any_other(tmp_path: Path) -> None:
    file = tmp_path / "a.scenario.yaml"
    (tmp_path / "broken.yaml").write_text("manifest_version: 1\nagents: 3\n")
    expect = "expect: {status: invalid, never: []}"
    file.write_text(f"harness: 1\nmanifest: broken.yaml\nscenarios: [{{name: x, {expect}}}]\n")
    [outcome] = run_scenario(load_file(file).scenarios[0])
    assert outcome.passed
    assert any("'never' lists nothing" in text for text in outcome.observed.warnings)


def test_a_manifest_that_is_not_there_is_no_refusal(tmp_path: Path) -> None:
    """A typo in its path would else pass, since the message has the name of the file."""
    file = tmp_path / "a.scenario.yaml"
    expect = "expect: {status: invalid, error: {message: {$regex: state_updates}}}"
    file.write_text(f"harness: 1\nmanifest: on_state_updates.yaml\nscenarios: [{{name: x, {expect}}}]\n")
    [outcome] = run_scenario(load_file(file).scenarios[0])
    assert not outcome.passed
    assert "no such file" in outcome.checks[0].message
