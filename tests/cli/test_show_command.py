"""`harness show`: graphs as text, Mermaid and SVG, and data edges."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.cli.fixtures import Invoke, RunCommand, WriteFile

FLOW = """\
agentspec_version: "25.4.1"
component_type: Flow
name: greeting
start_node: {$component_ref: start}
nodes: [{$component_ref: start}, {$component_ref: say}, {$component_ref: end}]
control_flow_connections:
- {component_type: ControlFlowEdge, name: c1, from_node: {$component_ref: start}, to_node: {$component_ref: say}}
- {component_type: ControlFlowEdge, name: c2, from_node: {$component_ref: say}, to_node: {$component_ref: end}}
data_flow_connections:
- component_type: DataFlowEdge
  name: d1
  source_node: {$component_ref: start}
  source_output: guest
  destination_node: {$component_ref: say}
  destination_input: name
$referenced_components:
  start: {component_type: StartNode, name: start, inputs: [{title: guest, type: string}]}
  say: {component_type: OutputMessageNode, name: say, message: "Hello {{name}}"}
  end: {component_type: EndNode, name: end}
"""


@pytest.fixture(autouse=True)
def _manifests(write: WriteFile, counter: str, two_agents: str, asking: str) -> None:
    write("counter.yaml", counter)
    write("two.yaml", two_agents)
    write("asking.yaml", asking)


def test_a_graph_is_drawn_as_text(invoke: Invoke) -> None:
    assert invoke("show", "counter.yaml").stdout == ("(start)\n└─▶ add\n\nadd  [set_state]\n└─▶ (end)\n")


def test_a_graph_is_drawn_as_mermaid(invoke: Invoke) -> None:
    told = invoke("show", "counter.yaml", "--format", "mermaid").stdout
    assert told.startswith("flowchart TD\n")
    assert "add<br/>" in told


def test_a_graph_is_drawn_as_svg(invoke: Invoke) -> None:
    told = invoke("show", "counter.yaml", "--format", "svg").stdout
    assert ElementTree.fromstring(told).tag.endswith("svg")
    assert told.isascii()


def test_no_edge_leads_to_the_end_from_a_node_where_the_run_fails(invoke: Invoke, write: WriteFile) -> None:
    write(
        "desk/graph.yaml",
        """\
start: a
nodes:
  a: {type: llm, prompt: hi, fallback: b}
  b: {type: input, question: q}
  c: {type: script, script: c.sh}
  z: {type: end}
""",
    )
    write("desk/c.sh", "")
    told = invoke("show", "desk").stdout
    assert told.count("(end)") == 1
    assert "z  [end]  (unreachable)\n└─▶ (end)\n" in told


def test_several_agents_are_drawn_one_after_the_other(invoke: Invoke) -> None:
    told = invoke("show", "two.yaml").stdout
    assert told.startswith("counter\n=======\n\n(start)\n")
    assert "\n\nother\n=====\n\n(start)\n" in told
    assert invoke("show", "two.yaml", "-f", "mermaid").stdout.count("flowchart TD") == 2


def test_one_agent_may_be_selected(invoke: Invoke) -> None:
    assert invoke("show", "two.yaml", "--agent", "other").stdout == invoke("show", "counter.yaml").stdout


def test_warnings_of_the_manifest_are_printed_on_standard_error(invoke: Invoke) -> None:
    result = invoke("show", "counter.yaml", "--agent", "nobody")
    assert result.exit_code == 0
    assert result.stdout == invoke("show", "counter.yaml").stdout
    assert "warning: agent 'nobody' is not in the manifest; its only agent" in result.stderr


def test_an_svg_needs_one_agent(invoke: Invoke) -> None:
    result = invoke("show", "two.yaml", "-f", "svg")
    assert result.exit_code == 2
    assert "--agent, one of: counter, other" in result.stderr
    assert invoke("show", "two.yaml", "-f", "svg", "--agent", "other").exit_code == 0


def test_a_drawing_may_be_written_to_a_file(invoke: Invoke) -> None:
    result = invoke("show", "counter.yaml", "-o", "graph.txt")
    assert (result.exit_code, result.output) == (0, "")
    assert Path("graph.txt").read_text(encoding="utf-8") == invoke("show", "counter.yaml").stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["two.yaml", "--agent", "othr"], "did you mean 'other'?"),
        (["conter.yaml"], "did you mean 'counter.yaml'?"),
        (["asking.yaml"], "MODEL is not set"),
        (["a.scenario.yaml"], "give the manifest that it names"),
        (["."], "this is a folder"),
        (["counter.yaml", "-o", "nowhere/graph.svg"], "nowhere/graph.svg cannot be written"),
    ],
)
def test_an_invalid_argument_or_manifest_is_an_error(invoke: Invoke, args: Any, told: Any) -> None:
    result = invoke("show", *args)
    assert result.exit_code == 2
    assert told in result.stderr


def test_variables_may_be_given(invoke: Invoke) -> None:
    assert invoke("show", "asking.yaml", "--env", "MODEL=tiny").exit_code == 0
    assert "; here with --env NAME=value" in invoke("show", "asking.yaml").output


def test_data_edges_are_drawn_on_request_and_their_absence_is_stated(invoke: Invoke) -> None:
    without = invoke("show", "counter.yaml").stdout
    assert invoke("show", "counter.yaml", "--data").stdout == without + "\nno data edges\n"
    for form in ("mermaid", "svg"):
        asked = invoke("show", "counter.yaml", "--data", "-f", form)
        assert (asked.exit_code, asked.stdout) == (0, invoke("show", "counter.yaml", "-f", form).stdout)


def test_data_edges_join_an_output_and_an_input(invoke: Invoke, write: WriteFile) -> None:
    write("greeting.yaml", FLOW)
    without = invoke("show", "greeting.yaml").stdout
    assert "guest" not in without
    assert invoke("show", "greeting.yaml", "--data").stdout == without + "\ndata:\n  start.guest → say.name\n"
    for form in ("mermaid", "svg"):
        alone = invoke("show", "greeting.yaml", "-f", form).stdout
        drawn = invoke("show", "greeting.yaml", "-f", form, "--data").stdout
        assert "guest" not in alone
        assert "guest" in drawn


def test_an_svg_of_very_many_data_edges_is_refused(invoke: Invoke, write: WriteFile) -> None:
    edge = FLOW[FLOW.index("- component_type: DataFlowEdge") : FLOW.index("$referenced_components")]
    edges = "".join(edge.replace("name: d1", f"name: d{number}") for number in range(2001))
    write("greeting.yaml", FLOW.replace(edge, edges))
    result = invoke("show", "greeting.yaml", "-f", "svg", "--data")
    assert result.exit_code == 2
    assert "an SVG shows at most 2,000 data edges, and 'greeting' has 2,001" in result.stderr
    assert "--format text or mermaid" in result.stderr
    assert invoke("show", "greeting.yaml", "-f", "svg").exit_code == 0
    assert invoke("show", "greeting.yaml", "-f", "mermaid", "--data").exit_code == 0


def test_a_terminal_without_unicode_does_not_fail_the_command(harness: RunCommand) -> None:
    done = harness("show", "counter.yaml", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "add" in done.stdout
