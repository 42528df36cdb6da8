"""What comes of a mutant, and what is suggested for one that nobody noticed. Source: docs/mutate.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.authoring.expected import candidates
from harness.graph.trace import Event
from harness.mutation.result import Result, score_of
from harness.scenario.outcome import Observation
from tests.mutation.conftest import AGENT, SUITE, Invoke, Mutate

EDGE = "agents/desk/graph/edges/classify"
NODE = "agents/desk/graph/nodes"


def test_a_mutant_is_killed_by_the_scenario_and_the_check_that_notice_it(mutate: Mutate) -> None:
    found = mutate("--operator", "route")["by_id"][
        f"route:desk.yaml:{EDGE}/branches/ticket/condition:negated"
    ]
    assert (found["outcome"], found["killed_by"]) == ("killed", "desk.scenario.yaml::billing")
    assert (found["check"], found["part"]) == ("path", "classify -> ticket")
    assert found["where"] == f"desk.yaml:{AGENT[: AGENT.index('branches')].count(chr(10)) + 1}"
    assert (
        """+          branches: [{condition: '!(state.intent == "billing")', target: ticket}]"""
        in found["diff"]
    )


def test_a_scenario_that_cannot_be_judged_any_more_kills_and_is_told_apart(mutate: Mutate) -> None:
    found = mutate("--operator", "call")
    assert found["by_id"]["call:desk.yaml:llms/fast/model_name:other"]["outcome"] == "survived"
    assert found["killed_by_error"] == 0
    Path("desk.scenario.yaml").write_text(
        SUITE.replace("[billing]", "[{reply: billing, when: request.model == 'gpt-4o'}]")
    )
    found = mutate("--operator", "call")
    killed = found["by_id"]["call:desk.yaml:llms/fast/model_name:other"]
    assert (killed["outcome"], killed["check"]) == ("killed", "UnscriptedCall")
    assert found["killed"] == found["killed_by_error"] == 1


def test_a_part_that_no_scenario_runs_has_no_coverage_and_runs_nothing(mutate: Mutate) -> None:
    found = mutate("--operator", "node")["by_id"]["node:desk.yaml:apologize:skipped"]
    assert found["outcome"] == "no_coverage"
    assert found["scenarios"] == []
    assert (
        found["suggestion"] == "no scenario runs `apologize`: add one with an input that leads to `apologize`"
    )


def test_a_fault_that_nothing_provokes_survives_and_the_suggestion_is_to_provoke_it(mutate: Mutate) -> None:
    found = mutate("--operator", "guard")["by_id"][f"guard:desk.yaml:{NODE}/classify/on_error:dropped"]
    assert found["outcome"] == "survived"
    assert found["suggested_for"] is None
    assert "`{error: rate_limit}`" in found["suggestion"]


def test_a_refused_manifest_is_invalid_and_an_equal_graph_equivalent_and_neither_counts() -> None:
    results = [
        Result(str(at), "route", "", "", outcome)
        for at, outcome in enumerate(
            ["killed", "timeout", "survived", "no_coverage", "equivalent", "invalid"]
        )
    ]
    assert score_of(results) == 0.5
    assert score_of(results[-2:]) is None


def test_a_manifest_that_the_mutant_breaks_is_invalid(mutate: Mutate) -> None:
    assert mutate("--operator", "route")["by_id"][f"route:desk.yaml:{EDGE}/branches/ticket/target:swapped"]
    Path("desk.yaml").write_text(
        Path("desk.yaml").read_text() + "        - {source: ticket, target: __end__}\n"
    )
    found = mutate("--operator", "route")
    assert found["invalid"] == sum(each["outcome"] == "invalid" for each in found["mutants"])


def test_a_prompt_that_no_stub_reads_is_told_and_never_run(mutate: Mutate) -> None:
    text = Path("desk.yaml").read_text()
    prompt = 'prompts: [{id: classify, version: "1", instructions: Say one word. Be kind.}]\n'
    told = """[{role: system, content: 'prompts["classify"]["instructions"]'}, {role: messages"""
    Path("desk.yaml").write_text(text.replace("llms:", f"{prompt}llms:").replace("[{role: messages", told))
    found = mutate("--operator", "prompt")
    assert {each["outcome"] for each in found["mutants"]} == {"no_coverage"}
    assert "no stub or recording reads the prompt" in found["mutants"][0]["suggestion"]
    reading = "[{reply: billing, when: 'size(request.messages) == 2'}]"
    Path("desk.scenario.yaml").write_text(SUITE.replace("[billing]", reading))
    found = mutate("--operator", "prompt")["by_id"]["prompt:desk.yaml:classify:sentence-2-dropped"]
    assert found["outcome"] == "survived"
    condition = "calls[0].request.messages[0].content.contains('Be kind.')"
    assert found["suggestion"] == f'checks: [{{that: "{condition}"}}]'
    checked = f'expect:\n      checks: [{{that: "{condition}"}}]\n      output: Here'
    Path("desk.scenario.yaml").write_text(SUITE.replace("expect:\n      output: Here", checked))
    found = mutate("--operator", "prompt")["by_id"]["prompt:desk.yaml:classify:sentence-2-dropped"]
    assert (found["outcome"], found["check"]) == ("killed", "checks[0]")


def test_two_failures_that_differ_in_their_messages_alone_are_told_apart() -> None:
    error = {"type": "ValueError", "node": "sort", "message": "no number"}
    before, after = (
        Observation(status="failed", error=error | more) for more in ({}, {"message": "no word"})
    )
    assert {"error": {"message": "no number"}} in [*candidates(before, after, ([], []), {})]


def test_a_pasted_suggestion_kills_its_mutant_and_keeps_the_rest_of_the_file(
    mutate: Mutate, invoke: Invoke
) -> None:
    before = mutate()
    survivors = [each for each in before["mutants"] if each["suggested_for"]]
    assert len(survivors) >= 3
    for each in survivors:
        assert invoke("accept", "--mutant", each["id"]).exit_code == 0
    after = mutate()
    assert {after["by_id"][each["id"]]["outcome"] for each in survivors} == {"killed"}
    assert after["score"] > before["score"]
    text = Path("desk.scenario.yaml").read_text()
    assert "output: Here is the answer.  # kept" in text


def test_accept_refuses_a_mutant_that_nothing_is_suggested_for(mutate: Mutate, invoke: Invoke) -> None:
    mutate("--operator", "guard")
    id_ = f"guard:desk.yaml:{NODE}/classify/on_error:dropped"
    assert "no-suggestion" in invoke("accept", "--mutant", id_).output
    assert f"did you mean '{id_}'" in invoke("accept", "--mutant", id_[:-2]).output


def test_the_first_event_that_differs_and_the_scenarios_that_ran_are_told(mutate: Mutate) -> None:
    found = mutate("--operator", "state")
    id_ = f"state:desk.yaml:{NODE}/ticket/args/values/messages:dropped"
    assert found["by_id"][id_]["difference"]["what"] == "what ticket changes of the state"
    assert found["by_id"][id_]["scenarios"] == ["desk.scenario.yaml::billing"]
    shown = found["output"][found["output"].index(id_) :]
    assert re.search(r"noticed by this expectation of desk.scenario.yaml::billing:\n    output: ", shown)


def test_results_equal_those_of_two_processes_and_of_another_hash_seed(mutate: Mutate) -> None:
    one = mutate("--fresh")["mutants"]
    assert mutate("--fresh", "-j", "2")["mutants"] == one


def test_a_scenario_that_fails_without_a_mutant_judges_none(mutate: Mutate) -> None:
    Path("desk.scenario.yaml").write_text(SUITE.replace("[classify, ticket]", "[classify, answer]"))
    found = mutate("--operator", "node", code=3)
    assert [*found["unusable"]] == ["desk.scenario.yaml::billing"]
    assert found["by_id"]["node:desk.yaml:ticket:skipped"]["outcome"] == "no_coverage"


def test_the_report_has_the_graph_with_figures_and_all_data(mutate: Mutate) -> None:
    found = mutate("--report", "out")
    page = Path("out/report.html").read_text()
    assert "Mutation score" in page
    assert '<svg class="graph coverage"' in page
    assert "classify -&gt; ticket" in page
    written = json.loads(Path("out/mutation.json").read_text())
    assert written["format"] == "harness-mutate/1"
    assert written["score"] == pytest.approx(found["score"])


def test_of_an_argument_that_is_a_mapping_the_part_that_differs_is_expected() -> None:
    def events(why: str) -> list[Event]:
        args = {"case": {"id": "c-7f3a", "why": why}}
        return [{"event": "call", "kind": "tool", "name": "note", "node": "n", "request": {"args": args}}]

    found = candidates(Observation(), Observation(), (events("late"), events("lost")), {})
    condition = "'why' in calls[0].args['case'] && calls[0].args['case']['why'] == 'late'"
    assert next(found) == {"checks": [{"that": condition}]}


def test_what_a_prompt_is_expected_to_have_is_more_than_punctuation() -> None:
    def events(text: str) -> list[Event]:
        request = {"messages": [{"type": "system", "content": text}], "params": {}, "tools": []}
        return [{"event": "call", "kind": "llm", "name": "m", "node": "n", "request": request}]

    found = candidates(Observation(), Observation(), (events("}\nKeep it short."), events("")), {})
    assert next(found) == {
        "checks": [{"that": "calls[0].request.messages[0].content.contains('Keep it short.')"}]
    }


ROWS = """\
harness: 1
manifest: desk.yaml
scenarios:
  - name: letters
    cases: TABLE
    input: ${case.text}
    llm: {classify: ["${case.word}"]}
    expect: {status: completed}
"""
CSV = "text,word,says\nI was charged twice,billing,A ticket is open.\nHello,question,Here is the answer.\n"
INLINE = """
      - {text: I was charged twice, word: billing, says: A ticket is open.}
      - {text: Hello, word: question, says: Here is the answer.}"""


@pytest.mark.parametrize("table", ["letters.csv", INLINE])
def test_what_is_suggested_for_rows_of_a_table_holds_in_all_of_them(
    mutate: Mutate, invoke: Invoke, table: str
) -> None:
    Path("letters.csv").write_text(CSV)
    Path("desk.scenario.yaml").write_text(ROWS.replace(" TABLE", f" {table}" if "csv" in table else table))
    skipped, twice = "node:desk.yaml:ticket:skipped", "node:desk.yaml:ticket:twice"
    found = mutate("--operator", "node")["by_id"]
    assert found[skipped]["suggestion"] == 'output: "${case.says}"'
    assert found[twice]["suggestion"] == "state: {messages: {$len: 2}}"
    for id_ in (skipped, twice):
        assert found[id_]["suggested_for"] == "desk.scenario.yaml::letters"
        assert invoke("accept", "--mutant", id_).exit_code == 0
    found = mutate("--operator", "node")["by_id"]
    assert [found[id_]["killed_by"] for id_ in (skipped, twice)] == [
        "desk.scenario.yaml::letters[I was charged twice]"
    ] * 2


def test_rows_that_did_not_run_are_not_guessed_at(mutate: Mutate) -> None:
    Path("desk.scenario.yaml").write_text(ROWS.replace(" TABLE", INLINE))
    found = mutate("--operator", "node", "-k", "charged")["by_id"]["node:desk.yaml:ticket:skipped"]
    assert (found["outcome"], found["suggested_for"]) == ("survived", None)


def test_an_edge_that_only_says_that_the_run_ends_and_a_node_that_repeats_itself_are_equivalent(
    mutate: Mutate,
) -> None:
    mark = "- {name: mark, type: set_state, args: {values: {intent: '\"done\"'}}}"
    edges = "        - {source: answer, target: mark}\n        - {source: mark, target: __end__}\n"
    Path("desk.yaml").write_text(AGENT.replace("- name: answer", f"{mark}\n        - name: answer") + edges)
    found = mutate("--operator", "route", "--operator", "node")
    dropped, twice = "route:desk.yaml:agents/desk/graph/edges/mark:dropped", "node:desk.yaml:mark:twice"
    assert [found["by_id"][id_]["outcome"] for id_ in (dropped, twice)] == ["equivalent", "equivalent"]
    assert found["by_id"]["node:desk.yaml:answer:twice"]["outcome"] == "survived"
    assert found["equivalent"] == 2
