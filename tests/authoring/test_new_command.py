"""`harness new`: a scenario from one run of an agent, and from a trace."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli
from harness.source.document import read
from tests.recording.safety import BIN, Model, Project, Terminal, parrots

SCENARIOS = Path(__file__).parents[2] / "scenarios"
New = Callable[..., Result]


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> New:
    monkeypatch.chdir(tmp_path)

    def invoke(*args: str, typed: str = "") -> Result:
        return CliRunner().invoke(cli, args, prog_name="harness", input=typed)

    return invoke


@pytest.fixture
def shop(harness: New, tmp_path: Path) -> Path:
    """The example of `harness init`: an agent that looks orders up."""
    assert harness("init").exit_code == 0
    return tmp_path


ASKED = ("new", "agents/shop.yaml", "--input", "Where is my order 17?")
ANSWERS = 'order\nfind_order {"number": 17}\nreal\nYour order is on its way.\n\n'


# ---------------------------------------------------------------- from one run


def test_what_is_typed_becomes_stubs_and_what_happened_expectations(shop: Path, harness: New) -> None:
    before = (shop / "scenarios/shop.scenario.yaml").read_text()
    done = harness(*ASKED, typed=ANSWERS)
    assert (done.exit_code, done.stdout) == (0, (
        "wrote scenarios/shop.scenario.yaml::Where is my order 17?\n"
        "\nNext:\n  harness run scenarios/shop.scenario.yaml\n"
    ))  # fmt: skip
    assert "tools: find_order" in done.stderr
    assert (shop / "scenarios/shop.scenario.yaml").read_text() == before.rstrip() + (
        "\n\n"
        "  - name: Where is my order 17?\n"
        "    input: Where is my order 17?\n"
        "    llm:\n"
        "      classify: [order]\n"
        "      order:\n"
        "        - tool_calls: [{name: find_order, args: {number: 17}}]\n"
        "        - Your order is on its way.\n"
        "    tools: {find_order: real}\n"
        "    expect:\n"
        "      path: [classify, order, order_tools, order]\n"
        "      calls: [{tool: find_order, args: {number: 17}}]\n"
        "      output: Your order is on its way.\n"
    )
    assert harness("run", "scenarios").exit_code == 0


def test_a_scenario_that_is_written_fails_when_the_agent_changes(shop: Path, harness: New) -> None:
    assert harness(*ASKED, "-o", "new.scenario.yaml", typed=ANSWERS).exit_code == 0
    manifest = shop / "agents/shop.yaml"
    manifest.write_text(manifest.read_text().replace("entry_point: classify", "entry_point: order"))
    assert harness("run", "new.scenario.yaml").exit_code == 1


def test_errors_can_be_typed(shop: Path, harness: New) -> None:
    typed = 'order\nfind_order {"number": 1}\n!server_error no entry\n'
    done = harness(*ASKED, "--name", "down", "-o", "down.scenario.yaml", typed=typed)
    assert done.exit_code == 0, done.stderr
    [written] = read(shop / "down.scenario.yaml", yaml="1.2").value["scenarios"]
    assert written["tools"] == {"find_order": {"error": {"kind": "server_error", "message": "no entry"}}}
    assert written["expect"] == {
        "status": "failed",
        "path": ["classify", "order", "order_tools"],
        "calls": [{"tool": "find_order", "args": {"number": 1}, "ok": False}],
        "error": {"type": "InternalServerError", "node": "order_tools", "message": "no entry"},
    }


def test_a_conversation_may_have_several_inputs(shop: Path, harness: New) -> None:
    done = harness(*ASKED, "-o", "two.scenario.yaml", typed="other\nAnd now?\nother\n\n")
    assert done.exit_code == 0, done.stderr
    [written] = read(shop / "two.scenario.yaml", yaml="1.2").value["scenarios"]
    assert [turn["input"] for turn in written["turns"]] == ["Where is my order 17?", "And now?"]
    assert written["llm"] == {"classify": [{"reply": "other", "times": 2}]}


def test_a_person_is_asked_where_an_app_pauses(harness: New, tmp_path: Path) -> None:
    shutil.copy(SCENARIOS / "langgraph/approval/bank_agent.py", tmp_path)
    typed = 'pay {"to": "Ada", "amount": 50}\n{"decisions": [{"type": "approve"}]}\nDone\n\n'
    done = harness("new", "bank_agent.py:graph", "--input", "Pay Ada 50", typed=typed)
    assert done.exit_code == 0, done.stderr
    [written] = read(tmp_path / "bank_agent.scenario.yaml", yaml="1.2").value["scenarios"]
    assert written["human"] == {
        "HumanInTheLoopMiddleware.after_model": [{"decisions": [{"type": "approve"}]}]
    }
    assert written["expect"]["calls"] == [{"tool": "pay", "args": {"to": "Ada", "amount": 50}}]


def test_what_was_typed_is_shown_when_the_input_ends(shop: Path, harness: New) -> None:
    done = harness(*ASKED, "-o", "new.scenario.yaml", typed="order\n")
    assert done.exit_code == 2
    assert "nothing was written; so far:" in done.stderr
    assert "classify: [{reply: order}]" in done.stderr
    assert not (shop / "new.scenario.yaml").exists()


def test_lines_of_a_message_are_not_mistaken_for_the_next_message(shop: Path, harness: New) -> None:
    done = harness("new", "agents/shop.yaml", "--input", "hi\nreply: x", "--name", "a", typed="other\n\n")
    assert "  human: hi\n    reply: x\nreply: " in done.stderr


def test_a_scenario_of_a_failure_says_so(shop: Path, harness: New) -> None:
    done = harness(*ASKED, "-o", "down.scenario.yaml", typed="!server_error no power\n")
    assert done.exit_code == 0
    assert "the agent fails, and the scenario expects that: InternalServerError: no power" in done.stderr


def test_the_input_is_asked_for_also_where_it_is_piped(shop: Path, harness: New) -> None:
    done = harness("new", "agents/shop.yaml", "-o", "new.scenario.yaml", typed="Sing\nother\n\n")
    assert done.exit_code == 0, done.stderr
    [written] = read(shop / "new.scenario.yaml", yaml="1.2").value["scenarios"]
    assert (written["input"], written["llm"]) == ("Sing", {"classify": ["other"]})


def test_nothing_is_written_without_an_answer_to_the_first_question(shop: Path, harness: New) -> None:
    done = harness("new", "agents/shop.yaml", typed="")
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, "nothing was written")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other limits")
def test_a_line_that_the_terminal_cut_is_asked_for_again(shop: Path) -> None:
    ours, theirs = os.openpty()
    command: list[str | Path] = [
        BIN / "harness",
        "new",
        "agents/shop.yaml",
        "--input",
        "hi",
        "-o",
        "new.scenario.yaml",
    ]
    with subprocess.Popen(command, cwd=shop, stdin=theirs, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        for typed in ("x" * 5000, "other", ""):
            said = b""
            while not said.endswith((b"reply: ", b"to end: ")):
                more = os.read(running.stderr.fileno(), 4096)
                assert more, said
                said += more
            os.write(ours, f"{typed}\n".encode())
    [written] = read(shop / "new.scenario.yaml", yaml="1.2").value["scenarios"]
    assert written["llm"] == {"classify": ["other"]}


@pytest.mark.skipif(sys.platform == "win32", reason="its terminal does not mark what is pasted")
def test_the_lines_that_are_pasted_are_one_answer(shop: Path) -> None:
    command = ("new", "agents/shop.yaml", "--input", "hi", "-o", "new.scenario.yaml")
    with Terminal(Project(shop, {}), "harness", *command) as terminal:
        terminal.type_after("reply: \x1b[?2004h", "\x1b[200~Dear Ada,\n\nit is\non its way.\x1b[201~")
        terminal.type_after("to end: \x1b[?2004h", "")
        shown, code = terminal.end()
    assert code == 0, shown
    assert shown.rpartition("\x1b[?2004")[2].startswith("l")  # the terminal is left as it was
    [written] = read(shop / "new.scenario.yaml", yaml="1.2").value["scenarios"]
    assert written["llm"] == {"classify": ["Dear Ada,\n\nit is\non its way."]}


@pytest.mark.parametrize(("typed", "told"), [
    ("find_order {number: 17}", "{number: 17} is not valid JSON"),
    ('find_orders {"number": 17}', "the model is not offered the tool find_orders"),
])  # fmt: skip
def test_a_call_that_is_mistyped_is_asked_for_again(typed: str, told: str, shop: Path, harness: New) -> None:
    answers = ANSWERS.replace("find_order {", f"{typed}\nfind_order {{")
    done = harness(*ASKED, "-o", "new.scenario.yaml", typed=answers)
    assert done.exit_code == 0, done.stderr
    assert f"\n{told}\n  tools: find_order\nreply, or TOOL" in done.stderr
    assert typed not in (shop / "new.scenario.yaml").read_text()


@pytest.mark.parametrize(("text", "told"), [
    ("- 1\n", "has no list of scenarios"),
    ("harness: 1\nmanifest: agents/shop.yaml\nscenarios:\n", "has no list of scenarios"),
    ("harness: 1\nscenarios: [{name: a}]\n", "written as a block"),
    (None, "cannot write"),
])  # fmt: skip
def test_a_file_that_cannot_be_continued_is_refused_before_anything_is_asked(
    text: str | None, told: str, shop: Path, harness: New
) -> None:
    file = Path("in/the.scenario.yaml")
    if text is None:
        Path("in").touch()
    else:
        file.parent.mkdir()
        file.write_text(text)
    done = harness(*ASKED, "-o", str(file), typed=ANSWERS)
    assert done.exit_code == 2
    assert told in done.stderr
    assert "is asked" not in done.stderr


def test_a_scenario_is_named_after_the_last_message_of_its_input(harness: New, tmp_path: Path) -> None:
    shutil.copy(SCENARIOS / "langgraph/approval/bank_agent.py", tmp_path)
    said = '{"messages": [{"role": "user", "content": "Pay Ada"}]}'
    done = harness(
        "new", "bank_agent.py:graph", "--input", said, "-o", "to pay.scenario.yaml", typed="No.\n\n"
    )
    assert (
        "wrote to pay.scenario.yaml::Pay Ada\n\nNext:\n  harness run 'to pay.scenario.yaml'\n" in done.stdout
    )


@pytest.mark.parametrize(("args", "told"), [
    (["nowhere.yaml"], "no such file"),
    ([], "give one MANIFEST"),
    (["agents/shop.yaml", "--live", "--record"], "mutually exclusive"),
    (["agents/shop.yaml", "--from", "x", "--live"], "--from has its input"),
    (["app.py"], "name the agent in it, such as app.py:graph"),
    (["agents/shop.yaml", "--agent", "shopp"], "did you mean 'shop'?"),
    (["agents/broken.yaml", "--input", "x"], "entry point 'clasify' is not a node of agent 'shop'"),
    (["agents/broken.yaml", "--input", "x", "--live"], "entry point 'clasify' is not a node of agent 'shop'"),
    (["agents/shop.yaml", "--input", "@nothing.txt"], "nothing.txt cannot be read"),
    (["agents/shop.yaml", "--input", "x", "-o", "out.yaml"], "-o out.scenario.yaml"),
    (["--from", "nothing.jsonl.gz"], "nothing.jsonl.gz"),
    (["--from", "agents/shop.yaml"], "agents/shop.yaml"),
])  # fmt: skip
def test_wrong_uses_are_refused(args: list[str], told: str, shop: Path, harness: New) -> None:
    good = (shop / "agents/shop.yaml").read_text()
    (shop / "app.py").write_text("graph = 1\n")
    (shop / "agents/broken.yaml").write_text(good.replace("entry_point: classify", "entry_point: clasify"))
    done = harness("new", *args)
    assert done.exit_code == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------- with real models


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with parrots(tmp_path, Model()) as project:
        project.parrot()
        yield project


def test_the_answers_of_real_models_become_stubs(project: Project) -> None:
    done = project.harness("new", "parrot.yaml", "--input", "Hello", "--live", "-o", "live.scenario.yaml")
    assert done.code == 0, done.err
    [written] = read(project.folder / "live.scenario.yaml", yaml="1.2").value["scenarios"]
    [stub] = written["llm"]["say"]
    assert written["expect"]["output"] == stub["reply"]
    assert not project.cassettes()


def test_the_answers_of_real_models_become_a_cassette(project: Project) -> None:
    done = project.harness("new", "parrot.yaml", "--input", "Hello", "--record", "-o", "tape.scenario.yaml")
    assert done.code == 0, done.err
    [written] = read(project.folder / "tape.scenario.yaml", yaml="1.2").value["scenarios"]
    assert written["cassette"] == "hello"
    assert "llm" not in written
    assert set(project.cassettes()) == {"hello/http.yaml", "hello/meta.yaml"}


def test_a_run_that_recorded_nothing_does_not_say_that_something_is_kept(project: Project) -> None:
    manifest = project.folder / "parrot.yaml"
    manifest.write_text(manifest.read_text().replace("entry_point: say", "entry_point: sya"))
    done = project.harness("new", "parrot.yaml", "--input", "Hello", "--record")
    assert done.code == 2
    assert "parrot.yaml cannot be run: " in done.err
    assert "is kept" not in done.err


# ---------------------------------------------------------------- from a trace


def traces(folder: Path) -> list[str]:
    return sorted(str(path) for path in (folder / "reports/latest/traces").iterdir())


@pytest.mark.parametrize("suite", ["tutorial", "langgraph/mcp"])
def test_a_run_becomes_a_scenario_with_an_equal_run(suite: str, harness: New, tmp_path: Path) -> None:
    shutil.copytree(SCENARIOS / suite, tmp_path, dirs_exist_ok=True)
    (tmp_path / "pyproject.toml").touch()
    assert (
        harness("run", ".", "-q", "-k", "not call that no stub answers and not cannot be reached").exit_code
        == 0
    )
    done = harness("new", "--from", *traces(tmp_path)[::5], "-o", "again.scenario.yaml")
    assert (done.exit_code, done.stderr) == (0, "")  # else it would tell of a digest that differs
    again = harness("run", "again.scenario.yaml", "-q")
    assert again.exit_code == 0, again.stdout


def test_a_trace_without_its_scenario_needs_only_the_manifest(shop: Path, harness: New) -> None:
    assert harness("run", "scenarios", "-q").exit_code == 0
    (shop / "scenarios/shop.scenario.yaml").unlink()
    done = harness("new", "--from", traces(shop)[0])
    assert done.exit_code == 0, done.stderr
    [written] = read(shop / "scenarios/shop.scenario.yaml", yaml="1.2").value["scenarios"]
    assert written["tools"] == {"find_order": {"return": "on its way"}}


def test_equal_traces_become_one_scenario(shop: Path, harness: New) -> None:
    assert harness("run", "scenarios", "-q").exit_code == 0
    first = traces(shop)[0]
    done = harness("new", "--from", first, first, "-o", "one.scenario.yaml")
    assert "the same as 'a question about an order" in done.stderr
    assert len(read(shop / "one.scenario.yaml", yaml="1.2").value["scenarios"]) == 1


def test_secrets_of_a_trace_do_not_reach_the_file(shop: Path, harness: New) -> None:
    assert harness("run", "scenarios", "-q").exit_code == 0
    first = Path(traces(shop)[0])
    lines = [json.loads(line) for line in gzip.decompress(first.read_bytes()).splitlines()]
    lines[1]["value"] = {"messages": "x", "api_key": "sk-live-0123456789abcdefghij"}
    first.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    done = harness("new", "--from", str(first), "-o", "one.scenario.yaml")
    assert done.exit_code == 1  # the run is another one
    assert "sk-live" not in (shop / "one.scenario.yaml").read_text() + done.output


def test_a_value_that_varies_from_run_to_run_is_not_expected(harness: New, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import uuid\ndef agent(input):\n    return {'id': str(uuid.uuid4()), 'said': input}\n"
    )
    done = harness("new", "app.py:agent", "--input", "hi", typed="\n")
    assert done.exit_code == 0, done.stderr
    [written] = read(tmp_path / "app.scenario.yaml", yaml="1.2").value["scenarios"]
    assert written["expect"]["output"] == {"id": {"$type": "string"}, "said": "hi"}


# ---------------------------------------------------------------- from elsewhere

APP = """\
from langgraph.graph import START, MessagesState, StateGraph
from langchain_openai import ChatOpenAI

