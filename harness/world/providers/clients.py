"""Makes LangChain's chat models, with clients of the providers that are created here.

Clients created by LangChain would share connections between event loops, and read keys and addresses from the
environment.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage
from pydantic import ValidationError

from harness.errors import ProviderError
from harness.graph.effects import LLMCall, ToolSpec
from harness.graph.messages import message_text
from harness.source.imports import import_extra
from harness.world.providers.access import Address, Protocol

# Parameters that LangChain translates, by model and API; all others are sent in the body unchanged.
_FIELDS: Final = {
    "openai": frozenset(
        {"temperature", "top_p", "stop", "max_tokens", "reasoning", "reasoning_effort", "verbosity"}
    ),
    "anthropic": frozenset(
        {"temperature", "top_p", "top_k", "stop", "stop_sequences", "max_tokens", "thinking"}
        | {"output_config", "reasoning_effort"}
    ),
}
# OpenAI-compatible servers may not know LangChain's name for `max_tokens`, except those for which the runtimes of
# Agent Spec use it.
_OLD_NAMES: Final = _FIELDS["openai"] - {"max_tokens"}
_KNOW_NEW_NAMES: Final = frozenset({"openai_compatible", "vllm"})

# OpenAI's models that only know the new name of `max_tokens`.
_REASONING: Final = re.compile(r"(o\d|gpt-5)")

# Parameters of the connection, not of the model: they are in the call, or passed to the client.
_CONNECTION: Final = frozenset(
    {"base_url", "api_base", "openai_api_base", "anthropic_api_url"}
    | {"api_key", "openai_api_key", "anthropic_api_key"}
)
_CLIENT: Final = {
    "timeout": "timeout",
    "request_timeout": "timeout",
    "max_retries": "max_retries",
    "num_retries": "max_retries",
}
_REQUEST: Final = frozenset({"extra_headers", "extra_query"})

# LangChain's names for parameters, which hooks may use.
_SYNONYMS: Final = {
    "default_headers": "extra_headers",
    "default_query": "extra_query",
    "streaming": "stream",
    "stop_sequences": "stop",
}


@dataclass(frozen=True)
class ModelRequest:
    """The messages of a request, with the parameters by the object that gets them.

    fields   parameters of the chat model
    options  parameters of the provider's client
    request  parameters of this request
    """

    messages: list[BaseMessage]
    fields: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    request: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    response_format: Mapping[str, Any] | None = None


def model_request(call: LLMCall, address: Address) -> ModelRequest:
    """Convert a call for the protocol of the address."""
    anthropic = address.protocol == "anthropic"
    params = _parameters(call)
    stream = bool(params.pop("stream", False))
    written = params.pop("response_format", None)
    if anthropic and "user" in params:
        params.setdefault("metadata", {"user_id": params.pop("user")})
    names = _translated_names(call, address)
    fields = {name: params.pop(name) for name in names & params.keys()}
    if call.as_written and not anthropic:
        fields["stream_usage"] = False
    options = {"timeout": address.timeout_s} if address.timeout_s else {}
    options |= {option: params.pop(name) for name, option in _CLIENT.items() if name in params}
    request = {name: params.pop(name) for name in _REQUEST & params.keys()}
    body = {**params.pop("extra_body", {}), **params}
    if body:
        request["extra_body"] = body
    if call.tools:
        request["tools"] = [(_anthropic_tool if anthropic else _openai_tool)(tool) for tool in call.tools]
    if isinstance(fields.get("stop"), str):
        fields["stop"] = [fields["stop"]]
    return ModelRequest(
        system_first(call.messages) if anthropic else list(call.messages),
        fields,
        options,
        request,
        stream,
        _response_format(call.response_format or written, anthropic),
    )


def _parameters(call: LLMCall) -> dict[str, Any]:
    """Return the parameters of a call, synonyms replaced, without those of the connection."""
    more = call.params.get("model_kwargs")
    params = {**call.params, **(more if isinstance(more, Mapping) else {})}
    for name in {"model_kwargs", *_CONNECTION} & params.keys():
        del params[name]
    for name in _SYNONYMS.keys() & params.keys():
        params.setdefault(_SYNONYMS[name], params.pop(name))
    return params


def _translated_names(call: LLMCall, address: Address) -> frozenset[str]:
    """Return the names of the parameters that LangChain translates."""
    if call.as_written and address.protocol == "openai":
        return frozenset({"max_tokens"} if _REASONING.match(address.model) else ())
    if address.compatible and address.provider not in _KNOW_NEW_NAMES:
        return _OLD_NAMES
    return _FIELDS[address.protocol]


def _openai_tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def _anthropic_tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}


def _response_format(given: Mapping[str, Any] | None, anthropic: bool) -> Mapping[str, Any] | None:
    """Return a response format in OpenAI's form. One without `type` is a named JSON Schema of the answer.

    Anthropic has no JSON mode without a schema: there only the prompt asks for JSON.
    """
    if not given:
        return None
    if "type" not in given:
        return {"type": "json_schema", "json_schema": dict(given)}
    return None if anthropic and given["type"] != "json_schema" else given


def system_first(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Merge the system messages into one at the front, as Anthropic requires; an empty one is left out."""
    system = [message for message in messages if isinstance(message, SystemMessage)]
    if not system or (len(system) == 1 and messages[0] is system[0] and message_text(system[0])):
        return list(messages)
    text = "\n\n".join(filter(None, map(message_text, system)))
    rest = [message for message in messages if not isinstance(message, SystemMessage)]
    return [SystemMessage(content=text), *rest] if text else rest


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
            client = _offline_http_client(package) if self._offline else _http_client(package)
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
        use_responses_api=False if address.compatible else None,
        **_known(langchain.ChatOpenAI, output_version="v0"),
        **{"stream_usage": True, **wanted.fields},
    )
    return model


