"""The addresses to which keys are sent, and the default names of cassettes."""

from dataclasses import replace

from harness.scenario.cassette import cassette_name
from harness.settings import RecordMode, load_settings
from tests.recording.project import Project

STAMPS = "llm: [{reply: Stamped., times: any}]"


def test_a_cassette_never_decides_where_a_key_is_sent(project: Project) -> None:
    scenario = project.scenario("stamp", "input: a letter")
    with project.serving(STAMPS) as server:
        project.environment |= {"VLLM_BASE_URL": server.openai_url, "VLLM_API_KEY": "vllm-key-0815-4711"}
        assert project.record(scenario).passed
        assert server.openai_url in project.read("cassettes/it/meta.yaml")
        assert project.replay(scenario).passed
        del project.environment["VLLM_BASE_URL"]
        asked = len(server.requests)
        for mode in (RecordMode.REWRITE, RecordMode.ALL):
            (outcome,) = project.run(scenario, mode)
            assert outcome.observed.error is not None
            assert "set VLLM_BASE_URL" in outcome.observed.error["message"]
        assert len(server.requests) == asked


def test_files_of_the_same_name_have_different_cassettes(project: Project) -> None:
    settings = replace(load_settings(), record=True)
    scenario = project.scenario("stamp", "input: a letter", cassette=None)
    folders = [project.folder / "east" / "mail.scenario.yaml", project.folder / "west" / "mail.scenario.yaml"]
    names = [cassette_name(replace(scenario, file=file), settings) for file in folders]
    assert names == ["east/mail/it", "west/mail/it"]


def test_a_rewrite_in_which_nothing_is_asked_leaves_nothing(project: Project) -> None:
    scenario = project.scenario("weather", "input: hello")
    with project.serving("llm: [Sunny.]"):
        assert project.record(scenario).passed
        scripted = project.scenario("weather", "input: hello\nllm: [Rain.]")
        assert project.record(scripted).passed
    assert "http.yaml" not in [path.name for path in project.cassettes.rglob("*")]


def test_a_secret_that_was_found_late_matches_on_replay(project: Project) -> None:
    scenario = project.scenario(
        "weather", "input: My password is hunter2-4711-x.\ntools: {forecast: {return: fair}}"
    )
    with project.serving("""
llm:
  - tool_calls: [{name: forecast, args: {city: Bergen, password: hunter2-4711-x}}]
  - Fair.
"""):
        recorded = project.record(scenario)
    assert recorded.passed
    assert "hunter2-4711-x" not in project.read("cassettes/it/http.yaml")
    replayed = project.replay(scenario)
    assert replayed.passed
    assert replayed.digest == recorded.digest
