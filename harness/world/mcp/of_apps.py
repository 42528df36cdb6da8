"""MCP servers of an app: its client is given the streams of a scripted server in memory.

`ClientSession` and the transports of the SDK stay those of the app; the functions that open transports are replaced
once in a process, in every module that has them. A server has the name that `MultiServerMCPClient` gives it, else
its address or its command. Each call is an effect, which `mcp` stubs and faults answer.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context, ContextVar, copy_context
from functools import cache, partial, wraps
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from harness.engine.native_visits import active_visits, current_node
from harness.errors import WorldError
from harness.graph.effects import Ask, MCPCall, MCPEndpoint
from harness.interception.real_effects import not_intercepted
from harness.time.rebinding import bind_names, when_imported
from harness.world.mcp.connect import memory_streams
from harness.world.mcp.fake import build_server
from harness.world.mcp.tools import MCPResult, MCPTool, request_client
from harness.world.scripted import ScriptedWorld

_TRANSPORTS: Final = {
    "stdio_client": ("mcp.client.stdio", "stdio", 2),
    "sse_client": ("mcp.client.sse", "sse", 2),
    "streamablehttp_client": ("mcp.client.streamable_http", "streamable_http", 3),
    "streamable_http_client": ("mcp.client.streamable_http", "streamable_http", 3),
}
"""The functions that open transports: their modules, what they speak, and how many values they yield in SDK 1.x."""

_name: ContextVar[str] = ContextVar("_name", default="")
"""The name of the server that `MultiServerMCPClient` connects to."""


@cache
def wrap_mcp() -> None:
    """Replace the functions of the SDK that open transports, once in a process."""
    if find_spec("mcp") is None:
        return
    is_first = version("mcp").startswith("1.")
    for function, (module, transport, values) in _TRANSPORTS.items():
        when_imported(module, partial(_replace, function, transport, values if is_first else 2))
    when_imported("mcp.client.session", _note_callers)
    when_imported("langchain_mcp_adapters.client", _wrap_adapters)


def _replace(function: str, transport: str, values: int, module: ModuleType) -> None:
    """Replace a function in its module, and where others have imported it."""
    if original := getattr(module, function, None):
        bind_names({id(original): (original, _replaced(original, transport, values))})


def _wrap_adapters(adapters: ModuleType) -> None:
    """Note the name of the server while the client of LangChain connects to it."""
    for method in ("connect_to_server", "session"):
        if original := getattr(adapters.MultiServerMCPClient, method, None):
            setattr(adapters.MultiServerMCPClient, method, _named(original))
    # One session for each call, which is opened by the connection.
    for module in (sys.modules.get("langchain_mcp_adapters.tools"), adapters):
        if original := getattr(module, "load_mcp_tools", None):
            setattr(module, "load_mcp_tools", _loading(original))  # noqa: B010


def _named(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def named(self: Any, server_name: str, *args: Any, **options: Any) -> Any:
        _name.set(server_name)
        return original(self, server_name, *args, **options)

    return named


def _loading(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    async def load(*args: Any, **options: Any) -> Any:
        if name := options.get("server_name"):
            _name.set(name)
            if isinstance(connection := options.get("connection"), dict):
                _names[_key(connection)] = name
        return await original(*args, **options)

    return load


_names: Final[dict[str, str]] = {}
"""The names of servers, by what is known of their connection."""


def _key(connection: Mapping[str, Any]) -> str:
    return repr((connection.get("url"), connection.get("command"), list(connection.get("args") or ())))


_world: ScriptedWorld | None = None
"""Answers while an app's graph is made, when no node runs yet."""


@contextmanager
def answering_factories(world: ScriptedWorld) -> Iterator[None]:
    """Let a world answer functions that connect to servers to make a graph."""
    global _world
    before, _world = _world, world
    try:
        yield
    finally:
        _world = before


def _replaced(original: Callable[..., Any], transport: str, values: int) -> Callable[..., Any]:
    @wraps(original)
    @asynccontextmanager
    async def client(server: Any = None, *args: Any, **options: Any) -> AsyncIterator[Any]:
        visits = active_visits()
        world = visits.run.simulation.world if visits is not None else _world
        if world is None or not_intercepted.get():  # the harness itself connects to a real server
            async with original(server, *args, **options) as streams:
                yield streams
            return
        url = server if isinstance(server, str) else options.get("url")
        command, given = getattr(server, "command", None), list(getattr(server, "args", ()) or ())
        name = _names.get(repr((url, command, given))) or _name.get() or url or command or transport
        endpoint = MCPEndpoint(id=name, transport=transport, url=url, command=command, args=given)
        try:
            tools = await world.mcp_tools(endpoint)
        except WorldError as error:  # ends the run, even if the app catches it
            if visits is not None:
                visits.run.simulation.abort(error, current_node().partition("/")[0])
            raise
        opened_in = copy_context()

        async def call(tool: str, arguments: dict[str, Any]) -> MCPResult:
            context = _take_caller(tool, arguments) or opened_in.copy()
            work = asyncio.get_running_loop().create_task(
                _perform(endpoint, tool, arguments, request_client.get()), context=context
            )
            return await work

        listed = [MCPTool(each.name, each.description, dict(each.schema)) for each in tools]
        async with memory_streams(build_server(name, listed, call, forwards=True)) as pair:
            yield (*pair, lambda: None) if values == 3 else pair

    return client


async def _perform(
    endpoint: MCPEndpoint, tool: str, arguments: dict[str, Any], client: Ask | None
) -> MCPResult:
    visits = active_visits()
    if visits is None:
        raise WorldError(f"the tool {tool} of the MCP server {endpoint.id} is called before the graph runs")
    effect = MCPCall(node=current_node(), name=tool, endpoint=endpoint, args=arguments, client=client)
    result: MCPResult = await visits.perform(effect)
    return result


# ---------------------------------------------------------------- who calls

_callers: Final[list[tuple[str, Mapping[str, Any], Context]]] = []
"""The calls that are on their way to a server, with the contexts of those who call.

A session may be opened long before, in another node, or while the graph was made.
"""


def _note_callers(session: ModuleType) -> None:
    call_tool = session.ClientSession.call_tool

    @wraps(call_tool)
    async def noted(self: Any, name: str, arguments: Any = None, *args: Any, **options: Any) -> Any:
        if active_visits() is None:
            return await call_tool(self, name, arguments, *args, **options)
        caller = (name, arguments or {}, copy_context())
        _callers.append(caller)
        try:
            return await call_tool(self, name, arguments, *args, **options)
        finally:
            if caller in _callers:
                _callers.remove(caller)

    session.ClientSession.call_tool = noted


def _take_caller(tool: str, arguments: Mapping[str, Any]) -> Context | None:
    for caller in _callers:
        if caller[:2] == (tool, arguments):
            _callers.remove(caller)
            return caller[2]
    return None
