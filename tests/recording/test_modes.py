"""The record modes, which decide about calls that no stub answers, as in vcrpy and pytest-recording."""

import re
from collections.abc import Sequence

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli
from harness.graph.effects import MCPCall
from harness.scenario.outcome import Outcome
from harness.serve import ServedRequest
from harness.settings import RecordMode
from tests.recording.project import Project, told

WRITING = [RecordMode.ONCE, RecordMode.NEW_EPISODES, RecordMode.ALL, RecordMode.REWRITE]

BOTH = "llm: [{when: request.prompt == 'Hello!', reply: %s}, {when: request.prompt == 'Bye!', reply: %s}]"
HELLO = "input: Hello!"
HELLO_AND_BYE = "turns: [{input: Hello!}, {input: Bye!}]"


def only(outcomes: list[Outcome]) -> Outcome:
    (outcome,) = outcomes
    return outcome


def code(outcome: Outcome) -> str | None:
    return (outcome.observed.error or {}).get("code")


def said(outcome: Outcome) -> list[str]:
    """Return the replies of the model, in order."""
    return [message["content"] for message in outcome.observed.state["messages"] if message["type"] == "ai"]


def found(outcome: Outcome) -> list[str]:
    """Return the answers of the catalogue, in order."""
    messages = outcome.observed.state["messages"]
    return [message["content"][0]["text"] for message in messages if message["type"] == "tool"]


def command(*args: str, environment: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, args, prog_name="harness", env=environment)


# ------------------------------------------------------------ without a cassette


def test_none_makes_no_calls_and_shows_how_to_record(project: Project) -> None:
    scenario = project.scenario("weather", HELLO)
    with project.serving("llm: [Hello.]") as server:
        outcome = only(project.run(scenario, RecordMode.NONE))
    assert server.requests == []
    assert (outcome.verdict, code(outcome)) == ("error", "cassette-missing")
    assert "record it: harness record it.scenario.yaml::it" in outcome.observed.error["message"]  # type: ignore[index]


def test_a_missing_cassette_has_its_own_exit_code(project: Project) -> None:
    project.scenario("weather", HELLO)
    result = command("run", "it.scenario.yaml")
    assert result.exit_code == 3
    assert "harness record it.scenario.yaml::it" in result.output


def test_the_command_in_the_message_records_the_cassette(project: Project) -> None:
    project.scenario("weather", HELLO)
    with project.serving("llm: [Hello.]"):
        result = command("record", "it.scenario.yaml::it", environment=project.environment)
    assert result.exit_code == 0, result.output
    assert command("run", "it.scenario.yaml").exit_code == 0


@pytest.mark.parametrize("mode", WRITING)
def test_modes_that_write_record_what_is_missing(project: Project, mode: RecordMode) -> None:
    scenario = project.scenario("weather", HELLO)
    with project.serving("llm: [Hello.]"):
        recorded = only(project.run(scenario, mode))
    assert said(recorded) == ["Hello."]
    assert told(project.replay(scenario)) == told(recorded)


@pytest.mark.parametrize("mode", [RecordMode.ONCE, RecordMode.NEW_EPISODES])
def test_in_ci_nothing_that_is_missing_is_recorded(
    project: Project, monkeypatch: pytest.MonkeyPatch, mode: RecordMode
) -> None:
    monkeypatch.setenv("CI", "true")
    scenario = project.scenario("weather", HELLO)
    with project.serving("llm: [Hello.]") as server:
        outcome = only(project.run(scenario, mode))
    assert server.requests == []
    assert (outcome.verdict, code(outcome)) == ("error", "cassette-missing")
    assert project.recorded_files() == {}


@pytest.mark.parametrize("mode", [RecordMode.ALL, RecordMode.REWRITE])
def test_all_and_rewrite_record_in_ci(
    project: Project, monkeypatch: pytest.MonkeyPatch, mode: RecordMode
) -> None:
    monkeypatch.setenv("CI", "true")
    scenario = project.scenario("weather", HELLO)
    with project.serving("llm: [Hello.]"):
        assert said(only(project.run(scenario, mode))) == ["Hello."]
    assert said(project.replay(scenario)) == ["Hello."]


# ------------------------------------------------------------ with a cassette


def recorded_hello(project: Project) -> None:
    """Record a cassette with the answer `Old.` to `Hello!`."""
    with project.serving(BOTH % ("Old.", "Old bye.")):
        project.record(project.scenario("weather", HELLO))


