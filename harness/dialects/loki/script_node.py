"""The script node, which runs a Bash, Python or TypeScript script that prints a JSON object. spec: "script"."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.loki.document import ScriptNode
from harness.dialects.loki.json_text import json_text
from harness.dialects.loki.routing import FALLBACK, NEXT, ScriptExit, exit_after_failure, exit_update
from harness.dialects.loki.state import apply_state_updates
from harness.dialects.loki.strict_json import parse_json
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import ScriptCall
from harness.graph.model import State, Update
from harness.graph.to_json import error_text
from harness.source.models import describe

RUNTIMES: Final[Mapping[str, tuple[str, ...]]] = {
    ".sh": ("bash",),
    ".py": ("python3",),
    ".ts": ("tsx",),  # the program of `npx tsx`; npx itself would need the network, which scripts do not have
}
"""The command that runs a script, by its extension. spec: "Supported extensions and runtimes"."""

INLINE_LIMIT: Final = 32 * 1024
"""The size in bytes of UTF-8 up to which the state is passed in a variable and not in a file."""

FAILURE: Final = "output"
"""The state key with the description of a failure after which the run goes on to `next`.

spec: "Tolerant-fail contract": "with the error description exposed in state so the next node can react". The document
has one name for it, that of llm nodes.
"""

_NEXT: Final = "_next"
_STATE, _STATE_FILE = "GRAPH_STATE", "GRAPH_STATE_FILE"
"""The variables with the state: exactly one is set. spec: "script"."""


class ScriptError(HarnessError):
    """A script that cannot be run, or whose output is not a JSON object."""

    code = "script"


async def run_script(
    node: ScriptNode, path: Path | None, cwd: Path, env: Mapping[str, str], state: State, ctx: NodeContext
) -> Update:
    """Run the script, merge its output into the state, and take the exit `_next` if it names one.

    A failure merges nothing. It leads to `fallback`, else to `next`, with a warning and its description in the state.

    Args:
        node: the node.
        path: the file of the script; None if it does not exist.
        cwd: the folder of the agent.
        env: the environment variables of the script, besides the state.
        state: the state.
        ctx: the context of the visit.

    Raises:
        Exception: the script failed, and the node has neither.
    """
    try:
        effect = _effect(node, path or cwd / node.script, cwd, env, state, ctx)
        what = f"the script {node.script}"
        output = as_object(await with_timeout(lambda: ctx.perform(effect), ctx, node.timeout, what))
    except Exception as error:
        if ctx.is_fatal(error) or (node.fallback is None and node.next is None):
            raise
        if exit_after_failure(node) == FALLBACK:
            return exit_update(state, FALLBACK)
        ctx.warn(f"node '{ctx.name}' failed, and the run goes on to '{node.next}': {error_text(error)}")
        return exit_update({**state, FAILURE: f"Script node failed: {error_text(error)}"})
    target = output.pop(_NEXT, None)
    if target is not None and not isinstance(target, str):
        ctx.warn(f"the `{_NEXT}` of node '{ctx.name}' is ignored: expected text, found {describe(target)}")
    after = apply_state_updates({**state, **output}, node)
    return exit_update(after, ScriptExit(target) if isinstance(target, str) else NEXT)


def _effect(
    node: ScriptNode, path: Path, cwd: Path, env: Mapping[str, str], state: State, ctx: NodeContext
) -> ScriptCall:
    """Return the effect that runs the script.

    Raises:
        ScriptError: there is no runtime for its extension.
    """
    name = ctx.name
    runtime = RUNTIMES.get(Path(node.script).suffix)
    text = json_text(state)
    inline = len(text.encode("utf-8", "surrogatepass")) <= INLINE_LIMIT
    if runtime is None:
        raise ScriptError(
            f"the script {node.script} has no runtime: its extension must be one of {', '.join(RUNTIMES)}"
        )
    return ScriptCall(
        name=name,
        args=state,
        argv=(*runtime, str(path)),
        env={name: value for name, value in env.items() if name not in (_STATE, _STATE_FILE)},
        inputs={_STATE: text} if inline else {},
        files={} if inline else {_STATE_FILE: text},
        cwd=cwd,
        timeout_s=node.timeout,
        read=read_output,
    )


def read_output(text: str) -> Any:
    """Parse the JSON that a script printed.

    Raises:
        ScriptError: it is not JSON.
    """
    if not text.strip():
        raise ScriptError("the script printed nothing: expected one JSON object on its standard output")
    try:
        return parse_json(text.strip())
    except ValueError as error:
        raise ScriptError(f"the output of the script is not one JSON object: {error}") from None


def as_object(output: Any) -> dict[str, Any]:
    """Return the output of a script as a mapping. spec: "Script-output JSON must be an object".

    Raises:
        ScriptError: it is not an object.
    """
    if not isinstance(output, Mapping):
        raise ScriptError(f"the output of the script is not a JSON object: found {describe(output)}")
    return {str(key): value for key, value in output.items()}
