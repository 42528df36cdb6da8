"""The message for an agent whose requests differ from the recorded ones, and the commands that repair it."""

import re

from click.testing import CliRunner, Result

from harness.cli.main import cli
from harness.scenario.outcome import Outcome
from harness.settings import RecordMode
from tests.recording.project import Project
from tests.recording.test_record_and_replay import CATALOGUE, UMBRELLA, WEATHER

AGAIN = "harness record it.scenario.yaml::it"


def refused(project: Project, agent: str, keys: str) -> str:
    """Return the reason why the cassette does not answer."""
    outcome = project.replay(project.scenario(agent, keys))
    assert outcome.verdict == "error"
    assert outcome.observed.error is not None
    assert outcome.observed.error["code"] == "cassette-mismatch"
    message: str = outcome.observed.error["message"]
    return message


def line_of(message: str) -> tuple[str, int]:
    """Return the file and line that a message points to."""
    found = re.search(r"\((\S+\.yaml):(\d+)\)", message)
    assert found, message
    return found[1], int(found[2])


def weather_is_recorded(project: Project, keys: str = UMBRELLA, served: str = WEATHER) -> Outcome:
    with project.serving(served):
        recorded = project.record(project.scenario("weather", keys))
    assert recorded.observed.error is None
    return recorded


def command(project: Project, *args: str) -> Result:
    return CliRunner().invoke(cli, args, prog_name="harness", env=project.environment)


# ------------------------------------------------------------ a changed request


def test_a_changed_word_of_a_prompt_is_shown_in_its_message(project: Project) -> None:
    weather_is_recorded(project)
    project.replace("weather.yaml", "in one short sentence", "in one long sentence")
    message = refused(project, "weather", UMBRELLA)
    assert message.startswith("nothing recorded in cassette 'it' answers POST http://127.0.0.1:")
    assert 'messages[0] (system): "You tell the weather in one [-short-]{+long+} sentence."' in message
    assert message.endswith(f"record it again: {AGAIN}")


def test_the_nearest_recorded_request_is_shown_with_file_and_line(project: Project) -> None:
    weather_is_recorded(project)
    message = refused(project, "weather", UMBRELLA.replace("An umbrella", "My umbrella"))
    file, line = line_of(message)
    assert file == "cassettes/it/http.yaml"
    assert project.read(file).splitlines()[line - 1].startswith("- request:")
    assert "interaction 1 of 2" in message


def test_the_nearest_request_in_another_repeat_is_shown_with_its_file(project: Project) -> None:
    with project.serving("llm: [One., Two.]"):
        project.run(project.scenario("weather", "input: Hello!\nrepeat: 2"), RecordMode.REWRITE)
    outcomes = project.replayed(project.scenario("weather", "input: Good morning!\nrepeat: 2"))
    files = [line_of(outcome.observed.error["message"])[0] for outcome in outcomes if outcome.observed.error]
    assert files == ["cassettes/it/http.yaml", "cassettes/it/recording-2/http.yaml"]


def test_the_command_in_the_message_makes_it_pass(project: Project) -> None:
    weather_is_recorded(project)
    project.replace("weather.yaml", "in one short sentence", "in one long sentence")
    assert AGAIN in refused(project, "weather", UMBRELLA)
    with project.serving(WEATHER):
        recorded = command(project, *AGAIN.split()[1:])
    assert recorded.exit_code == 0, recorded.output
    assert command(project, "run", "it.scenario.yaml").exit_code == 0


def test_the_console_shows_the_difference_and_the_exit_code_is_3(
    project: Project,
) -> None:
    weather_is_recorded(project)
    project.replace("weather.yaml", "in one short sentence", "in one long sentence")
    result = command(project, "run", "it.scenario.yaml")
    assert result.exit_code == 3
    assert "[-short-]{+long+}" in result.output
    assert AGAIN in result.output


