"""`harness compare`: two runs of a project with a change between them."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fixtures import Invoke, WriteFile
from tests.traces.exports import chat, otlp, span

MANIFEST = """\
manifest_version: 1
llms: [{id: m, version: "1.0.0", provider: openai, model_name: gpt-4o}]
default_llm: {id: m}
tools: [{id: fare, version: "1.0.0", import_path: tram.fare}]
agents:
  tram:
    state:
      fields:
        - {name: messages, type: list, default: []}
        - {name: stop, type: str, default: ""}
        - {name: zone, type: int, default: 0}
    graph:
      entry_point: classify
      nodes:
        - name: classify
          type: call_llm
          args:
            prompt:
              - {role: system, content: '"Which stop is meant? One word."'}
              - {role: messages, content: state.messages}
            state_updates: {stop: llm_response.content}
        - name: zoned
          type: set_state
          args: {values: {zone: '2'}}
        - name: ask
          type: call_llm
          args:
            prompt: [{role: messages, content: state.messages}]
            tools: [{id: fare}]
            state_updates: {messages: '[llm_response]'}
        - name: lost
          type: set_state
          args: {values: {zone: '9'}}
      edges:
        - source: classify
          branches: [{condition: 'state.stop == "Elm"', target: zoned}]
          default: lost
        - {source: zoned, target: ask}
"""
TOOLS = """\
from langchain_core.tools import tool

@tool
def fare(stop: str) -> str:
    "The fare to a stop."
    return "?"
"""
SCENARIOS = """\
harness: 1
manifest: tram.yaml
scenarios:
  - name: a fare
    input: How much to Elm?
    llm:
      classify: [Elm]
      ask: [{tool_calls: [{name: fare, args: {stop: Elm}}]}, {reply: It is 2.40., latency: 1}]
    tools: {fare: {return: "2.40"}}
    expect: {path: [classify, zoned, ask, ask_tools, ask]}
  - {name: another, input: hi, llm: {classify: [Oak]}, expect: {path: [classify, lost]}}
