"""Makes LangChain's chat models, with clients of the providers that are created here.

Clients created by LangChain would share connections between event loops, and read keys and addresses from the
environment.
"""

from __future__ import annotations

import inspect
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from harness.errors import ProviderError
from harness.source.imports import import_extra
from harness.world.providers.access import Address, Protocol
from harness.world.providers.model_request import ModelRequest

# Without one, Anthropic's client refuses long answers that are not streamed.
ANTHROPIC_TIMEOUT_S = 600.0


class Clients:
    """The chat models of one run and their connections, made on first use.

    If `offline`, nothing is ever sent, so that the models may be shared by any number of runs and event loops.
    """

    def __init__(self, *, offline: bool = False) -> None:
        self._offline = offline
        self._http: dict[tuple[Protocol, str], Any] = {}
        self._clients: dict[tuple[Any, ...], Any] = {}
        self._models: dict[tuple[Address, str], BaseChatModel] = {}

    def model(self, address: Address, wanted: ModelRequest) -> BaseChatModel:
        """Return the chat model for a request.

        Raises:
            ExtraMissing: the package of the provider is not installed.
            ProviderError: a parameter is invalid for the model.
        """
        key = address, json.dumps([wanted.fields, wanted.options], sort_keys=True, default=repr)
        found = self._models.get(key)
        if found is None:
            found = self._models[key] = self._make(address, wanted)
        return found

    async def close(self) -> None:
        """Close the connections."""
        http = list(self._http.values())
        for kept in (self._http, self._clients, self._models):
            kept.clear()
        for client in http:
            await client.aclose()

    def _make(self, address: Address, wanted: ModelRequest) -> BaseChatModel:
        make = _anthropic_model if address.protocol == "anthropic" else _openai_model
        client = self._client(address)
        if wanted.options:
            client = client.with_options(**wanted.options)
        try:
            return make(address, wanted, client)
        except ValidationError as invalid:
            problems = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'they'}: {fault['msg']}" for fault in invalid.errors()
            )
            raise ProviderError(
                f"the parameters of model {address.model!r} are invalid: {problems}"
            ) from None

    def _client(self, address: Address) -> Any:
        key = address.protocol, address.base_url, address.key, address.endpoint, address.headers
        if key not in self._clients:
            package = _import(address.protocol, address.protocol)
            given = {
                "api_key": address.key,
                "base_url": address.base_url,
                "http_client": self._http_client(address, package),
                "default_headers": dict(address.headers),
            }
            if address.protocol == "openai":
                self._clients[key] = package.AsyncOpenAI(**given)
            else:
                # Newer clients can make spans; turn that off.
                spans = "open_telemetry" in inspect.signature(package.AsyncAnthropic).parameters
                quiet = {"open_telemetry": False} if spans else {}
                self._clients[key] = package.AsyncAnthropic(**given, timeout=ANTHROPIC_TIMEOUT_S, **quiet)
        return self._clients[key]

    def _http_client(self, address: Address, package: Any) -> Any:
        key = address.protocol, address.endpoint
        if key not in self._http:
            client = _offline_http_client(package) if self._offline else package.DefaultAsyncHttpxClient()
            if address.endpoint:
                client.event_hooks = {"request": [_sent_to(address)]}
            self._http[key] = client
        return self._http[key]


def _openai_model(address: Address, wanted: ModelRequest, client: Any) -> BaseChatModel:
    langchain = _import("langchain_openai", "openai")
    model: BaseChatModel = langchain.ChatOpenAI(
        model=address.model,
        base_url=address.base_url,
        api_key=address.key,
        openai_proxy=None,
        client=client.chat.completions,
        async_client=client.chat.completions,
        root_client=client,
        root_async_client=client,
        cache=False,
        output_version="v0",
        use_responses_api=False if address.compatible else None,
        **{"stream_usage": True, **wanted.fields},
    )
    return model


def _anthropic_model(address: Address, wanted: ModelRequest, client: Any) -> BaseChatModel:
    langchain = _import("langchain_anthropic", "anthropic")
    model: BaseChatModel = langchain.ChatAnthropic(
        model=address.model,
        base_url=address.base_url,
        api_key=address.key,
        anthropic_proxy=None,
        cache=False,
        output_version="v0",
        **wanted.fields,
    )
    # A cached property; its own value would share connections between event loops.
    vars(model)["_async_client"] = client
    return model


def _sent_to(address: Address) -> Callable[[Any], Awaitable[None]]:
    """Return a hook that sends requests for the path that the client appends to the endpoint itself."""

    async def send_to(request: Any) -> None:
        if request.url.path == "/chat/completions":
            request.url = type(request.url)(address.endpoint)

    return send_to


def _offline_http_client(package: Any) -> Any:
    """Return an HTTP client like the package's own, but without trusted certificates and proxies."""
    client = package.DefaultAsyncHttpxClient.__bases__[0]
    return client(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False, follow_redirects=True)


def _import(name: str, extra: str) -> Any:
    return import_extra(name, extra, "to ask models of this provider")
