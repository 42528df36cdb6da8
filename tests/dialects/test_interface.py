"""A dialect in a package of its own: its required members, and the features that work with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.dialects import DIALECTS
from harness.dialects.agentspec import dialect as agentspec
from harness.dialects.dialect import Dialect
from harness.dialects.langgraph import dialect as langgraph
from harness.dialects.langgraph import plain
from harness.dialects.leafmesh import dialect as leafmesh
from harness.dialects.load import load_graph
from harness.dialects.loki import dialect as loki
from harness.dialects.registry import dialect_named, dialect_of, names, registered
from harness.dialects.request import LoadRequest
from harness.dialects.sherma import dialect as sherma
from harness.dialects.yagra import dialect as yagra
from harness.errors import ManifestError
from tests.manifests import COUNTER

RELAY = '''\
"""Relays: one node that says a text; the manifest is a folder with a relay.yaml."""

from harness.dialects.dialect import Prompt
from harness.graph.model import END, START, Channel, Edge, Graph, Node, Update
from harness.source.document import read

name = "relay"
title = "relays (YAML 1.2)"
yaml = "1.2"


def locate(path):
    if path.is_dir():
        return [path / "relay.yaml"] if (path / "relay.yaml").is_file() else []
    return [path]


def detect(document):
    return isinstance(document.value, dict) and "relay" in document.value


def agents(document):
    return ["relay"]


def prompts(request):
    document = read(request.path, yaml=yaml)
    return [Prompt("relay.say", "say", document.value["say"], document.span(("say",)))]


def load(request):
    document = read(request.path, yaml=yaml, named_at=request.named_at)
    papers = request.resolve_folder("papers", document.span()).files

    async def run(state, ctx):
        return Update({"said": document.value["say"], "papers": [paper.name for paper in papers]})

    return Graph(
        name="relay",
        dialect=name,
        nodes=(Node("say", "say", run, document.span(("say",))),),
        edges=(Edge(START, "say"), Edge("say", END)),
        channels=(Channel("said"), Channel("papers")),
    )
'''

SCENARIO = """\
harness: 1
manifest: agent
scenarios:
  - name: a relay says its text
    input: {}
    expect: {path: [say], output: {said: "no", papers: [a.md, b.md]}}
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs a package with a dialect."""

    def install_(module: str, text: str, name: str = "relay", value: str = "") -> None:
        info = tmp_path / "site" / f"acme_{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[harness.dialects]\n{name} = {value or module}\n")
        (tmp_path / "site" / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path / "site")
        _forget()

    yield install_
    _forget()


def _forget() -> None:
    registered.cache_clear()
    dialect_named.cache_clear()


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a relay: a folder with a manifest and its papers."""
    folder = tmp_path / "agent"
    (folder / "papers").mkdir(parents=True)
    (folder / "relay.yaml").write_text("relay: 1\nsay: no\n")
    for paper in ("b.md", "a.md"):
        (folder / "papers" / paper).write_text(paper)
    monkeypatch.chdir(tmp_path)
    return folder


def refusal(name: str) -> str:
    with pytest.raises(ManifestError) as refused:
        dialect_named(name)
    return str(refused.value)


# ------------------------------------------------------------------ a sixth dialect


def test_a_dialect_of_a_package_runs_scenarios(install: Install, agent: Path, tmp_path: Path) -> None:
    install("relays", RELAY)
    (tmp_path / "a.scenario.yaml").write_text(SCENARIO)
    done = CliRunner().invoke(cli, ["run", "a.scenario.yaml"])
    assert done.exit_code == 0, done.output


def test_commands_accept_a_folder_of_the_dialect(install: Install, agent: Path) -> None:
    install("relays", RELAY)
    run = CliRunner().invoke
    assert run(cli, ["show", "agent"]).stdout == "(start)\n└─▶ say\n\nsay  [say]\n└─▶ (end)\n"
    assert run(cli, ["validate", "agent"]).stdout == "1 manifest, 0 scenario files: no problems\n"
    assert run(cli, ["prompts", "agent"]).stdout == "relay.say  say  agent/relay.yaml:2:6\n    no\n"


def test_a_dialect_may_be_an_object(install: Install, agent: Path) -> None:
    install("objects", f"{RELAY}\nimport sys\nrelay = sys.modules[__name__]\n", value="objects:relay")
    assert dialect_of(agent).title == "relays (YAML 1.2)"