def test_once_replays_an_existing_cassette_and_makes_no_calls(project: Project) -> None:
    recorded_hello(project)
    before = project.recorded_files()
    scenario = project.scenario("weather", HELLO_AND_BYE)
    with project.serving(BOTH % ("New.", "New bye.")) as server:
        outcome = only(project.run(scenario, RecordMode.ONCE))
    assert server.requests == []
    assert (outcome.verdict, code(outcome)) == ("error", "cassette-mismatch")
    assert project.recorded_files() == before


def test_new_episodes_replays_recorded_calls_and_adds_the_others(project: Project) -> None:
    recorded_hello(project)
    scenario = project.scenario("weather", HELLO_AND_BYE)
    with project.serving(BOTH % ("New.", "New bye.")) as server:
        recorded = only(project.run(scenario, RecordMode.NEW_EPISODES))
    assert said(recorded) == ["Old.", "New bye."]
    assert len(server.requests) == 1
    assert told(project.replay(scenario)) == told(recorded)


@pytest.mark.parametrize(("mode", "kept"), [("new_episodes", True), ("all", True), ("rewrite", False)])
def test_a_recording_is_as_old_as_the_oldest_call_that_is_kept(
    project: Project, mode: str, kept: bool
) -> None:
    recorded_hello(project)
    (meta,) = project.folder.rglob("meta.yaml")
    meta.write_text(re.sub(r"recorded: .*", "recorded: '2025-01-31'", meta.read_text()))
    with project.serving(BOTH % ("New.", "New bye.")):
        project.run(project.scenario("weather", "input: Bye!", name="bye"), RecordMode(mode))
    assert ("recorded: '2025-01-31'" in meta.read_text()) is kept


def test_new_episodes_keeps_unused_calls(project: Project) -> None:
    both = project.scenario("weather", HELLO_AND_BYE)
    with project.serving(BOTH % ("Old.", "Old bye.")):
        recorded = project.record(both)
    other = project.scenario("weather", "input: Bye!", name="other")
    with project.serving(BOTH % ("New.", "New bye.")):
        assert said(only(project.run(other, RecordMode.NEW_EPISODES))) == ["New bye."]
    assert said(project.replay(both)) == said(recorded)
    assert said(project.replay(other)) == ["New bye."]


def test_new_episodes_keeps_equal_requests_that_were_not_asked_for(project: Project) -> None:
    same = project.scenario("shelf", "input: {iterated_word: [rye, rye]}")
    with project.serving("llm: [A grain., A bread.]"):
        recorded = project.record(same)
    less = project.scenario("shelf", "input: {iterated_word: [rye, oats]}", name="less")
    with project.serving("llm: [A cereal.]"):
        project.run(less, RecordMode.NEW_EPISODES)
    assert project.replay(same).observed.output == recorded.observed.output


def test_all_records_again_and_keeps_unused_calls(project: Project) -> None:
    both = project.scenario("weather", HELLO_AND_BYE)
    with project.serving(BOTH % ("Old.", "Old bye.")):
        project.record(both)
    hello = project.scenario("weather", HELLO, name="hello")
    with project.serving(BOTH % ("New.", "New bye.")) as server:
        assert said(only(project.run(hello, RecordMode.ALL))) == ["New."]
    assert len(server.requests) == 1
    assert said(project.replay(hello)) == ["New."]
    answers = project.read("cassettes/it/http.yaml")
    assert '"content":"Old bye."' in answers
    assert '"content":"Old."' not in answers


FINDS = """
llm:
  - {when: request.prompt == "Lem?", tool_calls: [{name: find, args: {author: Lem}}]}
  - {when: request.prompt == "Le Guin?", tool_calls: [{name: find, args: {author: Le Guin}}]}
  - {when: 'request.messages.exists(m, m.type == "tool")', reply: It is here., times: any}
mcp:
  catalogue:
    tools:
      - name: find
        input_schema: {type: object, properties: {author: {type: string}}}
        stubs: [{args: {author: Lem}, return: %s}, {args: {author: Le Guin}, return: %s}]
"""
LEM_AND_LE_GUIN = "turns: [{input: Lem?}, {input: Le Guin?}]"


def asked_of_the_catalogue(requests: Sequence[ServedRequest]) -> list[str]:
    return [asked.effect.args["author"] for asked in requests if isinstance(asked.effect, MCPCall)]


def test_new_episodes_adds_calls_of_an_mcp_server(project: Project) -> None:
    with project.serving(FINDS % ("Solaris", "Voices")):
        project.record(project.scenario("library", "input: Lem?"))
    scenario = project.scenario("library", LEM_AND_LE_GUIN)
    with project.serving(FINDS % ("Fiasco", "Powers")) as server:
        recorded = only(project.run(scenario, RecordMode.NEW_EPISODES))
    assert asked_of_the_catalogue(server.requests) == ["Le Guin"]
    assert found(recorded) == ["Solaris", "Powers"]
    assert told(project.replay(scenario)) == told(recorded)


