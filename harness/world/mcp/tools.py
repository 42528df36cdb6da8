"""MCP tools, calls and results as plain data, a server of tools, and answers to what servers ask.

It does not depend on the SDK. In the middle of a call a server may ask a person (elicitation), or a model (sampling).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from harness.errors import WorldError
from harness.graph.effects import Ask, HumanCall, LLMCall, LLMReply, MCPCall, MCPEndpoint
from harness.source.display import did_you_mean

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

REFUSED_ARGUMENTS = "Input validation error"
"""The beginning of the tool error for arguments that do not fit the input schema, as in the servers of the SDK."""

request_meta: ContextVar[Mapping[str, Any]] = ContextVar("request_meta")
"""The `_meta` of the tools/call being answered. It is only set in the `call` function of `build_server`."""

request_client: ContextVar[Ask | None] = ContextVar("request_client", default=None)
"""The client of the tools/call being answered, if it answers what servers ask. Only set where `request_meta` is."""


@dataclass(frozen=True)
class MCPTool:
    """A tool as a server lists it. The schemas are JSON Schema, 2020-12 unless `$schema` names another."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    output_schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class MCPResult:
    """The result of a tool.

    content     MCP content blocks, such as `{"type": "text", "text": "calm"}`
    structured  the structured content; None if there is none
    is_error    True if the tool itself reports a failure
    """

    content: list[dict[str, Any]]
    structured: Any | None = None
    is_error: bool = False


class MCPFailure(Exception):
    """The protocol failed instead of returning a tool's result: unreachable, closed, refused or malformed.

    `code` is the JSON-RPC error code; None if the server did not send one.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        self.code = code
        super().__init__(message)


class MCPSession(Protocol):
    """An initialized client session with one server."""

    async def list_tools(self) -> list[MCPTool]:
        """Return all tools of the server, from all pages, in the server's order.

        Raises:
            MCPFailure: the server refused, or the connection is closed.
        """
        ...

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> MCPResult:
        """Call a tool and return its result. A failure of the tool is a result with `is_error`.

        Raises:
            MCPFailure: a protocol error (an unknown tool, an output that violates its schema), or the connection is
                closed.
        """
        ...


class Sessions(Protocol):
    """Opens sessions with MCP servers."""

    def session(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
        """Return a session with an MCP server, as a context manager.

        Raises:
            WorldError: no session is possible.
        """
        ...


class ToolServer:
    """Answers the two requests of a tool server, in wire spelling, for any version of the SDK.

    If `call` raises `MCPFailure`, the answer is a protocol error; any other exception becomes a tool error. With
    `forwards`, `call` asks a server that checks the call itself.
    """

    def __init__(
        self,
        name: str,
        tools: Sequence[MCPTool],
        call: Callable[[str, dict[str, Any]], Awaitable[MCPResult]],
        *,
        forwards: bool = False,
    ) -> None:
        self._name, self._forwards = name, forwards
        self._tools = {tool.name: tool for tool in tools}
        self._validators = {tool.name: _validator(tool) for tool in tools}
        self._call = call

    def listing(self) -> dict[str, Any]:
        """Return the answer to tools/list."""
        return {"tools": [_tool_to_wire(tool) for tool in self._tools.values()]}

    async def answer(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to tools/call.

        Raises:
            MCPFailure: the answer is a protocol error.
        """
        name, args = params["name"], params.get("arguments") or {}
        if name not in self._tools and not self._forwards:
            hint = did_you_mean(name, self._tools) or "it has no tools"
            raise MCPFailure(f"Unknown tool: {name} of MCP server '{self._name}' ({hint})", INVALID_PARAMS)
        if not self._forwards and (refusal := self._refusal(name, args)):
            return _text_error(f"{REFUSED_ARGUMENTS}: {refusal}")
        token = request_meta.set(params.get("_meta") or {})
        try:
            return _result_to_wire(await self._call(name, args))
        except MCPFailure:
            raise
        except Exception as error:
            return _text_error(str(error) or type(error).__name__)
        finally:
            request_meta.reset(token)

    def _refusal(self, name: str, args: dict[str, Any]) -> str:
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        try:
            error = best_match(self._validators[name].iter_errors(args))
        except Unresolvable as missing:
            return str(missing)
        if error is None:
            return ""
        place = ".".join(map(str, error.absolute_path))
        return f"{error.message} (argument '{place}')" if place else str(error.message)


