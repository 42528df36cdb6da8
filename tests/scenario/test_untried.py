"""Warnings of a run about untried parts of its scenario: faults, bounds, texts, recordings, tables."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from tests.manifests import ASKING, USES_TOOLS

DROPPING = ASKING.replace("${MODEL}", "quill-2").replace(
    "'[llm_response]'}", """'[llm_response]', tone: '"calm"'}"""
)
"""Its state has no `tone`: a warning of each run says that the update is dropped."""
WORKFLOW = """\
version: "1.0"
start_at: ask
end_at: [ask]
state_schema: {question: {type: str}}
nodes: [{id: ask, handler: asking}]
edges: []
"""

SERVED = """\
manifest_version: 1
llms: [{id: m, version: "1", provider: openai, model_name: quill-2}]
default_llm: {id: m}
mcp_servers: [{id: docs, version: "1", transport: sse, url: "http://docs.example"}]
""" + USES_TOOLS.replace("guide", "asking").replace("say", "ask")

Warned = Callable[..., list[str]]


@pytest.fixture
def warned(tmp_path: Path) -> Warned:
    """The warnings of a passing run of a scenario with these keys; they begin at column 1 of line 4."""

    def of(keys: str, manifest: str = DROPPING) -> list[str]:
        (tmp_path / "manifest.yaml").write_text(manifest)
        file = tmp_path / "a.scenario.yaml"
        file.write_text(f"harness: 1\nmanifest: manifest.yaml\nscenarios: [{{name: x,\n{keys}}}]\n")
        outcomes = [outcome for scenario in load_file(file).scenarios for outcome in run_scenario(scenario)]
        assert {outcome.verdict for outcome in outcomes} <= {"passed", "skipped"}
        texts = [text.replace(f"{tmp_path}/", "") for text in outcomes[0].observed.warnings]
        return [text for text in texts if "'tone'" not in text]

    return of


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            "faults: [{effect: llm, nth: 2, error: timeout}], ",
            "a.scenario.yaml:4:10: this fault never struck: 1 call fits it, and it waits for number 2",
        ),
        (
            "faults: [{effect: mcp, rate: 0.5, latency: 1}], ",
            "a.scenario.yaml:4:10: this fault never struck: no call",
        ),
        (
            "faults: [{effect: llm, nth: 1, truncate: 900}], ",
            "a.scenario.yaml:4:10: this fault never struck: no answer that it hit is longer than 900 characters",
        ),
        ("faults: [{effect: llm, nth: 1, latency: 0}], ", "a.scenario.yaml:4:41: this fault changes nothing"),
        ("xfail: it is slow, ", "a.scenario.yaml:3:20: it was expected to fail (it is slow), and passed"),
        ("cases: [{a: 1}, {a: 2}], ", "a.scenario.yaml:4:1: no column of these cases is used"),
    ],
)
def test_what_was_not_tried_is_a_warning(warned: Warned, keys: str, expected: str) -> None:
    (text,) = warned(f"{keys}llm: [ok], expect: {{path: [ask]}}")
    assert text.startswith(expected)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (
            "state.toen == 1",
            "state.toen == 1: no such key: 'toen' in state.toen (has(…) asks for what may be absent)",
        ),
        ("size(state.messages) > '1'", "no such overload: > of int and string"),
        ("request.node", "request.node is 'ask', neither true nor false"),
    ],
)
def test_a_when_that_has_no_value_in_any_call_is_a_warning(warned: Warned, when: str, expected: str) -> None:
    stub = f'{{when: "{when}", reply: no, times: any}}'
    (text,) = warned(f"llm: [{stub}, ok], expect: {{path: [ask]}}")
    assert text.startswith(
        "a.scenario.yaml:4:7: this stub never answers: its `when` has no value in any call: "
    )
    assert expected in text


@pytest.mark.parametrize(
    "when", ["request.prompt == 'x'", "has(state.x) && state.x == 1"], ids=["request", "state"]
)
def test_a_when_that_no_call_met_is_a_warning(warned: Warned, when: str) -> None:
    """A stub that may answer any number of times is not missed otherwise."""
    assert warned(f'llm: [{{when: "{when}", reply: no, times: any}}, ok], expect: {{path: [ask]}}') == [
        f"a.scenario.yaml:4:7: this stub never answers: its `when` was false in every call: {when}"
    ]


def test_an_argument_of_another_type_is_a_warning(warned: Warned) -> None:
    asked = "llm: [{tool_calls: [{name: look, args: {at: 5, by: a}}]}, done], expect: {path: [ask, ask_tools, ask]}"
    stubs = "stubs: [{args: {at: '5'}, return: x, times: any}, {return: y, times: any}]"
    server = f"mcp: {{docs: {{tools: [{{name: look, {stubs}}}]}}}}"
    (text,) = warned(f"{asked}, {server}", SERVED)
    assert 'this stub never answers: it asks for at: "5", and a call has 5, of another type' in text
    assert warned(f"{asked}, {server}".replace("'5'", "5"), SERVED) == []
    assert warned(f"{asked}, {server}".replace("'5'", "'6'"), SERVED) == []


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("expect: {path: [ask]}", "it was expected to fail (slow), and could not be judged: nothing answers"),
        (
            "llm: [ok], expect: {checks: [{that: state.nothing.there}]}",
            "it was expected to fail (slow), and could not be judged: ",
        ),
    ],
)
def test_a_run_that_could_not_be_judged_is_no_expected_failure_in_silence(
    warned: Warned, keys: str, expected: str
) -> None:
    assert [text for text in warned(f"xfail: slow, {keys}") if expected in text]


@pytest.mark.parametrize(
    ("expect", "expected"),
    [
        (
            "usage: {input_tokens: 5, cost: 1}",
            "no model reported tokens, so the bound of input_tokens, cost was not checked",
        ),
        (
            "checks: [{that: 'calls.filter(c, c.kind == \"mcp\").all(c, c.ok)'}]",
            """all(c, c.ok)' holds for nothing, since calls.filter(c, c.kind == "mcp") is empty """
            """(add `size(calls.filter(c, c.kind == "mcp")) > 0`)""",
        ),
        (
            "checks: [{that: 'size(path) > 0 && calls.filter(c, !c.ok).all(c, c.ok)'}]",
            "holds for nothing, since calls.filter(c, !c.ok) is empty",
        ),
        (
            "never_warnings: [is dropped]",
            "'is dropped' is only a part of a warning, but plain text must equal the whole warning",
        ),
        (
            "output_schema: {title: Answer, required: [x], properties: {x: {type: integer}}}",
            "output_schema does not constrain text: 'required' applies to values of another",
        ),
        (
            "state_schema: {properties: {messages: {minimum: 3}}}",
            "state_schema.messages does not constrain a list: 'minimum' applies to values of another",
        ),
        (
            "state: {messages: {$schema: {minimum: 3}}}",
            "state.messages does not constrain a list: 'minimum' applies to values of another",
        ),
    ],
)
def test_an_expectation_with_nothing_to_be_held_against(warned: Warned, expect: str, expected: str) -> None:
    (text,) = warned(f"llm: [ok], expect: {{{expect}}}")
    assert expected in text


