"""`harness record`, and `harness run` in the modes with real calls."""

import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from harness.settings import RecordMode, Settings
from harness.time import selector
from tests.recording.safety import ASKING, PARROT, Model, Project, Terminal, parrots

UNPLAYED = "harness: 1\nmanifest: parrot.yaml\nscenarios: [{name: scripted, input: hi, llm: [hello]}]\n"


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def project(tmp_path: Path, model: Model) -> Iterator[Project]:
    with parrots(tmp_path, model) as project:
        yield project


def test_the_help_describes_modes_keys_and_exit_codes(project: Project) -> None:
    done = project.harness("record", "--help")
    assert done.code == 0
    for said in (
        "once",
        "new_episodes",
        "all ",
        "rewrite",
        "OPENAI_API_KEY",
        "FILE::NAME",
        "Exit codes",
        "--tag",
        "-k",
    ):
        assert said in done.out
    assert "record" in project.harness("--help").out


def test_scenarios_with_a_cassette_are_recorded_and_the_others_listed(project: Project, model: Model) -> None:
    project.parrot("one")
    project.write("q.scenario.yaml", UNPLAYED)
    done = project.record()
    assert (done.code, done.err) == (0, "1 scenario without a cassette left out\n")
    assert "1 passed" in done.out
    assert model.heard == ["one"]
    assert set(project.cassettes()) == {"one/http.yaml", "one/meta.yaml"}


def test_without_cassettes_nothing_is_recorded(project: Project) -> None:
    project.parrot()
    project.write("p.scenario.yaml", UNPLAYED)
    done = project.record()
    assert done.code == 2
    assert "1 scenario and no cassette: nothing to record [no-cassette]" in done.err
    assert "write `cassette: NAME`" in done.err


def test_a_setting_records_all_scenarios(project: Project) -> None:
    project.parrot()
    project.write("pyproject.toml", "[tool.harness]\nrecord = true\ncassettes = 'tapes'\n")
    project.write(
        "p.scenario.yaml", "harness: 1\nmanifest: parrot.yaml\nscenarios: [{name: Say it!, input: hi}]\n"
    )
    assert project.record().code == 0
    [folder] = (project.folder / "tapes/p").iterdir()
    assert folder.name.startswith("say-it-")
    assert project.replay().code == 0


@pytest.mark.parametrize(
    ("args", "heard"),
    [
        (["p.scenario.yaml::two"], ["two"]),
        (["-k", "ONE", "."], ["one"]),
        (["--tag", "loud", "."], ["three"]),
        (["--tag", "loud", "--tag", "none", "."], ["three"]),
        (["p.scenario.yaml::two", "p.scenario.yaml::one"], ["one", "two"]),
    ],
)
def test_arguments_select_the_scenarios_to_record(
    project: Project, model: Model, args: list[str], heard: list[str]
) -> None:
    project.parrot("one", "two")
    project.parrot("three", file="q.scenario.yaml", more=", tags: [loud]")
    assert project.record(*args).code == 0
    assert sorted(model.heard) == sorted(heard)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["p.scenario.yaml::tow"], "did you mean 'two'?"),
        (["-k", "nothing", "."], "none of 2 scenarios matches -k 'nothing'"),
        (["nowhere"], "nowhere"),
        ([], "Missing argument"),
        ([".", "--mode", "none"], "'none' is not one of"),
        ([".", "--mode", "live"], "'live' is not one of"),
    ],
)
def test_invalid_arguments_exit_with_2(project: Project, model: Model, args: list[str], said: str) -> None:
    project.parrot("one", "two")
    done = project.harness("record", *args)
    assert done.code == 2
    assert said in done.err
    assert (model.heard, project.cassettes()) == ([], {})


# ---------------------------------------------------------------- modes


@pytest.mark.parametrize(
    ("mode", "asks_again"), [("once", False), ("new_episodes", False), ("all", True), ("rewrite", True)]
)
def test_the_mode_decides_what_happens_to_an_existing_cassette(
    project: Project, model: Model, mode: str, asks_again: bool
) -> None:
    project.parrot("one")
    for command in ("record", "run"):
        assert project.harness(command, ".", "--record-mode", mode).code == 0
    assert len(model.heard) == (2 if asks_again else 1)
    before = project.cassettes()
    project.parrot("one", manner="Another prompt. ")
    again = project.harness("run", ".", "--record-mode", mode)
    assert again.code == (3 if mode == "once" else 0)
    assert (project.cassettes() == before) is (mode == "once")
    bodies = project.cassettes()["one/http.yaml"]
    assert (b"Be nice." in bodies) is (mode != "rewrite")