def test_a_folder_that_no_dialect_locates_is_no_manifest(install: Install, tmp_path: Path) -> None:
    install("relays", RELAY)
    with pytest.raises(ManifestError, match="this is a folder, not a file"):
        dialect_of(tmp_path)


def test_a_manifest_that_is_valid_in_one_version_of_yaml_only(install: Install, agent: Path) -> None:
    install("relays", RELAY)
    (agent / "relay.yaml").write_text("relay: 1\nsay: 2024-13-45\n")  # no date of YAML 1.1
    assert dialect_of(agent / "relay.yaml").name == "relay"


# ------------------------------------------------------------------ verification


@pytest.mark.parametrize("member", ["name", "title", "yaml", "locate", "detect", "agents", "prompts", "load"])
def test_a_missing_member_is_named(install: Install, member: str) -> None:
    install(f"without_{member}", f"{RELAY}\ndel {member}\n")
    assert refusal("relay").startswith(
        f"the dialect 'relay' of the package 'acme-without_{member}' (without_{member}) "
        f"has no member '{member}'"
    )


@pytest.mark.parametrize(
    ("module", "line", "fault"),
    [
        ("wrong_load", "load = lambda: None", "has a 'load' with the wrong signature: (), not (request)"),
        ("wrong_class", "load = int.__add__", "'load' with the wrong signature"),
        ("wrong_scenarios", "scenarios = lambda: []", "has a 'scenarios' with the wrong signature: ()"),
        ("wrong_detect", "detect = True", "has a 'detect' that cannot be called: True"),
        ("wrong_yaml", "yaml = '1.3'", "has a 'yaml' that is not one of 1.1, 1.2, templated: '1.3'"),
        ("wrong_title", "title = ' '", "has a 'title' that is not text: ' '"),
        ("wrong_name", "name = 'rely'", "says that its 'name' is 'rely'"),
        ("wrong_import", "import nowhere_at_all", "cannot be imported: ModuleNotFoundError"),
        ("wrong_exit", "raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
    ],
)
def test_a_wrong_member_is_named(install: Install, module: str, line: str, fault: str) -> None:
    install(module, f"{RELAY}\n{line}\n")
    assert fault in refusal("relay")


def test_all_faults_are_reported_at_once(install: Install) -> None:
    install("faulty", "name = 'relay'\n")
    assert refusal("relay").count("has no member") == 7


def test_a_broken_dialect_is_reported_before_detection(install: Install, tmp_path: Path) -> None:
    install("faulty_too", "")
    (tmp_path / "m.yaml").write_text("manifest_version: 1\n")
    with pytest.raises(ManifestError, match="the dialect 'relay' of the package 'acme-faulty_too'"):
        dialect_of(tmp_path / "m.yaml")
    assert dialect_named("sherma").name == "sherma"


# ------------------------------------------------------------------ a dialect that breaks

BROKEN = "the dialect 'relay' of the package 'acme-{0}' ({0}) broke on agent/relay.yaml: "


@pytest.mark.parametrize(
    ("module", "member", "raised"),
    [
        ("raising", "def load(request):\n    return {}['say']", "KeyError: 'say' (raising.py:"),
        (
            "unimported",
            "def load(request):\n    return imported(request).run",
            "'UnimportedObject' object has no",
        ),
        (
            "empty_handed",
            "def load(request):\n    return None",
            "'load' returned a NoneType, and a Graph is needed",
        ),
        (
            "nameless",
            "def agents(document):\n    return None",
            "TypeError: 'NoneType' object is not iterable",
        ),
        ("undetected", "def detect(document):\n    return document.value['relay'].x", "AttributeError: "),
    ],
)
def test_a_dialect_that_breaks_under_validate_is_blamed(
    install: Install, agent: Path, tmp_path: Path, module: str, member: str, raised: str
) -> None:
    names_code = """
from harness.dialects.kit.manifest import load_object

def imported(request):
    document = read(request.path, yaml=yaml)
    return load_object(document.value["code"], request.folders, document.span(), imports=request.imports)
"""
    install(module, f"{RELAY}\n{names_code}\n{member}\n")
    (agent / "relay.yaml").write_text("relay: 1\nsay: no\ncode: relay_code.node\n")
    (agent / "relay_code.py").write_text("class node:\n    run = 1\n")
    told = CliRunner().invoke(cli, ["validate", "agent"])
    assert told.exit_code == 2
    assert "agent/relay.yaml:1:1: error: " + BROKEN.format(module) in told.output
    assert raised in told.output
    assert "[broken-dialect]" in told.output
    assert "harness broke" not in told.output


@pytest.mark.parametrize("expected", ["completed", "failed", "invalid"])
def test_a_dialect_that_breaks_ends_only_the_scenarios_of_its_manifest(
    install: Install, agent: Path, tmp_path: Path, expected: str
) -> None:
    install("raising_too", f"{RELAY}\ndef load(request):\n    raise RecursionError('deep')\n")
    (tmp_path / "counter.yaml").write_text(COUNTER)
    (tmp_path / "a.scenario.yaml").write_text(
        f"harness: 1\nscenarios:\n"
        f"  - {{name: broken, manifest: agent, expect: {{status: {expected}}}}}\n"
        f"  - {{name: whole, manifest: counter.yaml, dialect: sherma, expect: {{path: [add]}}}}\n"
    )
    done = CliRunner().invoke(cli, ["run", "a.scenario.yaml", "--json", "-"])
    broken, whole = map(json.loads, done.stdout.splitlines())
    assert (done.exit_code, whole["verdict"]) == (3, "passed")
    assert (broken["verdict"], broken["error"]["code"]) == ("error", "broken-dialect")
    assert broken["error"]["where"] == "a.scenario.yaml:3:30"
    assert BROKEN.format("raising_too") + "RecursionError: deep" in broken["error"]["message"]


@pytest.mark.parametrize("command", ["show", "prompts"])
def test_a_dialect_that_breaks_under_another_command_is_blamed(
    install: Install, agent: Path, command: str
) -> None:
    install(f"raising_{command}", f"{RELAY}\ndef load(request):\n    1 / 0\nprompts = load\n")
    told = CliRunner().invoke(cli, [command, "agent"])
    assert told.exit_code == 2
    assert BROKEN.format(f"raising_{command}") + "ZeroDivisionError: division by zero" in told.output


# ------------------------------------------------------------------ scenarios in manifests

OWN = """

def scenarios(request):
    document = read(request.path, yaml=yaml, named_at=request.named_at)
    tests = range(len(document.value.get("tests", ())))
    return [document.at(("tests", at)).moved("wants", "expect", "output") for at in tests]
"""
TESTED = """\
relay: 1
say: hello
tests:
  - {name: all right, input: {}, wants: {said: hello}}
  - name: half
    weight: 3
    wants: {said: hello, papers: []}
"""


@pytest.fixture
def tested(install: Install, agent: Path) -> Path:
    """Create a relay with two scenarios in its manifest, which score 1 and 0.5."""
    install("tested", RELAY + OWN)
    (agent / "relay.yaml").write_text(TESTED)
    return agent / "relay.yaml"


def test_a_manifest_runs_its_own_scenarios(tested: Path) -> None:
    done = CliRunner().invoke(cli, ["run", "agent/relay.yaml"])
    assert done.exit_code == 1
    assert "passed  0 s  agent/relay.yaml::all right\n" in done.output
    assert "half — score 0.50, failed\n  agent/relay.yaml:5:11" in done.output
    assert "    agent/relay.yaml:7:12\n" in done.output
    assert "fitness  0.625\n" in done.output  # (1 x 1 + 3 x 0.5) / (1 + 3)


@pytest.mark.parametrize(
    ("arguments", "passed"), [(["agent/relay.yaml::all right"], 1), (["agent/relay.yaml", "-k", "right"], 1)]
)
def test_scenarios_in_a_manifest_can_be_selected(tested: Path, arguments: list[str], passed: int) -> None:
    done = CliRunner().invoke(cli, ["run", *arguments])
    assert (done.exit_code, f"{passed} passed   ({passed} run" in done.output) == (0, True)


def test_scenarios_of_manifests_in_a_folder_are_not_run(tested: Path, tmp_path: Path) -> None:
    (tmp_path / "a.scenario.yaml").write_text(SCENARIO.replace('"no"', "hello"))
    assert "1 passed   (1 run" in CliRunner().invoke(cli, ["run", "."]).output
    (tmp_path / "a.scenario.yaml").unlink()
    done = CliRunner().invoke(cli, ["run", "."])
    assert (done.exit_code, "name agent/relay.yaml to run its own" in done.output) == (2, True)


def test_a_scenario_file_may_run_a_scenario_of_a_manifest(tested: Path, tmp_path: Path) -> None:
    (tmp_path / "a.scenario.yaml").write_text(
        "harness: 1\nmanifest: agent/relay.yaml\ndefaults: {timeout: 5, expect: {path: [nowhere]}}\n"
        "scenarios: [{name: lenient, test_scenario: half, seed: 3, pass_score: 0.5, cassette: none}]\n"
    )
    done = CliRunner().invoke(cli, ["run", "a.scenario.yaml", "--json", "-"])
    line = json.loads(done.stdout)
    assert (line["verdict"], line["score"], line["weight"], line["seed"]) == ("passed", 0.5, 3, 3)
    assert sorted((check["name"], check["weight"]) for check in line["checks"]) == [
        ("output", 1),
        ("status", 0),
        ("unused", 0),
    ]


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ("test_scenario: haf", "2:50: error: no test scenario 'haf' in agent/relay.yaml"),
        ("test_scenario: half, input: x", "2:56: error: 'input' cannot be combined with 'test_scenario'"),
    ],
)
def test_errors_in_the_scenario_file_are_located_there(
    tested: Path, tmp_path: Path, keys: str, fault: str
) -> None:
    (tmp_path / "a.scenario.yaml").write_text(
        f"{{harness: 1, manifest: agent/relay.yaml, scenarios: [\n  {{name: one, tags: [x], seed: 0, {keys}}}]}}\n"
    )
    done = CliRunner().invoke(cli, ["run", "a.scenario.yaml"])
    assert done.exit_code == 2
    assert fault in done.output