def _anthropic_model(address: Address, wanted: ModelRequest, client: Any) -> BaseChatModel:
    langchain = _import("langchain_anthropic", "anthropic")
    model: BaseChatModel = langchain.ChatAnthropic(
        model=address.model,
        base_url=address.base_url,
        api_key=address.key,
        cache=False,
        **_known(langchain.ChatAnthropic, output_version="v0", anthropic_proxy=None),
        **wanted.fields,
    )
    # A cached property; its own value would share connections between event loops.
    vars(model)["_async_client"] = client
    return model


def _known(model: Any, **options: Any) -> dict[str, Any]:
    """Return those of the options that a class of models has; an older one already does what they ask for."""
    return {name: value for name, value in options.items() if name in model.model_fields}


def _sent_to(address: Address) -> Callable[[Any], Awaitable[None]]:
    """Return a hook that sends requests for the path that the client appends to the endpoint itself."""

    async def send_to(request: Any) -> None:
        if request.url.path == "/chat/completions":
            request.url = type(request.url)(address.endpoint)

    return send_to


def _http_client(package: Any) -> Any:
    """Return the package's own HTTP client."""
    http = sys.modules[package.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]]
    files = tuple(os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    return package.DefaultAsyncHttpxClient(verify=_trusted_certificates(http.create_ssl_context, files))


@cache
def _trusted_certificates(create: Callable[[], ssl.SSLContext], _files: object) -> ssl.SSLContext:
    """Return the certificates that the HTTP library trusts. To read them takes as long as ten runs of an agent."""
    return create()


def _offline_http_client(package: Any) -> Any:
    """Return an HTTP client like the package's own, but without trusted certificates and proxies."""
    client = package.DefaultAsyncHttpxClient.__bases__[0]
    return client(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False, follow_redirects=True)


def _import(name: str, extra: str) -> Any:
    return import_extra(name, extra, "to ask models of this provider")
