"""Equal questions with different answers are distinguished by turn, repeat, order, and receiver."""

from collections.abc import Mapping
from typing import Any

from harness.scenario.outcome import Outcome
from harness.settings import RecordMode
from tests.recording.project import Project, told


def outputs(outcomes: list[Outcome]) -> list[Any]:
    return [outcome.observed.output for outcome in outcomes]


# ------------------------------------------------------------ turns


def test_the_same_question_in_two_turns_has_the_answer_of_each(project: Project) -> None:
    scenario = project.scenario(
        "ask",
        """
turns:
  - {input: {}, expect: {output: {output: Sun.}}}
  - {input: {}, expect: {output: {output: Rain.}}}
""",
    )
    with project.serving("llm: [Sun., Rain.]"):
        recorded = project.record(scenario)
    assert recorded.passed
    assert told(project.replay(scenario)) == told(recorded)


def test_a_turn_does_not_replay_calls_of_another_turn(project: Project) -> None:
    with project.serving("llm: [Sun., Rain.]"):
        project.record(project.scenario("ask", "turns: [{input: {}}, {input: {}}]"))
    scenario = project.scenario(
        "ask",
        "turns: [{input: {}, llm: [Fog.]}, {input: {}, expect: {output: {output: Rain.}}}]\nallow_unused: true",
    )
    outcome = project.replay(scenario)
    assert outcome.passed


# ------------------------------------------------------------ repeats


def test_each_repeat_has_its_own_recording(project: Project) -> None:
    scenario = project.scenario("weather", "input: Hello!\nrepeat: 3")
    with project.serving("llm: [One., Two., Three.]"):
        recorded = project.run(scenario, RecordMode.REWRITE)
    assert outputs(recorded) == ["One.", "Two.", "Three."]
    assert all(outcome.varies and outcome.recording is None for outcome in recorded)
    assert told(project.replayed(scenario)) == told(recorded)
    assert {name for name in project.recorded_files() if name.endswith("http.yaml")} == {
        "it/http.yaml",
        "it/recording-2/http.yaml",
        "it/recording-3/http.yaml",
    }


def test_more_repeats_than_recordings_play_these_again_with_a_warning(project: Project) -> None:
    with project.serving("llm: [One., Two.]"):
        project.run(project.scenario("weather", "input: Hello!\nrepeat: 2"), RecordMode.REWRITE)
    replayed = project.replayed(project.scenario("weather", "input: Hello!\nrepeat: 3"))
    assert outputs(replayed) == ["One.", "Two.", "One."]
    assert [(outcome.recording, outcome.varies) for outcome in replayed] == [
        (1, False),
        (2, False),
        (1, False),
    ]
    assert [outcome.observed.warnings for outcome in replayed] == [
        [],
        [],
        ["repeat 3 was not recorded and plays recording 1 again"],
    ]


def test_repeats_without_a_recording_replay_the_others(project: Project) -> None:
    with project.serving("llm: [One.]"):
        project.record(project.scenario("weather", "input: Hello!"))
    with project.serving("llm: [Two., Three.]") as server:
        outcomes = project.run(project.scenario("weather", "input: Hello!\nrepeat: 2"), RecordMode.ONCE)
    assert outputs(outcomes) == ["One.", "One."]
    assert server.requests == []
    assert sorted(project.recorded_files()) == ["it/http.yaml", "it/meta.yaml"]


def test_repeats_that_were_not_recorded_are_new_episodes(project: Project) -> None:
    with project.serving("llm: [One.]"):
        project.record(project.scenario("weather", "input: Hello!"))
    with project.serving("llm: [Two., Three.]") as server:
        scenario = project.scenario("weather", "input: Hello!\nrepeat: 2")
        outcomes = project.run(scenario, RecordMode.NEW_EPISODES)
    assert outputs(outcomes) == ["One.", "Two."]
    assert len(server.requests) == 1
    assert outputs(project.replayed(scenario)) == ["One.", "Two."]


def test_recording_fewer_repeats_anew_leaves_no_old_one(project: Project) -> None:
    with project.serving("llm: [One., Two., Three.]"):
        project.run(project.scenario("weather", "input: Hello!\nrepeat: 3"), RecordMode.REWRITE)
        assert "it/recording-3/http.yaml" in project.recorded_files()
    with project.serving("llm: [Four.]"):
        project.record(project.scenario("weather", "input: Hello!"))
    assert sorted(project.recorded_files()) == ["it/http.yaml", "it/meta.yaml"]


