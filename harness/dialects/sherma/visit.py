"""A visit of a node: its data, the hooks around it, and its error handling.

spec: "Hooks", "Error handling (on_error)", "on_node_error Hook".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness.dialects.kit.tool_calls import ensure_id
from harness.dialects.sherma import hooks as hook
from harness.dialects.sherma.agent import Agent, AgentSession, hook_state
from harness.dialects.sherma.document import INTERNAL_STATE_KEY
from harness.dialects.sherma.warnings import declared_fields, dropped_warning
from harness.engine.context import NodeContext
from harness.errors import ExpressionError
from harness.graph.messages import to_messages
from harness.graph.model import State, Update
from harness.source.models import describe

Result = dict[str, Any]


@dataclass(frozen=True)
class Visit:
    """A visit of a node: the node's definition, the input state, the context and the session."""

    node: Any
    state: State
    ctx: NodeContext
    session: AgentSession

    @property
    def agent(self) -> Agent:
        """The agent that the node belongs to."""
        return self.session.agent

    @cached_property
    def hook_state(self) -> dict[str, Any]:
        """The state for hooks. It is shared by the hooks of a visit, so one can leave data for another."""
        return hook_state(self.state)

    def evaluate(self, expression: str, **names: Any) -> Any:
        """Evaluate a CEL expression on the state of this visit."""
        return self.agent.evaluate(expression, self.state, **names)

    def node_info(self, bundle: Any = None) -> hook.NodeInfo:
        """Return the description of the node for hooks."""
        node = self.session.copy_for_hooks(f"node {self.node.name}", self.node)
        manifest = self.session.copy_for_hooks("manifest", self.agent.manifest)
        return hook.NodeInfo(node, config=manifest, registries=bundle)

    async def fire(self, point: str, **fields: Any) -> Any:
        """Run the hooks of a point. `fields` are the fields of its context besides node and state."""
        context_class = hook.HOOK_POINTS[point]
        context = context_class(
            node_context=self.node_info(), node_name=self.node.name, state=self.hook_state, **fields
        )
        return await self.session.hooks.run(point, context)


def node_function(node: Any, body: Callable[[Visit], Awaitable[Result]]) -> Callable[..., Awaitable[Update]]:
    """Return the function of a node: `node_enter`, the body, `node_exit`, and error handling."""

    async def run(state: State, ctx: NodeContext) -> Update:
        session = AgentSession.of(ctx.run)
        visit = Visit(node, state, ctx, session)
        try:
            if session.hooks:
                await visit.fire("node_enter", node_type=node.type)
            result = await body(visit)
            if session.hooks:
                left = await visit.fire("node_exit", node_type=node.type, result=result)
                result = left.result or {}
            if not isinstance(result, Mapping):
                raise TypeError(
                    f"hooks must leave node '{node.name}' a mapping of fields, not {describe(result)}"
                )
        except Exception as error:
            if ctx.is_fatal(error):
                raise
            if isinstance(error, ExpressionError) and error.span is None:
                error.span = session.agent.expression_place(node.name, error)
            return await _handle_error(visit, error)
        _warn_of_dropped(result, node.name, session.agent, ctx)
        return Update(channel_updates(result, session.agent, ctx))

    return run


def _warn_of_dropped(result: Mapping[str, Any], node: str, agent: Agent, ctx: NodeContext) -> None:
    """Warn about updates of undeclared fields, which sherma drops."""
    declared = declared_fields(agent.definition)
    for field in result:
        if field not in declared:
            ctx.run.warn(dropped_warning(node, field, agent.definition, ctx.run.graph))


async def _handle_error(visit: Visit, error: Exception) -> Update:
    """Handle an error: route to the fallback, else let `on_node_error` hooks swallow it. spec: on_error."""
    on_error = visit.node.on_error
    if on_error is not None and on_error.fallback is not None:
        last_error = {
            "node": visit.node.name,
            "type": type(error).__name__,
            "message": str(error),
            "attempt": on_error.retry.max_attempts if on_error.retry else 1,
        }
        internal = {**(visit.state.get(INTERNAL_STATE_KEY) or {}), "last_error": last_error}
        return Update({INTERNAL_STATE_KEY: internal}, goto=on_error.fallback)
    if visit.session.hooks:
        seen = await visit.fire("on_node_error", node_type=visit.node.type, error=error)
        if seen.error is None:
            return Update()
        if seen.error is not error:
            raise seen.error from error
    raise error


def channel_updates(result: Mapping[str, Any], agent: Agent, ctx: NodeContext) -> Result:
    """Return a node's updates for the channels: `messages` become message objects with ids.

    Raises:
        ValueError: `messages` contains a value that is not a message.
    """
    update = dict(result)
    if agent.definition.keeps_messages and "messages" in update:
        update["messages"] = [ensure_id(message, ctx.new_id) for message in to_messages(update["messages"])]
    return update
