"""Calls of LangChain chat models in an app that no stub can answer on the wire.

A model that makes a request in a known wire format is answered there (`harness.world.tool_requests`). One that makes
another request, or none, is answered here, in place of its own implementation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from operator import attrgetter
from typing import Any, Final

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

from harness.engine.native_visits import active_visits, current_node
from harness.graph.effects import LLMCall, LLMReply, ToolSpec
from harness.interception.real_effects import NotOnWire, current_model_call, model_call

_ENTRIES: Final = ("_generate_with_cache", "stream")
_ASYNC_ENTRIES: Final = ("_agenerate_with_cache", "astream")


@cache
def wrap_models() -> None:
    """Wrap the functions through which LangChain calls chat models, once in a process."""
    for name in (*_ENTRIES, *_ASYNC_ENTRIES):
        setattr(BaseChatModel, name, _prepared(getattr(BaseChatModel, name)))


def _prepared(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def entry(self: BaseChatModel, *args: Any, **named: Any) -> Any:
        if active_visits() is not None:
            _prepare(self)
        return original(self, *args, **named)

    return entry


def _prepare(model: BaseChatModel) -> None:
    """Give a model the implementations that ask for stubs. A copy of a model has those of the original."""
    own = model.__dict__
    if getattr(own.get("_generate"), "of_model", None) is model:
        return
    kind = type(model)
    own["_generate"] = _generate(model, kind._generate.__get__(model))
    for name, make in (("_agenerate", _agenerate), ("_stream", _stream), ("_astream", _astream)):
        if getattr(kind, name) is not getattr(BaseChatModel, name):
            own[name] = make(model, getattr(kind, name).__get__(model))


def _outside() -> bool:
    """True if the model's own implementation runs alone: outside of runs, and inside of its own call."""
    return active_visits() is None or current_model_call() is not None


def _generate(model: BaseChatModel, really: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(really)
    def generate(messages: Any, *args: Any, **named: Any) -> Any:
        if _outside():
            return really(messages, *args, **named)
        with model_call() as call:
            try:
                result = really(messages, *args, **_varied(model, named))
            except NotOnWire:
                call.requested = call.answered = False
            if call.on_wire:
                return result
        return _result(_reply(model, messages, named))

    generate.of_model = model  # type: ignore[attr-defined]
    return generate


def _agenerate(model: BaseChatModel, really: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(really)
    async def agenerate(messages: Any, *args: Any, **named: Any) -> Any:
        if _outside():
            return await really(messages, *args, **named)
        with model_call() as call:
            try:
                result = await really(messages, *args, **_varied(model, named))
            except NotOnWire:
                call.requested = call.answered = False
            if call.on_wire:
                return result
        return _result(await _reply_async(model, messages, named))

    return agenerate


def _stream(model: BaseChatModel, really: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(really)
    def stream(messages: Any, *args: Any, **named: Any) -> Iterator[ChatGenerationChunk]:
        if _outside():
            yield from really(messages, *args, **named)
            return
        chunks: list[ChatGenerationChunk] = []
        with model_call() as call:
            try:
                chunks = list(really(messages, *args, **_varied(model, named)))
            except NotOnWire:
                call.requested = call.answered = False
        if not call.on_wire:
            chunks = [_chunk(_reply(model, messages, named))]
        yield from chunks

    return stream


def _astream(model: BaseChatModel, really: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(really)
    async def astream(messages: Any, *args: Any, **named: Any) -> AsyncIterator[ChatGenerationChunk]:
        if _outside():
            async for chunk in really(messages, *args, **named):
                yield chunk
            return
        chunks: list[ChatGenerationChunk] = []
        with model_call() as call:
            try:
                async for chunk in really(messages, *args, **_varied(model, named)):
                    chunks.append(chunk)
            except NotOnWire:
                call.requested = call.answered = False
        if not call.on_wire:
            chunks = [_chunk(await _reply_async(model, messages, named))]
        for chunk in chunks:
            yield chunk

    return astream


def _visits() -> Any:
    return active_visits()


def _varied(model: BaseChatModel, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call with the model and the parameters of the variant, which go into its request."""
    call = LLMCall(name=_name(model, named))
    changed = _visits().run.simulation.with_variant(call)
    renamed = {"model": changed.name} if changed.name != call.name else {}
    return {**named, **changed.params, **renamed}


def _name(model: BaseChatModel, named: Mapping[str, Any]) -> str:
    given = named.get("model") or getattr(model, "model_name", None) or getattr(model, "model", None)
    name = given or model._get_ls_params().get("ls_model_name")
    return str(name or type(model).__name__).removeprefix("models/")


def _effect(model: BaseChatModel, messages: Sequence[Any], named: Mapping[str, Any]) -> LLMCall:
    params = model._get_ls_params()
    tools = [convert_to_openai_tool(tool)["function"] for tool in named.get("tools") or ()]
    specs = [
        ToolSpec(each["name"], each.get("description", ""), each.get("parameters", {})) for each in tools
    ]
    return LLMCall(
        node=current_node(),
        name=_name(model, named),
        provider=str(params.get("ls_provider") or ""),
        messages=tuple(messages),
        tools=sorted(specs, key=attrgetter("name")),
        response_format=named.get("response_format"),
        params={"tool_choice": named["tool_choice"]} if named.get("tool_choice") else {},
    )


def _reply(model: BaseChatModel, messages: Any, named: Mapping[str, Any]) -> LLMReply:
    """Return a stub's answer, in code that blocks."""
    effect = _effect(model, messages, named)
    reply: LLMReply = _visits().perform_blocking(effect)
    return reply.as_forced_call(effect)


async def _reply_async(model: BaseChatModel, messages: Any, named: Mapping[str, Any]) -> LLMReply:
    effect = _effect(model, messages, named)
    reply: LLMReply = await _visits().perform(effect)
    return reply.as_forced_call(effect)


def _message_fields(reply: LLMReply) -> dict[str, Any]:
    calls = [
        {"name": each["name"], "args": dict(each.get("args") or {}), "id": each.get("id") or f"call_{number}"}
        for number, each in enumerate(reply.tool_calls, 1)
    ]
    fields: dict[str, Any] = {"content": reply.text}
    if calls:
        fields["tool_calls"] = calls
    if reply.usage:
        sent, received = (int(reply.usage.get(key, 0)) for key in ("input_tokens", "output_tokens"))
        fields["usage_metadata"] = {
            "input_tokens": sent,
            "output_tokens": received,
            "total_tokens": sent + received,
        }
    return fields


def _result(reply: LLMReply) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=AIMessage(**_message_fields(reply)))])


def _chunk(reply: LLMReply) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(**_message_fields(reply)))