def test_one_repeat_that_breaks_leaves_all_recordings_as_they_were(project: Project) -> None:
    scenario = project.scenario("weather", "input: Hello!\nrepeat: 2")
    with project.serving("llm: [One., Two.]"):
        project.run(scenario, RecordMode.REWRITE)
    before = project.recorded_files()
    with project.serving("llm: [Three., {error: auth}]"):
        project.run(scenario, RecordMode.REWRITE)
    assert project.recorded_files() == before


# ------------------------------------------------------------ at once


def test_equal_questions_asked_at_once_keep_the_order_they_were_asked_in(project: Project) -> None:
    scenario = project.scenario("shelf", "input: {iterated_word: [rye, oats, rye, rye]}")
    served = """
llm:
  - {when: 'request.prompt.contains("rye")', reply: A grain., latency: 0.15}
  - {when: 'request.prompt.contains("rye")', reply: A bread., latency: 0.02}
  - {when: 'request.prompt.contains("rye")', reply: A field., latency: 0.08}
  - {when: 'request.prompt.contains("oats")', reply: A porridge., latency: 0.05}
"""
    with project.serving(served):
        recorded = project.record(scenario)
    assert sorted(recorded.observed.output["collected_generated_text"]) == [
        "A bread.",
        "A field.",
        "A grain.",
        "A porridge.",
    ]
    assert told(project.replay(scenario)) == told(recorded)


# ------------------------------------------------------------ people

PERMITS = """
llm:
  - {when: 'request.prompt == "A stall!"', reply: Where?}
  - {when: 'request.prompt.contains("square")', reply: Granted.}
"""


class Person:
    """A person at the terminal who answers with these texts."""

    def __init__(self, *answers: str) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._answers = list(answers)

    def __call__(self, node: str, question: Mapping[str, Any]) -> str:
        self.asked.append((node, dict(question)))
        return self._answers.pop(0)


def test_replies_of_people_are_replayed(project: Project) -> None:
    scenario = project.scenario("permits", "input: A stall!\nexpect: {output: Granted.}")
    person = Person("On the square.")
    with project.serving(PERMITS):
        recorded = project.record(scenario, ask=person)
    assert person.asked == [("ask", {"value": {"about": "Where?"}})]
    assert recorded.passed
    assert told(project.replay(scenario)) == told(recorded)


def test_a_person_is_only_asked_questions_without_a_recorded_reply(project: Project) -> None:
    scenario = project.scenario("permits", "input: A stall!")
    with project.serving(PERMITS):
        recorded = project.record(scenario, ask=Person("On the square."))
        before = project.recorded_files()
        again = project.run(scenario, RecordMode.NEW_EPISODES, ask=Person())
    assert told(again) == told([recorded])
    assert project.recorded_files() == before


def test_all_asks_a_person_anew_and_forgets_the_old_reply(project: Project) -> None:
    scenario = project.scenario("permits", "input: A stall!")
    with project.serving(PERMITS):
        project.record(scenario, ask=Person("On the old square."))
    with project.serving(PERMITS):
        project.run(scenario, RecordMode.ALL, ask=Person("On the new square."))
    meta = project.read("cassettes/it/meta.yaml")
    assert "On the new square." in meta
    assert "On the old square." not in meta


def test_an_unanswered_pause_is_replayed_as_a_pause(project: Project) -> None:
    scenario = project.scenario("permits", "input: A stall!\nexpect: {status: interrupted}")
    with project.serving("llm: [Where?]"):
        recorded = project.record(scenario)
    assert recorded.passed
    assert [warning for warning in recorded.observed.warnings if "no terminal" in warning]
    recorded.observed.warnings.clear()
    assert told(project.replay(scenario)) == told(recorded)


def test_no_person_is_asked_a_question_that_the_next_input_answers(project: Project) -> None:
    keys = "turns: [{input: A stall!}, {resume: On the town square.}]\nexpect: {output: Granted.}"
    scenario = project.scenario("permits", keys)
    person = Person()
    with project.serving(PERMITS):
        recorded = project.record(scenario, ask=person)
    assert person.asked == []
    assert recorded.passed
    assert told(project.replay(scenario)) == told(recorded)


def test_replies_are_kept_apart_by_turn(project: Project) -> None:
    keys = "turns: [{input: A stall!}, {input: A stall!}]"
    served = (
        "llm: [Where?, Granted., Where?, {when: 'request.prompt == \"On the bridge.\"', reply: Refused.}]"
    )
    scenario = project.scenario("permits", keys)
    with project.serving(served):
        recorded = project.record(scenario, ask=Person("On the square.", "On the bridge."))
    assert recorded.observed.output == "Refused."
    assert told(project.replay(scenario)) == told(recorded)