def test_a_test_scenario_has_no_default(tested: Path, tmp_path: Path) -> None:
    (tmp_path / "a.scenario.yaml").write_text(
        "harness: 1\nmanifest: agent/relay.yaml\ndefaults: {test_scenario: half}\nscenarios: [{name: one}]\n"
    )
    done = CliRunner().invoke(cli, ["run", "a.scenario.yaml"])
    assert "a.scenario.yaml:3:12: error: a test_scenario cannot have a default" in done.output


@pytest.mark.parametrize("command", ["run", "validate"])
def test_errors_in_the_manifest_are_located_there(tested: Path, command: str) -> None:
    text = TESTED.replace("weight: 3", "weight: -3").replace("said: hello, papers: []", "$foo: 1")
    tested.write_text(text + "  - {name: all right}\n")
    done = CliRunner().invoke(cli, [command, "agent/relay.yaml"])
    assert done.exit_code == 2
    assert (
        "relay.yaml:6:13: error: weight: must be greater than or equal to 0, found the number -3"
        in done.output
    )
    assert "relay.yaml:7:13: error: unknown matcher '$foo'" in done.output
    assert "relay.yaml:8:12: error: a second scenario 'all right' (first in line 4)" in done.output


def test_a_manifest_without_scenarios_is_an_error(tested: Path) -> None:
    tested.write_text("relay: 1\nsay: hello\n")
    done = CliRunner().invoke(cli, ["run", "agent/relay.yaml"])
    assert done.exit_code == 2
    assert "agent/relay.yaml has no scenarios of its own" in done.output