def answer(state):
    return {"messages": [ChatOpenAI(model="gpt-4o").invoke(state["messages"])]}

graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile()
"""


def langsmith_runs(question: str | None, reply: str) -> str:
    """An export of LangSmith: a graph with a node and a model call in it."""
    said = [] if question is None else [{"type": "human", "content": question}]
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["AIMessage"],
        "kwargs": {"type": "ai", "content": reply},
    }
    times = {"start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z", "status": "success"}
    node = {"metadata": {"langgraph_node": "answer", "langgraph_step": 1, "thread_id": "t"}}
    inputs = {"messages": said} if said else {}
    ended = {"messages": [*said, {"type": "ai", "content": reply}]} if said else {}
    runs = [
        {"id": "1", "run_type": "chain", "name": "LangGraph", "inputs": inputs, "outputs": ended,
         "extra": {"metadata": {"thread_id": "t"}}},
        {"id": "2", "run_type": "chain", "name": "answer", "parent_run_id": "1", "inputs": inputs, "outputs": {},
         "extra": node},
        {"id": "3", "run_type": "llm", "name": "ChatOpenAI", "parent_run_id": "2", "inputs": {"messages": [said]},
         "outputs": {"generations": [[{"text": reply, "message": message}]]}, "extra": node},
    ]  # fmt: skip
    return json.dumps([{**run, "trace_id": "1", **times} for run in runs])


def test_an_export_becomes_a_scenario_that_passes(harness: New, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "runs.json").write_text(langsmith_runs("hello", "Hi."))
    done = harness("new", "--from", "runs.json", "--manifest", "app.py:graph")
    assert done.exit_code == 0, done.stderr
    [written] = read(tmp_path / "app.scenario.yaml", yaml="1.2").value["scenarios"]
    assert written["input"] == "hello"
    assert [stub["reply"] for stub in written["llm"]["answer"]] == ["Hi."]
    assert written["expect"] == {"path": ["answer"], "output": "Hi."}


def test_an_export_of_another_run_says_what_differs(harness: New, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        APP.replace('"answer")', '"other")').replace("(answer)", '("other", answer)')
    )
    (tmp_path / "runs.json").write_text(langsmith_runs("hello", "Hi."))
    done = harness("new", "--from", "runs.json", "--manifest", "app.py:graph")
    assert done.exit_code == 1
    assert 'its run differs from the trace: path: the trace has ["answer"], the run ["other"]' in done.stderr


def test_an_export_needs_its_manifest_and_what_was_said(harness: New, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "runs.json").write_text(langsmith_runs(None, "Hi."))
    assert "give it with --manifest PATH" in harness("new", "--from", "runs.json").stderr
    done = harness("new", "--from", "runs.json", "--manifest", "app.py:graph")
    assert done.exit_code == 2
    assert "trace-empty" in done.stderr


def test_an_app_that_cannot_be_imported_gets_no_scenario_of_an_export(harness: New, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import not_installed_here\n" + APP)
    (tmp_path / "runs.json").write_text(langsmith_runs("hello", "Hi."))
    done = harness("new", "--from", "runs.json", "--manifest", "app.py:graph")
    assert done.exit_code == 2
    assert "app.py:graph cannot be run" in done.stderr
    assert not (tmp_path / "app.scenario.yaml").exists()
