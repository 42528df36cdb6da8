"""What a manifest of a LangGraph app may be, and the one located error for what it may not be."""

import os
from importlib.metadata import version
from importlib.util import find_spec

import pytest
from packaging.version import Version

from tests.dialects.apps.conftest import RunApp, error_of

GRAPHS = """
    import asyncio
    import os
    from contextlib import asynccontextmanager
    from typing import TypedDict

    from langgraph.func import entrypoint
    from langgraph.graph import START, StateGraph


    class State(TypedDict, total=False):
        text: str


    def node(state: State) -> State:
        return {"text": state.get("text", "") + "!"}


    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile()


    def make():
        return graph


    async def make_async(config):
        def told(state: State) -> State:
            return {"text": config["configurable"]["told"]}

        other = StateGraph(State)
        other.add_node("told", told)
        other.add_edge(START, "told")
        return other


    @asynccontextmanager
    async def opened():
        yield graph


    @entrypoint()
    def shout(text: str) -> str:
        return text.upper()


    def agent(question, thread_id, context):
        return {"heard": question, "key": os.environ["SOME_API_KEY"], "thread": thread_id, "context": context}


    async def agent_async(question):
        return question


    class Agent:
        def __call__(self, input):
            return input["text"]


    def yielding(input):
        yield from ("a", "b")


    async def streaming():
        for n in range(2):
            await asyncio.sleep(1)
            yield {"n": n}


    called = Agent()
    number = 3
    graph_list = [graph]
"""


def test_a_graph_may_be_named_in_every_form(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: pkg/graphs.py:graph
        defaults: {input: {text: hi}, expect: {output: {text: hi!}, path: [node]}}
        scenarios:
          - {name: a compiled graph of a file}
          - {name: a graph of a module, manifest: "pkg.graphs:graph"}
          - {name: a builder, manifest: "pkg/graphs.py:builder"}
          - {name: a function that makes one, manifest: "pkg/graphs.py:make"}
          - {name: a context manager that makes one, manifest: "pkg/graphs.py:opened"}
          - {name: a folder with one graph, manifest: one}
          - {name: one of several, manifest: langgraph.json, agent: second}
          - name: an asynchronous function that reads the config
            manifest: pkg/graphs.py:make_async
            config: {configurable: {told: by the scenario}}
            expect: {output: {text: by the scenario}, path: [told]}
          - name: an entrypoint
            manifest: pkg/graphs.py:shout
            input: hi
            expect: {output: HI, path: [shout]}
        """,
        {
            "pkg/__init__.py": "",
            "pkg/graphs.py": GRAPHS,
            "one/langgraph.json": '{"graphs": {"only": "../pkg/graphs.py:graph"}}',
            "langgraph.json": """
                {"graphs": {"first": "pkg.graphs:make_async", "second": {"path": "./pkg/graphs.py:graph"}}}
            """,
        },
    )
    assert {name: one.verdict for name, one in found.items() if not one.passed} == {}
    assert {one.dialect for one in found.values()} == {"langgraph"}


def test_any_other_callable_is_an_agent(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: graphs.py:agent
        scenarios:
          - name: a function
            input: hi
            context: {a: 1}
            expect: {path: [agent], output: {heard: hi, key: replayed, context: {a: 1}, thread: {$regex: "^thread-"}}}
          - {name: an asynchronous one, manifest: "graphs.py:agent_async", input: hi, expect: {output: hi}}
          - {name: an object, manifest: "graphs.py:called", input: {text: x}, expect: {output: x}}
          - {name: a generator, manifest: "graphs.py:yielding", input: hi, expect: {output: ab, path: [yielding]}}
          - {name: one of anything, manifest: "graphs.py:streaming", expect: {output: [{n: 0}, {n: 1}]}}
          - {name: a maker by its looks, manifest: "graphs.py:make", dialect: python, expect: {path: [make]}}
        """,
        {"graphs.py": GRAPHS},
    )
    assert {name: one.verdict for name, one in found.items() if not one.passed} == {}
    assert {one.dialect for one in found.values()} == {"python"}


RUNTIME = {
    "app.py": """
        from typing import TypedDict

        from langgraph.graph import START, StateGraph


        class State(TypedDict, total=False):
            text: str


        def say(state: State) -> State:
            return {"text": "hi"}


        def graph_of(name):
            builder = StateGraph(State)
            builder.add_node(name, say)
            builder.add_edge(START, name)
            return builder.compile()


        def make(runtime):
            return graph_of(runtime.context["name"])


        graph = graph_of("say")
    """
}


