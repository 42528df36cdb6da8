"""`harness explore` on small agents: what it finds, what it writes, what it refuses."""

import json
import re
import sys
from pathlib import Path
from shutil import rmtree
from signal import SIGTERM
from typing import Any

import pytest

from tests import forked
from tests.cli.fixtures import Invoke, WriteFile
from tests.recording.safety import Project, Terminal

AGENT = """
manifest_version: 1
prompts: [{id: p, version: "1.0.0", instructions: "Answer with JSON: {\\"kind\\": \\"refund\\"}"}]
llms: [{id: m, version: "1.0.0", provider: openai, model_name: parrot}]
default_llm: {id: m}
agents:
  desk:
    state:
      fields:
        - {name: messages, type: list, default: []}
        - {name: kind, type: str, default: ""}
        - {name: total, type: float, default: 10.0}
    graph:
      entry_point: sort
      nodes:
        - name: sort
          type: call_llm
          args:
            prompt: [{role: messages, content: state.messages}]
            state_updates: {kind: 'KIND'}
          on_error: {retry: {max_attempts: 2, strategy: fixed, delay: 1}, fallback: sorry}
        - {name: refund, type: set_state, args: {values: {total: 'TOTAL'}}}
        - {name: sorry, type: set_state, args: {values: {kind: '"none"'}}}
      edges:
        - source: sort
          branches: [{condition: 'state.kind == "refund"', target: refund}, {condition: 'BRANCH', target: sorry}]
          default: __end__
        - {source: refund, target: __end__}
        - {source: sorry, target: __end__}
"""
SOUND = {
    "KIND": 'json(llm_response.content)["kind"]',
    "TOTAL": "state.total - 1.0",
    "BRANCH": 'state.kind == "complaint"',
}
DEFECT = {**SOUND, "TOTAL": "[state.total][1]"}
"""`refund` reads an item that is not there, once a model has answered `refund`."""


@pytest.fixture
def agent(write: WriteFile) -> Any:
    """A function that writes `desk.yaml` with these parts."""

    def make(parts: dict[str, str]) -> Path:
        text = AGENT
        for name, value in parts.items():
            text = text.replace(name, value)
        return write("desk.yaml", text)

    return make


def explored(invoke: Invoke, *args: str, runs: int = 240) -> dict[str, Any]:
    invoke("explore", *args, "--runs", str(runs), "--json", "found.json")
    found: dict[str, Any] = json.loads(Path("found.json").read_text(encoding="utf-8"))
    return found


def without_time(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "findings": [{**each, "seconds": 0} for each in found["findings"]]}


# ---------------------------------------------------------------- findings


def test_a_defect_that_one_answer_reaches_is_found_and_written_as_a_scenario(
    agent: Any, invoke: Invoke
) -> None:
    agent(DEFECT)

    done = invoke("explore", "desk.yaml", "--runs", "240")

    assert done.exit_code == 1
    assert "crash  desk.yaml:22:67  ExpressionError in 'refund': index 1 is out of range" in done.output
    assert "nodes 3/3" in done.output
    [file] = Path("scenarios/found").iterdir()
    assert file.name.startswith("desk-crash-refund-")
    text = file.read_text(encoding="utf-8")
    assert "llm: {sort: [{json: {kind: refund}}]}\n    expect: {status: completed}" in text
    assert invoke("run", "scenarios").exit_code == 1  # it fails until the agent is mended
    agent(SOUND)
    assert invoke("run", "scenarios").exit_code == 0


def test_the_json_has_runs_coverage_and_findings(agent: Any, invoke: Invoke) -> None:
    agent(DEFECT)

    found = explored(invoke, "desk.yaml", "--seed", "3")

    assert (found["format"], found["runs"], found["seed"]) == ("harness-explore/1", 240, 3)
    assert found["coverage"] == {"nodes": [3, 3], "edges": [5, 6], "branches": [4, 4]}
    assert [(each["kind"], each["name"]) for each in found["unreached"]] == [("edge", "refund -> __end__")]
    [finding] = found["findings"]
    assert finding.keys() == {
        *("id", "cause", "type", "where", "runs_until", "seconds", "scenario", "reason", "steps")
    }
    assert (finding["type"], finding["steps"]) == ("crash", 2)
    assert Path(finding["scenario"]).is_file()
    assert 0 < finding["runs_until"] <= 240