def test_only_missing_cassettes_are_recorded_and_listed(project: Project, model: Model) -> None:
    project.parrot("one", "two")
    assert project.record("-k", "one", ".").code == 0
    shown = project.record().out
    assert model.heard == ["one", "two"]
    assert "cassettes/one  nothing was missing\n" in shown
    assert "cassettes/two  1 request, 3 tokens in, 2 out → http.yaml, meta.yaml\n" in shown
    assert "recorded: 1 request, 3 tokens in, 2 out; 2 files written\n" in shown
    assert "recorded: nothing asked; 0 files written\n" in project.record().out
    assert "recorded:" not in project.replay().out


def test_rewrite_records_everything_again(project: Project, model: Model) -> None:
    project.parrot("one", "two")
    project.record()
    shown = project.record(".", "--rewrite").out
    assert sorted(model.heard) == ["one", "one", "two", "two"]
    assert "recorded: 2 requests, 6 tokens in, 4 out;" in shown
    refused = project.record(".", "--rewrite", "--record-mode", "once")
    assert (refused.code, "are mutually exclusive" in refused.err) == (2, True)


def test_a_replay_that_fails_is_no_recording_that_failed(project: Project, model: Model) -> None:
    project.parrot("one")
    project.record()
    project.parrot("one", more=", faults: [{effect: llm, nth: 1, error: server_error}]")
    shown = project.record(".", "--record-mode", "once").out
    assert "1 failed" in shown
    assert "is not written" not in shown


def test_recorded_calls_that_are_no_longer_used_are_reported(project: Project, model: Model) -> None:
    project.parrot("one")
    project.record()
    project.parrot("one", manner="Another prompt. ")
    assert "; 1 recorded before and not used now, which --rewrite drops\n" in project.record().out
    assert "not used" not in project.record(".", "--rewrite").out
    assert len(model.heard) == 3


def test_repeats_without_a_recording_are_recorded(project: Project, model: Model) -> None:
    project.parrot("one")
    project.record()
    project.parrot("one", more=", repeat: 3")
    shown = project.record().out
    files = "http.yaml, meta.yaml, recording-2/http.yaml, recording-2/meta.yaml, recording-3/http.yaml"
    assert f"cassettes/one  2 requests, 6 tokens in, 4 out → {files}" in shown
    assert model.heard == ["one"] * 3


def test_an_aborted_recording_leaves_the_cassette_and_is_reported(project: Project) -> None:
    project.parrot("one")
    shown = project.record(OPENAI_BASE_URL="http://127.0.0.1:9/v1").out
    assert "cassettes/one  is not written: the run did not come to its end" in shown
    assert "as it was" not in shown  # there was none


def test_live_calls_the_model_and_neither_reads_nor_writes_cassettes(project: Project, model: Model) -> None:
    project.parrot("one")
    project.write("q.scenario.yaml", UNPLAYED.replace(", llm: [hello]", ""))
    done = project.harness("run", ".", "--live")
    assert done.code == 0, done.all
    assert sorted(model.heard) == ["hi", "one"]
    assert project.cassettes() == {}
    both = project.harness("run", ".", "--live", "--record-mode", "all")
    assert both.code == 2
    assert "are mutually exclusive" in both.err


def test_a_missing_recording_is_an_error_that_names_the_command(project: Project, model: Model) -> None:
    project.parrot("one two")
    text = (project.folder / "p.scenario.yaml").read_text().replace("cassette: one two", "cassette: one")
    project.write("p.scenario.yaml", text)
    done = project.harness("run", ".")
    assert done.code == 3
    assert "cassette 'one' is not recorded" in done.out
    assert "record it: harness record 'p.scenario.yaml::one two'\n" in done.out
    assert "  rerun  harness record 'p.scenario.yaml::one two'  # seed 0\n" in done.out
    assert str(project.folder) not in done.all
    assert model.heard == []


def test_missing_cassettes_are_not_recorded_in_ci(project: Project, model: Model) -> None:
    project.parrot("one")
    assert project.harness("run", ".", "--record-mode", "once", CI="true").code == 3
    assert model.heard == []
    assert project.record(CI="true").code == 0  # `record` is an explicit request
    assert model.heard == ["one"]


