"""`harness trace`: a run as a conversation; and the traces that runs leave, in every mode of running."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.report.traces import read_trace
from tests.cli.fixtures import Invoke, RunCommand, WriteFile, WriteSuite
from tests.forked import Process, run, workers
from tests.traces.exports import chat, message, otlp, span

TUTORIAL = Path(__file__).parents[2] / "scenarios" / "tutorial"
RETRIED = "triage.scenario.yaml::two failures of the model are retried"


@pytest.fixture
def tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(TUTORIAL, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


# ---------------------------------------------------------------- a conversation


def test_a_run_is_shown_as_a_conversation(tutorial: Path, invoke: Invoke) -> None:
    invoke("run", "triage.scenario.yaml")
    assert invoke("trace", RETRIED).stdout.splitlines() == [
        RETRIED,
        "passed  agents/triage.yaml (sherma)  seed 0  3.50 s of virtual time",
        "",
        "       0 s  input:     When do you open?",
        "            (start) -> classify",
        "            ▸ classify (call_llm)",
        "              ▸ llm call: model=gpt-4o tools=<none>",
        '                system:    What does the customer want? Answer with JSON: {"intent": "billing"} or '
        '{"intent": "question"}.',
        "                user:      When do you open?",
        "              failed:    RateLimitError: 429 rate limit exceeded",
        "    1.00 s    ▸ llm call: model=gpt-4o tools=<none>",
        "                … 2 messages as before",
        "              failed:    APITimeoutError: request timed out",
        "    3.00 s    ▸ llm call: model=gpt-4o tools=<none>",
        "                … 2 messages as before",
        '    3.50 s    reply:     {"intent":"question"}  (500 ms)',
        "              sets:      intent = question",
        "            classify -> answer  [default]",
        "            ▸ answer (call_llm)",
        "              ▸ llm call: model=gpt-4o tools=<none>",
        "                system:    Answer the customer's question in one or two friendly sentences.",
        "                … 1 message as before",
        "              reply:     We open at nine.",
        "              sets:      messages =",
        "                assistant: (the reply)",
        "            answer -> (end)",
        "            graph done",
        "              output:    We open at nine.",
    ]


@pytest.mark.parametrize(
    ("scenario", "lines"),
    [
        ("complaints.scenario.yaml::a broken piece is replaced, once somebody has signed", [
            '              result:    {"offer":"a new jug"}',
            "            ▸ sign (resumed)",
            "            sign -> sent  [send]",
        ]),
        ("workshop.scenario.yaml::two are asked at once, and the offer waits for both", [
            '    5.00 s    result:    {"status":200,"text":"{\\"price\\":7.5}","headers":{}}  (4.00 s)',
            '              sets:      kiln = {"days":9}',
            "            owner -> sender  [calling_agent_response.human_decision == 'send']",
        ]),
        ("refunds.scenario.yaml::a person approves the refund", ["              ▸ tool call: find_charges"]),
        ("parcels.scenario.yaml::all parcels are looked for at once", ["            graph done"]),
    ],
    ids=["loki", "leafmesh", "agentspec", "yagra"],
)  # fmt: skip
def test_runs_of_every_dialect_are_shown(
    scenario: str, lines: list[str], tutorial: Path, invoke: Invoke
) -> None:
    invoke("run", scenario)
    told = invoke("trace", scenario).stdout.splitlines()
    assert [line for line in lines if line not in told] == []


def test_a_long_text_is_cut_with_its_size_unless_full_text_is_requested(
    write: WriteFile, suite: WriteSuite, invoke: Invoke
) -> None:
    suite("{name: counts, input: '%s'}" % ("x" * 20_000))
    invoke("run", ".")
    assert "… 19,200 more characters" in invoke("trace", "a.scenario.yaml::counts").stdout
    whole = invoke("trace", "a.scenario.yaml::counts", "-v").stdout
    assert "more characters" not in whole
    assert "x" * 20_000 in whole


def test_control_characters_of_a_run_are_escaped(suite: WriteSuite, invoke: Invoke) -> None:
    suite(r'{name: counts, input: "\e[31mred\e[0m [bold]plain[/bold]"}')
    invoke("run", ".")
    said = invoke("trace", "a.scenario.yaml::counts").stdout
    assert r"\x1b[31mred\x1b[0m [bold]plain[/bold]" in said
    assert "\x1b" not in said


def test_the_events_are_printed_as_json(tutorial: Path, invoke: Invoke) -> None:
    invoke("run", "triage.scenario.yaml")
    head, *events = map(json.loads, invoke("trace", RETRIED, "--json").stdout.splitlines())
    assert (head["format"], head["id"]) == ("harness-trace/1", RETRIED)
    calls = [event for event in events if event["event"] == "call"]
    assert [[message["type"] for message in call["request"]["messages"]] for call in calls] == [
        ["system", "human"]
    ] * 4


# ---------------------------------------------------------------- the choice of the run


def test_the_first_repeat_that_did_not_pass_is_the_default(
    suite: WriteSuite, invoke: Invoke, write: WriteFile
) -> None:
    suite("{name: counts, repeat: 3, expect: {state: {count: 2}}}")
    invoke("run", ".", "--report", "out")
    told = invoke("trace", "a.scenario.yaml::counts", "out").stdout
    assert "repeat 0 of 3 runs (3 failed); another: --repeat N" in told
    assert "repeat 2 of" in invoke("trace", "a.scenario.yaml::counts", "out", "--repeat", "2").stdout
    said = invoke("trace", "a.scenario.yaml::counts", "out", "--repeat", "7").stderr
    assert "has no repeat 7 [unknown-scenario]\n    repeats: 0, 1, 2" in said


def test_a_trace_is_found_from_another_folder(
    tutorial: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tutorial / "pyproject.toml").write_text("[tool.harness]\n")
    invoke("run", RETRIED)
    monkeypatch.chdir(tutorial / "agents")
    assert "We open at nine." in invoke("trace", f"../{RETRIED}").stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["a.scenario.yaml::count"], "did you mean 'counts'?"),
        (["b.scenario.yaml::counts"], "did you mean 'a.scenario.yaml'?"),
        (["a.scenario.yaml"], "'a.scenario.yaml' is not FILE::NAME"),
        (["a.scenario.yaml::counts", "nowhere"], "cannot read the results nowhere: No such file"),
        (["a.scenario.yaml::counts", "--variant", "b"], "has no variant 'b'"),
        (["a.scenario.yaml::skipped"], "it was skipped [trace-missing]\n    not today"),
        (["a.scenario.yaml::refused"], "it failed before it ran [trace-missing]"),
    ],
)
def test_a_missing_scenario_or_trace_is_an_error(
    args: list[str], says: str, suite: WriteSuite, invoke: Invoke
) -> None:
    suite("{name: counts}", "{name: skipped, skip: not today}", "{name: refused, expect: {path: [ad]}}")
    invoke("run", ".")
    done = invoke("trace", *args)
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_run_in_place_of_the_scenario_argument_is_an_error(suite: WriteSuite, invoke: Invoke) -> None:
    suite("{name: counts}")
    invoke("run", ".")
    for given in ("reports/latest", "reports/latest/results.jsonl"):
        done = invoke("trace", given)
        assert (done.exit_code, done.stderr) == (
            2,
            f"error: '{given}' is not FILE::NAME [unknown-scenario]\n"
            f"    the scenario comes before the run: harness trace FILE::NAME {given}\n",
        )


def test_a_run_without_scenarios_is_reported_as_such(write: WriteFile, invoke: Invoke) -> None:
    write("run.jsonl", "")
    done = invoke("trace", "a.scenario.yaml::counts", "run.jsonl")
    assert (done.exit_code, done.stderr) == (2, "error: nothing ran: run.jsonl is empty [no-runs]\n")


def test_the_last_complete_run_is_suggested_if_it_has_the_scenario(suite: WriteSuite, invoke: Invoke) -> None:
    suite("{name: one}", "{name: two}")
    invoke("run", ".")
    invoke("run", "a.scenario.yaml::one")
    said = invoke("trace", "a.scenario.yaml::two").stderr
    command = "harness trace 'a.scenario.yaml::two' reports/latest/last-whole"
    assert f"the last whole run has it: {command}" in said
    assert "count = 1" in invoke("trace", "a.scenario.yaml::two", "reports/latest/last-whole").stdout


def test_the_beginning_of_a_damaged_trace_is_shown(suite: WriteSuite, invoke: Invoke) -> None:
    suite("{name: counts, input: hello}")
    invoke("run", ".")
    file = Path("reports/latest/traces/1.jsonl.gz")
    file.write_bytes(gzip.compress(b"\n".join([*gzip.decompress(file.read_bytes()).splitlines()[:5], b"{"])))
    done = invoke("trace", "a.scenario.yaml::counts")
    assert (done.exit_code, "▸ add" in done.stdout) == (2, True)
    assert (
        "reports/latest/traces/1.jsonl.gz:6:1: error: the file is cut off here [trace-damaged]" in done.stderr
    )


# ---------------------------------------------------------------- files of traces

GIVEN = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}


def asked(text: str, trace: str, at: int = 0) -> dict[str, Any]:
    return span(
        "root", "", at, trace=trace, attributes={**GIVEN, "gen_ai.input.messages": [message(("user", text))]}
    )


def test_an_export_of_another_tool_is_shown_with_what_it_lacks(invoke: Invoke, write: WriteFile) -> None:
    write("spans.jsonl", otlp(asked("Hi.", "a"), chat("c", "root", 1, trace="a")))
    assert invoke("trace", "spans.jsonl").stdout.splitlines() == [
        "desk: Hi.",
        "completed  otel",
        "",
        "       0 s  input:     Hi.",
        "    1.00 s  ▸ desk (goes on)",
        "              ▸ llm call: model=gpt-4o tools=<none>",
        "                prompt:    (not in the export)",
        "    2.00 s    reply:     (not in the export)  (1.00 s)",
        "            graph done",
        "",
        "missing in this export:",
        "  the prompt of 1 model call, the reply of 1 model call, the output of 1 turn (content capture was off: set "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only)",
        "  the nodes and pauses of a graph: opentelemetry-instrumentation-genai-langchain writes none",
    ]


def test_of_several_conversations_one_is_chosen_by_its_name(invoke: Invoke, write: WriteFile) -> None:
    write("spans.jsonl", otlp(asked("Hi.", "a"), asked("Help!", "b", 1)))
    assert invoke("trace", "spans.jsonl").stdout.splitlines() == [
        "spans.jsonl has 2 conversations:",
        "  'spans.jsonl::desk: Hi.'  (no calls)",
        "  'spans.jsonl::desk: Help!'  (no calls)",
    ]
    assert "input:     Help!" in invoke("trace", "spans.jsonl::desk: Help!").stdout
    assert (
        "no conversation 'desk: Help' [unknown-scenario]\n    did you mean"
        in invoke("trace", "spans.jsonl::desk: Help").stderr
    )


def test_the_events_of_an_export_are_printed_as_json(invoke: Invoke, write: WriteFile) -> None:
    write("spans.jsonl", otlp(asked("Hi.", "a")))
    head, *events = map(json.loads, invoke("trace", "spans.jsonl", "--json").stdout.splitlines())
    assert (head["format"], [event["event"] for event in events]) == ("otel", ["input", "end"])
    assert head["missing"][0] == "the output of 1 turn"


def test_a_secret_in_an_export_is_not_shown(invoke: Invoke, write: WriteFile) -> None:
    key = f"sk-proj-{'a1' * 24}"
    write("spans.jsonl", otlp(asked(f"Use {key} please.", "a")))
    shown = invoke("trace", "spans.jsonl").stdout + invoke("trace", "spans.jsonl", "--json").stdout
    assert "Use <secret:" in shown
    assert key[:20] not in shown


def test_the_file_of_a_run_is_shown_like_its_scenario(suite: WriteSuite, invoke: Invoke) -> None:
    suite("{name: counts, input: hello}")
    invoke("run", ".")
    title, facts, *rest = invoke("trace", "reports/latest/traces/1.jsonl.gz").stdout.splitlines()
    assert (title, facts.split()[0]) == (
        "a.scenario.yaml::counts",
        "failed" if "failed" in facts else "passed",
    )
    assert rest == invoke("trace", "a.scenario.yaml::counts").stdout.splitlines()[2:]


def test_an_export_that_does_not_exist_is_an_error(invoke: Invoke) -> None:
    assert "cannot read the trace runs.json: No such file" in invoke("trace", "runs.json").stderr


# ---------------------------------------------------------------- traces of runs


@pytest.mark.parametrize(
    ("kept", "traces"),
    [
        ("all", ["traces/1.jsonl.gz", "traces/2.jsonl.gz"]),
        ("failed", [None, "traces/2.jsonl.gz"]),
        ("none", [None] * 2),
    ],
)
@pytest.mark.parametrize("command", ["run", "pytest"])
def test_an_option_sets_which_traces_are_kept(
    command: str,
    kept: str,
    traces: list[str | None],
    suite: WriteSuite,
    invoke: Invoke,
    tmp_path: Path,
) -> None:
    suite("{name: passes}", "{name: fails, expect: {state: {count: 2}}}")
    if command == "run":
        invoke("run", ".", "--traces", kept, "--report", "out")
    else:
        arguments = ["-q", "-p", "no:cacheprovider", "--traces", kept, "--harness-report=out"]
        run(["pytest", *arguments])
    assert [line["trace"] for line in lines_of(tmp_path / "out")] == traces
    found = sorted(f"traces/{path.name}" for path in (tmp_path / "out/traces").glob("*"))
    assert found == [trace for trace in traces if trace]


def test_a_setting_sets_which_traces_are_kept(
    suite: WriteSuite, invoke: Invoke, write: WriteFile, tmp_path: Path
) -> None:
    suite("{name: passes}")
    write("pyproject.toml", '[tool.harness]\ntraces = "failed"\n')
    invoke("run", ".")
    assert [line["trace"] for line in lines_of(tmp_path / "reports/latest")] == [None]
    write("pyproject.toml", '[tool.harness]\ntraces = "some"\n')
    assert "setting 'traces' in [tool.harness]" in invoke("run", ".").stderr


@pytest.mark.parametrize(
    "other",
    [["harness", "run", ".", "-j", "2"], ["pytest"], ["isolated"]],
    ids=lambda other: other[0],
)
def test_traces_are_the_same_in_every_mode_of_running(
    other: list[str], suite: WriteSuite, invoke: Invoke, write: WriteFile, tmp_path: Path
) -> None:
    suite("{name: one, repeat: 2}", "{name: two}", "{name: three, input: hello}")
    invoke("run", ".", "--report", "alone")
    if other == ["isolated"]:
        write("pyproject.toml", '[tool.harness]\nisolation = "process"\n')
        other = ["harness", "run", "."]
    if other == ["pytest"]:
        other = [*other, *workers(2)]
    report = "--harness-report=other" if other[0] == "pytest" else "--report=other"
    assert run([*other, report]).returncode == 0
    alone, others = (
        {p.name: p.read_bytes() for p in Path(f, "traces").iterdir()} for f in ("alone", "other")
    )
    assert alone == others
    assert sorted(alone) == ["1-2.jsonl.gz", "1.jsonl.gz", "2.jsonl.gz", "3.jsonl.gz"]
    lines = [[{**line, "wall": 0} for line in lines_of(Path(folder))] for folder in ("alone", "other")]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_leaves_complete_traces(
    sent: signal.Signals, suite: WriteSuite, tmp_path: Path
) -> None:
    suite("{name: counts, repeat: 5000}")
    results = tmp_path / "out/results.jsonl"
    command = ["harness", "run", ".", "-q", "--report", "out", "--json", "-"]
    with Process(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for _ in range(5):
            assert process.stdout.readline()
        process.send_signal(sent)
        process.stdout.read()
    lines = [
        json.loads(line) for line in results.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")
    ]
    assert 0 < len(lines) < 5000
    for line in lines:
        trace = read_trace(tmp_path / "out" / line["trace"])
        assert (trace.damage, trace.head["digest"]) == (None, line["digest"])
    assert all(read_trace(path).damage is None for path in (tmp_path / "out/traces").glob("*.gz"))


def test_the_limit_on_kept_traces_is_reported(suite: WriteSuite, harness: RunCommand) -> None:
    suite("{name: counts, repeat: 4}")
    done = harness("run", ".", HARNESS_TRACES_LIMIT="0.01")
    assert "traces  2 left out: the traces of a run may take 0.01 MB (traces_limit)" in done.stdout
    assert done.returncode == 0


def test_a_run_stopped_by_a_limit_has_a_trace_up_to_its_end(
    write: WriteFile, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("slow_tools.py", "import threading\n\n\ndef slow(state, params):\n    threading.Event().wait(60)\n")
    write(
        "slow.yaml",
        'version: "1.0"\nstart_at: wait\nend_at: [wait]\nnodes: [{id: wait, handler: slow}]\nedges: []\n',
    )
    write(
        "b.scenario.yaml",
        "harness: 1\nmanifest: slow.yaml\nscenarios:\n"
        "  - {name: imports everything, input: {}, handlers: {slow: [{return: {}}]}}\n"
        "  - {name: waits, input: {}, handlers: {slow: slow_tools.slow}}\n",
    )
    invoke("run", "b.scenario.yaml", "-k", "imports")
    monkeypatch.setenv("HARNESS_REAL_TIMEOUT", "1")
    invoke("run", "b.scenario.yaml::waits")
    told = invoke("trace", "b.scenario.yaml::waits").stdout
    assert told.startswith("b.scenario.yaml::waits\nerror (score 0.00)")
    assert "▸ handler call: slow" in told


def test_no_trace_contains_a_secret(
    suite: WriteSuite, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-7162-Plmok-kdjE")
    suite("{name: counts, input: 'this is tok-7162-Plmok-kdjE, keep it'}")
    invoke("run", ".")
    trace = gzip.decompress(Path("reports/latest/traces/1.jsonl.gz").read_bytes()).decode()
    assert "tok-7162" not in trace
    assert "this is <secret:SHOP_TOKEN>, keep it" in trace