def test_a_context_and_a_runtime_need_langgraph_0_6(run_app: RunApp) -> None:
    found = run_app(
        """
        defaults: {input: {}, context: {name: greet}, expect: {output: {text: hi}}}
        scenarios:
          - {name: a function that makes a graph from the runtime, manifest: "app.py:make", expect: {path: [greet]}}
          - {name: a graph with a context, manifest: "app.py:graph"}
        """,
        RUNTIME,
    )
    if Version(version("langgraph")) >= Version("0.6"):
        assert {name: one.verdict for name, one in found.items() if not one.passed} == {}
        return
    for name, outcome in found.items():
        assert f"{name} cannot run with langgraph {version('langgraph')}: pip install" in error_of(outcome)
        assert outcome.observed.error is not None
        assert "app.scenario.yaml" in outcome.observed.error["where"]


def test_two_scenarios_are_two_threads(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: graphs.py:agent
        scenarios: [{name: one, input: hi, repeat: 2}, {name: other, input: hi}]
        """,
        {"graphs.py": GRAPHS},
    )
    threads = [one.observed.output["thread"] for one in found.values()]
    assert len(set(threads)) == 3


SETTINGS = """
    from pydantic import SecretStr
    from pydantic_settings import BaseSettings


    class Settings(BaseSettings):
        openai_api_key: SecretStr
        shop_token: str
        search_api_key: str | None = None
        maps_api_key: str = ""
        mail_secret: SecretStr = SecretStr("")
        greeting: str = ""
        place: str


    class Code(BaseSettings, env_prefix="CODE_"):
        token: str = ""


    settings = Settings()


    def agent(question):
        secrets = [settings.openai_api_key.get_secret_value(), settings.mail_secret.get_secret_value()]
        texts = [settings.shop_token, settings.maps_api_key, Code().token]
        return secrets + texts, [settings.search_api_key, settings.greeting]
"""


def test_telemetry_of_frameworks_is_off_unless_the_scenario_says_otherwise(
    run_app: RunApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "0")
    app = """\
        import os
        AT_IMPORT = os.environ["OPENAI_AGENTS_DISABLE_TRACING"]
        def run(text):
            return [AT_IMPORT, os.environ["CREWAI_DISABLE_TELEMETRY"]]
        """
    scenarios = """\
        manifest: app.py:run
        scenarios:
          - {name: quiet, input: x, expect: {output: ["1", "true"]}}
          - {name: loud, input: x, env: {OPENAI_AGENTS_DISABLE_TRACING: "0"}, expect: {output: ["0", "true"]}}
        """
    outcomes = run_app(scenarios, {"app.py": app})
    assert all(each.passed for each in outcomes.values()), outcomes
    assert os.environ["OPENAI_AGENTS_DISABLE_TRACING"] == "0"
    assert "CREWAI_DISABLE_TELEMETRY" not in os.environ


@pytest.mark.skipif(find_spec("pydantic_settings") is None, reason="pydantic-settings is not installed")
def test_settings_of_pydantic_have_the_keys_that_they_need(run_app: RunApp) -> None:
    """Those that they require, and those that are empty until they are given; None says that there may be none."""
    dummies = "[replayed, replayed, replayed, replayed, replayed], [null, '']"
    given = "[replayed, replayed, replayed, '', mine], [null, '']"
    found = run_app(
        f"""
        manifest: app.py:agent
        defaults: {{env: {{PLACE: Bern}}, input: hi}}
        scenarios:
          - {{name: the rest is given, expect: {{output: [{dummies}]}}}}
          - {{name: keys are given, env: {{MAPS_API_KEY: "", CODE_TOKEN: mine}}, expect: {{output: [{given}]}}}}
        """,
        {"app.py": SETTINGS},
    )
    for outcome in found.values():
        assert outcome.passed, outcome.checks


@pytest.mark.skipif(find_spec("pydantic_settings") is None, reason="pydantic-settings is not installed")
def test_settings_of_pydantic_that_are_missing_are_told(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: app.py:agent
        scenarios:
          - {name: nothing is given, input: hi}
        """,
        {"app.py": SETTINGS},
    )
    assert "the variable PLACE is not set" in error_of(found["nothing is given"])


BUILDERS = """
    from typing import TypedDict
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    class State(TypedDict):
        topic: str

    def told(listener=None) -> CompiledStateGraph:
        return saved()

    def typed(listener=None) -> "StateGraph[State]":
        builder = StateGraph(State).add_node("work", lambda state: {"topic": "done"})
        return builder.set_entry_point("work").set_finish_point("work")

    def saved(checkpointer=None, listener=None):
        return typed().compile(checkpointer=checkpointer)

    def given(checkpointer, *, store, listener=None):
        return typed().compile(checkpointer=checkpointer, store=store)

    def silent(listener=None):
        return saved()
"""


@pytest.mark.parametrize("name", ["told", "typed", "saved", "given"])
def test_a_function_with_defaults_that_looks_like_a_builder_makes_a_graph(run_app: RunApp, name: str) -> None:
    inside = "{name: it, input: {topic: rain}, expect: {path: [work]}}"
    scenarios = f"manifest: app.py:{name}\nscenarios: [{inside}]"
    (outcome,) = run_app(scenarios, {"app.py": BUILDERS}).values()
    assert outcome.passed, outcome.observed.error