def test_a_sound_agent_has_no_finding(agent: Any, invoke: Invoke) -> None:
    agent(SOUND)

    done = invoke("explore", "desk.yaml", "--runs", "240")

    assert done.exit_code == 0
    assert not Path("scenarios").exists()
    assert not Path(".harness").exists()


def test_a_seed_gives_the_same_findings_with_any_number_of_processes(agent: Any, invoke: Invoke) -> None:
    agent(DEFECT)

    one = explored(invoke, "desk.yaml", "--out", "a")
    Path("a").rename("b")
    rmtree(".harness")  # what is known would be tried first
    two = explored(invoke, "desk.yaml", "--out", "a", "-j", "2")

    assert without_time(one) == without_time(two)


def test_known_findings_are_tried_first(agent: Any, invoke: Invoke) -> None:
    agent(DEFECT)
    explored(invoke, "desk.yaml")

    again = explored(invoke, "desk.yaml", runs=1)

    assert [each["runs_until"] for each in again["findings"]] == [0]
    assert len([*Path("scenarios/found").iterdir()]) == 1
    assert Path(".harness/.gitignore").read_text() == "*\n"
    agent(SOUND)
    assert explored(invoke, "desk.yaml", runs=1)["findings"] == []


APP_WITH_A_FLAW = """
from typing import Literal, TypedDict
from langgraph.graph import START, StateGraph
class State(TypedDict):
    kind: Literal["a"]
def first(state): return {"kind": KIND}
def second(state): return {}
def both(state): return {}
builder = StateGraph(State).add_node(first).add_node(second).add_node(both)
builder.add_edge(START, "first").add_edge(["first", "second"], "both")
builder.add_conditional_edges("first", lambda state: NEXT, ["second", "__end__"])
graph = builder.compile()
"""


@pytest.mark.parametrize(
    ("kind", "following", "type_"), [("a", "__end__", "stuck"), ("b", "second", "schema")]
)
def test_known_findings_of_an_app_are_tried_by_what_it_declares(
    write: WriteFile, invoke: Invoke, kind: str, following: str, type_: str
) -> None:
    write("app.py", APP_WITH_A_FLAW.replace("KIND", f"'{kind}'").replace("NEXT", f"'{following}'"))
    explored(invoke, "app.py:graph", runs=8)

    [again] = explored(invoke, "app.py:graph", runs=1)["findings"]

    assert (again["type"], again["runs_until"]) == (type_, 0)
    write("app.py", APP_WITH_A_FLAW.replace("KIND", "'a'").replace("NEXT", "'second'"))
    assert explored(invoke, "app.py:graph", runs=1)["findings"] == []


def test_a_file_that_a_person_has_changed_is_kept(agent: Any, invoke: Invoke) -> None:
    agent(DEFECT)
    [finding] = explored(invoke, "desk.yaml")["findings"]
    file = Path(finding["scenario"])
    kept = file.read_text().replace("json: {kind: refund}", "json: {kind: other}")
    file.write_text(kept)

    [again] = explored(invoke, "desk.yaml")["findings"]

    assert file.read_text() == kept
    assert again["scenario"] == str(file).replace(".scenario.yaml", "-2.scenario.yaml")


def test_what_nothing_can_reach_is_told_apart(agent: Any, invoke: Invoke) -> None:
    agent({**SOUND, "BRANCH": "1 > 2"})

    found = explored(invoke, "desk.yaml", "--faults", "none")

    [sorry] = [each for each in found["unreached"] if each["kind"] == "branch" and "1 > 2" in each["name"]]
    assert sorry["where"].startswith("desk.yaml:")
    assert sorry["why"].startswith("no answer can lead there: the branch to 'sorry' is never taken")


