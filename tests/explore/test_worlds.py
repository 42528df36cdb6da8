"""`harness.strategies.worlds`, in `@given` tests of a small agent."""

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from harness.strategies import World, worlds

AGENT = """
manifest_version: 1
llms: [{id: m, version: "1.0.0", provider: openai, model_name: parrot}]
default_llm: {id: m}
agents:
  echo:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: say
      nodes:
        - name: say
          type: call_llm
          args:
            prompt: [{role: messages, content: state.messages}]
            state_updates: {messages: '[llm_response]'}
      edges: []
"""


@pytest.fixture(autouse=True)
def _agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("echo.yaml").write_text(AGENT, encoding="utf-8")


def test_a_world_runs_the_agent_as_a_run_from_python() -> None:
    seen = []

    @settings(max_examples=10, database=None, deadline=None)
    @given(worlds("echo.yaml"))
    def holds(world: World) -> None:
        run = world.run()
        seen.append(run.output)
        assert run.status == "completed"
        assert run.path in (["say"], ["say", "say"], ["say", "say", "say"])

    holds()

    assert len(set(seen)) > 1


def test_a_failing_example_prints_the_scenario_file_that_repeats_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @settings(max_examples=20, database=None, deadline=None, phases=[Phase.generate])
    @given(worlds("echo.yaml"))
    def fails(world: World) -> None:
        assert world.run().path == []

    with pytest.raises(AssertionError) as raised:
        fails()

    notes = "\n".join(raised.value.__notes__)
    assert "harness: 1\nmanifest: echo.yaml\nscenarios:\n  - name: found\n" in notes


AGENT_WITH_OUTPUTS = """
agentspec_version: 25.4.2
component_type: Agent
name: teller
outputs: [{title: total, type: integer}]
llm_config: {component_type: VllmConfig, name: m, model_id: m, url: "http://models.test"}
system_prompt: Count.
tools: [{component_type: ServerTool, name: count, inputs: [], outputs: [{title: n, type: integer}]}]
"""


def test_a_model_that_owes_outputs_calls_its_tools_too(tmp_path: Path) -> None:
    Path("teller.yaml").write_text(AGENT_WITH_OUTPUTS, encoding="utf-8")
    paths = []

    @settings(max_examples=20, database=None, deadline=None)
    @given(worlds("teller.yaml"))
    def runs(world: World) -> None:
        paths.append(world.run().path)

    runs()

    assert ["teller"] in paths
    assert any("teller_tools" in path for path in paths)