def test_an_agent_that_returns_a_graph_has_not_run(run_app: RunApp) -> None:
    scenarios = "manifest: app.py:silent\nscenarios: [{name: it, input: {topic: rain}}]"
    (outcome,) = run_app(scenarios, {"app.py": BUILDERS}).values()
    assert not outcome.passed
    assert "'silent' was called with the input, as the agent, and returned a graph" in error_of(outcome)
    assert "langgraph.json" in str(outcome.observed.error)


BROKEN = {
    "graphs.py": GRAPHS,
    "missing.py": "import no_such_package.part\n",
    "variable.py": "import settings\n",
    "settings.py": "import os\nDATABASE = os.environ['DATABASE_URL']\n",
    "network.py": """
        import httpx
        CONFIG = httpx.get("https://config.example.com/x").json()
        def agent(input):
            return CONFIG
    """,
    "several.json": '{"graphs": {"a": "./graphs.py:graph", "b": "./web.ts:graph"}}',
}


@pytest.mark.parametrize(
    ("manifest", "more", "message"),
    [
        ("nothing.py:graph", "", "nothing.py' does not exist"),
        ("graphs.py:graf", "", "graphs.py:graf does not exist: graphs has no 'graf'"),
        ("graphs.py:number", "", "graphs.py:number is neither a graph nor a function, but of the type int"),
        ("missing.py:graph", "", "missing.py:graph cannot be imported: there is no module 'no_such_package'"),
        ("variable.py:graph", "", "the variable DATABASE_URL is not set"),
        (
            "network.py:agent",
            "",
            "it reaches for the network: nothing answers http https://config.example.com/x",
        ),
        ("several.json", "", "several.json has 2 graphs, and nothing says which one runs"),
        ("several.json", "agent: c", "several.json has no graph 'c'"),
        ("several.json", "agent: b", "graphs in JavaScript and TypeScript do not run here"),
    ],
)
def test_what_cannot_be_run_is_one_located_error(
    run_app: RunApp, manifest: str, more: str, message: str
) -> None:
    lines = ["scenarios:", "  - name: broken", f"    manifest: {manifest}", f"    {more}", "    input: hi"]
    (outcome,) = run_app("\n".join(lines), BROKEN).values()
    assert outcome.observed.status == "invalid"
    assert message in error_of(outcome)
    assert outcome.observed.error is not None
    assert ":" in outcome.observed.error["where"]


FLOW = "version: '1.0'\nnodes: [{id: a, handler: h}]\nstart_at: a\nend_at: [a]\nedges: []\n"


@pytest.mark.parametrize(
    "key", ["config: {tags: [a]}", "context: {}", "store: [{namespace: [a], key: b, value: {}}]"]
)
def test_a_key_of_apps_is_an_error_elsewhere(run_app: RunApp, key: str) -> None:
    lines = [
        "manifest: flow.yaml",
        "scenarios:",
        "  - name: it",
        f"    {key}",
        "    handlers: {h: {return: {}}}",
    ]
    (outcome,) = run_app("\n".join(lines), {"flow.yaml": FLOW}).values()
    assert f"'{key.partition(':')[0]}' is of LangGraph apps" in error_of(outcome)


def test_an_input_may_be_a_list_for_an_app_only(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: app.py:agent
        defaults: {input: [{role: user, content: hi}, {role: ai, content: yes?}]}
        scenarios:
          - {name: a callable, expect: {output: [hi, yes?]}}
          - {name: an entrypoint, manifest: "app.py:work", expect: {output: 2}}
          - {name: a graph with messages, manifest: "app.py:graph", expect: {output: yes?}}
          - {name: a flow, manifest: flow.yaml, handlers: {h: {return: {}}}}
        """,
        {
            "flow.yaml": FLOW,
            "app.py": """
                from langgraph.func import entrypoint
                from langgraph.graph import START, MessagesState, StateGraph

                def agent(messages):
                    return [each["content"] for each in messages]

                @entrypoint()
                def work(messages):
                    return len(messages)

                graph = StateGraph(MessagesState)
                graph.add_node("node", lambda state: {})
                graph.add_edge(START, "node")
            """,
        },
    )
    assert [name for name, one in found.items() if not one.passed] == ["a flow"]
    assert ":4:19: input: expected text or a mapping, found a list" in error_of(found["a flow"])


def test_a_misspelt_key_of_langgraph_json_is_a_warning(run_app: RunApp) -> None:
    (outcome,) = run_app(
        """
        manifest: langgraph.json
        scenarios: [{name: it, input: hi, expect: {output: hi}}]
        """,
        {
            "app.py": "def agent(input):\n    return input\n",
            "langgraph.json": '{"depenedncies": [], "dockerfile_lines": [], "graphs": {"agent": "./app.py:agent"}}',
        },
    ).values()
    [text] = outcome.observed.warnings
    assert "langgraph.json:1:2: unknown key 'depenedncies' in langgraph.json: it is ignored" in text