def test_faults_that_nothing_takes_up_are_found_beside_handling_or_when_asked_for(
    agent: Any, invoke: Invoke
) -> None:
    text = agent(SOUND).read_text()
    handler = text[text.index("          on_error") : text.index("        - {name: refund")]
    Path("desk.yaml").write_text(text.replace(handler, ""))

    quiet = explored(invoke, "desk.yaml")
    asked = explored(invoke, "desk.yaml", "--faults", "rate_limit,timeout")

    assert {each["type"] for each in quiet["findings"]} == {
        "crash"
    }  # replies that are no JSON, or lack a key
    assert quiet["notes"] == [
        "it handles no fault of models and services, so none is drawn (--faults KIND,… draws them)"
    ]
    assert [each["type"] for each in asked["findings"]].count("unhandled-fault") == 1


def test_a_variable_of_the_manifest_is_given_on_the_command_line(agent: Any, invoke: Invoke) -> None:
    text = agent(SOUND).read_text()
    Path("desk.yaml").write_text(text.replace("model_name: parrot", 'model_name: "${MODEL}"'))

    refused = invoke("explore", "desk.yaml", "--runs", "8")
    assert (refused.exit_code, "; here with --env NAME=value" in refused.output) == (3, True)
    assert invoke("explore", "desk.yaml", "--runs", "8", "--env", "MODEL=parrot").exit_code == 0


# ---------------------------------------------------------------- a first suite


def test_a_cover_takes_all_that_was_reached_and_passes(agent: Any, invoke: Invoke) -> None:
    agent(SOUND)

    explored(invoke, "desk.yaml", "--cover", "desk.scenario.yaml")
    done = invoke("run", "desk.scenario.yaml", "--json", "lines.jsonl")

    assert done.exit_code == 0
    lines = [json.loads(line) for line in Path("lines.jsonl").read_text().splitlines()]
    taken = {branch for line in lines for branch in line["coverage"]["branches"]}
    assert len(taken) == 4
    assert all(check["name"] != "status" or check["passed"] for line in lines for check in line["checks"])


def test_a_cover_of_several_agents_names_them_in_its_scenarios(agent: Any, invoke: Invoke) -> None:
    text = agent(SOUND).read_text()
    graph = text[text.index("  desk:") :].replace("desk:", "booth:")
    Path("desk.yaml").write_text(text + graph)

    explored(invoke, "desk.yaml", "--cover", "desk.scenario.yaml", runs=60)

    assert invoke("run", "desk.scenario.yaml").exit_code == 0
    names = re.findall("name: (.*)", Path("desk.scenario.yaml").read_text())
    assert {name.strip('"').partition(":")[0] for name in names} == {"desk", "booth"}


def test_a_first_suite_that_cannot_be_written_is_refused_before_the_search(
    agent: Any, invoke: Invoke
) -> None:
    agent(DEFECT)

    done = invoke("explore", "desk.yaml", "--runs", "240", "--cover", "first.yaml")

    assert (done.exit_code, "is not the name of a scenario file" in done.output) == (2, True)
    assert not Path(".harness").exists()


# ---------------------------------------------------------------- scenarios


HALF = """
harness: 1
manifest: desk.yaml
scenarios:
  - name: money back
    input: my money
    llm: {sort: [{json: {kind: refund}}]}
    explore:
      EXPLORE
"""


def test_stubs_of_a_scenario_stay_and_its_invariants_are_judged(
    agent: Any, write: WriteFile, invoke: Invoke
) -> None:
    agent(SOUND)
    write("half.scenario.yaml", HALF.replace("EXPLORE", "never: [refund]"))

    found = explored(invoke, "half.scenario.yaml", runs=16)

    [finding] = found["findings"]
    assert (finding["type"], finding["where"]) == ("invariant", "half.scenario.yaml:9:14")
    text = Path(finding["scenario"]).read_text()
    assert "input: my money\n    llm: {sort: [{json: {kind: refund}}]}\n    expect: {never: [refund]}" in text


def test_an_invariant_with_a_name_of_its_own_is_found_and_written(
    agent: Any, write: WriteFile, invoke: Invoke
) -> None:
    agent(SOUND)
    named = """checks: [{name: no refunds, that: "!('refund' in path)"}]"""
    write("half.scenario.yaml", HALF.replace("EXPLORE", named))

    [finding] = explored(invoke, "half.scenario.yaml", runs=16)["findings"]

    assert finding["cause"].startswith("no refunds: ")
    assert "expect: {checks: [{name: no refunds" in Path(finding["scenario"]).read_text()


