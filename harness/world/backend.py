"""The backend: calls real models through their providers' clients, real HTTP servers, and real MCP servers.

A recording answers below these clients (`harness.recording`), so that live and replayed runs execute the same code.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from harness.errors import ProviderDown
from harness.graph.effects import Effect, HTTPCall, LLMCall
from harness.graph.model import State
from harness.graph.world import Answer
from harness.interception.real_effects import within_effect
from harness.world.http_client import HTTPClient
from harness.world.mcp.tools import Sessions
from harness.world.providers import Access, Providers, is_down
from harness.world.responder import Responder


class Backend(Responder, Sessions, Protocol):
    """The last responder of a world: it answers what the scenario does not, live or recorded."""

    @property
    def is_real(self) -> bool:
        """True if real systems may be called: the network is open, and real time passes."""
        ...

    @property
    def is_live(self) -> bool:
        """True if real systems answer everything and nothing is recorded."""
        ...

    @property
    def is_available(self) -> bool:
        """True if a real system or a recording can answer."""
        ...

    async def close(self) -> None:
        """Close the clients. Sessions close themselves."""
        ...


class LiveBackend(Responder):
    """Calls real systems. It belongs to one event loop and must be closed there.

    Args:
        environment: variables with the providers' keys and addresses.
        replayed: a recording answers below the clients: nothing is sent, and no key is needed.
    """

    def __init__(self, environment: Mapping[str, str], *, replayed: bool = False) -> None:
        self._is_real = not replayed
        self._providers = Providers(Access(environment, replayed=replayed))
        self._client = HTTPClient()

    @property
    def address_variables(self) -> Mapping[str, str]:
        """The environment variables with provider addresses that were used, by name."""
        return self._providers.address_variables

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the answer to an effect; None for a kind of effect that no backend answers.

        Raises:
            ProviderError: the provider cannot be called.
        """
        work = self._work(effect)
        if work is None:
            return None
        try:
            own = isinstance(effect, (LLMCall, HTTPCall))
            return Answer(value=await within_effect(work, None if own else effect, state))
        except Exception as error:
            if self._is_real and isinstance(effect, LLMCall) and is_down(error):
                raise ProviderDown(
                    f"the provider of model {effect.name!r} cannot be reached: {error}"
                ) from error
            return Answer(error=error)

    def _work(self, effect: Effect) -> Callable[[], Awaitable[Any]] | None:
        if isinstance(effect, LLMCall):
            return lambda: self._providers.ask(effect)
        if isinstance(effect, HTTPCall):
            return lambda: self._client.send(effect)
        return effect.real

    async def close(self) -> None:
        """Close the clients."""
        await self._providers.close()
        await self._client.close()
