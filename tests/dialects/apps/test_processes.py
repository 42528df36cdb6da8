"""Each run of an app begins right after the app's import, in a process of its own."""

import gc
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.scenario import app_process
from harness.scenario.load import load_file
from harness.scenario.run import run_once
from harness.settings import Settings
from tests.dialects.apps.conftest import RunApp, error_of

COUNTING = """
    import os
    seen = []
    def agent(input):
        seen.append(input)
        return {"seen": len(seen), "process": os.getpid()}
"""


def test_what_a_run_leaves_in_modules_reaches_no_other(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: app.py:agent
        defaults: {input: hi, expect: {output: {seen: 1}}}
        scenarios: [{name: one, repeat: 2}, {name: other}]
        """,
        {"app.py": COUNTING},
    )
    assert [one.verdict for one in found.values()] == ["passed"] * 3
    processes = [one.observed.output["process"] for one in found.values()]
    assert len({*processes, os.getpid()}) == 4


def test_a_command_leaves_no_process_behind(tmp_path: Path) -> None:
    """A process of an app that is left holds the output of the command, whose reader waits for its end."""
    (tmp_path / "app.py").write_text("def agent(input): return input\n", encoding="utf-8")
    scenarios = "harness: 1\nmanifest: app.py:agent\nscenarios: [{name: one, input: hi}]\n"
    (tmp_path / "app.scenario.yaml").write_text(scenarios, encoding="utf-8")
    command = [sys.executable, "-c", "from harness.cli.entry import main; main()", "run", "."]
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stdout=subprocess.DEVNULL) as run:
        assert run.wait() == 0
        with pytest.raises(ProcessLookupError):
            os.killpg(run.pid, 0)


def test_the_process_of_an_app_ends_without_the_handlers_of_the_app(
    run_app: RunApp, capfd: pytest.CaptureFixture[str]
) -> None:
    app = """
        import signal
        def handle(number, frame): raise KeyboardInterrupt
        signal.signal(signal.SIGTERM, handle)
        def agent(input): return input
    """
    found = run_app("manifest: app.py:agent\nscenarios: [{name: it, input: hi}]", {"app.py": app})
    assert found["it"].passed
    assert capfd.readouterr().err == ""


def test_after_ctrl_c_the_run_of_an_app_ends_and_the_rest_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        """\
from pathlib import Path
def agent(input):
    Path("started").touch()
    while not Path("signalled").exists():
        pass
    return "done"
""",
        encoding="utf-8",
    )
    (tmp_path / "app.scenario.yaml").write_text(
        "harness: 1\nmanifest: app.py:agent\n"
        "scenarios: [{name: one, input: hi, expect: {output: done}}, {name: two, input: hi}]\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-c", "from harness.cli.entry import main; main()", "run", "."]
    options: Any = {"cwd": tmp_path, "start_new_session": True, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **options) as run:
        while not (tmp_path / "started").exists():
            assert run.poll() is None
        os.killpg(run.pid, signal.SIGINT)
        (tmp_path / "signalled").touch()
        said, _ = run.communicate()
    assert "passed  0 s  app.scenario.yaml::one" in said
    assert "interrupted after 1 of 2 runs" in said


def test_every_command_imports_an_app_at_the_instant_at_which_runs_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(
        "import datetime\nprint('imported on', datetime.date.today())\ndef agent(input): return input\n",
        encoding="utf-8",
    )
    (tmp_path / "app.scenario.yaml").write_text(
        "harness: 1\nmanifest: app.py:agent\nscenarios: [{name: one, input: hi}]\n", encoding="utf-8"
    )
    shown = CliRunner().invoke(cli, ["show", "app.py:agent"]).output
    assert "imported on 2026-01-01" in shown


def test_the_arguments_of_the_command_are_not_those_of_the_app(run_app: RunApp) -> None:
    app = """
        import argparse, sys, threading
        parser = argparse.ArgumentParser()
        parser.add_argument("--level", type=int, default=3)
        given = parser.parse_args()
        def agent(input): return [given.level, sys.argv]
    """
    own = "threading.Thread(target=threading.Event().wait, daemon=True).start()"  # each run imports it
    for text in (app, app.replace("def agent", f"{own}\n        def agent")):
        found = run_app("manifest: app.py:agent\nscenarios: [{name: it, input: hi}]", {"app.py": text})
        assert found["it"].observed.output == [3, [""]], found["it"].observed.error


def test_two_apps_may_have_modules_of_one_name(run_app: RunApp) -> None:
    agent = "from agent.prompts import PROMPT\ndef run(input): return PROMPT\n"
    files = {
        f"{app}/src/agent/{name}": text
        for app in "ab"
        for name, text in (("__init__.py", ""), ("run.py", agent))
    }
    files |= {f"{app}/src/agent/prompts.py": f"PROMPT = 'prompt of {app}'\n" for app in "ab"}
    files |= {
        f"{app}/langgraph.json": '{"dependencies": ["."], "graphs": {"it": "./src/agent/run.py:run"}}'
        for app in "ab"
    }
    found = run_app(
        """
        scenarios:
          - {name: a, manifest: a, input: hi, expect: {output: prompt of a}}
          - {name: b, manifest: b, input: hi, expect: {output: prompt of b}}
          - {name: a again, manifest: a, input: hi, expect: {output: prompt of a}}
        """,
        files,
    )
    assert [one.verdict for one in found.values()] == ["passed"] * 3


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("os._exit(3)", "the process that ran this scenario left with 3"),
    ],
)
def test_a_run_that_ends_its_process_is_an_error_and_the_others_run(
    run_app: RunApp, end: str, how: str
) -> None:
    app = f"""
        import os, signal
        def agent(input):
            if input == "end":
                {end}
            return input
    """
    found = run_app(
        """
        manifest: app.py:agent
        scenarios: [{name: ends, input: end}, {name: goes on, input: hi, expect: {output: hi}}]
        """,
        {"app.py": app},
    )
    assert [one.verdict for one in found.values()] != ["passed", "passed"]
    assert found["goes on"].passed
    assert how in error_of(found["ends"])


def test_an_import_that_does_not_end_is_an_error(run_app: RunApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_process, "_OVERTIME_S", 0.1)
    app = "import threading\nthreading.Event().wait()\n"
    scenario = "manifest: app.py:agent\nscenarios: [{name: it, input: hi}]"
    (outcome,) = run_app(scenario, {"app.py": app}, real_timeout=0.3).values()
    assert "in the import of the app" in error_of(outcome)


CONNECTING = """
    import socket
    from pathlib import Path

    try:
        socket.create_connection(("db.example", 5432))
    except OSError:
        pass
    with Path(__file__).with_name("imports").open("a") as told:
        told.write("past the refusal")
    {then}

    def agent(input):
        return Path(__file__).with_name("imports").read_text()
"""


def test_an_import_that_reaches_for_the_network_goes_on_in_each_run_alone(run_app: RunApp) -> None:
    """The client of a database would try again for half a minute of real time, in vain."""
    scenario = "{name: it, input: hi, expect: {output: past the refusal}}"
    files = {"app.py": CONNECTING.format(then="")}
    outcome = run_app(f"manifest: app.py:agent\nscenarios: [{scenario}]", files)["it"]
    assert outcome.passed, outcome.checks
    assert any("db.example:5432: stub the tool" in warning for warning in outcome.observed.warnings)


@pytest.mark.parametrize("then", ["while True: pass", "raise ValueError('out of attempts')"])
def test_an_import_that_fails_after_it_reached_for_the_network_tells_the_address(
    run_app: RunApp, then: str
) -> None:
    scenario = "manifest: app.py:agent\nscenarios: [{name: it, input: hi}]"
    outcome = run_app(scenario, {"app.py": CONNECTING.format(then=then)}, real_timeout=0.3)["it"]
    told = [error_of(outcome), *outcome.observed.warnings]
    assert any("socket.getaddrinfo db.example:5432: stub the tool" in each for each in told), told


def test_loading_an_app_leaves_this_process_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import os\nKEY = os.environ['MY_API_KEY']\ndef agent(i): return i\n", "utf-8"
    )
    kind, path = type(os.environ), [*sys.path]
    request = LoadRequest(paths=(tmp_path / "app.py:agent",), env={"GIVEN": "1"})
    assert load_graph(request).name == "agent"
    assert (type(os.environ), sys.path, os.environ.get("GIVEN"), os.environ.get("MY_API_KEY")) == (
        kind, path, None, None,
    )  # fmt: skip


def test_an_app_whose_files_change_is_imported_again(run_app: RunApp, tmp_path: Path) -> None:
    scenario = "manifest: app.py:agent\nscenarios: [{name: it, input: hi}]"
    first = run_app(scenario, {"app.py": "def agent(input): return 1\n"})
    other = run_app(scenario, {"app.py": "def agent(input): return 1 + 1\n"})
    assert [one.observed.output for one in (first["it"], other["it"])] == [1, 2]


def test_a_folder_of_modules_is_found_that_is_made_after_an_app_was_looked_at(
    run_app: RunApp, tmp_path: Path
) -> None:
    app = {"app.py": "from helper import agent\n"}
    (tmp_path / "app.py").write_text(app["app.py"], "utf-8")
    load_graph(LoadRequest(paths=(tmp_path / "app.py:agent",), imports=False))
    later = {"pyproject.toml": "", "src/helper.py": "def agent(input): return 1\n"}
    outcome = run_app("manifest: app.py:agent\nscenarios: [{name: it, input: hi}]", {**app, **later})["it"]
    assert outcome.observed.output == 1


def test_a_system_that_cannot_fork_is_told(run_app: RunApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_process, "is_available", lambda: False)
    scenario = "manifest: app.py:agent\nscenarios: [{name: it, input: hi, expect: {output: hi}}]"
    outcome = run_app(scenario, {"app.py": "def agent(input): return input\n"})["it"]
    assert outcome.passed
    assert app_process.CANNOT_FORK in outcome.observed.warnings
    assert type(os.environ).__name__ == "_Environ"


WARNING = """
    import warnings
    {first}
    warnings.warn("at import")
    def agent(input):
        warnings.warn("in the run")
        return input
"""


@pytest.mark.parametrize(("first", "verdict"), [("", "passed"), ("warnings.simplefilter('error')", "error")])
def test_a_warning_of_an_app_is_an_error_only_if_the_app_says_so(
    run_app: RunApp, first: str, verdict: str
) -> None:
    scenario = "manifest: app.py:agent\nscenarios: [{name: it, input: hi}]"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (outcome,) = run_app(scenario, {"app.py": WARNING.format(first=first)}).values()
    assert outcome.verdict == verdict


def test_each_app_is_checked_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for app, name in (("one", "first"), ("two", "second")):
        (tmp_path / app / "agent").mkdir(parents=True)
        (tmp_path / app / "agent" / "__init__.py").write_text("")
        (tmp_path / app / "agent" / "parts.py").write_text(f"def {name}(state): return state\n")
        (tmp_path / app / "agent" / "graph.py").write_text(
            f"from agent.parts import {name}\nfrom langgraph.graph import START, StateGraph\n"
            f"graph = StateGraph(dict)\ngraph.add_node({name})\ngraph.add_edge(START, '{name}')\n"
        )
        (tmp_path / app / "langgraph.json").write_text(
            '{"dependencies": ["."], "graphs": {"agent": "./agent/graph.py:graph"}}'
        )
        (tmp_path / f"{app}.scenario.yaml").write_text(
            f"harness: 1\nmanifest: {app}\nscenarios:\n"
            f"  - {{name: right, input: {{}}, expect: {{path: [{name}]}}}}\n"
            f"  - {{name: wrong, input: {{}}, expect: {{path: [third]}}}}\n"
        )
    (tmp_path / "dies.py").write_text("import os\nos._exit(3)\n")
    (tmp_path / "dies.scenario.yaml").write_text(
        "harness: 1\nmanifest: dies.py:agent\nscenarios: [{name: it, input: x, expect: {output: x}}]\n"
    )
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(cli, ["validate", ".", "--imports"], prog_name="harness").stdout
    assert "3 errors" in found
    assert "known: first\n" in found
    assert "known: second\n" in found
    assert "dies.scenario.yaml:1:1: error: the process that ran this scenario left with 3" in found


def test_a_run_leaves_nothing_to_the_garbage_collector(tmp_path: Path) -> None:
    """Neither where an HTTP client is intercepted through classes, which refer to themselves."""
    pytest.importorskip("httplib2")
    (tmp_path / "app.py").write_text("def agent(input):\n    return input\n", encoding="utf-8")
    path = tmp_path / "app.scenario.yaml"
    path.write_text(
        "{harness: 1, manifest: 'app.py:agent', scenarios: [{name: it, input: hi}]}", encoding="utf-8"
    )
    [scenario] = load_file(path).scenarios

    def left() -> list[str]:
        for _ in range(2):
            run_once(scenario, Settings(project=tmp_path), seed=0)
        gc.collect()
        gc.disable()
        run_once(scenario, Settings(project=tmp_path), seed=0)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        return [repr(type(each)) for each in gc.garbage if type(each).__module__.startswith("harness.")]

    assert app_process.in_own_process(left) == []
