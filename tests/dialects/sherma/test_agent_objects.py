"""Sub-agents that are `DeclarativeAgent` objects: by path, by text, by configuration, with hooks.

spec: "Using a declarative agent", base_path.
"""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

CALLER = """\
manifest_version: 1
sub_agents: [{id: helper, version: "1.0.0", import_path: agents.helper}]
agents:
  caller:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: call
      nodes: [{name: call, type: call_agent, args: {agent: {id: helper}, input: '"hello"'}}]
      edges: []
"""

HELPER = """\
manifest_version: 1
default_llm: {id: m}
llms: [{id: m, version: "1.0.0", provider: openai, model_name: "${MODEL}"}]
prompts: [{id: p, version: "1.0.0", instructions_path: texts/greeting.md}]
agents:
  helper:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: think
      nodes:
        - name: think
          type: call_llm
          args:
            prompt: [{role: system, content: 'prompts["p"]["instructions"]'}]
            state_updates: {messages: '[llm_response]'}
      edges: []
"""

PARTS = """
from pathlib import Path

from sherma import DeclarativeAgent, load_declarative_config
from sherma.hooks import BaseHookExecutor

HERE = Path(__file__).parent / "far"
FILE = HERE / "helper.yaml"


class Shout(BaseHookExecutor):
    async def after_llm_call(self, ctx):
        ctx.response.content = ctx.response.content.upper()
        return ctx


helper = DeclarativeAgent(id="helper", version="1.0.0", ARGUMENTS)
"""

SCENARIO = """\
harness: 1
manifest: caller.yaml
env: {MODEL: tiny}
scenarios:
  - name: it
    input: hi
    llm: [{model: tiny, when: 'request.messages[0].content == "Be kind."', reply: hello}]
"""


@pytest.fixture
def answer(tmp_path: Path) -> Any:
    """Run the caller with a helper made with these arguments; gives the outcome."""

    def run(arguments: Any) -> Any:
        (tmp_path / "far" / "texts").mkdir(parents=True)
        (tmp_path / "far" / "texts" / "greeting.md").write_text("Be kind.")
        (tmp_path / "far" / "helper.yaml").write_text(HELPER)
        (tmp_path / "caller.yaml").write_text(CALLER)
        (tmp_path / "agents.py").write_text(textwrap.dedent(PARTS).replace("ARGUMENTS", arguments))
        file = tmp_path / "it.scenario.yaml"
        file.write_text(SCENARIO)
        [scenario] = load_file(file).scenarios
        return run_scenario(scenario)[0]

    return run


@pytest.mark.parametrize(
    "arguments",
    [
        "yaml_path=FILE",
        "yaml_path=str(FILE)",
        "yaml_content=FILE.read_text(), base_path=HERE",
        "config=load_declarative_config(yaml_path=FILE), base_path=HERE",
        "config=load_declarative_config(yaml_content=FILE.read_text()), base_path=HERE",
    ],
)
def test_the_manifest_comes_from_a_path_a_text_or_a_configuration(answer: Any, arguments: Any) -> None:
    outcome = answer(arguments)
    assert outcome.passed, outcome.observed.error
    assert outcome.observed.output == "hello"


def test_hooks_given_to_the_agent_run_in_it(answer: Any) -> None:
    assert answer("yaml_path=FILE, hooks=[Shout()]").observed.output == "HELLO"


def test_a_relative_path_without_a_base_path_is_refused(answer: Any) -> None:
    error = answer("yaml_content=FILE.read_text()").observed.error
    assert error["code"] == "no-base-path"
    assert "texts/greeting.md" in error["message"]
    assert "base_path" in error["message"]


def test_an_agent_without_a_manifest_says_what_it_lacks(answer: Any) -> None:
    message = answer("base_path=HERE").observed.error["message"]
    assert "agent 'helper' (agents.helper) has no manifest: give it yaml_path or yaml_content" in message


def test_bad_arguments_are_located_at_the_name_of_the_agent(answer: Any) -> None:
    message = answer("yaml_path=FILE, hooks=[int]").observed.error["message"]
    assert "caller.yaml:2:58: 'int' is not a hook: it has none of the hook methods" in message
