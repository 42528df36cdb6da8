"""The stand-in for the package `sherma`, as imported by modules of hooks, tools and agents."""

import importlib.util
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from harness.dialects.sherma.stand_in import MODULES
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

pytestmark = pytest.mark.skipif(
    "sherma" not in sys.modules and importlib.util.find_spec("sherma") is not None,
    reason="sherma is installed",
)

MANIFEST = """\
manifest_version: 1
hooks: [{import_path: parts.Hook}]
agents:
  one:
    state: {fields: [{name: seen, type: str, default: ""}]}
    graph:
      entry_point: think
      nodes: [{name: think, type: custom, args: {metadata: {word: hello}}}]
      edges: []
"""
SCENARIO = """\
harness: 1
manifest: one.yaml
scenarios: [{name: it, input: {}}]
"""


def run(folder: Path, parts: str) -> Any:
    """Return the outcome of a scenario whose manifest imports a hook from a module with this text."""
    (folder / "one.yaml").write_text(MANIFEST)
    (folder / "parts.py").write_text(textwrap.dedent(parts))
    (folder / "it.scenario.yaml").write_text(SCENARIO)
    (outcome,) = run_scenario(load_file(folder / "it.scenario.yaml").scenarios[0])
    return outcome


def test_every_public_name_can_be_imported_from_every_public_module(tmp_path: Path) -> None:
    lines = [f"from {module} import {name}" for module, names in MODULES.items() for name in names.split()]
    lines += [f"import {module}" for module in MODULES]
    outcome = run(
        tmp_path,
        "\n".join([*lines, "class Hook(sherma.hooks.BaseHookExecutor): pass"]),
    )
    assert outcome.passed, outcome.observed.error


def test_a_hook_written_for_the_package_runs_on_its_parts(tmp_path: Path) -> None:
    outcome = run(
        tmp_path,
        """
        from sherma import CelEvaluationError, EntityType
        from sherma.exceptions import ShermaError
        from sherma.hooks.executor import BaseHookExecutor, HookExecutor
        from sherma.hooks.types import HookType, NodeExecuteContext
        from sherma.langgraph.declarative.nodes import INTERNAL_STATE_KEY, NodeContext
        from sherma.langgraph.declarative.schema import CallLLMArgs, CustomArgs
        from sherma.logging import get_logger
        from sherma.registry.bundle import RegistryBundle

        class Hook(BaseHookExecutor):
            async def node_execute(self, ctx: NodeExecuteContext) -> NodeExecuteContext | None:
                args = ctx.node_context.node_def.args
                facts = [
                    isinstance(self, HookExecutor),
                    isinstance(ctx, NodeExecuteContext),
                    isinstance(ctx.node_context, NodeContext),
                    isinstance(args, CustomArgs) and not isinstance(args, CallLLMArgs),
                    isinstance(ctx.registries, RegistryBundle),
                    issubclass(CelEvaluationError, ShermaError),
                    HookType("node_execute") is HookType.NODE_EXECUTE,
                    EntityType.TOOL == "tool",
                    INTERNAL_STATE_KEY == "__sherma__",
                    get_logger("x").name == "x",
                ]
                ctx.result = {"seen": f"{args.metadata['word']} {all(facts)}"}
                return ctx
        """,
    )
    assert outcome.observed.state == {"seen": "hello True"}


def test_a_part_of_the_runtime_can_be_annotated_with_and_derived_from_and_refuses_to_be_called(
    tmp_path: Path,
) -> None:
    outcome = run(
        tmp_path,
        """
        from sherma.hooks import BaseHookExecutor
        from sherma.langgraph.agent import LangGraphAgent
        from sherma.registry import Registry, ToolRegistry

        class Mine(LangGraphAgent):
            tools: ToolRegistry
            all: Registry[str]

        class Hook(BaseHookExecutor):
            async def node_execute(self, ctx):
                Mine(id="mine")
        """,
    )
    assert outcome.observed.error["code"] == "not-in-stand-in"
    assert "sherma.langgraph.agent.LangGraphAgent is a part of sherma that does not run here" in str(
        outcome.observed.error["message"]
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("from sherma.hooks.executor import BaseHookExecuter", "cannot import name 'BaseHookExecuter'"),
        ("import sherma.hooks.handlers", "No module named 'sherma.hooks.handlers'"),
    ],
)
def test_unknown_names_cannot_be_imported(tmp_path: Path, line: str, told: str) -> None:
    outcome = run(tmp_path, f"{line}\nclass Hook: ...")
    assert outcome.observed.status == "invalid"
    assert told in outcome.observed.error["message"]
