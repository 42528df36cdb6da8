"""Sub-agents that are agents of the package sherma: `DeclarativeAgent` objects, and with the package installed, all.

spec: "Using a declarative agent", base_path; `sub_agents`, import_path.
"""

import sys
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


# ------------------------------------------------------------------ with the package installed

A2A = """
from dataclasses import dataclass
from enum import Enum
from typing import Any

Role = Enum("Role", {"user": "user", "agent": "agent"})


@dataclass
class TextPart:
    text: str
    kind: str = "text"


@dataclass
class Part:
    root: Any


@dataclass
class Message:
    message_id: str
    role: Role
    parts: list[Part]


class TaskStatusUpdateEvent: ...
"""

SHERMA = """
import yaml
from a2a.types import Message, Part, Role, TaskStatusUpdateEvent, TextPart
from langchain_core.messages import HumanMessage
from pydantic import BaseModel


class LangGraphAgent:
    def __init__(self, *, id, version, **settings):
        self.id, self.version = id, version
        self.__dict__.update(settings)

    async def send_message(self, request, **_):
        state = {"messages": [HumanMessage(content=part.root.text) for part in request.parts]}
        result = await (await self.get_graph()).ainvoke(state, {"configurable": {"thread_id": "one"}})
        if "__interrupt__" in result:
            yield TaskStatusUpdateEvent()
        else:
            parts = [Part(root=TextPart(text=result["messages"][-1].content)), Part(root=TextPart("", "data"))]
            yield Message(message_id="answer", role=Role.agent, parts=parts)


class DeclarativeAgent(LangGraphAgent):
    yaml_path = yaml_content = config = base_path = None
    hooks = ()


class DeclarativeConfig(BaseModel):
    manifest_version: int
    agents: dict = {}
    prompts: list = []
    llms: list = []
    data: dict = {}
    default_llm: dict | None = None


def load_declarative_config(yaml_path):
    text = yaml_path.read_text().replace("${MODEL}", "tiny").replace("<dollar>", "$")
    return DeclarativeConfig(**yaml.safe_load(text))
"""

OBJECTS = """
from pathlib import Path

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from sherma import DeclarativeAgent, LangGraphAgent, load_declarative_config

HERE = Path(__file__).parent / "far"


class Search(LangGraphAgent):
    async def get_graph(self):
        async def look(state: MessagesState):
            asked = state["messages"][-1].content
            if self.mood == "curious":
                asked = interrupt("which one?")
            if self.mood == "lost":
                raise LookupError("nothing there")
            return {"messages": [AIMessage(content=f"found {asked}")]}

        graph = StateGraph(MessagesState)
        graph.add_node("look", look)
        graph.add_edge(START, "look")
        return graph.compile(checkpointer=MemorySaver())


helper = HELPER
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install packages with the public shape of sherma and a2a; gives a function that runs the caller."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("sherma", "a2a")]:
        monkeypatch.delitem(sys.modules, name)
    for name, text in {"a2a/__init__.py": "", "a2a/types.py": A2A, "sherma/__init__.py": SHERMA}.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "site")

    def run(helper: str, manifest: str = CALLER) -> Any:
        (tmp_path / "far" / "texts").mkdir(parents=True)
        (tmp_path / "far" / "texts" / "greeting.md").write_text("Be kind.")
        (tmp_path / "far" / "helper.yaml").write_text(HELPER)
        (tmp_path / "caller.yaml").write_text(manifest)
        (tmp_path / "agents.py").write_text(OBJECTS.replace("HELPER", helper))
        (tmp_path / "it.scenario.yaml").write_text(SCENARIO)
        [scenario] = load_file(tmp_path / "it.scenario.yaml").scenarios
        return run_scenario(scenario)[0].observed

    yield run
    for name in ("a2a", "a2a.types", "sherma"):
        sys.modules.pop(name, None)


def test_a_graph_of_an_installed_agent_runs(installed: Any) -> None:
    observed = installed('Search(id="helper", version="1.0.0", mood="good")')
    assert (observed.status, observed.output) == ("completed", "found hello")
    assert [(call["kind"], call["args"]) for call in observed.calls] == [("agent", {"input": "hello"})]


def test_an_installed_agent_that_pauses_adds_nothing(installed: Any) -> None:
    observed = installed('Search(id="helper", version="1.0.0", mood="curious")')
    assert (observed.status, observed.state["messages"]) == ("completed", observed.state["messages"][:1])


def test_an_error_of_an_installed_agent_keeps_its_type(installed: Any) -> None:
    error = installed('Search(id="helper", version="1.0.0", mood="lost")').error
    assert (error["type"], error["message"], error["node"]) == ("LookupError", "nothing there", "call")


def test_an_installed_agent_with_a_parsed_configuration_runs_its_manifest(installed: Any) -> None:
    config = 'load_declarative_config(yaml_path=HERE / "helper.yaml")'
    observed = installed(f'DeclarativeAgent(id="helper", version="1.0.0", config={config}, base_path=HERE)')
    assert (observed.status, observed.output) == ("completed", "hello")
    assert [(call["kind"], call["node"]) for call in observed.calls] == [
        ("agent", "call"),
        ("llm", "call/think"),
    ]


def test_text_that_sherma_has_substituted_is_not_substituted_again(
    installed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expression = """'data["$x"][1] == "$" + "{MODEL}" ? "Be kind." : data["$x"][1]'"""
    written = HELPER.replace("""'prompts["p"]["instructions"]'""", expression)
    monkeypatch.setitem(globals(), "HELPER", written + 'data: {$x: {1: "<dollar>{MODEL}"}}\n')
    config = 'load_declarative_config(yaml_path=HERE / "helper.yaml")'
    observed = installed(f'DeclarativeAgent(id="helper", version="1.0.0", config={config}, base_path=HERE)')
    assert (observed.status, observed.output) == ("completed", "hello")


def test_a_configuration_with_a_value_that_yaml_has_not_is_refused_at_the_name_of_the_agent(
    installed: Any,
) -> None:
    config = "type('Config', (), {'model_dump': lambda self, **_: {'data': object()}})()"
    observed = installed(f'DeclarativeAgent(id="helper", version="1.0.0", config={config})')
    assert observed.status == "invalid"
    assert "the config of this agent cannot be written as YAML" in observed.error["message"]
    assert observed.error["where"].endswith("caller.yaml:2:58")


def test_a_class_is_not_an_agent(installed: Any) -> None:
    observed = installed("Search")
    assert observed.status == "invalid"
    assert "'agents.helper' is a class, not an agent" in observed.error["message"]
    assert observed.error["where"].endswith("caller.yaml:2:58")
