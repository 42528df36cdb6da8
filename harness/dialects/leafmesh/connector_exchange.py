"""Exchanges with external systems, through connectors. spec: "External Agent Fields"; NOTES 9."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.kit.tool_calls import mcp_texts
from harness.dialects.leafmesh import fields
from harness.dialects.leafmesh.session import FROM_CALLER, RERUN
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import AgentCall, HTTPReply, MCPCall, MCPEndpoint
from harness.graph.http_call import http_call
from harness.graph.to_json import error_text, from_json, to_json
from harness.source.display import did_you_mean
from harness.source.models import keys_of

CALLBACK_BASE: Final = "http://127.0.0.1:18820/callback/"
"""The URL prefix to which the external system posts its result. spec: "Sync vs Callback Mode"."""


class ConnectorError(HarnessError):
    """The external system cannot be reached, or answers with an error."""

    code = "connector"


class ConnectorTimeout(HarnessError):
    """The external system takes longer than the timeout of the connector."""

    code = "connector-timeout"


class CallbackTimeout(HarnessError):
    """No callback came within `callback_timeout`."""

    code = "callback-timeout"


async def exchange(
    connector: fields.Connector,
    ctx: NodeContext,
    *,
    data: Mapping[str, Any],
    arguments: Mapping[str, Any],
    session_id: str,
) -> Any:
    """Make one exchange with an external system for the agent that runs, and return the response.

    Args:
        connector: the system.
        ctx: the run of the agent.
        data: the data to send, as JSON. NOTES 9.2.
        arguments: the arguments of an MCP tool.
        session_id: the session that a callback names.

    Raises:
        ConnectorError, ConnectorTimeout, CallbackTimeout: see these classes.
    """
    whole = AgentCall(name=ctx.name, args={"input": data})
    if connector.mode == "callback":
        return await _with_callback(connector, whole, session_id, ctx)

    async def body() -> Any:
        if needs_agent_stub(connector) or ctx.run.world.answers_for(whole):
            return await _perform_stub(whole, ctx)
        with _connector_errors(ctx):
            if isinstance(connector, fields.MCP | fields.Zapier):
                return await _call_mcp_tool(connector, arguments, ctx)
            reply = await _post(connector, {"data": data}, ctx)
        return _json_or_text(reply.text, reply.json)

    what, limit = f"the connector of agent '{ctx.name}'", connector.limit_s
    late = ConnectorTimeout(f"{what} took longer than {limit:g} s")
    return await with_timeout(body, ctx, limit, what, late=late)


def needs_agent_stub(connector: fields.Connector) -> bool:
    """True if only an `agents:` stub can answer: the wire format is not documented. NOTES 9.1."""
    return isinstance(connector, fields.Composio | fields.Custom) or (
        isinstance(connector, fields.Zapier) and not connector.prefer_mcp
    )


async def _with_callback(
    connector: fields.Connector, whole: AgentCall, session_id: str, ctx: NodeContext
) -> Any:
    """Return the result of the callback, which arrives after the response to the request. NOTES 9.4."""
    if not needs_agent_stub(connector) and not isinstance(connector, fields.MCP | fields.Zapier):
        body = {
            "data": whole.args["input"],
            "_leafmesh_callback_url": CALLBACK_BASE + ctx.name,
            "_leafmesh_session_id": session_id,
        }
        with _connector_errors(ctx):
            await _post(connector, body, ctx)
    effect = replace(whole, hint="it is what the callback brings")
    what, limit = f"the callback for '{ctx.name}'", connector.callback_timeout
    late = CallbackTimeout(f"{what} took longer than {limit:g} s")
    return await with_timeout(lambda: _perform_stub(effect, ctx), ctx, limit, what, late=late)


async def _perform_stub(effect: AgentCall, ctx: NodeContext) -> Any:
    """Return the answer of an `agents:` stub. Errors of stubs become ConnectorError; others keep their type."""
    with _connector_errors(ctx, only=lambda error: bool(getattr(error, "kind", ""))):
        return await ctx.perform(effect)


@contextmanager
def _connector_errors(
    ctx: NodeContext, only: Callable[[Exception], bool] = lambda _error: True
) -> Iterator[None]:
    """Turn failures of the transport into ConnectorError."""
    try:
        yield
    except Exception as error:
        if ctx.is_fatal(error) or isinstance(error, ConnectorError) or not only(error):
            raise
        raise ConnectorError(f"agent '{ctx.name}': {error_text(error)}") from error


async def _post(connector: fields.Connector, body: Mapping[str, Any], ctx: NodeContext) -> HTTPReply:
    url = str(getattr(connector, connector.required[0]))
    hint = f"or answer the whole agent with `agents: {{{ctx.name}: {{return: …}}}}`"
    call = http_call("POST", url, json=dict(body), headers=_headers(connector), hint=hint)
    reply: HTTPReply = await ctx.perform(call)
    if reply.status >= 400:
        raise ConnectorError(f"agent '{ctx.name}': {url} answered with status {reply.status}")
    return reply


def _headers(connector: fields.Connector) -> dict[str, str]:
    """Return the authentication headers of a connector. spec: "connector_config fields per framework"."""
    name, scheme, key = "Authorization", "Bearer ", ""
    match connector:
        case fields.CrewAI():
            key = connector.user_api_key or connector.api_key
        case fields.AutoGen():
            key = connector.api_key
        case fields.N8n():
            key = connector.auth_token
        case fields.A2A():
            scheme, key = f"{connector.auth_scheme} ", connector.auth_token
        case fields.LangGraph():
            name, scheme, key = "X-Api-Key", "", connector.api_key
    return {name: f"{scheme}{key}"} if key else {}


def mcp_tool(connector: fields.MCP | fields.Zapier) -> str:
    """Return the name of the MCP tool that a connector calls. spec: "mcp", "zapier"."""
    if isinstance(connector, fields.MCP):
        return connector.tool_name
    return "_".join(filter(None, (connector.connection, connector.action)))


def mcp_endpoint(agent: str, connector: fields.MCP | fields.Zapier) -> MCPEndpoint:
    """Return the MCP server of a connector; its id is the name of the agent. NOTES 9.1."""
    if isinstance(connector, fields.Zapier):
        return MCPEndpoint(agent, "streamable_http", "https://mcp.zapier.com/api/mcp")
    if connector.transport == "stdio":
        env = connector.env or {}
        return MCPEndpoint(agent, "stdio", command=connector.command, args=connector.args, env=env)
    headers = {"Authorization": f"Bearer {connector.auth_token}"} if connector.auth_token else {}
    return MCPEndpoint(agent, "streamable_http", connector.url, headers)


async def _call_mcp_tool(
    connector: fields.MCP | fields.Zapier, args: Mapping[str, Any], ctx: NodeContext
) -> Any:
    """Call the connector's tool; return its structured content, else its text, parsed if it is JSON."""
    endpoint = mcp_endpoint(ctx.name, connector)
    result = await ctx.perform(MCPCall(name=mcp_tool(connector), endpoint=endpoint, args=args))
    text = "\n".join(mcp_texts(result.content))
    if result.is_error:
        raise ConnectorError(f"agent '{ctx.name}': tool '{mcp_tool(connector)}' failed: {text}")
    if result.structured is not None:
        return result.structured
    return _json_or_text(text, from_json(text))


