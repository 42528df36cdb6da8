"""The claims of docs/trust.md: operations that run code, and limits on files, the network and Python."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli

CODE = """\
from pathlib import Path

Path("ran").touch()

def find(query: str) -> str:
    return query
"""

SHERMA = """\
manifest_version: 1
llms: [{{id: m, version: "1.0.0", provider: openai, model_name: m}}]
{extra}
agents:
  one:
    state: {{fields: [{{name: count, type: int, default: 0}}]}}
    graph:
      entry_point: add
      nodes: [{{name: add, type: set_state, args: {{values: {{count: state.count + 1}}}}}}]
      edges: []
"""

AGENT = """\
agentspec_version: "25.4.1"
component_type: Agent
name: guide
llm_config: {component_type: OpenAiConfig, name: m, model_id: m}
system_prompt: Help.
"""

FLOW = """\
agentspec_version: "25.4.1"
component_type: Flow
name: flow
start_node: {$component_ref: start}
nodes: [{$component_ref: start}, {$component_ref: use}, {$component_ref: end}]
control_flow_connections:
  - {component_type: ControlFlowEdge, name: c1, from_node: {$component_ref: start}, to_node: {$component_ref: use}}
  - {component_type: ControlFlowEdge, name: c2, from_node: {$component_ref: use}, to_node: {$component_ref: end}}
$referenced_components:
  start: {component_type: StartNode, name: start}
  use:
    component_type: ToolNode
    name: use
    tool:
      component_type: MCPTool
      name: find
      outputs: [{title: found, type: string}]
      client_transport: {component_type: StdioTransport, name: shop, command: touch, args: [started]}
  end: {component_type: EndNode, name: end, outputs: [{title: found, type: string}]}
"""

YAGRA = """\
version: "1.0"
start_at: ask
end_at: [ask]
nodes:
  - id: ask
    handler: {handler}
    params: {{{params}}}
