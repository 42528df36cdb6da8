"""The import of an app: its modules, its variables, what it asks for, and what it is told if it fails."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from harness.scenario import app_process
from tests.dialects.apps.conftest import RunApp
from tests.versions import declarative


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
        {
            "network.py": """
        import httpx
        CONFIG = httpx.get("https://config.example.com/x").json()
        def agent(input):
            return CONFIG
    """
        },
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


@pytest.mark.parametrize("forks", [True, False])
def test_runs_begin_with_the_variables_as_the_import_left_them(
    run_app: RunApp, monkeypatch: pytest.MonkeyPatch, forks: bool
) -> None:
    """All but those that the scenario sets."""
    monkeypatch.setattr(app_process, "is_available", lambda: forks)
    monkeypatch.setenv("OF_SHELL", "1")
    app = """
        import os

        for name in ("REMOVED", "OF_SHELL", "OF_SCENARIO", "DO_NOT_TRACK"):
            del os.environ[name]
        os.environ["CHANGED"] = os.environ["ADDED"] = "by the app"

        def agent(input):
            names = ("REMOVED", "CHANGED", "ADDED", "OF_SHELL", "OF_SCENARIO", "DO_NOT_TRACK")
            return [os.environ.get(name) for name in names]
    """
    declared = '{"graphs": {"agent": "./app.py:agent"}, "env": {"REMOVED": "1", "CHANGED": "1"}}'
    scenarios = """
        manifest: langgraph.json
        scenarios:
        - name: it
          input: hi
          env: {OF_SCENARIO: mine}
          repeat: 2
          expect: {output: [null, by the app, by the app, null, mine, null]}
    """
    for outcome in run_app(scenarios, {"app.py": app, "langgraph.json": declared}).values():
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