def test_failures_that_are_allowed_are_no_findings(agent: Any, write: WriteFile, invoke: Invoke) -> None:
    agent(DEFECT)
    write("half.scenario.yaml", HALF.replace("EXPLORE", "allow: [{node: refund, type: ExpressionError}]"))

    assert explored(invoke, "half.scenario.yaml", runs=16)["findings"] == []


def test_pytest_explores_scenarios_that_have_invariants(agent: Any, write: WriteFile) -> None:
    agent(SOUND)
    write("half.scenario.yaml", HALF.replace("EXPLORE", "never: [refund]"))

    done = forked.run(["pytest", "-q", "-p", "no:cacheprovider", ".", "--harness-explore", "8"])

    assert "invariant  half.scenario.yaml:9:14  never:" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("desk.yaml", "--runs", "1", "--time", "1"), 2, "--runs and --time are mutually exclusive"),
        (("desk.yaml", "--faults", "rate_limits"), 2, "did you mean 'rate_limit'?"),
        (("gone.yaml",), 2, "gone.yaml: no such file or folder"),
        (("desk.yaml", "--agent", "dest"), 2, "did you mean 'desk'?"),
        (("desk.yaml", "--json", "gone/found.json"), 2, "gone/found.json cannot be written"),
        (("empty.scenario.yaml",), 2, "empty.scenario.yaml"),
        (("broken.yaml",), 3, "broken.yaml"),
    ],
)
def test_what_cannot_be_explored_is_refused(
    agent: Any, write: WriteFile, invoke: Invoke, args: tuple[str, ...], code: int, message: str
) -> None:
    agent(SOUND)
    write("empty.scenario.yaml", "")
    write("broken.yaml", "manifest_version: 1\nagents: {a: {graph: {nodes: 5}}}\n")

    done = invoke("explore", *args)

    assert (done.exit_code, message in done.output) == (code, True), done.output


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_agent_that_ends_its_process_is_not_explored(write: WriteFile, invoke: Invoke, jobs: str) -> None:
    write("ends.py", "import os\ndef run(input: str) -> str:\n    os._exit(3)\n")

    done = invoke("explore", "ends.py:run", "--runs", "8", "-j", jobs)

    assert done.exit_code == 3
    assert "not explored: the process that ran this scenario left with 3" in done.output


ENDS_SOMETIMES = """
import os
def run(input: str) -> str:
    if not input:
        os._exit(3)
    return {"ok": "1"}[input]
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_other_processes_found_is_kept_when_one_ends(
    write: WriteFile, invoke: Invoke, jobs: str
) -> None:
    write("ends.py", ENDS_SOMETIMES)

    done = invoke("explore", "ends.py:run", "--runs", "160", "-j", jobs, "--json", "found.json")

    found = json.loads(Path("found.json").read_text())
    assert done.exit_code == 3
    assert found["problems"] == ["the process that ran this scenario left with 3"]
    assert [each["cause"] for each in found["findings"]] == ["KeyError in 'run': 'run'"]
    assert Path(found["findings"][0]["scenario"]).is_file()


COUNTS_RUNS = """
from json import JSONDecoder
def run(input: str) -> str:
    JSONDecoder.runs = getattr(JSONDecoder, "runs", 0) + 1
    if JSONDecoder.runs > 1:
        raise ValueError("too many")
    return input
"""


def test_a_finding_that_no_scenario_shows_is_listed_with_the_reason(write: WriteFile, invoke: Invoke) -> None:
    write("counts.py", COUNTS_RUNS)

    done = invoke("explore", "counts.py:run", "--runs", "24", "--json", "found.json")

    [finding] = json.loads(Path("found.json").read_text())["findings"]
    assert (done.exit_code, finding["scenario"]) == (1, None)
    assert finding["reason"].startswith("its scenario passes: what other runs left behind in the process")
    assert finding["reason"] in done.output
    assert not Path("scenarios").exists()


def test_scenarios_that_are_skipped_are_told(agent: Any, write: WriteFile, invoke: Invoke) -> None:
    agent(SOUND)
    write("half.scenario.yaml", HALF.replace("EXPLORE", "never: [refund]\n    skip: not yet"))

    done = invoke("explore", "half.scenario.yaml")

    assert done.exit_code == 2
    assert "skipped: half.scenario.yaml::money back: not yet" in done.output
    assert "nothing is explored: each selected scenario is skipped" in done.output


def test_without_its_extra_it_says_what_to_install(
    agent: Any, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent(SOUND)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    done = invoke("explore", "desk.yaml")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: package 'hypothesis' is needed to draw answers: pip install")


APP = """
from dataclasses import dataclass
from typing import Annotated, TypedDict

