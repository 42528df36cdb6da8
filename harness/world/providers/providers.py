"""Calls models through the clients of their providers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from pydantic import ValidationError

from harness.errors import HarnessError, ProviderError
from harness.graph.effects import LLMCall, LLMReply
from harness.graph.http_call import http_call
from harness.graph.messages import message_text
from harness.graph.to_json import from_json
from harness.world.failures import MalformedAnswerError, RemoteError
from harness.world.http_client import HTTPClient
from harness.world.providers.access import Access, Address, resolve_address

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from harness.world.providers.clients import Clients, ModelRequest


_CLIENTS: Final = ("openai", "anthropic")
_TRANSPORTS: Final = ("httpx", "httpx2")


def client_error(error: Exception) -> Exception:
    """Return the error of the harness in the chain of causes, else the one that the provider's client raised.

    Clients wrap an error of the harness as a failed connection. LangChain raises subclasses of the clients' errors,
    and before some of them a warning, which may be an error, too; manifests use the clients' names.
    """
    for item in _chain(error):
        if isinstance(item, HarnessError):
            return item
    for item in _chain(error):
        if _package(type(item)) in _CLIENTS and isinstance(error, (type(item), Warning)):
            return item
    return error


def is_down(error: BaseException) -> bool:
    """True if the provider could not be reached. A time-out while waiting for the answer does not count."""
    return any(_unreachable(item) for item in _chain(error))


def _unreachable(error: BaseException) -> bool:
    names = {base.__name__ for base in type(error).__mro__ if _package(base) in (*_CLIENTS, *_TRANSPORTS)}
    if names & {"ConnectError", "ConnectTimeout"}:
        return True
    return "APIConnectionError" in names and "APITimeoutError" not in names


def _chain(error: BaseException) -> Iterator[Exception]:
    seen: set[int] = set()
    item: BaseException | None = error
    while isinstance(item, Exception) and id(item) not in seen:
        seen.add(id(item))
        yield item
        item = item.__cause__ or item.__context__


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


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

        from harness.world.providers.clients import model_request

        address = resolve_address(call, self._access)
        for variable in address.variables:
            self.address_variables[variable] = self._access.environment[variable]
        if address.protocol == "ollama":
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

    # No callbacks: neither those of the graph nor a tracer configured in the environment.
    config = RunnableConfig(callbacks=[], tags=[], metadata={})
    with tracing_context(enabled=False):
        if wanted.stream:
            return streamed_reply([part async for part in model.astream(wanted.messages, config, **request)])
        return reply(await model.ainvoke(wanted.messages, config, **request))


def reply(message: AIMessage) -> LLMReply:
    """Convert a message that was not streamed.

    Raises:
        MalformedAnswerError: the model calls a tool with arguments that are not a JSON object.
    """
    for invalid in message.invalid_tool_calls:
        raise _malformed(invalid["name"], invalid["args"])
    calls = [{"id": call["id"], "name": call["name"], "args": call["args"]} for call in message.tool_calls]
    return LLMReply(message_text(message), calls, _usage(message), _finish_reason(message))


def streamed_reply(parts: Sequence[AIMessageChunk]) -> LLMReply:
    """Convert a streamed message, given its parts. The reply's chunks are the texts of the parts.

    Raises:
        MalformedAnswerError: the model calls a tool with arguments that are not a JSON object.
    """
    whole = parts[0] + list(parts[1:])
    reasons = [reason for part in parts if (reason := _finish_reason(part))]
    # Not `whole.tool_calls`: LangChain completes arguments that were cut off.
    calls = [
        {"id": call["id"], "name": call["name"], "args": _arguments(call["name"], call["args"])}
        for call in whole.tool_call_chunks
    ]
    return LLMReply(
        message_text(whole),
        calls,
        _usage(whole),
        reasons[-1] if reasons else None,
        tuple(text for part in parts if (text := message_text(part))),
    )


def malformed_reply(invalid: ValidationError) -> MalformedAnswerError:
    """Return the error for a reply that LangChain cannot convert to a message."""
    fault = invalid.errors()[0]
    place = ".".join(map(str, fault["loc"]))
    return MalformedAnswerError(
        f"the model's reply cannot be read: {place}: {fault['msg']}, found {str(fault['input'])[:200]!r}"
    )


def _arguments(name: str | None, text: str | None) -> dict[str, Any]:
    found = from_json(text or "{}")
    if not isinstance(found, dict):
        raise _malformed(name, text)
    return found


def _malformed(name: str | None, arguments: str | None) -> MalformedAnswerError:
    return MalformedAnswerError(
        f"the model calls tool {name!r} with arguments that are not a JSON object: {(arguments or '')[:200]!r}"
    )


def _usage(message: AIMessage) -> dict[str, int]:
    usage = message.usage_metadata
    if not usage:
        return {}
    return {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]}


def _finish_reason(message: AIMessage) -> str | None:
    metadata = message.response_metadata
    return metadata.get("finish_reason") or metadata.get("stop_reason")


TIMEOUT_S: Final = 120.0
_OPTIONS: Final = {"max_tokens": "num_predict", "max_completion_tokens": "num_predict"}
"""The names of parameters that differ from OpenAI's."""


