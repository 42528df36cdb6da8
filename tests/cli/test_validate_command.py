"""`harness validate`: problems of manifests and scenario files, and how they are found."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fixtures import Invoke, RunCommand, WriteFile, WriteSuite

INVALID = Path(__file__).parents[2] / "scenarios/sherma/manifests/invalid"
PROBLEMS = {  # file: (line, a word of the message)
    "branch_target.yaml": (11, "limbo"),
    "edge_target.yaml": (11, "nowhere"),
    "entry_twice.yaml": (7, "entry_point"),
    "entry_unknown.yaml": (7, "front_door"),
    "env_missing.yaml": (2, "ALPHA_NAME"),
    "fallback_unknown.yaml": (9, "lifeboat"),
    "mcp_no_url.yaml": (3, "radar"),
    "no_llm.yaml": (9, "'one'"),
    "no_messages_field.yaml": (5, "messages"),
    "no_state_updates.yaml": (9, "state_updates"),
    "no_version.yaml": (1, "manifest_version"),
    "node_type_unknown.yaml": (9, "teleport"),
    "prompt_file_missing.yaml": (3, "not_there"),
    "prompt_two_sources.yaml": (3, "instructions_path"),
    "provider_unknown.yaml": (2, "abacus"),
    "retry_on_set_state.yaml": (9, "'one'"),
    "sub_agent_undeclared.yaml": (10, "stowaway"),
    "tool_module_missing.yaml": (3, "no_such_module_here"),
    "two_flags.yaml": (9, "use_tools_from_registry"),
    "unknown_llm.yaml": (9, "ghost-model"),
}


@pytest.mark.parametrize("name", sorted(path.name for path in INVALID.iterdir()))
def test_a_problem_of_an_invalid_manifest_has_its_line(invoke: Invoke, name: Any) -> None:
    result = invoke("validate", str(INVALID / name), "--json")
    assert result.exit_code == 2
    line, word = PROBLEMS[name]
    first = json.loads(result.stdout)[0]
    assert (first["severity"], first["line"]) == ("error", line)
    assert Path(first["file"]).name == name
    assert word in first["message"]


def test_a_problem_is_shown_with_its_line_a_caret_and_a_hint(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    write("counter.yaml", counter.replace("entry_point: add", "entry_point: ad"))
    result = invoke("validate", "counter.yaml")
    assert result.exit_code == 2
    assert result.stdout == (
        "counter.yaml:6:20: error: entry point 'ad' is not a node of agent 'counter' [unknown-node]\n"
        "          entry_point: ad\n"
        "                       ^~\n"
        "    did you mean 'add'?\n"
        "1 manifest, 0 scenario files: 1 error\n"
    )


def test_all_problems_are_reported_together_as_json(
    invoke: Invoke, write: WriteFile, suite: WriteSuite, counter: str
) -> None:
    suite("{name: x, expct: {}}", "{name: x}")
    write("counter.yaml", counter.replace("entry_point: add", "entry_point: ad"))
    result = invoke("validate", "a.scenario.yaml", "counter.yaml", "--json")
    listed = json.loads(result.stdout)
    assert [(each["file"], each["line"], each["code"]) for each in listed] == [
        ("a.scenario.yaml", 4, "unknown-key"),
        ("a.scenario.yaml", 5, "duplicate-name"),
        ("counter.yaml", 6, "unknown-node"),
    ]
    assert list(listed[0]) == ["severity", "code", "message", "hint", "file", "line", "column"]


def test_files_without_problems_are_an_empty_list(invoke: Invoke, suite: WriteSuite) -> None:
    suite("{name: any, expect: {status: completed}}")
    result = invoke("validate", "counter.yaml", "a.scenario.yaml", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_warnings_are_shown_and_do_not_fail(invoke: Invoke, write: WriteFile, counter: str) -> None:
    write("counter.yaml", counter + "colour: red\n")
    result = invoke("validate", "counter.yaml")
    assert result.exit_code == 0
    assert "counter.yaml:9:1: warning: unknown key 'colour' in a manifest is ignored" in result.stdout
    assert "    colour: red\n    ^~~~~~\n" in result.stdout


def test_strict_turns_warnings_into_errors(invoke: Invoke, write: WriteFile, counter: str) -> None:
    write("counter.yaml", counter.replace("entry_point: add", "entry_point: add\n      colour: red"))
    assert invoke("validate", "counter.yaml").exit_code == 0
    result = invoke("validate", "counter.yaml", "--strict")
    assert result.exit_code == 2
    assert "1 error" in result.stdout


def test_all_agents_are_validated_unless_one_is_selected(
    invoke: Invoke, write: WriteFile, two_agents: str
) -> None:
    write("two.yaml", two_agents.replace("add, type", "sum, type", 1))
    both = json.loads(invoke("validate", "two.yaml", "--json").stdout)
    assert ["'counter'" in problem["message"] for problem in both] == [True]
    assert invoke("validate", "two.yaml", "--agent", "other").exit_code == 0
    unknown = invoke("validate", "two.yaml", "--agent", "othr")
    assert unknown.exit_code == 2
    assert "did you mean 'other'?" in unknown.stdout


def test_a_problem_that_all_agents_share_is_reported_once(
    invoke: Invoke, write: WriteFile, two_agents: str
) -> None:
    write("two.yaml", two_agents + "colour: red\n")
    assert len(json.loads(invoke("validate", "two.yaml", "--json").stdout)) == 1


def test_a_problem_of_a_manifest_that_is_also_named_by_a_scenario_is_reported_once(
    invoke: Invoke, write: WriteFile, suite: WriteSuite, counter: str
) -> None:
    suite("{name: a, expect: {status: completed}}")
    write("counter.yaml", counter + "colour: red\n")
    result = invoke("validate", "a.scenario.yaml", "counter.yaml")
    assert result.stdout.count("unknown key 'colour'") == 1
    assert "1 manifest, 1 scenario file: 1 warning\n" in result.stdout


def test_variables_come_only_from_the_command_line(
    invoke: Invoke, write: WriteFile, monkeypatch: pytest.MonkeyPatch, asking: str
) -> None:
    write("asking.yaml", asking)
    monkeypatch.setenv("MODEL", "tiny")
    missing = invoke("validate", "asking.yaml")
    assert missing.exit_code == 2
    assert "MODEL" in missing.stdout
    assert "--env NAME=value" in missing.stdout
    assert invoke("validate", "asking.yaml", "--env", "MODEL=tiny").exit_code == 0
    assert invoke("validate", "asking.yaml", "--env-passthrough", "MODEL").exit_code == 0


def test_a_variable_without_a_value_is_refused(invoke: Invoke, write: WriteFile, asking: str) -> None:
    write("asking.yaml", asking)
    result = invoke("validate", "asking.yaml", "--env", "MODEL")
    assert result.exit_code == 2
    assert "'MODEL' is not NAME=value" in result.stderr


def test_named_scenarios_supply_variables_and_module_folders_for_manifests(
    invoke: Invoke, write: WriteFile, asking: str
) -> None:
    write(
        "agents/asking.yaml",
        asking.replace("agents:", "tools: [{id: t, version: '1', import_path: own_tool.t}]\nagents:"),
    )
    write("own_tool.py", 'def t(x: str) -> str:\n    """A tool."""\n    return x\n')
    write(
        "a.scenario.yaml",
        "harness: 1\nmanifest: agents/asking.yaml\nenv: {MODEL: tiny}\nscenarios: [{name: any}]\n",
    )
    together = invoke("validate", ".")
    assert together.exit_code == 0, together.output
    alone = invoke("validate", "agents")
    assert alone.exit_code == 2
    assert "MODEL" in alone.stdout


TOOLS = """\
start: a
global_tools: [gauge.sh]
mcp_servers: [tides]
nodes:
  a: {type: llm, prompt: hi, tools: [LISTED], next: z}
  z: {type: end}
