"""The API of Ollama that generates a text from a prompt (`/api/generate`).

Source: https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.errors import ProviderError
from harness.graph.effects import LLMCall, LLMReply, http_call
from harness.graph.messages import message_text
from harness.world.failures import MalformedAnswerError, RemoteError
from harness.world.http_client import HTTPClient
from harness.world.providers.access import Address

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
