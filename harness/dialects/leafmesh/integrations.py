"""The helpers `zapier(…)`, `n8n(…)` and the others: processors of `@pre_compose` that call a connector.

A processor makes the exchange that a connector agent makes, for the agent that runs, and returns the response. Its
arguments are the fields of `connector_config`. spec: "Integrate with Zapier/n8n/Composio/MCP"; NOTES 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from harness.dialects.leafmesh.connector_document import CONNECTORS, Connector
from harness.dialects.leafmesh.connector_exchange import ConnectorError, exchange
from harness.dialects.leafmesh.connectors import required_fields
from harness.dialects.leafmesh.fields import with_fallbacks
from harness.dialects.leafmesh.session import FROM_CALLER
from harness.dialects.leafmesh.yields import RERUN
from harness.engine.context import NodeContext
from harness.graph.to_json import to_json
from harness.source.models import keys_of
from harness.source.suggest import did_you_mean

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
    connector: Connector
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
        connector = with_fallbacks(self.connector, running.env)
        for needed in required_fields(connector):
            if not any(getattr(connector, field) for field in needed):
                raise ConnectorError(
                    f"agent '{ctx.name}': {self.integration}(…) needs {' or '.join(map(repr, needed))}"
                )
        data = {key: to_json(value) for key, value in input_data.items() if key not in FROM_CALLER}
        return await exchange(
            connector,
            ctx,
            data=data,
            arguments={key: value for key, value in data.items() if key != RERUN},
            session_id=running.session_id,
        )


def integration_helper(integration: str) -> Callable[..., Processor]:
    """Return the helper of an integration, such as `zapier(...)`."""
    model, by_position = CONNECTORS[integration], HELPERS[integration]

    def helper(*given: Any, **named: Any) -> Processor:
        if len(given) > len(by_position):
            raise TypeError(f"{integration}(…) takes only {', '.join(by_position)} by position")
        fields = {**dict(zip(by_position, given, strict=False)), **named}
        if integration == "mcp" and "url" in fields:
            fields.setdefault("transport", "http")
        try:
            connector = model.model_validate(fields)
        except ValidationError as invalid:
            first = invalid.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise TypeError(f"{integration}(…): {place}: {first['msg']}, found {first['input']!r}") from None
        known = keys_of(model)
        return Processor(integration, connector, tuple(name for name in fields if name not in known))

    helper.__name__ = integration
    return helper
