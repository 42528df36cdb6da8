"""Declarations of apps: by the types of their state, and by the source of their functions."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.graph.model import Declared

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
LIST = {"type": "array", "items": TEXT}
APP = """\
import operator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, TypedDict
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, Send
from pydantic import BaseModel

"""


def declared(folder: Path, source: str, name: str = "graph") -> Declared:
    (folder / "app.py").write_text(APP + dedent(source), encoding="utf-8")
    return load_graph(LoadRequest((folder / f"app.py:{name}",))).declared()


def chain(
    nodes: str, state: str = "q: str\n    a: str\n    n: int\n    log: list[str]", *, edges: str = ""
) -> str:
    """Return an app whose nodes, functions called `one` and `two`, run one after the other."""
    return (
        f"class State(TypedDict, total=False):\n    {state}\n\n{dedent(nodes)}\n"
        "builder = StateGraph(State)\nbuilder.add_sequence([one, two]).add_edge(START, 'one')\n"
        f"{edges}\ngraph = builder.compile()\n"
    )


NOTHING = "def two(state): pass\n"


@pytest.mark.parametrize(
    ("nodes", "inputs", "required"),
    [
        ("def one(state): return {'a': state['q']}\n" + NOTHING, {"q": TEXT}, ["q"]),
        ("def one(state): return {'a': 'x'}\ndef two(state): return {'q': state['a']}", {}, []),
        ("def one(state): return {'a': state.get('q', '')}\n" + NOTHING, {"q": TEXT}, []),
        ("def one(state): return {'a': state.get('n', 3)}\n" + NOTHING, {}, []),  # a limit
        ("def one(state): return {'n': state['n'] + 1}\n" + NOTHING, {}, []),  # a counter
        ("def one(state): return {'q': state['q'].strip()}\n" + NOTHING, {"q": TEXT}, ["q"]),  # changed, not set
        ("def one(state):\n    found = {}\n    found['a'] = state['q']\n    return found\n"
         "def two(state): return {'log': [state['a']]}", {"q": TEXT}, ["q"]),
        ("def one(state): return unknown(state['q']).model_dump()\ndef two(state): return {'n': len(state['a'])}",
         {"q": TEXT}, ["q"]),  # it may have set `a`
        ("def look(state): return state['q']\ndef one(state): return {'a': look(state)}\n" + NOTHING,
         {"q": TEXT}, ["q"]),
        ("def make(text): return {'a': text}\ndef one(state): return make(state['q'])\n"
         "def two(state): return {'n': len(state['a'])}", {"q": TEXT}, ["q"]),
        ("def one(state): return Command(goto='two', update={'a': state['q']})\n"
         "def two(state): return {'n': len(state['a'])}", {"q": TEXT}, ["q"]),
        ("def ask(model, state): return {'a': state['q']}\none = partial(ask, 'm')\none.__name__ = 'one'\n" + NOTHING,
         {"q": TEXT}, ["q"]),
        ("def one(state): return Command(goto=Send('two', {'n': 1, 'a': state['q']}))\n"
         "def two(state): return {'log': [state['a']]}", {"q": TEXT}, ["q"]),
        ("exec('def one(state): return {}')\n" + NOTHING, {"q": TEXT, "a": TEXT, "log": LIST},
         ["q", "a", "log"]),  # nothing is known of what it reads
        ("one = lambda state: {'a': state['q']}\none.__name__ = 'one'\n" + NOTHING, {"q": TEXT}, ["q"]),
    ],
)  # fmt: skip
def test_a_caller_of_an_app_gives_what_nodes_read_before_one_writes_it(
    nodes: str, inputs: Any, required: list[str], tmp_path: Path
) -> None:
    found = declared(tmp_path, chain(nodes))
    assert found.input == {"type": "object", "properties": inputs, "required": required}
    assert not found.takes_text


def test_a_key_that_a_loop_rewrites_is_an_input_and_one_that_only_some_path_sets_is_none(
    tmp_path: Path,
) -> None:
    nodes = """\
        def one(state): return {"a": state["q"]}
        def two(state): return {"q": "again", "n": 1}
        def choose(state): return "one" if state["n"] else END
    """
    edges = "builder.add_conditional_edges('two', choose, ['one', END])"
    assert declared(tmp_path, chain(nodes, edges=edges)).input == {
        "type": "object",
        "properties": {"q": TEXT},
        "required": ["q"],
    }


def test_an_app_with_messages_takes_a_text_and_returns_one(tmp_path: Path) -> None:
    found = declared(tmp_path, chain(f"def one(state): pass\n{NOTHING}", "messages: list\n    n: int"))
    assert found.takes_text
    assert found.input is not None
    assert list(found.input["properties"]) == ["messages"]
    assert found.output == TEXT


@pytest.mark.parametrize(
    ("state", "keys", "required"),
    [
        ("class State(BaseModel):\n    q: str\n    n: int = 3\n    a: str = ''\n", {"q": TEXT}, ["q"]),
        ("@dataclass\nclass State:\n    q: str\n    n: int = 3\n    a: str = ''\n", {"q": TEXT}, ["q"]),
    ],
)
def test_a_key_with_a_default_is_no_input(state: str, keys: Any, required: list[str], tmp_path: Path) -> None:
    source = (
        f"{state}\ndef one(state): return {{'a': state.q * state.n + state.a}}\n"
        "graph = StateGraph(State).add_node(one).add_edge(START, 'one').compile()"
    )
    found = declared(tmp_path, source).input
    assert found is not None
    assert (list(found["properties"]), found["required"]) == (list(keys), required)


def test_an_input_type_of_its_own_is_what_a_caller_gives(tmp_path: Path) -> None:
    source = """\
        class Given(TypedDict):
            q: str
            n: int
        class State(Given):
            a: str
        def one(state): return {"a": state["a"]}
        builder = StateGraph(State, input_schema=Given, output_schema=Given)
        graph = builder.add_node(one).add_edge(START, "one").compile()
    """
    found = declared(tmp_path, source)
    assert found.input == {"type": "object", "properties": {"q": TEXT, "n": NUMBER}, "required": ["q", "n"]}
    assert found.output == {"type": "object", "properties": {"q": TEXT, "n": NUMBER}, "required": []}
    assert found.state is not None
    assert list(found.state["properties"]) == ["q", "n", "a"]


def test_a_graph_in_a_node_needs_what_its_own_nodes_do(tmp_path: Path) -> None:
    source = """\
        class State(TypedDict, total=False):
            q: str
            a: str
            b: str
        def ask(state): return {"a": state["q"]}
        inner = StateGraph(State).add_node(ask).add_edge(START, "ask").compile()
        def last(state): return {"b": state["a"]}
        outer = StateGraph(State).add_node("inner", inner).add_node(last)
        graph = outer.add_edge(START, "inner").add_edge("inner", "last").compile()
    """
    assert declared(tmp_path, source).input == {
        "type": "object",
        "properties": {"q": TEXT},
        "required": ["q"],
    }


def test_the_tools_of_an_app_declare_what_they_return(tmp_path: Path) -> None:
    source = """\
        @tool
        def price(item: str) -> int:
            "Look it up."
            return 1
        graph = StateGraph(MessagesState).add_node(ToolNode([price])).add_edge(START, "tools").compile()
    """
    assert declared(tmp_path, source).results == {("tool", "price"): NUMBER}


@pytest.mark.parametrize(
    ("nodes", "more", "handles"),
    [
        ("def one(state): pass", "", False),
        ("def one(state):\n    try: call()\n    except ValueError: pass", "", True),
        ("def one(state):\n    try: call()\n    finally: close()", "", False),
        ("def one(state): return model.with_retry().invoke('x')", "", True),
        ("def one(state): pass", "builder.nodes['one'].retry_policy = [RetryPolicy()]", True),
    ],
)
def test_an_app_handles_faults_by_retries_fallbacks_and_exceptions_that_it_catches(
    nodes: str, more: str, handles: bool, tmp_path: Path
) -> None:
    assert declared(tmp_path, chain(f"{nodes}\n{NOTHING}", edges=more)).handles_faults is handles


@pytest.mark.parametrize(
    ("source", "inputs", "takes_text", "output"),
    [
        ("def agent(q: str) -> int: return 1", None, True, NUMBER),
        ("def agent(q): return 1", None, True, None),
        ("def agent(q: dict) -> str: return q['topic'] + q.get('tone', '')", ["topic", "tone"], False, TEXT),
        (
            "class Q(BaseModel):\n    topic: str\ndef agent(q: Q) -> str: return q.topic",
            ["topic"],
            False,
            TEXT,
        ),
        ("class Agent:\n    def __call__(self, q: str) -> str: return q\nagent = Agent()", None, True, TEXT),
    ],
)
def test_a_function_declares_its_data_by_annotations_and_by_what_it_reads(
    source: str, inputs: Any, takes_text: bool, output: Any, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(APP + source, encoding="utf-8")
    found = load_graph(LoadRequest((tmp_path / "app.py:agent",)), "python").declared()
    assert (found.takes_text, found.output) == (takes_text, output)
    assert (None if found.input is None else list(found.input["properties"])) == inputs


def test_a_caller_gives_what_a_dataclass_cannot_be_made_without(tmp_path: Path) -> None:
    found = declared(
        tmp_path,
        """
        from dataclasses import field
        @dataclass(kw_only=True)
        class State:
            q: str
            n: int
            log: list[str] = field(default_factory=list)
        def one(state): return {"log": [state.q]}
        graph = StateGraph(State).add_node(one).add_edge(START, "one").compile()
        """,
    )
    assert found.input is not None
    assert found.input["required"] == ["q", "n"]