# ---------------------------------------------------------------- obstacles: keys, extras, providers


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_missing_key_is_named(project: Project, model: Model, provider: str) -> None:
    project.parrot("one")
    project.write("parrot.yaml", PARROT.replace("provider: openai", f"provider: {provider}"))
    done = project.record(OPENAI_API_KEY=None, ANTHROPIC_API_KEY=None)
    assert done.code == 3
    assert f"set {provider.upper()}_API_KEY" in done.out
    assert "  rerun  harness record p.scenario.yaml::one  # seed 0\n" in done.out
    assert project.results()["one"]["error"]["code"] == "key-missing"
    assert (model.heard, project.cassettes()) == ([], {})


@pytest.mark.parametrize(
    ("provider", "package"),
    [("openai", "langchain_openai"), ("openai", "openai"), ("anthropic", "anthropic")],
)
def test_a_missing_extra_is_named(
    project: Project, provider: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.parrot("one")
    project.write("parrot.yaml", PARROT.replace("provider: openai", f"provider: {provider}"))
    monkeypatch.setitem(sys.modules, package, None)
    done = project.record(ANTHROPIC_API_KEY="sk-ant-parrot-1")
    assert done.code == 3
    assert f"agent-scenarios[{provider}]" in done.out
    assert project.results()["one"]["error"]["code"] == "extra-missing"


def test_an_unreachable_provider_is_an_error(project: Project) -> None:
    project.parrot("one", "two")
    done = project.record(OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert done.code == 3
    assert "cannot be reached" in done.out
    assert (
        "  the cassette is not written: the run did not come to its end\n    2 scenarios, such as "
        in done.out
    )
    assert "\nnothing recorded: 6 requests; 0 files written\n" in done.out
    assert "Traceback" not in done.all
    assert {line["error"]["code"] for line in project.results().values()} == {"provider-down"}
    assert project.cassettes() == {}


def test_option_x_stops_at_the_first_failure(project: Project, model: Model) -> None:
    project.parrot("one", "two", expect="{output: other}")
    assert project.record(".", "-x").code == 1
    assert model.heard == ["one"]


def test_the_report_folder_and_quiet_options(project: Project) -> None:
    project.parrot("one", expect="{output: one}")
    done = project.record(".", "--report", "mine", "-q")
    assert done.code == 0
    assert "one" not in done.out.partition("slowest")[0]
    assert set(project.results("mine")) == {"one"}


# ---------------------------------------------------------------- human input


def asking(project: Project) -> None:
    project.write("asking.yaml", ASKING)
    scenario = "{name: colour, cassette: colour, expect: {state: {messages: [{content: blue}]}}}"
    project.write("a.scenario.yaml", f"harness: 1\nmanifest: asking.yaml\nscenarios: [{scenario}]\n")


def test_an_answer_at_the_terminal_is_recorded(project: Project) -> None:
    asking(project)
    with Terminal(project, "harness", "record", ".") as terminal:
        terminal.type_after("Which colour?", "blue")
        told, code = terminal.end()
    assert code == 0, told
    assert "ask asks: Which colour?" in told
    done = project.replay()
    assert done.code == 0, done.all


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "end of input"])
def test_a_question_without_an_answer_ends_the_recording(project: Project, key: str) -> None:
    asking(project)
    with Terminal(project, "harness", "record", ".") as terminal:
        terminal.type_after("Which colour?", key, end="")
        told, code = terminal.end()
    assert code == 3, told
    assert "Traceback" not in told
    assert project.cassettes() == {}


def test_a_question_may_wait_longer_than_a_server(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector, "OUTSIDE_LIMIT_S", 0.05)
    asking(project)

    def ask(_node: str, _args: object) -> str:
        Event().wait(0.3)
        return "blue"

    settings = Settings(cassettes=project.folder / "cassettes", record_mode=RecordMode.REWRITE)
    [scenario] = load_file(project.folder / "a.scenario.yaml").scenarios
    [outcome] = run_scenario(scenario, settings, ask=ask)
    assert (outcome.verdict, outcome.observed.error) == ("passed", None)
    assert outcome.observed.latency["total"] == 0


def test_without_a_terminal_no_question_is_asked(project: Project) -> None:
    asking(project)
    done = project.record()
    assert done.code == 1
    assert "interrupted" in done.out