"""


@pytest.mark.parametrize(
    ("listed", "alone", "with_scenario"),
    [
        ("gauge, high_water", "", ""),
        ("guage", "did you mean 'gauge'?", "did you mean 'gauge'?"),
        ("tides", "did you mean 'mcp:tides'?", "did you mean 'mcp:tides'?"),
        ("wind", "add wind.sh to global_tools", "add wind.sh to global_tools"),
        ("gauges", "did you mean 'gauge'?", ""),
        ("low_water", "", "the agent has no tool 'low_water'"),
        ("high_watr", "", "did you mean 'high_water'?"),
    ],
)
def test_a_misspelt_tool_of_an_agent_with_an_mcp_server_is_found(
    listed: str, alone: str, with_scenario: str, invoke: Invoke, write: WriteFile
) -> None:
    write("agents/desk/graph.yaml", TOOLS.replace("LISTED", listed))
    write("functions/tools/gauge.sh", "main() { :; }\n")
    write("functions/tools/wind.sh", "main() { :; }\n")
    mcp = "{tides: {tools: [{name: high_water, stubs: []}, {name: gauges, stubs: []}]}}"
    write(
        "a.scenario.yaml",
        f"harness: 1\nmanifest: agents/desk\nscenarios: [{{name: any, input: go, mcp: {mcp}}}]\n",
    )
    for paths, told in ((["agents"], alone), (["agents", "a.scenario.yaml"], with_scenario)):
        shown = invoke("validate", *paths)
        found = [line for line in shown.stdout.splitlines() if "unknown-tool" in line]
        assert (bool(found), shown.exit_code) == (bool(told), 2 if ": error:" in shown.stdout else 0)
        assert told in shown.stdout


def test_a_folder_is_searched_for_manifests_of_any_dialect(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    write("deep/er/counter.yaml", counter)
    write("values.yaml", "a: 1\n")
    write("package.json", "{}")
    write(".hidden/broken.yaml", "agents: [")
    result = invoke("validate", ".")
    assert (result.exit_code, result.stdout) == (0, "1 manifest, 0 scenario files: no problems\n")


MANIFESTS = {
    "agent.yaml": "manifest_version: 1\nagents:\n  counter:\n    graph: {}\n",
    "flow.yaml": "component_type: Flow\nname: tide\nnodes:\n  - id: a\n",
    "flow.json": '{\n  "component_type": "Flow",\n  "name": "tide",\n  "nodes": [\n    {"id": "a"}\n  ]\n}\n',
    "workflow.yaml": 'version: "1.0"\nstart_at: a\nend_at: [a]\nnodes:\n  - id: a\n',
    "graph.yaml": "name: ferry\nstart: a\nnodes:\n  a: {type: end}\n",
    "mesh.yaml": "name: tide\nagents:\n  lookout:\n    agent_type: llm\n    prompt: hi\n",
}
DAMAGES = {
    "an unclosed quote": lambda lines: [*lines[:-1], lines[-1].replace(": ", ': "', 1)],
    "an unclosed quote above the keys": lambda lines: [lines[0].replace(": ", ': "', 1), *lines[1:]],
    "a tab": lambda lines: [*lines[:-1], "\t" + lines[-1]],
    "a key given twice": lambda lines: [*lines[:2], *lines[1:]],
    "a zero byte": lambda lines: [*lines[:-1], lines[-1] + "\0"],
    "a second document": lambda lines: [*lines, "---", "a: 1"],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_in_a_folder_that_cannot_be_read_is_an_error(
    invoke: Invoke, write: WriteFile, counter: str, name: str, damage: str
) -> None:
    write("counter.yaml", counter)
    write(f"agents/{name}", "\n".join(DAMAGES[damage](MANIFESTS[name].splitlines())) + "\n")
    told = invoke("validate", ".")
    assert told.exit_code == 2, told.output
    assert re.search(rf"^agents/{name}:\d+:\d+: error: ", told.stdout), told.output
    assert "2 manifests, 0 scenario files: " in told.stdout


@pytest.mark.parametrize("content", ["", "# nothing\n", "\0\1\2", 'name: "ferry\n'])
def test_a_file_with_the_name_of_a_manifest_is_one_even_if_nothing_in_it_can_be_read(
    invoke: Invoke, write: WriteFile, counter: str, content: str
) -> None:
    write("counter.yaml", counter)
    write("ferry/graph.yaml", content)
    for folder in (".", "ferry"):
        told = invoke("validate", folder)
        assert told.exit_code == 2
        assert "ferry/graph.yaml:1:" in told.stdout


def test_a_file_that_cannot_be_read_is_an_error_if_its_folder_has_no_other_manifest(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    write("whole/counter.yaml", counter)
    write("empty/agent.yaml", "")
    write("empty/tools.py", "")
    assert "empty/agent.yaml:1:1: error: the file is empty" in invoke("validate", "empty").stdout
    both = invoke("validate", "whole", "empty")
    assert both.exit_code == 2
    assert "2 manifests, 0 scenario files: 1 error\n" in both.stdout
    above = invoke("validate", ".")
    assert above.exit_code == 0
    assert "empty/agent.yaml:1:1: warning: empty/agent.yaml is left out, as it cannot be read" in above.stdout


def test_a_file_that_cannot_be_read_is_an_error_if_a_scenario_names_it(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    write("counter.yaml", counter)
    write("agent.yaml", 'hello: "world\n')
    write("a.scenario.yaml", "harness: 1\nmanifest: agent.yaml\nscenarios: [{name: any}]\n")
    told = invoke("validate", ".")
    assert told.exit_code == 2
    assert told.stdout.count("agent.yaml:1:8: error: not valid YAML") == 1
    assert "left out" not in told.stdout


OTHER_FILES = {
    "chart/Chart.yaml": "apiVersion: v2\nname: ferries\nversion: 1.0.0\n",
    "chart/values.yaml": "image: ferry\nimage: boat\nagents: {replicas: 2}\nnodes: {a: b}\nnodes: {a: c}\n",
    "chart/templates/graph.yaml": "{{- if .Values.graph }}\nkind: Map\ndata: {start: {{ .Values.a }}}\n{{- end }}\n",
    "chart/templates/job.yaml": "kind: Job\nmetadata:\n  name: {{ .Release.Name }}\n  nodes: {}\n---\nkind: Pod\n",
    "api/openapi.yaml": "openapi: 3.0.0\npaths: {/a: {get: {responses: {200: {}, 404: {description: n}}}}}\n",
    "api/openapi.json": '{"openapi": "3.0.0", "paths": {}, "paths": {}, "info": {}, "info": {}}',
    "pnpm-lock.yaml": "lockfileVersion: '9.0'\npackages:\n  a@1: {resolution: {integrity: sha512}}\n",
    "package-lock.json": '{"name": "ferries", "lockfileVersion": 3, "packages": {"": {}}}',
    ".github.yaml": "on: [push]\n1: a\n2: b\n",
    "empty.yaml": "",
    "comment.yml": "# nothing\n",
    "stack.yaml": "Resources: {Bucket: !Ref Name}\n",
}


def test_a_folder_with_charts_and_other_files_beside_three_agents_has_no_errors(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    for name, text in OTHER_FILES.items():
        write(name, text)
    write("agents/counter.yaml", counter)
    write("agents/ferry/graph.yaml", "start: a\nnodes:\n  a: {type: end, output: there}\n")
    write("agents/mesh.yaml", MANIFESTS["mesh.yaml"])
    told = json.loads(invoke("validate", ".", "--json").stdout)
    assert [problem for problem in told if problem["severity"] == "error"] == []
    assert {problem["file"] for problem in told if "left out" in problem["message"]} == {
        "chart/templates/graph.yaml",
        "chart/templates/job.yaml",
        "comment.yml",
        "empty.yaml",
        "stack.yaml",
    }
    assert invoke("validate", ".").exit_code == 0


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_scenario_file_of_another_name_in_a_folder_is_a_warning(
    invoke: Invoke, suite: WriteSuite, command: str
) -> None:
    suite("{name: any, expect: {status: completed}}")
    suite("{name: another, expect: {status: completed}}", file="b.yaml")
    told = invoke(command, ".").output
    assert "b.yaml:1:1: warning: b.yaml is a scenario file, and is left out: its name does not end in" in told
    assert "rename it to b.scenario.yaml" in told


def test_a_file_named_explicitly_must_be_a_manifest(invoke: Invoke, write: WriteFile) -> None:
    write("values.yaml", "a: 1\n")
    result = invoke("validate", "values.yaml")
    assert result.exit_code == 2
    assert "not a manifest of a known dialect" in result.stdout


def test_a_document_without_a_top_level_component_is_an_error_of_its_dialect(
    invoke: Invoke, write: WriteFile
) -> None:
    write(
        "parts.yaml",
        "$referenced_components: {m: {component_type: VllmConfig, name: m, url: u, model_id: x}}\n",
    )
    result = invoke("validate", "parts.yaml")
    assert result.exit_code == 2
    assert "parts.yaml:1:1: error: there is no top-level component to run [no-component]" in result.stdout
    assert "comes after the document that refers to them" in result.stdout


TOOL = "component_type: ServerTool\nagentspec_version: 25.4.1\nname: hammer\n"


def test_a_correct_component_that_cannot_be_run_by_itself_has_no_problem(
    invoke: Invoke, write: WriteFile
) -> None:
    write("hammer.yaml", TOOL)
    for path in ("hammer.yaml", "."):
        result = invoke("validate", path)
        assert (result.exit_code, result.stdout) == (0, "1 manifest, 0 scenario files: no problems\n")
    assert "so it cannot be run [not-runnable]" in invoke("show", "hammer.yaml").stderr


def test_a_component_that_cannot_be_run_by_itself_is_checked(invoke: Invoke, write: WriteFile) -> None:
    node = "component_type: OutputMessageNode\nagentspec_version: 25.4.1\nname: say\nmessage: '{{a}}'\ninputs: []\n"
    write("say.yaml", node)
    result = invoke("validate", "say.yaml", "--json")
    assert result.exit_code == 2
    assert [each["code"] for each in json.loads(result.stdout)] == ["missing-property"]


def test_a_scenario_cannot_run_a_component_that_cannot_be_run_by_itself(
    invoke: Invoke, write: WriteFile
) -> None:
    write("hammer.yaml", TOOL)
    text = "harness: 1\nmanifest: hammer.yaml\nscenarios: [{name: x, expect: {status: completed}}]\n"
    write("a.scenario.yaml", text)
    result = invoke("validate", "a.scenario.yaml", "--json")
    assert result.exit_code == 2
    assert [each["code"] for each in json.loads(result.stdout)] == ["not-runnable"]


def test_a_component_stands_for_the_id_that_the_command_line_gives(invoke: Invoke, write: WriteFile) -> None:
    agent = (
        "component_type: Agent\nagentspec_version: 25.4.1\nname: a\nsystem_prompt: {$component_ref: prompt}\n"
    )
    write("a.yaml", agent + "llm_config: {component_type: OpenAiConfig, name: m, model_id: m}\n")
    write("parts.yaml", "$referenced_components: {french: Aide.}\n")
    command = ("validate", "a.yaml", "--with", "parts.yaml")
    assert invoke(*command).exit_code == 2
    assert invoke(*command, "--component", "prompt=french").exit_code == 0
    assert invoke(*command, "--component", "prompt").exit_code == 2


def test_a_manifest_is_parsed_only_by_the_yaml_version_of_its_dialect(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    write("counter.yaml", counter.replace("count: state.count + 1", "count: ${COUNT}"))
    result = invoke("validate", "counter.yaml")
    assert result.exit_code == 2
    assert "counter.yaml:7:68: error: not valid YAML: a ',' or '}' is missing here" in result.stdout
    assert invoke("validate", ".").stdout == result.stdout


def test_a_key_that_is_not_text_in_the_yaml_version_of_its_dialect_is_an_error(
    invoke: Invoke, write: WriteFile
) -> None:
    write("tide.yaml", "component_type: Flow\nname: tide\nnodes:\n  - mapping: {yes: sail, 'no': wait}\n")
    result = invoke("validate", "tide.yaml")
    assert result.exit_code == 2
    assert "tide.yaml:4:15: error: this key is read as a boolean, not as text [key-not-text]" in result.stdout
    assert invoke("validate", ".").stdout == result.stdout


def test_a_manifest_that_no_yaml_version_accepts_reports_the_common_problem(
    invoke: Invoke, write: WriteFile
) -> None:
    """`yes` is a boolean in only one version, and the manifest is written in the other."""
    routes = "{yes: done, 1: done}"
    node = f"{{type: approval, question: q, options: [yes], routes: {routes}, on_other: done}}"
    write("graph.yaml", f"start: ask\nnodes:\n  ask: {node}\n  done: {{type: end}}\n")
    result = invoke("validate", "graph.yaml")
    assert result.exit_code == 2
    assert "this key is read as a number, not as text" in result.stdout
    assert "boolean" not in result.stdout


def test_a_key_that_is_not_text_in_another_yaml_file_is_ignored(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    write("counter.yaml", counter)
    write("build.yaml", "on: [push]\njobs: {}\n")
    result = invoke("validate", ".")
    assert (result.exit_code, "build.yaml" in result.stdout) == (0, False)


def test_a_missing_manifest_of_a_scenario_is_an_error(invoke: Invoke, write: WriteFile, counter: str) -> None:
    write("counter.yaml", counter)
    write("a.scenario.yaml", "harness: 1\nmanifest: conter.yaml\nscenarios: [{name: any}]\n")
    result = invoke("validate", "a.scenario.yaml")
    assert result.exit_code == 2
    assert "did you mean 'counter.yaml'?" in result.stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["conter.yaml"], "did you mean 'counter.yaml'?"),
        (["empty"], "neither a manifest nor a scenario file"),
        (["counter.yaml", "--dialect", "shrma"], "did you mean 'sherma'?"),
    ],
)
def test_invalid_arguments_are_errors_with_a_suggestion(
    invoke: Invoke, write: WriteFile, tmp_path: Path, args: Any, told: Any, counter: str
) -> None:
    write("counter.yaml", counter)
    (tmp_path / "empty").mkdir()
    result = invoke("validate", *args)
    assert result.exit_code == 2
    assert told in result.output


def test_the_installed_command_has_the_same_exit_code(
    harness: RunCommand, write: WriteFile, counter: str
) -> None:
    write("counter.yaml", counter.replace("entry_point: add", "entry_point: ad"))
    assert harness("validate", "counter.yaml").returncode == 2


def test_a_scenario_s_manifest_and_the_names_it_expects_are_checked(
    invoke: Invoke, write: WriteFile, asking: str
) -> None:
    write("asking.yaml", asking)
    scenario = (
        "harness: 1\nmanifest: asking.yaml\nenv: {MODEL: tiny}\nscenarios: [{name: a, expect: EXPECT}]\n"
    )
    write("a.scenario.yaml", scenario.replace("EXPECT", "{never: [aks], latency: {nodes: {ask: 1}}}"))
    named = invoke("validate", "a.scenario.yaml")
    assert named.exit_code == 2
    assert "a.scenario.yaml:4:40: error: never names 'aks', but 'asking' has no such node" in named.stdout
    assert "did you mean 'ask'?" in named.stdout
    write("asking.yaml", asking.replace("entry_point: ask", "entry_point: aks"))
    refused = invoke("validate", "a.scenario.yaml")
    assert refused.exit_code == 2
    assert "entry point 'aks'" in refused.stdout
    write("a.scenario.yaml", scenario.replace("EXPECT", "{status: invalid}"))
    assert invoke("validate", "a.scenario.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (
            "stat.count + 1",
            "7:68: warning: this expression refers to a name that does not exist: undeclared name 'stat'",
        ),
        (
            "siz(state.count)",
            "7:68: warning: this expression refers to a name that does not exist: no function 'siz'",
        ),
        (
            "1 + siz([])",
            "7:72: warning: this expression refers to a name that does not exist: no function 'siz'",
        ),
        (
            "state.count +",
            "7:67: warning: this expression will fail when it is evaluated: the expression ends",
        ),
    ],
)
def test_errors_in_expressions_of_a_manifest_have_their_place(
    invoke: Invoke, write: WriteFile, counter: str, expression: str, told: str
) -> None:
    write("counter.yaml", counter.replace("count: state.count + 1", f"count: '{expression}'"))
    result = invoke("validate", "counter.yaml")
    assert result.exit_code == 0
    assert f"counter.yaml:{told}" in result.stdout


def test_a_scenario_file_named_as_a_manifest_is_an_error(
    invoke: Invoke, write: WriteFile, suite: WriteSuite
) -> None:
    suite("{name: a, expect: {path: [add]}}")
    write(
        "b.scenario.yaml",
        "harness: 1\nmanifest: a.scenario.yaml\nscenarios: [{name: b, expect: {path: [x]}}]\n",
    )
    result = invoke("validate", "b.scenario.yaml")
    assert result.exit_code == 2
    assert "a.scenario.yaml is a scenario file, not a manifest" in result.stdout
    assert "`manifest` names the file of the agent" in result.stdout


def test_a_manifest_of_another_dialect_than_the_option_is_an_error(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    write("counter.yaml", counter)
    write(
        "b.scenario.yaml",
        "harness: 1\ndialect: loki\nmanifest: counter.yaml\nscenarios: [{name: b, expect: {path: [x]}}]\n",
    )
    result = invoke("validate", "b.scenario.yaml")
    assert result.exit_code == 2
    assert "it looks like a manifest of sherma, and `dialect` says loki" in result.stdout


def test_the_manifest_of_a_sub_agent_is_checked_too(invoke: Invoke, write: WriteFile, counter: str) -> None:
    write("counter.yaml", counter.replace("entry_point: add", "entry_point: ad"))
    calls = "type: call_agent, args: {agent: {id: counter}, input: '\"1\"'}"
    caller = counter.replace("type: set_state, args: {values: {count: state.count + 1}}", calls)
    write(
        "caller.yaml", f"{caller}sub_agents: [{{id: counter, version: '1.0.0', yaml_path: counter.yaml}}]\n"
    )
    result = invoke("validate", "caller.yaml")
    assert result.exit_code == 0
    assert "counter.yaml:6:20: warning: entry point 'ad' is not a node of agent 'counter'" in result.stdout
    assert invoke("validate", "caller.yaml", "counter.yaml").exit_code == 2


KEY = "k9Qz7Lw2Vb4Xt8Rm"


def test_values_of_variables_are_shown_in_problems_unless_they_are_secret(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    write("counter.yaml", counter.replace("entry_point: add", "entry_point: '${WORD}-${API_TOKEN}'"))
    result = invoke("validate", "counter.yaml", "--env", "WORD=node", "--env", f"API_TOKEN={KEY}")
    assert result.exit_code == 2
    assert "entry point 'node-<secret:API_TOKEN>' is not a node of agent 'counter'" in result.stdout
    assert KEY not in invoke("show", "counter.yaml", "--env", "WORD=x", "--env", f"API_TOKEN={KEY}").output


def test_secret_values_that_a_scenario_gives_to_variables_are_not_shown(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    write("counter.yaml", counter.replace("entry_point: add", "entry_point: '${WORD}-${API_TOKEN}'"))
    write(
        "a.scenario.yaml",
        f"harness: 1\nmanifest: counter.yaml\nenv: {{WORD: node, API_TOKEN: {KEY}}}\nscenarios: [{{name: a}}]\n",
    )
    told = "entry point 'node-<secret:API_TOKEN>' is not a node"
    assert told in invoke("validate", "a.scenario.yaml").stdout
    assert told in invoke("run", "a.scenario.yaml").stdout
