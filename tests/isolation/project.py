"""A flow that calls one tool, and suites that run it with given tools."""

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FLOW = """\
agentspec_version: 25.4.1
component_type: Flow
name: calls
start_node: {$component_ref: s}
nodes: [{$component_ref: s}, {$component_ref: w}, {$component_ref: e}]
control_flow_connections:
- {component_type: ControlFlowEdge, name: a, from_node: {$component_ref: s}, to_node: {$component_ref: w}}
- {component_type: ControlFlowEdge, name: b, from_node: {$component_ref: w}, to_node: {$component_ref: e}}
$referenced_components:
  s: {component_type: StartNode, name: s}
  w: {component_type: ToolNode, name: w, tool: {component_type: ServerTool, name: call}}
  e: {component_type: EndNode, name: e}
"""


_TIME_IS_UP = """
def time_is_up(soon=0.05):
    from harness.time import alarms
    alarms._timer._next().postpone(soon)
"""
TIME_IS_UP = f"exec({_TIME_IS_UP!r})\n"
"""Source that defines `time_is_up()`, which lets the alarm of the current run ring in 0.05 s.

So tests keep a limit that no other run reaches, however busy the machine is. `exec` hides the function from the
search for the user's line."""


def write_project(folder: Path, tools: str, names: Sequence[str], settings: str, expect: str) -> Path:
    """Write `tools.py` and one scenario per named function in it. Returns the scenario file."""
    (folder / "calls.yaml").write_text(FLOW)
    (folder / "tools.py").write_text(textwrap.dedent(tools))
    (folder / "pyproject.toml").write_text(f"[tool.harness]\n{settings}\n")
    more = f", expect: {expect}" if expect else ""
    listed = [
        f"  - {{name: {n} {tool}, tools: {{call: tools.{tool}}}{more}}}" for n, tool in enumerate(names)
    ]
    file = folder / "calls.scenario.yaml"
    file.write_text("\n".join(["harness: 1", "manifest: calls.yaml", "scenarios:", *listed, ""]))
    return file


def results(folder: Path = Path("reports/latest")) -> list[dict[str, Any]]:
    """Return the results of a report, with `wall` set to 0 since it differs from run to run."""
    text = (folder / "results.jsonl").read_text(encoding="utf-8")
    return [{**json.loads(line), "wall": 0} for line in text.splitlines()]


def verdicts() -> list[str]:
    return [line["verdict"] for line in results()]