class OllamaError(RemoteError):
    """The server answered with an error."""


async def generate(call: LLMCall, address: Address, http: HTTPClient) -> LLMReply:
    """Send the messages of a call as a prompt and return the reply.

    Raises:
        ProviderError: the call has tools, which this API does not take.
        OllamaError: the server answered with an error.
        MalformedAnswerError: the answer has no text.
    """
    if call.tools:
        hint = "use its /v1/chat/completions"
        raise ProviderError(
            f"model {call.name!r} is offered tools, which /api/generate does not take: {hint}"
        )
    system = [message_text(each) for each in call.messages if isinstance(each, SystemMessage)]
    options = {_OPTIONS.get(name, name): value for name, value in call.params.items()}
    body: dict[str, Any] = {
        "model": address.model,
        "prompt": _prompt([each for each in call.messages if not isinstance(each, SystemMessage)]),
        "stream": False,
    }
    body |= {"system": "\n\n".join(system)} if system else {}
    body |= {"options": options} if options else {}
    body |= {"format": _format(call.response_format)} if call.response_format else {}
    request = http_call("POST", address.endpoint, json=body, headers=dict(address.headers))
    reply = await http.send(request, address.timeout_s or TIMEOUT_S)
    answer = reply.json if isinstance(reply.json, Mapping) else {}
    if reply.status >= 400:
        raise OllamaError(
            f"{address.endpoint} answered with status {reply.status}: {answer.get('error') or reply.text[:200]}"
        )
    if not isinstance(answer.get("response"), str):
        raise MalformedAnswerError(
            f"the answer of {address.endpoint} has no text 'response': {reply.text[:200]!r}"
        )
    tokens = {"input_tokens": answer.get("prompt_eval_count"), "output_tokens": answer.get("eval_count")}
    usage = {name: count for name, count in tokens.items() if isinstance(count, int)}
    return LLMReply(
        answer["response"], usage=usage if len(usage) == 2 else {}, finish_reason=answer.get("done_reason")
    )


def _prompt(messages: Sequence[BaseMessage]) -> str:
    """Return a prompt; of several messages, each begins with who says it."""
    if len(messages) == 1 and isinstance(messages[0], HumanMessage):
        return message_text(messages[0])
    return "\n\n".join(f"{message.type}: {message_text(message)}" for message in messages)


def _format(wanted: Mapping[str, Any]) -> Any:
    """Return a response format as this API takes it: a JSON Schema, or `json`."""
    named = wanted.get("json_schema")
    if wanted.get("type") == "json_object":
        return "json"
    return named.get("schema", {}) if isinstance(named, Mapping) else wanted
