"""Load warnings of a workflow that a scenario makes pointless: it replaces a built-in handler, or sets a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

FLOW = """\
version: "1.0"
start_at: sort
end_at: [reply]
nodes:
  - id: sort
    handler: structured_llm
    params: {prompt_ref: p.yaml#sort, model: {provider: openai, name: gpt-4o-mini}, top_k: 3}
  - {id: fetch, handler: fetch}
  - id: reply
    handler: streaming_llm
    params: {prompt_ref: p.yaml#reply, model: {provider: openai, name: gpt-4o-mini}, stream: false}
edges: [{source: sort, target: fetch}, {source: fetch, target: reply}]
"""
PROMPTS = """\
sort: {user: 'Sort {topic}'}
reply: {user: 'About {topic}, from {facts}'}
"""
FILES = {
    "flow.yaml": FLOW,
    "p.yaml": PROMPTS,
    "outer.yaml": """\
version: "1.0"
start_at: whole
end_at: [whole]
nodes: [{id: whole, handler: subgraph, params: {workflow_ref: flow.yaml}}]
edges: []
""",
    "own.py": "def sort(state, params): return {}\ndef fetch(state): return {'facts': 'few'}\n",
}
SORT = "structured_llm: {return: {}}"
FETCH = "fetch: {return: {facts: few}}"
COMPLETE = f"input: {{topic: bread}}, handlers: {{{SORT}, {FETCH}}}"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


def write(*scenarios: str, manifest: str = "flow.yaml") -> Path:
    """Write a scenario file whose scenarios have these keys."""
    file = Path("a.scenario.yaml")
    listed = [
        f"  - {{name: s{number}, llm: {{reply: [{{reply: Hi, times: any}}]}}, {keys}, expect: {{status: completed}}}}"
        for number, keys in enumerate(scenarios)
    ]
    file.write_text("\n".join(["harness: 1", f"manifest: {manifest}", "scenarios:", *listed, ""]))
    return file


def warned(keys: str, manifest: str = "flow.yaml") -> list[str]:
    """Return the warnings of a run of a scenario with these keys, without their locations."""
    (scenario,) = load_file(write(keys, manifest=manifest)).scenarios
    (outcome,) = run_scenario(scenario)
    assert outcome.passed, outcome.observed.error
    return [text.partition(": node ")[2] for text in outcome.observed.warnings if ": node " in text]


def told(*paths: str) -> list[tuple[str, str]]:
    """Return the severity and the code of each problem that `harness validate` finds."""
    result = CliRunner().invoke(cli, ["validate", "--json", *paths])
    return [(problem["severity"], problem["code"]) for problem in json.loads(result.stdout)]


@pytest.mark.parametrize("manifest", ["flow.yaml", "outer.yaml"])
def test_a_scenario_that_replaces_handlers_and_sets_all_keys_has_no_warnings(manifest: str) -> None:
    assert warned(COMPLETE, manifest) == []
    assert told("a.scenario.yaml") == []


@pytest.mark.parametrize("entry", ["own.sort", "{return: {}}", "[{return: {}, times: 1}]"])
def test_params_are_no_problem_of_a_handler_that_takes_the_place_of_a_built_in_one(entry: str) -> None:
    assert warned(f"input: {{topic: bread}}, handlers: {{structured_llm: {entry}, {FETCH}}}") == []


def test_a_built_in_handler_that_the_scenario_calls_real_is_warned_about() -> None:
    file = write(f"input: {{topic: bread}}, handlers: {{structured_llm: real, {FETCH}}}")
    (outcome,) = run_scenario(load_file(file).scenarios[0])
    warnings = [text for text in outcome.observed.warnings if "its handler structured_llm" in text]
    assert ["will fail" in text for text in warnings] == [False, True]


KEYS = {
    "the input": ("input: {topic: bread, facts: few}", "fetch: {return: {}}"),
    "the input of a later turn": (
        "turns: [{input: {topic: bread}}, {input: {facts: few}}]",
        "fetch: {return: {}}",
    ),
    "an answer": ("input: {topic: bread}", FETCH),
    "a function, which may set any key": ("input: {topic: bread}", "fetch: own.fetch"),
}


@pytest.mark.parametrize(("given", "fetch"), KEYS.values(), ids=KEYS)
def test_a_key_that_a_scenario_sets_is_known(given: str, fetch: str) -> None:
    warnings = warned(f"{given}, handlers: {{{SORT}, {fetch}}}")
    assert [text for text in warnings if "nothing is known to set" in text] == []


def test_a_key_that_nothing_sets_is_a_warning_of_the_run_with_the_nearest_known_key() -> None:
    why = "of its prompt: it is neither in state_schema nor the output_key of a node (did you mean 'topic'?)"
    assert warned(f"input: {{topics: bread}}, handlers: {{{SORT}, {FETCH}}}") == [
        f"'{node}': nothing is known to set '{{topic}}' {why.replace('topic', 'topics')}"
        for node in ("sort", "reply")
    ]


def test_a_schema_drops_a_key_that_it_does_not_declare_so_it_is_not_known() -> None:
    schema = "state_schema: {facts: {type: str}, output: {type: str}}"
    Path("flow.yaml").write_text(FLOW.replace("nodes:", f"{schema}\nnodes:"))
    assert [text[:40] for text in warned(COMPLETE)] == [
        "'sort': nothing is known to set '{topic}",
        "'reply': nothing is known to set '{topic",
    ]


def test_keys_that_only_an_input_can_set_are_notes_of_a_workflow_without_a_schema() -> None:
    unset = [("note", "unknown-placeholder")] * 3
    refused = [("warning", "unread-param"), ("warning", "model-params")]
    assert told("flow.yaml") == [*unset, *refused]
    assert told("outer.yaml") == refused


def test_a_workflow_is_not_warned_about_beside_a_scenario_that_rules_the_warnings_out() -> None:
    write(COMPLETE, manifest="outer.yaml")
    assert told(".") == [("note", "unknown-placeholder")] * 3  # of the inner workflow on its own
    write(COMPLETE)
    assert told(".", "flow.yaml") == []
    calls_the_built_in_handler = f"input: {{topic: bread}}, handlers: {{{FETCH}}}"
    write(COMPLETE, calls_the_built_in_handler)
    assert [code for _, code in told(".")] == ["unread-param", "model-params"]
    assert [code for _, code in told("flow.yaml")][3:] == ["unread-param", "model-params"]