def _json_or_text(text: str, value: Any) -> Any:
    """Return the JSON value of a reply, or its text if it is not JSON.

    `value` is None for the text `null` and for a text that is not JSON.
    """
    return text if value is None and text.strip() != "null" else value


HELPERS: Final[Mapping[str, tuple[str, ...]]] = {
    "crewai": ("endpoint",),
    "langgraph": ("endpoint",),
    "autogen": ("endpoint",),
    "a2a": ("url",),
    "mcp": ("url", "tool_name"),
    "zapier": ("action",),
    "composio": ("action",),
    "n8n": ("webhook_url",),
}
"""The helpers by integration, each with the fields that it takes by position."""


class _Run(NamedTuple):
    """The agent that runs: its context, the variables of the mesh, and its session."""

    ctx: NodeContext
    env: Mapping[str, str]
    session_id: str


_running: ContextVar[_Run | None] = ContextVar("_running", default=None)


@contextmanager
def integrations_run_in(ctx: NodeContext, env: Mapping[str, str], session_id: str) -> Iterator[None]:
    """Let processors that are called inside ask for this agent."""
    token = _running.set(_Run(ctx, env, session_id))
    try:
        yield
    finally:
        _running.reset(token)


@dataclass(frozen=True)
class Processor:
    """A processor that a helper returns. `unknown` are arguments that its connector does not have."""

    integration: str
    connector: fields.Connector
    unknown: tuple[str, ...] = ()

    async def __call__(self, input_data: Mapping[str, Any], _context: Any = None) -> Any:
        """Return the response of the connector to the input.

        Raises:
            ConnectorError: an address is missing, or the exchange fails; see `exchange`.
            RuntimeError: no agent runs.
        """
        running = _running.get()
        if running is None:
            raise RuntimeError(f"{self.integration}(…) can be called only while an agent runs")
        ctx = running.ctx
        for name in self.unknown:
            hint = did_you_mean(name, keys_of(type(self.connector)), listing=False)
            text = f"unknown argument '{name}' of {self.integration}(…): it has no effect"
            ctx.warn(f"{text} ({hint})" if hint else text)
        connector = fields.with_fallbacks(self.connector, running.env)
        for needed in fields.required_fields(connector):
            if not any(getattr(connector, field) for field in needed):
                text = f"{self.integration}(…) needs {' or '.join(map(repr, needed))}"
                raise ConnectorError(f"agent '{ctx.name}': {text}")
        data = {key: to_json(value) for key, value in input_data.items() if key not in FROM_CALLER}
        arguments = {key: value for key, value in data.items() if key != RERUN}
        return await exchange(connector, ctx, data=data, arguments=arguments, session_id=running.session_id)


def integration_helper(integration: str) -> Callable[..., Processor]:
    """Return the helper of an integration, such as `zapier(...)`."""
    model, by_position = fields.CONNECTORS[integration], HELPERS[integration]

    def helper(*given: Any, **named: Any) -> Processor:
        if len(given) > len(by_position):
            raise TypeError(f"{integration}(…) takes only {', '.join(by_position)} by position")
        values = {**dict(zip(by_position, given, strict=False)), **named}
        if integration == "mcp" and "url" in values:
            values.setdefault("transport", "http")
        try:
            connector = model.model_validate(values)
        except ValidationError as invalid:
            first = invalid.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise TypeError(f"{integration}(…): {place}: {first['msg']}, found {first['input']!r}") from None
        known = keys_of(model)
        return Processor(integration, connector, tuple(name for name in values if name not in known))

    helper.__name__ = integration
    return helper
