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

_NEXT: Final = "_next"


class ScriptError(HarnessError):
    """A script that cannot be run, or whose output is not a JSON object."""

    code = "script"


async def run_script(
    node: ScriptNode, path: Path | None, cwd: Path, state: State, ctx: NodeContext
) -> Update:
    """Run the script, merge its output into the state, and take the exit `_next` if it names one.

    A failure merges nothing. It leads to `fallback`, else, with a warning, to `next`.

    Raises:
        Exception: the script failed, and the node has neither.
    """
    try:
        effect = _effect(node, path, cwd, state, ctx)
        what = f"the script {node.script}"
        output = as_object(await with_timeout(lambda: ctx.perform(effect), ctx, node.timeout, what))
    except Exception as error:
        if ctx.is_fatal(error) or (node.fallback is None and node.next is None):
            raise
        exit_ = exit_after_failure(node)
        if exit_ != FALLBACK:
            ctx.warn(f"node '{ctx.name}' failed, and the run goes on to '{node.next}': {error_text(error)}")
        return exit_update(dict(state), exit_)
    target = output.pop(_NEXT, None)
    if target is not None and not isinstance(target, str):
        ctx.warn(f"the `{_NEXT}` of node '{ctx.name}' is ignored: expected text, found {describe(target)}")
    after = apply_state_updates({**state, **output}, node)
    return exit_update(after, ScriptExit(target) if isinstance(target, str) else NEXT)


def _effect(node: ScriptNode, path: Path | None, cwd: Path, state: State, ctx: NodeContext) -> ScriptCall:
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
        argv=(*runtime, str(path or cwd / node.script)),
        env={"GRAPH_STATE": text} if inline else {},
        files={} if inline else {"GRAPH_STATE_FILE": text},
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