@pytest.mark.parametrize(
    "keys",
    [
        "faults: [{effect: llm, nth: 1, latency: 1}], llm: [ok], expect: {path: [ask]}",
        "faults: [{effect: llm, rate: 1.0e-9, error: auth}], llm: [ok], expect: {path: [ask]}",
        "llm: [{reply: ok, usage: {input_tokens: 1}}], expect: {usage: {input_tokens: 5, output_tokens: 0}}",
        "llm: [ok], expect: {never_warnings: [is late], usage: {llm_calls: 1}}",
        "llm: [ok, {when: state.x == 1, reply: no, times: any}], expect: {path: [ask]}",
        "llm: [{when: 'state.x == 1 || request.node == \"ask\"', reply: ok}], expect: {path: [ask]}",
        "llm: [ok], expect: {output_schema: {minLength: 2, maximum: 3}, state_schema: {required: [messages]}}",
        "llm: [ok], expect: {output_schema: {properties: {}, type: string}}",
        "llm: [ok], expect: {checks: [{that: 'calls.all(c, c.kind == \"llm\")'}], latency: {nodes: {ask: 2}}}",
        "llm: [ok], expect: {checks: [{that: 'size(calls) == 1 || calls.filter(c, !c.ok).all(c, c.ok)'}]}",
        "cases: [{a: so}, {a: no}], llm: ['${case.a}'], expect: {path: [ask]}",
    ],
)
def test_what_was_tried(warned: Warned, keys: str) -> None:
    assert warned(keys) == []


