"""An app is recorded and replayed as agents of the declarative dialects are; its calls stand in both traces."""

from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from tests.recording.project import Project, told

SCENARIO = """\
harness: 1
manifest: errand.py:graph
scenarios:
  - name: errand
    cassette: errand
    input: How many pens?
    timeout: 600
    expect:
      path: [ask, look, write]
      output: Nine pens are left.
      calls:
        - {llm: gpt-4o-mini, node: ask}
        - {tool: stock, args: {article: pens}}
        - {http: "*/stock/pens", node: look}
        - {llm: claude-sonnet-4-5, node: write}
      usage: {llm_calls: 2, input_tokens: 17, output_tokens: 9}
"""
SERVED = """
llm:
  - {tool_calls: [{name: stock, args: {article: pens}}], usage: {input_tokens: 10, output_tokens: 3}}
  - {chunks: [Nine pens, " are left."], usage: {input_tokens: 7, output_tokens: 6}}
http:
  - {url: "*/stock/pens", text: nine}
"""


def test_the_calls_of_an_app_are_the_same_recorded_and_replayed(project: Project) -> None:
    """The replay has neither keys nor addresses in its environment: those of the recording are used."""
    path = project.write("errand.scenario.yaml", SCENARIO)
    with project.serving(SERVED):
        (scenario,) = load_file(path).scenarios
        recorded = project.record(scenario)
    assert problems(recorded) == []
    replayed = project.replay(scenario)
    assert problems(replayed) == []
    assert _untimed(recorded) == _untimed(replayed)


def problems(outcome: Outcome) -> list[str]:
    return [f"{check.name}: {check.message}" for check in outcome.checks if not check.passed]


def _untimed(outcome: Outcome) -> list[dict[str, object]]:
    return [{**call, "latency": 0} for call in told(outcome)["observed"]["calls"]]
