"""The response of a mesh: that of the agent at its entry. spec: "Communication Types"; NOTES 4.2, 4.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.dialects.leafmesh.document import Mesh
from harness.dialects.leafmesh.session import Call, Task


def response(mesh: Mesh, task: Task, *, whole: bool = False) -> dict[str, Any] | None:
    """Return the response of the entry agent: None if it failed, empty if nothing was started.

    With `whole`, also None if an agent that the response waits for has not settled.
    """
    if not task.calls:
        return {}
    made: dict[Call, dict[str, Any] | None] = {}
    for call in reversed(task.calls):  # callees start after their callers
        made[call] = _response(mesh, call, made, whole)
    first = task.calls[0]
    return next((made[call] for call in reversed(task.calls) if call.began == first.began), None)


def _response(
    mesh: Mesh, call: Call, of: Mapping[Call, dict[str, Any] | None], whole: bool
) -> dict[str, Any] | None:
    if call.output is None:
        return None
    result = dict(call.output)
    how = mesh.agents[call.agent].communication_type
    for _, callee in sorted(call.callees.items()) if how != "dual" else ():
        answer = of[callee]
        if answer is None and whole:
            return None
        if answer is not None:
            result.update(answer if how == "chain" else {callee.agent: answer})
    return result