# ------------------------------------------------------------------ names


def test_the_dialects_of_the_table_are_verified() -> None:
    ours: list[Dialect] = [sherma, loki, leafmesh, yagra, agentspec, langgraph, plain]
    assert [dialect_named(name) for name in names()] == ours
    assert [dialect.name for dialect in ours] == list(DIALECTS)


def test_an_unknown_dialect_is_refused() -> None:
    assert refusal("leafmesk") == "there is no dialect 'leafmesk'\n    did you mean 'leafmesh'?"


def test_a_package_cannot_replace_a_dialect_of_the_format(install: Install) -> None:
    install("shermas", RELAY, name="sherma")
    assert dialect_named("sherma").title.startswith("sherma agents")


def test_two_packages_with_the_same_dialect_name_are_refused(install: Install, tmp_path: Path) -> None:
    install("one", RELAY)
    install("other", RELAY)
    assert "two packages have a dialect 'relay': the package 'acme-" in refusal("relay")


# ------------------------------------------------------------------ what a graph is made of


def test_a_graph_is_recompiled_when_a_file_in_a_folder_changes(install: Install, agent: Path) -> None:
    install("relays", RELAY)
    request = LoadRequest((agent,))
    graph = load_graph(request)
    assert load_graph(LoadRequest((agent,))) is graph
    assert [path.name for path in graph.sources] == ["relay.yaml", "a.md", "b.md"]
    (agent / "papers/b.md").write_text("changed")
    changed = load_graph(request)
    assert changed is not graph
    (agent / "papers/c.md").write_text("added")
    assert [path.name for path in load_graph(request).sources] == ["relay.yaml", "a.md", "b.md", "c.md"]
