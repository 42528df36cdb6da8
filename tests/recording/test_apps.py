"""An app is recorded and replayed as agents of the declarative dialects are; its calls stand in both traces."""

import pytest

from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from harness.settings import Projects, RecordMode
from harness.variants.application import apply_variants, unused_names
from harness.variants.document import read_variants
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
    """A replay has the addresses and the date of the recording, which the app reads itself, and no keys."""
    path = project.write("errand.scenario.yaml", SCENARIO)
    with project.serving(SERVED):
        (scenario,) = load_file(path).scenarios
        recorded = project.record(scenario)
    assert problems(recorded) == []
    replayed = project.replay(scenario)
    assert problems(replayed) == []
    assert _untimed(recorded) == _untimed(replayed)


AT_ANY_TIME = """
llm:
  - {when: request.prompt.startsWith("Rewrite"), reply: Nine., times: any}
  - {tool_calls: [{name: stock, args: {article: pens}}], times: any}
http:
  - {url: "*/stock/pens", text: nine, times: any}
"""
VARIANTS = """\
harness: 1
variants:
  - {name: large, models: {gpt-4o-mini: gpt-4o}, params: {temperature: 0.5}}
  - {name: stern, env: {TONE: stern}}
"""


def test_variants_change_the_models_parameters_and_variables_of_an_app(project: Project) -> None:
    path = project.write("errand.scenario.yaml", SCENARIO.partition("    expect:")[0])
    asked: dict[str, tuple[str, str]] = {}
    with project.serving(AT_ANY_TIME):
        scenarios = load_file(path).scenarios
        varied = apply_variants(scenarios, read_variants(project.write("v.yaml", VARIANTS)), Projects())
        for scenario in varied:
            (outcome,) = project.run(scenario, RecordMode.ONCE)
            models = [call for call in outcome.observed.calls if call["kind"] == "llm"]
            asked[scenario.variant or ""] = (models[0]["name"], models[-1]["prompt"])
    assert asked == {
        "baseline": ("gpt-4o-mini", "Rewrite: nine"),
        "large": ("gpt-4o", "Rewrite: nine"),
        "stern": ("gpt-4o-mini", "Rewrite, stern: nine"),
    }
    large = (project.cassettes / "errand" / "variants" / "large" / "http.yaml").read_text(encoding="utf-8")
    assert "gpt-4o-mini" not in large
    assert '"temperature": 0.5' in large
    assert not unused_names(read_variants(project.folder / "v.yaml"), varied, Projects())


CALLS = """\
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

far = ChatOpenAI(model="far", base_url="http://127.0.0.1:9/v1", max_retries=0)
near = ChatOpenAI(model="near", max_retries=0)

async def ask(state: MessagesState):
    FLOW

graph = StateGraph(MessagesState).add_node(ask).add_edge(START, "ask").compile()
"""


@pytest.mark.parametrize(
    ("flow", "ending"),
    [
        ("return {'messages': [await far.ainvoke('hi')]}", ("error", "provider-down", "ask")),
        ("return {'messages': [far.invoke('hi')]}", ("error", "provider-down", "ask")),
        ("return {'messages': [await far.with_fallbacks([near]).ainvoke('hi')]}", ("passed", None, None)),
        ("raise ValueError((await far.with_fallbacks([near]).ainvoke('hi')).text)", ("failed", None, "ask")),
        ("return {'messages': [await near.ainvoke('401')]}", ("failed", None, "ask")),
    ],
)
def test_a_run_that_fails_because_a_provider_is_down_says_nothing_about_the_app(
    project: Project, flow: str, ending: tuple[str, str | None, str | None]
) -> None:
    project.write("calls.py", CALLS.replace("FLOW", flow))
    keys = "scenarios: [{name: it, cassette: it, input: hi}]"
    path = project.write("calls.scenario.yaml", f"harness: 1\nmanifest: calls.py:graph\n{keys}\n")
    with project.serving("llm: [{when: request.prompt == '401', error: auth}, {reply: hello}]\n"):
        (scenario,) = load_file(path).scenarios
        outcome = project.record(scenario)
    error = outcome.observed.error or {}
    assert (outcome.verdict, error.get("code"), error.get("node")) == ending
    assert ("'far' cannot be reached: Connect" in error.get("message", "")) is (ending[0] == "error")


def problems(outcome: Outcome) -> list[str]:
    return [f"{check.name}: {check.message}" for check in outcome.checks if not check.passed]


def _untimed(outcome: Outcome) -> list[dict[str, object]]:
    return [{**call, "latency": 0} for call in told(outcome)["observed"]["calls"]]
