"""Hooks that a server runs: one at a URL, over JSON-RPC 2.0, or the tools `hooks.POINT` of an MCP server.

Undocumented, but part of sherma. Each point is an `http` or `mcp` effect of the node that it is about. As in sherma,
a server that fails is passed over with a warning, and it cannot change messages, tools, answers of models and errors.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from itertools import count
from typing import Any, Final

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.kit.manifest import refusing
from harness.dialects.sherma.hooks import HOOK_POINTS
from harness.dialects.sherma.tools import to_tool
from harness.engine.context import NodeContext, RunContext
from harness.errors import Problem, Span
from harness.graph.effects import MCPCall, MCPEndpoint
from harness.graph.http_call import http_call
from harness.graph.to_json import to_json
from harness.source.models import describe

TOOL_PREFIX: Final = "hooks."
"""The names of tools of MCP servers that are hooks begin with it. Agents do not see them."""

_POINTS: Final = frozenset(HOOK_POINTS) - {"on_chat_model_create"}
_NEVER_SENT: Final = frozenset({"node_context", "agent", "registries"})
_READ_ONLY: Final = _NEVER_SENT | {"messages", "response", "tools", "tool_calls", "error"}
_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True)
class InstalledServer:
    """A declared hook that a server runs, with its location: `source` is its URL, or its MCP server."""

    source: str | MCPEndpoint
    span: Span

    @property
    def overridden(self) -> frozenset[str]:
        """The hook points that the server may answer."""
        return _POINTS

    @property
    def server(self) -> str | None:
        """The name of its MCP server; None if it is at a URL."""
        return None if isinstance(self.source, str) else self.source.id

    def problems(self) -> Iterator[Problem]:
        """Yield nothing: the server is asked only in a run."""
        return iter(())

    async def instance(self, run: RunContext) -> _ServerHook:
        """Return the hook for a run.

        Raises:
            ManifestError: the MCP server cannot be asked for its tools.
        """
        if isinstance(self.source, str):
            return _ServerHook(self.source, run, partial(_ask_url, self.source, count(1)))
        with refusing("mcp-server", f"MCP server '{self.source.id}' of this hook cannot be used", self.span):
            listed = await run.world.mcp_tools(self.source)
        ask = partial(_ask_mcp, self.source, frozenset(tool.name for tool in listed))
        return _ServerHook(f"MCP server '{self.source.id}'", run, ask)


Ask = Callable[[str, Mapping[str, Any], NodeContext], Awaitable[Any]]
"""Returns the fields of a point's context that the server changes; None if it changes none."""


class _ServerHook:
    """A hook in a run. It has a method for each point that its server may answer."""

    def __init__(self, name: str, run: RunContext, ask: Ask) -> None:
        self._name, self._run, self._ask = name, run, ask

    def __getattr__(self, point: str) -> Any:
        if point not in _POINTS:
            raise AttributeError(point)
        return partial(self._fire, point)

    async def _fire(self, point: str, context: Any) -> Any:
        """Send a context to the server; return the changed context, or None if the server leaves it as it is."""
        described = getattr(getattr(context, "node_context", None), "node_def", None)
        ctx = NodeContext(self._run, getattr(described, "name", "__start__"), getattr(context, "state", {}))
        sent = [field.name for field in fields(HOOK_POINTS[point]) if field.name not in _NEVER_SENT]
        try:
            params = {name: _plain(name, getattr(context, name)) for name in sent}
            answer = await self._ask(point, params, ctx)
        except Exception as error:
            if ctx.is_fatal(error):
                raise
            ctx.warn(f"hook '{point}' of {self._name} fails, and is passed over: {error}")
            return None
        if answer is None:
            return None
        if not isinstance(answer, Mapping):
            ctx.warn(f"hook '{point}' of {self._name} is passed over: it answers with {describe(answer)}")
            return None
        for name in answer:
            if name not in sent:
                ctx.warn(f"hook '{point}' of {self._name} answers with '{name}': it has {', '.join(sent)}")
        changed = copy.copy(context)
        for name in (answer.keys() & sent) - _READ_ONLY:
            setattr(changed, name, answer[name])
        return changed


async def _ask_url(
    url: str, numbers: Iterator[int], point: str, params: Mapping[str, Any], ctx: NodeContext
) -> Any:
    call = http_call(
        "POST",
        url,
        json={"jsonrpc": "2.0", "method": point, "params": params, "id": next(numbers)},
        headers={"content-type": "application/json"},
        hint="a hook is asked at each point; it changes nothing if `json` is {result: null}",
    )
    reply = await with_timeout(lambda: ctx.perform(call), ctx, _TIMEOUT_S, "the request")
    if not 200 <= reply.status < 300 or not isinstance(reply.json, Mapping):
        raise ValueError(f"status {reply.status}: {reply.text[:200]}")
    if "error" in reply.json:
        raise ValueError(str(reply.json["error"]))
    return reply.json.get("result")


async def _ask_mcp(
    endpoint: MCPEndpoint, tools: frozenset[str], point: str, params: Mapping[str, Any], ctx: NodeContext
) -> Any:
    tool = TOOL_PREFIX + point
    if tool not in tools:
        return None
    result = await ctx.perform(MCPCall(name=tool, endpoint=endpoint, args={"params": params}))
    text = "".join(part.get("text", "") for part in result.content)
    if result.is_error:
        raise ValueError(text)
    if result.structured is not None:
        return result.structured.get("result", result.structured)
    return json.loads(text or "null")


def _plain(name: str, value: Any) -> Any:
    """Return the value of a context's field as JSON data."""
    if name == "error" and value is not None:
        return {"type": type(value).__name__, "message": str(value)}
    if name == "tools":
        return [
            {"name": tool.name, "description": tool.description, "args_schema": to_json(tool.spec.schema)}
            for tool in map(to_tool, value)
        ]
    return to_json(value)