edges: []
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an untrusted project, beside a folder `outside` that it must not read."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "private.txt").write_text("private")
    (tmp_path / "outside" / "private.yaml").write_text("ask: {user: private}\n")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    (folder / "link.txt").symlink_to("../outside/private.txt")
    (folder / "link.yaml").symlink_to("../outside/private.yaml")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def module(project: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module that creates the file `ran` when it is imported."""
    name = f"stranger_{abs(hash(str(project)))}"
    (project / f"{name}.py").write_text(CODE)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def harness(*args: str) -> Result:
    return CliRunner().invoke(cli, list(args))


def write_scenario(manifest: str, keys: str) -> None:
    Path("agent.yaml").write_text(manifest)
    Path("one.scenario.yaml").write_text(
        f"harness: 1\nmanifest: agent.yaml\nscenarios:\n- {{name: one, {keys}}}\n"
    )


# ------------------------------------------------------------------ running code


def manifest_with_code(module: str) -> str:
    return SHERMA.format(extra=f'tools: [{{id: find, version: "1.0.0", import_path: {module}.find}}]')


@pytest.mark.parametrize("command", [("run", "-q", "one.scenario.yaml"), ("show", "agent.yaml")])
def test_an_import_path_in_a_manifest_runs_its_module(module: str, command: tuple[str, ...]) -> None:
    write_scenario(manifest_with_code(module), "input: {}")
    harness(*command)
    assert Path("ran").exists()


def test_an_import_path_in_a_scenario_runs_its_module(module: str) -> None:
    write_scenario(AGENT, f"input: hi, llm: [ok], tools: {{find: {module}.find}}, hooks: [{module}.find]")
    harness("run", "-q", "one.scenario.yaml")
    assert Path("ran").exists()


@pytest.mark.parametrize(
    "command", [("validate", "agent.yaml"), ("validate", "one.scenario.yaml"), ("prompts", "agent.yaml")]
)
def test_validate_and_prompts_import_no_module(module: str, command: tuple[str, ...]) -> None:
    write_scenario(
        manifest_with_code(module), f"input: {{}}, tools: {{find: {module}.find}}, hooks: [{module}.find]"
    )
    harness(*command)
    assert not Path("ran").exists()


def test_validate_imports_modules_with_the_option_imports(module: str) -> None:
    write_scenario(manifest_with_code(module), "input: {}")
    harness("validate", "--imports", "agent.yaml")
    assert Path("ran").exists()


@pytest.mark.parametrize(
    ("server", "starts"), [("real", True), ("{tools: [{name: find, stubs: [{return: it}]}]}", False)]
)
def test_the_command_of_an_mcp_server_runs_only_if_the_server_is_real(server: str, starts: bool) -> None:
    write_scenario(FLOW, f"mcp: {{shop: {server}}}")
    harness("run", "-q", "one.scenario.yaml")
    assert Path("started").exists() == starts


@pytest.mark.parametrize("file", ["http.yaml", "mcp.yaml", "human.yaml", "meta.yaml"])
def test_a_cassette_runs_no_code(file: str) -> None:
    write_scenario(AGENT, "input: hi, cassette: theirs")
    folder = Path("cassettes/theirs")
    folder.mkdir(parents=True)
    (folder / "http.yaml").write_text("interactions: []\nversion: 1\n")
    (folder / file).write_text("interactions: !!python/object/apply:os.system ['touch ran']\n")
    result = harness("run", "one.scenario.yaml")
    assert not Path("ran").exists()
    assert result.exit_code != 0


@pytest.mark.parametrize("reference", ["file:///etc/passwd", "http://127.0.0.1:1/x", "link.yaml"])
def test_a_reference_in_a_json_schema_is_never_followed(reference: str) -> None:
    write_scenario(AGENT, f'input: hi, llm: [ok], expect: {{output: {{$schema: {{$ref: "{reference}"}}}}}}')
    result = harness("run", "one.scenario.yaml")
    assert result.exit_code != 0
    assert f"Unresolvable: {reference}" in result.output


def test_placeholders_cannot_reach_python_attributes() -> None:
    prompt = "{{ who.__class__ }} {% for x in who %} {{ who }}"
    inputs = "inputs: [{title: who, type: string}]\n"
    when = "request.messages[0].content == '{{ who.__class__ }} {% for x in who %} Ada'"
    write_scenario(
        AGENT.replace("Help.", f"'{prompt}'") + inputs,
        f'input: {{who: Ada}}, llm: [{{when: "{when}", reply: ok}}], expect: {{output: ok}}',
    )
    assert harness("run", "-q", "one.scenario.yaml").exit_code == 0


# ------------------------------------------------------------------ confinement

OUTSIDE = ["../outside/private", "{outside}/private", "link", "below/../../outside/private"]


def prompt_file(path: str) -> str:
    return SHERMA.format(extra=f'prompts: [{{id: p, version: "1.0.0", instructions_path: "{path}.txt"}}]')


def skill_card(path: str) -> str:
    return SHERMA.format(extra=f'skills: [{{id: p, version: "1.0.0", skill_card_path: "{path}.txt"}}]')


def prompt_reference(path: str) -> str:
    return YAGRA.format(
        handler="llm", params=f'prompt_ref: "{path}.yaml#ask", model: {{provider: p, name: m}}'
    )


def subgraph(path: str) -> str:
    return YAGRA.format(handler="subgraph", params=f'workflow_ref: "{path}.yaml"')


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("manifest", [prompt_file, skill_card, prompt_reference, subgraph])
def test_a_manifest_cannot_read_files_outside_its_project(
    manifest: Callable[[str], str], path: str, tmp_path: Path
) -> None:
    Path("below").mkdir()
    Path("agent.yaml").write_text(manifest(path.format(outside=tmp_path / "outside")))
    result = harness("validate", "agent.yaml")
    assert result.exit_code == 2
    assert "[path-outside]" in result.output


def test_a_folder_in_allow_paths_can_be_read(tmp_path: Path) -> None:
    Path("agent.yaml").write_text(prompt_file("../outside/private"))
    Path("pyproject.toml").write_text(f'[tool.harness]\nallow_paths = ["{tmp_path / "outside"}"]\n')
    assert harness("validate", "agent.yaml").exit_code == 0


@pytest.mark.parametrize("name", ["../outside", "/etc", "a/../../outside", "theirs"])
def test_a_cassette_must_be_inside_the_folder_of_cassettes(name: str) -> None:
    Path("cassettes").mkdir()
    Path("cassettes/theirs").symlink_to("../../outside")
    write_scenario(AGENT, f"input: hi, cassette: {name}")
    result = harness("run", "one.scenario.yaml")
    assert result.exit_code != 0
    assert "cannot be the name of a cassette" in result.output or "a link leads out of it" in result.output


REACHES = """\
import socket, subprocess, sys

def here(query: str) -> str:
    try:
        socket.create_connection(("127.0.0.1", PORT), timeout=5).close()
    except OSError as error:
        return type(error).__name__
    return "connected"

def elsewhere(query: str) -> str:
    code = "import socket; socket.create_connection(('127.0.0.1', PORT), timeout=5)"
    return str(subprocess.run([sys.executable, "-c", code]).returncode)
"""


@pytest.mark.parametrize(("function", "result"), [("here", "NetworkClosed"), ("elsewhere", "0")])
def test_the_network_is_closed_to_this_process_but_not_to_child_processes(
    function: str, result: str, project: Path
) -> None:
    import socket

    name = f"reaching_{abs(hash(str(project)))}"
    with socket.create_server(("127.0.0.1", 0)) as server:
        Path(f"{name}.py").write_text(REACHES.replace("PORT", str(server.getsockname()[1])))
        tool = "{component_type: ServerTool, name: find, inputs: [{title: query, type: string}]}"
        write_scenario(
            AGENT + f"tools: [{tool}]\n",
            f"input: hi, tools: {{find: {name}.{function}}}, "
            "llm: [{tool_calls: [{name: find, args: {query: x}}]}, ok], "
            f'expect: {{state: {{messages: {{$some: {{type: tool, content: "{result}"}}}}}}}}',
        )
        done = harness("run", "one.scenario.yaml")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(
                f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
                for old, new in zip("abcdefg", "bcdefgh", strict=True)
            ),
            "too-many-nodes",
        ),
        ("a: " + "[" * 200 + "]" * 200, "too-deep"),
        ("a: !!python/object/apply:os.system ['touch ran']", "unknown-tag"),
        ("a: " + "9" * 5000, "bad-value"),
    ],
)
@pytest.mark.parametrize("head", ["manifest_version: 1\n", AGENT, 'version: "1.0"\nstart_at: a\n'])
def test_oversized_and_unsafe_yaml_is_refused(head: str, text: str, code: str) -> None:
    Path("agent.yaml").write_text(head + text)
    result = harness("validate", "agent.yaml")
    assert result.exit_code == 2
    assert f"[{code}]" in result.output