def test_new_episodes_keeps_calls_of_an_mcp_server_that_were_not_made(project: Project) -> None:
    both = project.scenario("library", LEM_AND_LE_GUIN)
    with project.serving(FINDS % ("Solaris", "Voices")):
        project.record(both)
    other = project.scenario("library", "turns: [{input: Lem?}, {input: Lem?}]", name="other")
    with project.serving(FINDS % ("Fiasco", "Powers")):
        assert found(only(project.run(other, RecordMode.NEW_EPISODES))) == ["Solaris", "Fiasco"]
    assert found(project.replay(both)) == ["Solaris", "Voices"]


def test_all_makes_calls_of_an_mcp_server_anew_and_keeps_those_not_made(project: Project) -> None:
    with project.serving(FINDS % ("Solaris", "Voices")):
        project.record(project.scenario("library", LEM_AND_LE_GUIN))
    lem = project.scenario("library", "input: Lem?", name="lem")
    with project.serving(FINDS % ("Fiasco", "Powers")):
        project.run(lem, RecordMode.ALL)
    assert found(project.replay(lem)) == ["Fiasco"]
    calls = project.read("cassettes/it/mcp.yaml")
    assert "Voices" in calls
    assert "Solaris" not in calls


def test_rewrite_asks_anew_and_keeps_nothing(project: Project) -> None:
    both = project.scenario("weather", HELLO_AND_BYE)
    with project.serving(BOTH % ("Old.", "Old bye.")):
        project.record(both)
    hello = project.scenario("weather", HELLO, name="hello")
    with project.serving(BOTH % ("New.", "New bye.")):
        assert said(only(project.run(hello, RecordMode.REWRITE))) == ["New."]
    assert said(project.replay(hello)) == ["New."]
    assert "Old" not in project.read("cassettes/it/http.yaml")


def test_live_makes_calls_and_leaves_the_cassette_unchanged(project: Project) -> None:
    recorded_hello(project)
    before = project.recorded_files()
    scenario = project.scenario("weather", HELLO)
    with project.serving(BOTH % ("New.", "New bye.")):
        assert said(only(project.run(scenario, RecordMode.LIVE))) == ["New."]
    assert project.recorded_files() == before
    assert said(project.replay(scenario)) == ["Old."]


def test_live_is_for_scenarios_without_a_cassette_too(project: Project) -> None:
    scenario = project.scenario("weather", HELLO, cassette=None)
    with project.serving("llm: [Hello.]"):
        assert said(only(project.run(scenario, RecordMode.LIVE))) == ["Hello."]
    assert project.recorded_files() == {}


@pytest.mark.parametrize("mode", WRITING)
def test_without_a_cassette_nothing_is_asked_or_recorded(project: Project, mode: RecordMode) -> None:
    scenario = project.scenario("weather", HELLO, cassette=None)
    with project.serving("llm: [Hello.]") as server:
        outcome = only(project.run(scenario, mode))
    assert server.requests == []
    assert (outcome.verdict, code(outcome)) == ("error", "unscripted-call")
    assert project.recorded_files() == {}


@pytest.mark.parametrize("mode", [RecordMode.ALL, RecordMode.REWRITE])
def test_an_aborted_run_leaves_the_cassette_unchanged(project: Project, mode: RecordMode) -> None:
    recorded_hello(project)
    before = project.recorded_files()
    scenario = project.scenario("weather", HELLO)
    with project.serving("llm: [{error: auth}]"):
        outcome = only(project.run(scenario, mode))
    assert outcome.verdict == "failed"
    assert "the cassette is not written: the run did not come to its end" in outcome.observed.warnings
    assert project.recorded_files() == before


def test_a_run_whose_checks_fail_is_recorded(project: Project) -> None:
    scenario = project.scenario("weather", HELLO + "\nexpect: {output: Good day.}")
    with project.serving("llm: [Hello.]"):
        recorded = project.record(scenario)
    assert recorded.verdict == "failed"
    assert told(project.replay(scenario)) == told(recorded)


# ------------------------------------------------------------ stubs and cassettes


LOOKS_UP = """
llm:
  - {tool_calls: [{name: forecast, args: {city: Bergen}}]}
  - {when: 'request.prompt == "Bergen: rain"', reply: It rains.}
  - {when: 'request.prompt == "Bergen: hail"', reply: It hails.}
"""


def test_stubs_win_over_the_cassette(project: Project) -> None:
    recorded_hello(project)
    outcome = project.replay(project.scenario("weather", HELLO + "\nllm: [Scripted.]"))
    assert said(outcome) == ["Scripted."]


