"""Calls models through the clients of their providers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from harness.graph.effects import LLMCall, LLMReply
from harness.world.http_client import HTTPClient
from harness.world.providers.access import Access, resolve_address
from harness.world.providers.failures import client_error

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from harness.world.providers.clients import Clients
    from harness.world.providers.model_request import ModelRequest


class Providers:
    """Calls the models of one run through LangChain. It belongs to one event loop and must be closed there.

    `address_variables` has the environment variables with provider addresses that were used, by name.
    """

    def __init__(self, access: Access) -> None:
        self.address_variables: dict[str, str] = {}
        self._access = access
        self._http = HTTPClient()
        self._clients: Clients | None = None

    async def ask(self, call: LLMCall) -> LLMReply:
        """Call a model and return its reply.

        Raises:
            ProviderError: the provider is not known, its package is not installed, or it has no key.
            MalformedAnswerError: the reply is invalid, or calls a tool with arguments that are not a JSON object.
            Exception: raised by the provider's client, such as its RateLimitError.
        """
        from pydantic import ValidationError

        from harness.world.providers.model_request import model_request
        from harness.world.providers.replies import malformed_reply

        address = resolve_address(call, self._access)
        for variable in address.variables:
            self.address_variables[variable] = self._access.environment[variable]
        if address.protocol == "ollama":
            from harness.world.providers.ollama import generate

            return await generate(call, address, self._http)
        asked = model_request(call, address)
        model = self._get_clients().model(address, asked)
        try:
            return await _reply(model, asked, _request_options(model, asked, address.protocol))
        except ValidationError as invalid:
            failure: Exception = malformed_reply(invalid)
        except Exception as error:
            failure = client_error(error)
        # Outside of the `except`, so that LangChain's exception does not become its context.
        raise failure

    async def close(self) -> None:
        """Close the connections of this run."""
        await self._http.close()
        if self._clients is not None and not self._access.replayed:
            await self._clients.close()
        self._clients = None

    def _get_clients(self) -> Clients:
        from harness.world.providers.clients import Clients

        if self._clients is None:
            self._clients = _offline_clients() if self._access.replayed else Clients()
        return self._clients


@cache
def _offline_clients() -> Clients:
    """Return the clients shared by all runs that only replay: making them takes longer than a replayed answer."""
    from harness.world.providers.clients import Clients

    return Clients(offline=True)


def _request_options(model: Any, wanted: ModelRequest, protocol: str) -> dict[str, Any]:
    """Return the parameters of the request, with its response format.

    Chat Completions get it in the body: if it were passed by name, OpenAI's client would parse the answer itself and
    refuse tools that are not strict.
    """
    request = dict(wanted.request)
    if wanted.response_format is None:
        return request
    if protocol == "anthropic" or getattr(model, "use_responses_api", None):
        return {**request, "response_format": wanted.response_format}
    return {
        **request,
        "extra_body": {**request.get("extra_body", {}), "response_format": wanted.response_format},
    }


async def _reply(model: BaseChatModel, wanted: ModelRequest, request: dict[str, Any]) -> LLMReply:
    from langchain_core.runnables import RunnableConfig
    from langsmith import tracing_context

    from harness.world.providers.replies import reply, streamed_reply

    # No callbacks: neither those of the graph nor a tracer configured in the environment.
    config = RunnableConfig(callbacks=[], tags=[], metadata={})
    with tracing_context(enabled=False):
        if wanted.stream:
            return streamed_reply([part async for part in model.astream(wanted.messages, config, **request)])
        return reply(await model.ainvoke(wanted.messages, config, **request))