def _validator(tool: MCPTool) -> Any:
    from jsonschema import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    for schema in (tool.output_schema or {}, tool.input_schema):
        cls = validator_for(schema, default=Draft202012Validator)
        try:
            cls.check_schema(schema)
        except SchemaError as error:
            raise WorldError(
                f"tool {tool.name!r} has a schema that is not valid JSON Schema: {error.message}"
            ) from None
    # An empty registry: a reference to another document is an error, never a download.
    return cls(tool.input_schema, registry=Registry())


def tool_from_wire(tool: dict[str, Any]) -> MCPTool:
    """Return a tool from its entry in a server's list."""
    # Sorted, because the order of the keys of a schema differs between versions of the SDK.
    schemas = {
        key: dict(sorted(tool[key].items())) for key in ("inputSchema", "outputSchema") if tool.get(key)
    }
    return MCPTool(
        tool["name"], tool.get("description", ""), schemas.get("inputSchema", {}), schemas.get("outputSchema")
    )


def _tool_to_wire(tool: MCPTool) -> dict[str, Any]:
    wire: dict[str, Any] = {"name": tool.name, "inputSchema": {"type": "object", **tool.input_schema}}
    if tool.description:
        wire["description"] = tool.description
    if tool.output_schema is not None:
        wire["outputSchema"] = {"type": "object", **tool.output_schema}
    return wire


def _result_to_wire(result: MCPResult) -> dict[str, Any]:
    wire: dict[str, Any] = {"content": result.content, "isError": result.is_error}
    if result.structured is not None:
        wire["structuredContent"] = result.structured
    return wire


def _text_error(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


# ---------------------------------------------------------------- what a server asks

ELICIT: Final = "elicitation/create"
_NOT_GIVEN: Final = ("decline", "cancel")
_PARAMS: Final = {"maxTokens": "max_tokens", "temperature": "temperature", "stopSequences": "stop"}
_STOPS: Final = {"length": "maxTokens", "max_tokens": "maxTokens"}


async def answer_question(call: MCPCall, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a request that the server of a call sends, in the wire spelling of the protocol.

    An app's own client answers if it can; else `human` and `llm` stubs do, as calls of the node that called the tool.
    Source: MCP specification 2025-11-25, Client Features.

    Raises:
        MCPFailure: nothing can answer it.
    """
    if call.client is not None:
        return await call.client(method, params)
    if call.perform is None:
        raise MCPFailure(f"nobody answers {method} here")
    if method == ELICIT:
        schema = params.get("requestedSchema") or {}
        args = {"question": params.get("message", ""), "options": [*schema.get("properties", {})]}
        return _elicited(await call.perform(HumanCall(name=call.node, node=call.node, args=args)))
    return _sampled(await call.perform(_model_call(params, call.node)), params)


def _elicited(reply: Any) -> dict[str, Any]:
    """Return a person's answer: values by name, `decline`, or `cancel`; any other text accepts without values."""
    if isinstance(reply, Mapping):
        return dict(reply) if "action" in reply else {"action": "accept", "content": dict(reply)}
    return {"action": reply} if reply in _NOT_GIVEN else {"action": "accept", "content": {}}


def _model_call(params: Mapping[str, Any], node: str) -> LLMCall:
    from harness.graph.messages import to_messages

    told = [{"role": "system", "content": params["systemPrompt"]}] if params.get("systemPrompt") else []
    for each in params.get("messages", ()):
        content = each["content"] if isinstance(each["content"], list) else [each["content"]]
        told.append({"role": each["role"], "content": "".join(part.get("text", "") for part in content)})
    given = {name: params[key] for key, name in _PARAMS.items() if params.get(key) is not None}
    return LLMCall(name=sampled_model(params), node=node, messages=to_messages(told), params=given)


def sampled_model(params: Mapping[str, Any]) -> str:
    """Return the name of the model that a sampling request asks: its first hint, or `sampling`."""
    hints = (params.get("modelPreferences") or {}).get("hints") or [{}]
    return hints[0].get("name") or "sampling"


def _sampled(reply: LLMReply, params: Mapping[str, Any]) -> dict[str, Any]:
    stop = _STOPS.get(reply.finish_reason or "", "endTurn")
    content = {"type": "text", "text": reply.text}
    return {"role": "assistant", "content": content, "model": sampled_model(params), "stopReason": stop}