def test_a_tool_call_of_a_stub_that_is_refused_is_a_warning_unless_it_is_expected(warned: Warned) -> None:
    asks = "llm: [{tool_calls: [{name: look, args: {at: 1}}]}], expect: "
    refused = "a.scenario.yaml:4:7: the call of 'look' in this stub was refused: the model has no tool 'look'"
    assert [text for text in warned(asks + "{path: [ask]}") if text.startswith(refused)]
    assert not [text for text in warned(asks + "{calls: [{tool: look, ok: false}]}") if "refused" in text]


def test_a_call_of_an_mcp_tool_whose_arguments_do_not_fit_its_schema_is_a_warning(warned: Warned) -> None:
    wanted = "{type: object, properties: {days: {type: array, items: {type: integer}}}}"
    server = f"mcp: {{docs: {{tools: [{{name: look, input_schema: {wanted}, stubs: [{{return: x}}]}}]}}}}"
    asks = "llm: [{tool_calls: [{name: look, args: {days: [1, two]}}]}, done], expect: "
    refused = (
        "a.scenario.yaml:4:7: the call of 'look' in this stub was refused: "
        "Input validation error: 'two' is not of type 'integer' (argument 'days.1') "
        "(where that is meant, expect it in `calls` with `ok: false`)"
    )
    path = "{path: [ask, ask_tools, ask]}"
    assert warned(f"{asks}{path}, {server}", SERVED) == [refused]
    assert warned(f"{asks}{{calls: [{{mcp: look, ok: false}}]}}, {server}", SERVED) == []
    assert warned(f"{asks.replace('two', '2')}{path}, {server}", SERVED) == []


def test_an_argument_that_no_call_has_is_a_warning(warned: Warned) -> None:
    (text,) = warned("llm: [ok], expect: {never_calls: [{llm: '*', args: {promt: x}}]}")
    assert "4:53: no call of kind 'llm' has an argument 'promt'" in text


def test_a_cassette_that_is_not_recorded_and_that_nothing_asks_for_is_a_warning(
    warned: Warned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert warned("cassette: spare, llm: [ok]") == [
        "cassette 'spare' is not recorded, and nothing asks for it"
    ]


def test_an_input_that_a_workflow_does_not_keep_is_a_warning(warned: Warned) -> None:
    (text,) = warned(
        "input: {qestion: why}, handlers: {asking: {return: {}}}, expect: {path: [ask]}", WORKFLOW
    )
    assert text == (
        "a.scenario.yaml:4:9: the input is dropped: 'manifest' has no 'qestion' (did you mean 'question'?)"
    )


def test_an_agent_that_a_workflow_does_not_have_is_a_warning(warned: Warned) -> None:
    keys = "agent: other, input: {question: why}, handlers: {asking: {return: {}}}, expect: {path: [ask]}"
    (text,) = warned(keys, WORKFLOW)
    assert text == "manifest.yaml:1:1: there is no agent 'other': a workflow is one agent, which has no name"


def test_a_run_that_fails_as_expected_is_told_what_it_did_not_try(warned: Warned) -> None:
    failing = "llm: [error: auth], faults: [{effect: llm, nth: 9, error: timeout}], expect: {status: failed}"
    [text] = warned(failing)
    assert "this fault never struck: 1 call fits it, and it waits for number 9" in text