def test_stubs_win_while_recording_and_nothing_of_them_is_recorded(project: Project) -> None:
    scenario = project.scenario(
        "weather", HELLO_AND_BYE + "\nllm: [{when: request.prompt == 'Hello!', reply: Scripted.}]"
    )
    with project.serving(BOTH % ("New.", "New bye.")) as server:
        recorded = project.record(scenario)
    assert said(recorded) == ["Scripted.", "New bye."]
    assert len(server.requests) == 1
    assert told(project.replay(scenario)) == told(recorded)


def test_faults_strike_before_the_cassette_answers(project: Project) -> None:
    recorded_hello(project)
    faults = "\nfaults: [{effect: llm, nth: 1, error: server_error}]\nexpect: {status: failed}"
    outcome = project.replay(project.scenario("weather", HELLO + faults))
    assert "500" in outcome.observed.error["message"]  # type: ignore[index]


def test_a_recorded_model_meets_a_scripted_tool(project: Project) -> None:
    scenario = project.scenario("weather", "input: Rain?\ntools: {forecast: {return: 'Bergen: hail'}}")
    with project.serving(LOOKS_UP):
        recorded = project.record(scenario)
    assert recorded.observed.output == "It hails."
    assert told(project.replay(scenario)) == told(recorded)


@pytest.mark.parametrize("mode", list(RecordMode))
def test_a_tool_whose_stubs_do_not_match_is_not_really_called(project: Project, mode: RecordMode) -> None:
    keys = "input: Rain?\ntools: {forecast: [{args: {city: Lisbon}, return: 'Lisbon: sunny'}]}"
    with project.serving(LOOKS_UP):
        project.record(project.scenario("weather", "input: Rain?\ntools: {forecast: real}"))
    with project.serving(LOOKS_UP):
        outcome = only(project.run(project.scenario("weather", keys), mode))
    assert (outcome.verdict, code(outcome)) == ("error", "unscripted-call")


def test_a_tool_that_the_scenario_does_not_mention_is_called_if_there_is_a_cassette(project: Project) -> None:
    scenario = project.scenario("weather", "input: Rain?")
    with project.serving(LOOKS_UP):
        recorded = project.record(scenario)
    assert recorded.observed.output == "It rains."
    assert told(project.replay(scenario)) == told(recorded)


# ------------------------------------------------------------ settings


def test_a_project_may_give_each_scenario_a_cassette(project: Project) -> None:
    project.write("pyproject.toml", "[tool.harness]\nrecord = true\n")
    scenario = project.scenario("weather", HELLO, cassette=None)
    with project.serving("llm: [Hello.]"):
        recorded = project.record(scenario)
    assert set(project.recorded_files()) == {"it/it/http.yaml", "it/it/meta.yaml"}
    assert told(project.replay(scenario)) == told(recorded)


def test_a_project_may_say_where_its_cassettes_are(project: Project) -> None:
    project.write("pyproject.toml", '[tool.harness]\ncassettes = "recorded"\n')
    scenario = project.scenario("weather", HELLO)
    with project.serving("llm: [Hello.]"):
        project.record(scenario)
    assert (project.folder / "recorded/it/http.yaml").is_file()
    assert said(project.replay(scenario)) == ["Hello."]


def test_a_project_may_ignore_parts_of_requests(project: Project) -> None:
    scenario = project.scenario("label", "input: {crop: leek}")
    with project.serving("llm: [{json: {text: Leek, beds: 3}}]"):
        recorded = project.record(scenario)
    project.replace("label.yaml", "temperature: 0.1", "temperature: 0.7")
    assert code(project.replay(scenario)) == "cassette-mismatch"
    project.write("pyproject.toml", '[tool.harness]\ncassette_ignore = ["body.temperature"]\n')
    assert project.replay(scenario).observed.output == recorded.observed.output


TWO = """\
harness: 1
manifest: weather.yaml
scenarios:
  - {name: one, cassette: shared, input: Hello!}
  - {name: other, cassette: shared, input: Hello!}
"""


def test_two_scenarios_may_play_one_cassette_but_not_record_it(project: Project) -> None:
    project.write("two.scenario.yaml", TWO)
    with project.serving("llm: [Hello., Hello.]") as server:
        refused = command("record", "two.scenario.yaml", environment=project.environment)
        assert refused.exit_code == 2
        assert "'one' and 'other' cannot both record cassette 'shared'" in refused.output
        assert server.requests == []
        assert command("record", "two.scenario.yaml::one", environment=project.environment).exit_code == 0
    assert command("run", "two.scenario.yaml").exit_code == 0
