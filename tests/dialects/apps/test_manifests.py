"""What a manifest of a LangGraph app may be, and the one located error for what it may not be."""

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest
from packaging.version import Version

from tests.dialects.apps.conftest import RunApp, error_of
from tests.versions import declarative

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
        place: str


    settings = Settings()


    def agent(question):
        return [settings.openai_api_key.get_secret_value(), settings.shop_token, settings.search_api_key]
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
def test_settings_of_pydantic_have_the_keys_that_they_require(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: app.py:agent
        scenarios:
          - {name: the rest is given, env: {PLACE: Bern}, input: hi, expect: {output: [replayed, replayed, null]}}
          - {name: nothing is given, input: hi}
        """,
        {"app.py": SETTINGS},
    )
    assert found["the rest is given"].passed, found["the rest is given"].checks
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

    def silent(listener=None):
        return saved()
"""


@pytest.mark.parametrize("name", ["told", "typed", "saved"])
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


@pytest.mark.parametrize("file", ["parts/__init__.py", "parts/more.py", "parts.py", "src/parts.py"])
def test_a_package_beside_the_app_is_not_to_be_installed(
    run_app: RunApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {f"workspace/{file}": "", "workspace/app/agent.py": "from parts import more\n"}
    scenario = "manifest: workspace/app/agent.py:agent\nscenarios: [{name: it, input: hi}]"
    (outcome,) = run_app(scenario, files).values()
    error = str(outcome.observed.error)
    root = "workspace/src" if file.startswith("src") else "workspace"
    assert f"'parts' is in {root}: PYTHONPATH={root}, or" in error
    assert "pip install" not in error


def test_a_module_that_a_package_lacks_is_told_as_a_file_that_is_not_there(run_app: RunApp) -> None:
    files = {"parts/__init__.py": "", "agent.py": "from parts.prompts import SYSTEM\n"}
    scenario = "manifest: agent.py:agent\nscenarios: [{name: it, input: hi}]"
    (outcome,) = run_app(scenario, files).values()
    assert "/parts/prompts.py: perhaps it was left out of the repository" in str(outcome.observed.error)


def test_a_module_of_a_namespace_package_is_installed_by_the_name_of_both(run_app: RunApp) -> None:
    files = {"shelf/books/one.py": "", "agent.py": "import shelf.large_books\n"}
    (outcome,) = run_app("manifest: agent.py:agent\nscenarios: [{name: it, input: hi}]", files).values()
    assert "pip install shelf-large-books" in str(outcome.observed.error)


def test_a_variable_that_an_import_reads_in_vain_is_told_where_it_fails(run_app: RunApp) -> None:
    files = {
        "other.py": "import os\nOTHER = os.getenv('OTHER')\n",
        "agent.py": """
            import os
            import other

            SIZE, KIND = os.getenv("SIZE", "small"), os.environ.get("MODEL_KIND")
            MODEL = KIND.upper()
        """,
    }
    (outcome,) = run_app("manifest: agent.py:agent\nscenarios: [{name: it, input: hi}]", files).values()
    assert "it reads variables that are not set; where it needs them: env: {MODEL_KIND: …}, or --env" in str(
        outcome.observed.error
    )


def test_a_module_that_an_installed_package_lacks_may_be_in_an_older_one(run_app: RunApp) -> None:
    files = {"agent.py": "import langchain_core.gone\n"}
    (outcome,) = run_app("manifest: agent.py:agent\nscenarios: [{name: it, input: hi}]", files).values()
    assert "the app requires another version of langchain-core, newer or older" in str(outcome.observed.error)


@declarative
def test_an_app_has_its_own_modules_after_a_suite_with_modules_of_the_same_names(
    run_app: RunApp, tmp_path: Path
) -> None:
    files = {
        "first/tools.py": "def check(run):\n    return True\n",
        "first/flow.yaml": """\
        version: "1.0"
        start_at: done
        end_at: [done]
        nodes: [{id: done, handler: done}]
        edges: []
        """,
        "second/app.py": "from tools import NAME\n\ndef agent(text):\n    return NAME\n",
        "second/tools.py": "NAME = 'second'\n",
    }
    scenarios = """\
    scenarios:
      - name: one
        manifest: first/flow.yaml
        handlers: {done: {return: {}}}
        expect: {custom: [{call: tools.check}]}
      - {name: two, manifest: second/app.py:agent, input: hi, expect: {output: second}}
    """
    outcomes = run_app(scenarios, files, pythonpath=(tmp_path / "first",))
    assert {name: outcome.passed for name, outcome in outcomes.items()} == {"one": True, "two": True}


def test_an_app_is_imported_once_also_beside_another_module_of_its_name(
    run_app: RunApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ModuleType("agent")
    other.__spec__ = ModuleSpec("agent", None, origin="elsewhere/agent.py")
    monkeypatch.setitem(sys.modules, "agent", other)
    note = f"with open({str(tmp_path / 'imports.txt')!r}, 'a') as file:\n    file.write('x')\n"
    scenario = "manifest: agent.py:agent\nscenarios: [{name: it, input: hi, repeat: 2, expect: {output: hi}}]"
    outcomes = run_app(scenario, {"agent.py": f"{note}\ndef agent(text):\n    return text\n"})
    assert [outcome.passed for outcome in outcomes.values()] == [True, True]
    assert (tmp_path / "imports.txt").read_text() == "x"


@pytest.mark.parametrize("package", ["src.shop", "shop"])
def test_a_file_in_src_is_the_module_that_the_app_imports(run_app: RunApp, package: str) -> None:
    files = {
        "langgraph.json": '{"dependencies": ["."], "graphs": {"shop": "./src/shop/graph.py:agent"}}',
        "src/shop/__init__.py": f"from {package}.graph import agent\n",
        "src/shop/graph.py": """
            import sys
            def agent(input): return sorted(name for name in sys.modules if "shop" in name)
        """,
    }
    scenarios = "manifest: langgraph.json\nscenarios: [{name: it, input: hi}]"
    (outcome,) = run_app(scenarios, files).values()
    assert outcome.observed.output == [package, f"{package}.graph"]


def test_a_file_in_a_package_may_import_from_it(run_app: RunApp) -> None:
    """Relatively, and what is beside it as a script would."""
    files = {
        "shop/__init__.py": "",
        "shop/desk/__init__.py": "",
        "shop/prices.py": "PRICE = 3\n",
        "shop/desk/words.py": "WORD = 'hello'\n",
        "shop/desk/graph.py": """
            from ..prices import PRICE
            from words import WORD
            def agent(input): return [PRICE, WORD, __name__]
        """,
    }
    scenarios = "manifest: shop/desk/graph.py:agent\nscenarios: [{name: it, input: hi}]"
    (outcome,) = run_app(scenarios, files).values()
    assert outcome.observed.output == [3, "hello", "shop.desk.graph"], outcome.observed.error


def test_an_app_may_draw_itself_when_it_is_imported(run_app: RunApp, tmp_path: Path) -> None:
    app = """\
    from langgraph.graph import START, MessagesState, StateGraph

    graph = StateGraph(MessagesState).add_node("done", lambda state: {}).add_edge(START, "done").compile()
    picture = graph.get_graph().draw_mermaid_png(output_file_path="graph.png")
    assert picture.startswith(b"\\x89PNG")
    """
    scenario = "manifest: agent.py:graph\nscenarios: [{name: it, input: hi, expect: {path: [done]}}]"
    (outcome,) = run_app(scenario, {"agent.py": dedent(app)}).values()
    assert outcome.passed
    assert not (tmp_path / "graph.png").exists()


def test_a_node_may_be_an_object_that_has_every_attribute(run_app: RunApp) -> None:
    app = """\
    from unittest.mock import Mock
    from langgraph.graph import START, MessagesState, StateGraph

    done = Mock(return_value={}, __name__="done")
    graph = StateGraph(MessagesState).add_node("done", done).add_edge(START, "done").compile()
    """
    scenario = "manifest: agent.py:graph\nscenarios: [{name: it, input: hi, expect: {path: [done]}}]"
    (outcome,) = run_app(scenario, {"agent.py": app}).values()
    assert outcome.passed, outcome.observed.error


def test_http_stubs_answer_what_an_import_requests(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: network.py:agent
        defaults: {input: hi}
        scenarios:
          - {name: one, http: [{url: "*/x", json: {is: one}}], expect: {output: {is: one}}}
          - {name: other, http: [{url: "*/x", json: {is: other}}], expect: {output: {is: other}}}
        """,
        BROKEN,
    )
    assert [one.verdict for one in found.values()] == ["passed", "passed"]


def test_an_import_that_goes_on_without_an_answer_is_a_warning(run_app: RunApp) -> None:
    """The run may be of an app without its tools, or with other settings."""
    app = """
        import httpx
        try:
            TOOLS = httpx.get("https://tools.example.com/list").json()
        except Exception:
            TOOLS = []
        def agent(input): return TOOLS
    """
    scenarios = """
        manifest: app.py:agent
        scenarios:
          - {name: unanswered, input: hi, expect: {output: []}}
          - name: answered
            input: hi
            http: [{url: "*/list", json: [a]}]
            expect: {output: [a], never_warnings: [{$contains: went on}]}
    """
    found = run_app(scenarios, {"app.py": app})
    assert [one.passed for one in found.values()] == [True, True]
    (warning,) = found["unanswered"].observed.warnings
    assert "the import of the app went on without an answer: nothing answers http https://tools." in warning


def test_a_file_of_variables_is_not_read_and_others_are(run_app: RunApp) -> None:
    app = """
        import os
        def agent(input):
            return {name: os.environ.get(name) for name in ("A", "B", "SOME_TOKEN", "MY_API_KEY", "OTHER")}
    """
    expected = "{output: {A: '1', B: scenario, SOME_TOKEN: replayed, MY_API_KEY: given, OTHER: null}}"
    (outcome,) = run_app(
        f"""
        manifest: langgraph.json
        scenarios: [{{name: it, input: hi, env: {{B: scenario, MY_API_KEY: given}}, expect: {expected}}}]
        """,
        {
            "app.py": app,
            ".env": "OTHER=real\n",
            "langgraph.json": '{"graphs": {"agent": "./app.py:agent"}, "env": {"A": 1, "B": "file"}}',
        },
    ).values()
    assert outcome.passed, outcome.checks


def test_a_key_that_the_app_removes_is_not_there(run_app: RunApp) -> None:
    app = """
        import os

        os.environ.pop("TRACING_API_KEY", None)
        del os.environ["OTHER_TOKEN"]

        def agent(input):
            return [os.environ.get(name) for name in ("TRACING_API_KEY", "OTHER_TOKEN", "MY_API_KEY")]
    """
    scenarios = (
        "manifest: app.py:agent\nscenarios: [{name: it, input: hi, expect: {output: [null, null, replayed]}}]"
    )
    (outcome,) = run_app(scenarios, {"app.py": app}).values()
    assert outcome.passed, outcome.checks


@pytest.mark.parametrize(
    "read",
    ["open(path).read()", "io.open(str(path), 'r').read()", "path.read_text()", "path.read_bytes().decode()"],
)
def test_a_file_of_variables_is_empty_for_the_app(run_app: RunApp, read: str) -> None:
    app = f"""
        import io
        from pathlib import Path

        path = Path(__file__).with_name(".env")
        at_import = {read}

        def agent(input):
            other = path.with_name("new")
            other.write_text("written")
            return [at_import, {read}, open(other).read()]
    """
    files = {"app.py": app, ".env": "OPENAI_API_KEY=real\n"}
    scenarios = (
        "manifest: app.py:agent\nscenarios: [{name: it, input: hi, expect: {output: ['', '', written]}}]"
    )
    assert run_app(scenarios, files)["it"].passed


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