def test_a_changed_parameter_of_a_model_is_shown(project: Project) -> None:
    keys = "input: {crop: leek}"
    with project.serving("llm: [{json: {text: Leek, beds: 3}}]"):
        project.record(project.scenario("label", keys))
    project.replace("label.yaml", "temperature: 0.1", "temperature: 0.7")
    assert "temperature: [-0.1-]{+0.7+}" in refused(project, "label", keys)


def test_another_model_is_shown(project: Project) -> None:
    weather_is_recorded(project)
    project.replace("weather.yaml", "gpt-4o-mini", "gpt-4o")
    assert 'model: "gpt-4o[--mini-]"' in refused(project, "weather", UMBRELLA)


def test_a_changed_description_of_a_tool_is_shown(project: Project) -> None:
    weather_is_recorded(project)
    project.write("more_tools.py", project.read("town_tools.py").replace("Tomorrow's weather", "The weather"))
    project.replace("weather.yaml", "town_tools.forecast", "more_tools.forecast")
    message = refused(project, "weather", UMBRELLA)
    assert "tools[0] (forecast).function.description: " in message
    assert "[-Tomorrow's-]{+The+} weather in a city." in message


def test_the_answer_of_a_tool_is_compared_in_the_next_request(project: Project) -> None:
    weather_is_recorded(project)
    message = refused(project, "weather", "input: An umbrella?\ntools: {forecast: {return: 'Bergen: hail'}}")
    assert '(tool): "Bergen: [-rain-]{+hail+}"' in message
    assert "interaction 2 of 2" in message


# ------------------------------------------------------------ the same request


def test_a_request_that_is_used_up_is_named(project: Project) -> None:
    served = "llm: [A grain.]"
    with project.serving(served):
        project.record(project.scenario("shelf", "input: {iterated_word: [rye]}"))
    message = refused(project, "shelf", "input: {iterated_word: [rye, rye]}")
    assert "recorded 1 time, asked for a second time; last: interaction 1 of 1" in message
    assert line_of(message)[0] == "cassettes/it/http.yaml"


def test_a_request_of_another_turn_is_named(project: Project) -> None:
    with project.serving("llm: [Sun.]"):
        project.record(project.scenario("ask", "turns: [{input: {}}]"))
    message = refused(project, "ask", "turns: [{input: {}, llm: [Fog.]}, {input: {}}]")
    assert "it was recorded in turn 1, and asked in turn 2: interaction 1 of 1" in message


# ------------------------------------------------------------ MCP


def test_a_changed_argument_of_an_mcp_tool_is_shown(project: Project) -> None:
    keys = "input: Le Guin?"
    with project.serving(CATALOGUE):
        project.record(project.scenario("library", keys))
    model = "\nllm: [{tool_calls: [{name: find, args: {author: Ursula Le Guin}}]}]"
    message = refused(project, "library", keys + model)
    assert "tools/call of 'find'" in message
    assert "{+Ursula +}Le Guin" in message
    assert message.endswith(f"record it again: {AGAIN}")
    file, line = line_of(message)
    assert file == "cassettes/it/mcp.yaml"
    assert "sent:" in project.read(file).splitlines()[line - 1]


# ------------------------------------------------------------ what is left over


def test_unused_recorded_calls_are_a_warning(project: Project) -> None:
    weather_is_recorded(project, "turns: [{input: Hello!}, {input: Bye!}]", "llm: [Hello., Bye.]")
    outcome = project.replay(project.scenario("weather", "input: Hello!"))
    assert outcome.verdict == "passed"
    (warning,) = outcome.observed.warnings
    assert warning.startswith("cassette 'it': recorded and not used: POST http://127.0.0.1:")
    file, line = line_of(warning)
    assert project.read(file).splitlines()[line - 1].startswith("- request:")


def test_an_aborted_run_has_no_warning_of_unused_calls(project: Project) -> None:
    weather_is_recorded(project)
    project.replace("weather.yaml", "in one short sentence", "in one long sentence")
    assert project.replay(project.scenario("weather", UMBRELLA)).observed.warnings == []


def test_a_complete_replay_has_no_warning(project: Project) -> None:
    weather_is_recorded(project)
    assert project.replay(project.scenario("weather", UMBRELLA)).observed.warnings == []