import httpx
from langgraph.runtime import Runtime
from langchain_core.language_models import SimpleChatModel
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages


@dataclass
class Caller:
    user: str


class Own(SimpleChatModel):
    @property
    def _llm_type(self):
        return "own"

    def _call(self, messages, **options):
        return httpx.post("https://models.example.com/say", json={}).json()["said"]


class State(TypedDict):
    messages: Annotated[list[str], add_messages]


def answer(state, runtime: Runtime):
    print("answering", runtime.context.user)
    return {"messages": [Own().invoke(state["messages"])]}


builder = StateGraph(State, context_schema=Caller).add_node(answer).add_edge(START, "answer")
graph = builder.compile(interrupt_before=["answer"])
"""


def test_an_app_gets_a_context_is_resumed_and_answered_at_its_own_model_and_prints_nothing(
    write: WriteFile, invoke: Invoke, capfd: pytest.CaptureFixture[str]
) -> None:
    write("app.py", APP)
    done = invoke("explore", "app.py:graph", "--runs", "16", "--cover", "cover.scenario.yaml")
    assert done.exit_code == 0, done.output
    assert "answering" not in done.output + "".join(capfd.readouterr())
    cover = Path("cover.scenario.yaml").read_text(encoding="utf-8")
    assert "context: {user: " in cover
    assert "llm: {answer: [" in cover
    assert "- resume: {}" in cover


def test_a_node_of_an_app_is_at_its_function(write: WriteFile, invoke: Invoke) -> None:
    write(
        "app.py",
        APP.replace(
            'add_edge(START, "answer")',
            'add_conditional_edges(START, lambda state: "__end__", ["answer", "__end__"])',
        ),
    )
    invoke("explore", "app.py:graph", "--runs", "8", "--json", "found.json")
    unreached = json.loads(Path("found.json").read_text())["unreached"]
    line = APP[: APP.index("def answer")].count("\n") + 1
    assert [each["where"] for each in unreached if each["kind"] == "node"] == [f"app.py:{line}"]


def test_a_key_that_is_no_invariant_is_refused(agent: Any, write: WriteFile, invoke: Invoke) -> None:
    agent(SOUND)
    write("half.scenario.yaml", HALF.replace("EXPLORE", "nevr: [refund]"))

    done = invoke("explore", "half.scenario.yaml")

    assert done.exit_code == 2
    assert "half.scenario.yaml:9:7" in done.output
    assert "did you mean 'never'?" in done.output


def test_ctrl_c_keeps_what_was_found(agent: Any, tmp_path: Path) -> None:
    agent(DEFECT)

    with Terminal(Project(tmp_path), "harness", "explore", "desk.yaml", "--time", "600") as terminal:
        terminal.type_after("1 finding", "\x03", end="")
        shown, code = terminal.end()

    assert code == 3
    assert "interrupted after" in shown
    assert [file.name[:18] for file in (tmp_path / "scenarios/found").iterdir()] == ["desk-crash-refund-"]


def test_sigterm_keeps_what_was_found_and_writes_the_json(agent: Any, tmp_path: Path) -> None:
    agent(DEFECT)
    command = ("explore", "desk.yaml", "--time", "600", "--json", "found.json")

    with Terminal(Project(tmp_path), "harness", *command) as terminal:
        terminal.signal_after("1 finding", SIGTERM)
        _, code = terminal.end()

    assert code == 3
    [finding] = json.loads((tmp_path / "found.json").read_text())["findings"]
    assert (tmp_path / finding["scenario"]).is_file()
