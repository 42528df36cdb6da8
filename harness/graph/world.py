"""A world, as the engine sees it: its interface, and its answers to effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.graph.effects import Effect, MCPEndpoint, ToolSpec
from harness.graph.model import State


@dataclass(frozen=True)
class Answer:
    """The answer of the world: a value, or an error to raise in the node. `latency_s` is in virtual seconds."""

    value: Any = None
    error: Exception | None = None
    latency_s: float = 0.0


class World(Protocol):
    """Everything outside the graph."""

    async def answer(self, effect: Effect, state: State) -> Answer:
        """Answer an effect. `state` is the state that the calling node received.

        Raises:
            UnscriptedCall: nothing answers. This always ends the run.
        """
        ...

    def has_answers(self, effects: Sequence[Effect], state: State) -> bool:
        """True if `answer` would find an answer to each effect. Consumes nothing.

        A pause without an answer is no error, so schedulers ask this before `answer`.
        """
        ...

    def answers_for(self, effect: Effect) -> bool:
        """True if the world has any entry for effects of this kind and name. Consumes nothing.

        Unlike `has_answers`, this ignores the arguments of the effect.
        """
        ...

    def uses_backend(self, effect: Effect, state: State) -> bool:
        """True if no stub would answer this effect, but the live backend or its recording could. Consumes nothing."""
        ...

    def asks_live(self, effect: Effect, state: State) -> bool:
        """True if the live backend would answer this effect, and no recording. Consumes nothing."""
        ...

    async def mcp_tools(self, endpoint: MCPEndpoint) -> Sequence[ToolSpec]:
        """Return the tools of an MCP server, connecting to it on first use.

        Raises:
            Exception: the server cannot be reached; the message gives the reason.
        """
        ...