"""
FARE = "tram.scenario.yaml::a fare"
OTHER = "tram.scenario.yaml::another"

Change = Callable[[str, str, str], None]


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose first run is in `before`."""
    from click.testing import CliRunner

    from harness.cli.main import cli

    folder = tmp_path_factory.mktemp("tram")
    for name, text in {"tram.yaml": MANIFEST, "tram.py": TOOLS, "tram.scenario.yaml": SCENARIOS}.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(cli, ["run", "tram.scenario.yaml", "-q", "--report", "before"])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def project(first_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(first_run, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def rerun(project: Path, invoke: Invoke) -> Callable[..., None]:
    """A function that changes texts in the project's files and runs it again, into `after`."""

    def edit_and_run(*edits: tuple[str, str, str]) -> None:
        for name, old, new in edits:
            text = (project / name).read_text(encoding="utf-8")
            assert old in text, old
            (project / name).write_text(text.replace(old, new), encoding="utf-8")
        result = invoke("run", "tram.scenario.yaml", "-q", "--report", "after")
        assert result.exit_code in (0, 1, 3), result.output

    return edit_and_run


@pytest.fixture
def compare_runs(invoke: Invoke) -> Callable[..., Any]:
    def compare(*arguments: str) -> Any:
        result = invoke("compare", *(arguments or ("before", "after")), "--json", "-")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return compare


# ---------------------------------------------------------------- the first event that differs

M, S = "tram.yaml", "tram.scenario.yaml"


@pytest.mark.parametrize(
    ("edit", "kind", "what", "where", "diff"),
    [
        (
            (M, 'state.stop == "Elm"', 'state.stop == "Oak"'),
            "route",
            "the route after classify",
            r"tram\.yaml:\d+",
            ['- classify -> zoned  [state.stop == "Elm"]', "+ classify -> lost  [default]"],
        ),
        (
            (M, "One word.", "Two words."),
            "prompt",
            "the prompt of classify",
            "tram.yaml:15",
            ["~ Which stop is meant? [-One word-]{+Two words+}."],
        ),
        (
            (M, "model_name: gpt-4o", "model_name: gpt-5"),
            "request",
            "the model that classify asks",
            "tram.yaml:15",
            ["~ gpt-[-4o-]{+5+}"],
        ),
        ((S, "reply: It is 2.40.", "reply: It is 2.50."), "reply", "the reply to ask", "tram.yaml:25", None),
        (
            (S, "args: {stop: Elm}", "args: {stop: Oak}"),
            "reply",
            "the reply to ask",
            "tram.yaml:25",
            ["- Elm", "+ Oak"],
        ),
        (
            (S, 'return: "2.40"', 'return: "2.60"'),
            "result",
            "the result of fare in ask_tools",
            r"tram\.yaml:\d+",
            None,
        ),
        (
            (M, "values: {zone: '2'}", "values: {zone: '3'}"),
            "state",
            "what zoned changes of the state",
            "tram.yaml:22",
            ["- 2", "+ 3"],
        ),
        ((S, "How much to Elm?", "How much to Elm, please?"), "input", "the input", "", None),
        (
            (S, "latency: 1}", "latency: 3}"),
            "time",
            "the llm call of ask took 3.00 s, and 1.00 s before",
            "tram.yaml:25",
            [],
        ),
    ],
)
def test_the_first_event_that_differs_is_shown(
    rerun: Callable[..., None],
    compare_runs: Callable[..., Any],
    edit: tuple[str, str, str],
    kind: str,
    what: str,
    where: str,
    diff: list[str] | None,
) -> None:
    rerun(edit)
    change = next(each for each in compare_runs()["changes"] if each["id"] == FARE)
    difference = change["difference"]
    assert (difference["kind"], difference["what"]) == (kind, what)
    assert re.fullmatch(where, difference["where"] or "")
    if diff is not None:
        assert [line for part in difference["parts"] for line in part["diff"]] == diff


def test_a_run_that_continues_after_the_end_of_the_other_is_a_difference(
    rerun: Callable[..., None], compare_runs: Callable[..., Any]
) -> None:
    rerun((M, "- {source: zoned, target: ask}", "- {source: zoned, target: lost}"))
    assert compare_runs()["changes"][0]["difference"]["parts"][0]["diff"] == [
        "- zoned -> ask",
        "+ zoned -> lost",
    ]


# ---------------------------------------------------------------- changes of scenarios


def test_a_worse_scenario_is_shown_with_its_check_and_the_line_of_the_manifest(
    rerun: Callable[..., None], invoke: Invoke
) -> None:
    rerun((M, 'state.stop == "Elm"', 'state.stop == "Oak"'))
    result = invoke("compare", "before", "after")
    assert result.exit_code == 0
    assert "2 scenarios: 2 worse · 0 gone · 0 new · 0 changed · 0 better · 0 the same" in result.stdout
    assert "pass rate  100 % -> 0 %" in result.stdout
    told = result.stdout[result.stdout.index(f"  {FARE}") :]
    assert "    passed -> failed  score 1.00 -> 0.00" in told
    assert "    path: step 2: expected zoned, was lost" in told
    assert "    first difference at 0 s: the route after classify  tram.yaml:" in told


def test_a_run_does_not_differ_from_itself(
    project: Path, compare_runs: Callable[..., Any], invoke: Invoke
) -> None:
    found = compare_runs("before", "before")
    assert found["changes"] == []
    assert found["counts"]["same"] == 2
    assert "2 the same" in invoke("compare", "before", "before").stdout


def test_reversing_the_runs_reverses_worse_and_better_new_and_gone(
    rerun: Callable[..., None], compare_runs: Callable[..., Any]
) -> None:
    rerun(
        (S, "- {name: another,", "- {name: renamed,"),
        (M, 'state.stop == "Elm"', 'state.stop == "Pine"'),
    )
    mirror = {"worse": "better", "better": "worse", "new": "gone", "gone": "new", "changed": "changed"}
    there, back = compare_runs("before", "after"), compare_runs("after", "before")
    assert {(mirror[each["kind"]], each["id"]) for each in there["changes"]} == {
        (each["kind"], each["id"]) for each in back["changes"]
    }
    assert {each["kind"] for each in there["changes"]} == {"worse", "new", "gone"}
    twins = {each["kind"]: each["twin"] for each in there["changes"]}
    assert twins == {"worse": None, "new": OTHER, "gone": "tram.scenario.yaml::renamed"}
    worse = next(each for each in there["changes"] if each["kind"] == "worse")
    better = next(each for each in back["changes"] if each["kind"] == "better")
    assert (worse["before"], worse["after"]) == (better["after"], better["before"])


def test_scenarios_with_the_same_first_difference_are_grouped(
    rerun: Callable[..., None], invoke: Invoke
) -> None:
    rerun((M, "One word.", "Two words."))
    text = invoke("compare", "before", "after").stdout
    assert "changed, with the same verdict and score: 2 scenarios" in text
    assert text.count("first difference at") == 1
    assert f"    the same first difference: 1 more scenario\n      {OTHER}\n" in text


def test_a_changed_expectation_of_the_same_behaviour_is_shown_as_such(
    rerun: Callable[..., None], invoke: Invoke
) -> None:
    rerun((S, "path: [classify, lost]", "path: [classify, zoned]"))
    text = invoke("compare", "before", "after").stdout
    assert (
        '    path: expects something else\n      - ["classify","lost"]\n      + ["classify","zoned"]\n'
        in text
    )
    assert "both runs behaved the same; only the expectations differ" in text


def test_repeats_are_compared_in_pairs(
    project: Path, rerun: Callable[..., None], compare_runs: Callable[..., Any], invoke: Invoke
) -> None:
    invoke("run", S, "-q", "--repeat", "3", "--report", "before")
    rerun((S, "- {name: another,", "- {name: another, repeat: 2,"))
    found = {each["id"]: each for each in compare_runs()["changes"]}
    assert found == {}  # a repeat in only one of the runs is not a change
    rerun((M, "values: {zone: '9'}", "values: {zone: '8'}"))
    found = {each["id"]: each for each in compare_runs()["changes"]}
    assert found[OTHER]["repeats"] == {"compared": 2, "different": [0, 1], "unpaired": 1}
    assert (
        "2 of 2 repeats differ: 0, 1\n    not compared, since only one of the runs has it: 1 repeat"
        in invoke("compare", "before", "after").stdout
    )


def test_a_different_seed_is_shown(rerun: Callable[..., None], invoke: Invoke) -> None:
    rerun((S, "- name: a fare", "- name: a fare\n    seed: 7"))
    text = invoke("compare", "before", "after", FARE).stdout
    assert "the seeds differ: 0 before, 7 now" in text


def test_a_partial_run_is_marked(rerun: Callable[..., None], invoke: Invoke) -> None:
    invoke("run", S, "-q", "-k", "another", "--report", "after")
    text = invoke("compare", "before", "after").stdout
    assert "the later run is not whole: 1 of 2 scenarios selected" in text
    assert f"not in the later run, which is not whole: 1 scenario\n  {FARE}\n    passed" in text


# ---------------------------------------------------------------- one scenario in full


def test_a_single_scenario_is_shown_in_full(rerun: Callable[..., None], invoke: Invoke) -> None:
    rerun((S, "reply: It is 2.40.", "reply: It is 2.50."))
    text = invoke("compare", "before", "after", FARE).stdout
    assert "~     1.00 s    reply: It is 2.[-40-]{+50+}.  (1.00 s)\n" in text
    assert "lines alike" in text
    assert invoke("compare", "before", "after", "--scenario", FARE).stdout == text


def test_a_scenario_in_neither_run_is_an_error(project: Path, invoke: Invoke) -> None:
    result = invoke("compare", "before", "before", "tram.scenario.yaml::a fair")
    assert result.exit_code == 2
    assert f"did you mean '{FARE}'?" in result.stderr


# ---------------------------------------------------------------- runs that cannot be compared


def test_the_last_run_is_the_default(project: Path, invoke: Invoke) -> None:
    assert "cannot read the results" in invoke("compare", "before").stderr
    invoke("run", S, "-q")
    assert "2 the same" in invoke("compare", "before").stdout


def test_missing_traces_are_reported(rerun: Callable[..., None], invoke: Invoke) -> None:
    rerun((M, "One word.", "Two words."))
    for file in Path("before/traces").iterdir():
        file.unlink()
    text = invoke("compare", "before", "after").stdout
    assert "no trace of the earlier run: cannot read the trace before/traces/1.jsonl.gz" in text
    invoke("run", S, "-q", "--report", "after", "--traces", "none")
    shutil.rmtree("before")
    shutil.copytree("after", "before")
    line = Path("after/results.jsonl").read_text().replace('"digest":"', '"digest":"0')
    Path("after/results.jsonl").write_text(line)
    assert (
        "no trace of the earlier run: none was kept (--traces)" in invoke("compare", "before", "after").stdout
    )


def test_a_truncated_trace_is_compared_up_to_its_end(rerun: Callable[..., None], invoke: Invoke) -> None:
    rerun((S, "reply: It is 2.40.", "reply: It is 2.50."))
    file = Path("after/traces/1.jsonl.gz")
    whole = gzip.decompress(file.read_bytes())
    file.write_bytes(gzip.compress(whole)[:-20])
    text = invoke("compare", "before", "after").stdout
    assert "the trace of the later run is cut off: " in text


def test_a_baseline_file_is_compared_without_traces(rerun: Callable[..., None], invoke: Invoke) -> None:
    invoke("baseline", "save", "baseline.json", "before")
    assert "2 the same" in invoke("compare", "baseline.json", "before").stdout
    rerun((M, 'state.stop == "Elm"', 'state.stop == "Oak"'))
    text = invoke("compare", "baseline.json", "after").stdout
    assert "the earlier run is a baseline file: only its figures are known" in text
    assert f"  {FARE}\n    passed -> failed  score 1.00 -> 0.00" in text
    assert "    path: step 2: expected zoned, was lost\n" in text
    assert "a baseline file has no checks and no traces to compare with" in text
    Path("baseline.json").write_text(Path("baseline.json").read_text()[:100])
    result = invoke("compare", "baseline.json", "after")
    assert result.exit_code == 2
    assert "baseline.json" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("before", "nowhere"), "cannot read the results nowhere"),
        (("before", "before", "before"), "expected one run or two, A and B; found 3"),
        (("a::b",), "expected one run or two, A and B; found 0"),
        (("before", "before", "a::b", "c::d"), "one scenario is shown in full; found a::b and c::d"),
        (("before", "binary"), "binary:1:1: error: "),
        (("before", "empty"), "nothing ran: empty is empty"),
    ],
)
def test_an_invalid_argument_or_run_is_an_error(
    project: Path, write: WriteFile, invoke: Invoke, arguments: tuple[str, ...], said: str
) -> None:
    Path("binary").write_bytes(b"\0\1\n")
    write("empty", "")
    result = invoke("compare", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


# ---------------------------------------------------------------- files of traces


def exported(reply: str) -> str:
    asked = [("user", "Where is o7?")]
    root = span("root", name="desk", attributes={"gen_ai.operation.name": "invoke_agent"}, took=3)
    return otlp(root, chat("c", "root", 1, asked, reply))


def test_two_traces_are_compared_by_their_first_difference(invoke: Invoke, write: WriteFile) -> None:
    write("one.jsonl", exported("In Bern."))
    write("other.jsonl", exported("In Basel."))
    told = invoke("compare", "one.jsonl", "other.jsonl").stdout.splitlines()
    assert told[0] == "desk: Where is o7? -> desk: Where is o7?"
    assert "    first difference at 0 s: the reply to the agent" in told
    found = json.loads(
        invoke("compare", "one.jsonl", "other.jsonl::desk: Where is o7?", "--json", "-").stdout
    )
    assert (found["before"], found["difference"]["kind"]) == ("desk: Where is o7?", "reply")
    assert "the same in both traces" in invoke("compare", "one.jsonl", "one.jsonl").stdout


def test_a_file_of_several_traces_is_compared_by_the_name_of_one(invoke: Invoke, write: WriteFile) -> None:
    write("one.jsonl", exported("In Bern."))
    write(
        "two.jsonl",
        otlp(
            *(
                span("root", "", at, trace=f"{at}", attributes={"gen_ai.operation.name": "invoke_agent"})
                for at in (1, 2)
            )
        ),
    )
    told = invoke("compare", "one.jsonl", "two.jsonl")
    assert (told.exit_code, "two.jsonl has 2 conversations" in told.stderr) == (2, True)
    assert "name one: 'two.jsonl::root', 'two.jsonl::root (2)'" in told.stderr


def test_a_run_and_an_export_are_compared_on_what_both_tell(invoke: Invoke, write: WriteFile) -> None:
    node = {"event": "node_start", "at": 0.0, "graph": "", "node": "desk", "step": 1, "invocation": 1}
    asked = {"type": "human", "content": "Where is o7?", "additional_kwargs": {}, "id": "m1"}
    call = {"event": "call", "at": 0.0, "call": 1, "kind": "llm", "name": "gpt-4o", "node": "desk"}
    run = [
        {"event": "trace", "format": "harness-trace/1", "id": "a.scenario.yaml::o7", "kinds": {}},
        {"event": "input", "at": 0.0, "graph": "", "value": "Where is o7?"},
        {
            "event": "route",
            "at": 0.0,
            "graph": "",
            "source": "__start__",
            "target": "desk",
            "condition": None,
        },
        node,
        {**call, "request": {"messages": [asked], "provider": "openai"}},
        {
            "event": "answer",
            "at": 0.0,
            "call": 1,
            "ok": True,
            "latency": 0.0,
            "value": {"text": "In Bern."},
            "usage": {},
        },
        {
            "event": "end",
            "at": 0.0,
            "graph": "",
            "status": "completed",
            "output": "In Bern.",
            "error": None,
            "node": None,
        },
    ]
    Path("1.jsonl.gz").write_bytes(
        gzip.compress(b"".join(json.dumps(event).encode() + b"\n" for event in run))
    )
    write("same.jsonl", exported("In Bern."))
    write("other.jsonl", exported("In Basel."))
    write(
        "bare.jsonl",
        otlp(span("root", attributes={"gen_ai.operation.name": "invoke_agent"}), chat("c", "root", 1)),
    )
    assert "the same in both traces" in invoke("compare", "bare.jsonl", "same.jsonl").stdout
    assert "the same in both traces" in invoke("compare", "1.jsonl.gz", "same.jsonl").stdout
    assert "the reply to" in invoke("compare", "1.jsonl.gz", "other.jsonl").stdout
