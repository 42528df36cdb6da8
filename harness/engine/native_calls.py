"""Calls of LangChain tools and chat models in an app: effects, which stubs and faults answer, or else the app itself.

Tools: `BaseTool.run` and `arun` are wrapped once in a process. In a run they give the tool, the first time it is
called, an implementation that performs the effect. LangChain calls it after it has validated the arguments, and makes
a `ToolMessage` of what it returns, so a stub's answer takes the way of a real one.

Models: one that makes a request in a known wire format is answered there (`harness.world.tool_requests`). One that
makes another request, or none, is answered here, in place of its own implementation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from operator import attrgetter
from types import ModuleType
from typing import Any, Final

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from harness.engine.native_visits import active_visits, current_node
from harness.graph.effects import LLMCall, LLMReply, ToolCall, ToolSpec
from harness.graph.to_json import to_json
from harness.interception.real_effects import ModelCall, current_model_call
from harness.time.rebinding import when_imported


@cache
def wrap_tools() -> None:
    """Wrap the functions through which LangChain calls tools, once in a process."""
    run, arun = BaseTool.run, BaseTool.arun

    @wraps(run)
    def replaced(self: BaseTool, *args: Any, **options: Any) -> Any:
        if active_visits() is not None:
            _prepare_tool(self)
        return run(self, *args, **options)

    @wraps(arun)
    async def replaced_async(self: BaseTool, *args: Any, **options: Any) -> Any:
        if active_visits() is not None:
            _prepare_tool(self)
        return await arun(self, *args, **options)

    BaseTool.run, BaseTool.arun = replaced, replaced_async  # type: ignore[method-assign]
    _record_refusals()


def _record_refusals() -> None:
    """Record the calls that are not made: with arguments that are not valid, or of a tool that does not exist."""
    parse = BaseTool._parse_input

    @wraps(parse)
    def parsed(self: BaseTool, tool_input: Any, *args: Any, **options: Any) -> Any:
        try:
            return parse(self, tool_input, *args, **options)
        except Exception as error:
            given = tool_input if isinstance(tool_input, Mapping) else {}
            _refuse(_tool_call(self, (), given, None), error)
            raise

    BaseTool._parse_input = parsed  # type: ignore[method-assign]
    for module in ("langgraph.prebuilt.tool_node", "langchain.tools.tool_node"):
        when_imported(module, _record_unknown_tools)


def _record_unknown_tools(module: ModuleType) -> None:
    """Record the calls of tools that a node for tools does not have. LangChain 1.0 has such a node of its own."""
    for node in (getattr(module, name, None) for name in ("ToolNode", "_ToolNode")):
        if node is not None and node.__module__ == module.__name__ and hasattr(node, "_validate_tool_call"):
            node._validate_tool_call = _validated(node._validate_tool_call)


def _validated(validate: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(validate)
    def validated(self: Any, call: Any) -> Any:
        message = validate(self, call)
        if message is not None:
            effect = ToolCall(node=current_node(), name=call["name"], args=to_json(call["args"]), native=True)
            _refuse(effect, ValueError(message.content))
        return message

    return validated


def _refuse(effect: ToolCall, why: Exception) -> None:
    if (visits := active_visits()) is not None:
        visits.run.refuse(effect, why, effect.node)


def _prepare_tool(tool: BaseTool) -> None:
    """Give a tool the implementations that perform effects. A copy of a tool has those of the original."""
    own = tool.__dict__
    if getattr(own.get("_run"), "of_tool", None) is tool:
        return
    kind = type(tool)
    own["_run"] = _blocking(tool, kind._run.__get__(tool))
    # LangChain's own `_arun` runs `_run` in a thread.
    if kind._arun is not BaseTool._arun:
        own["_arun"] = _awaiting(tool, kind._arun.__get__(tool))


def _blocking(tool: BaseTool, really: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(really)
    def run(*args: Any, **named: Any) -> Any:
        visits = active_visits()
        if visits is None:
            return really(*args, **named)

        async def perform() -> Any:
            return really(*args, **named)

        return visits.perform_blocking(_tool_call(tool, args, named, perform))

    run.of_tool = tool  # type: ignore[attr-defined]
    return run


def _awaiting(tool: BaseTool, really: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(really)
    async def arun(*args: Any, **named: Any) -> Any:
        visits = active_visits()
        if visits is None:
            return await really(*args, **named)

        async def perform() -> Any:
            return await really(*args, **named)

        return await visits.perform(_tool_call(tool, args, named, perform))

    return arun


def _tool_call(tool: BaseTool, args: Any, named: Mapping[str, Any], real: Any) -> ToolCall:
    visible = _parameters(tool)
    given = dict(zip(visible, args, strict=False)) | {key: named[key] for key in visible if key in named}
    return ToolCall(node=current_node(), name=tool.name, args=to_json(given), native=True, real=real)


def _parameters(tool: BaseTool) -> list[str]:
    """Return the names of the arguments that a model sees."""
    schema: Any = tool.tool_call_schema
    return list(schema.get("properties", ()) if isinstance(schema, dict) else schema.model_fields)


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
            _prepare_model(self)
        return original(self, *args, **named)

    return entry


def _prepare_model(model: BaseChatModel) -> None:
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
        with ModelCall() as call:
            result = really(messages, *args, **_varied(model, named))
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
        with ModelCall() as call:
            result = await really(messages, *args, **_varied(model, named))
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
        with ModelCall() as call:
            chunks = list(really(messages, *args, **_varied(model, named)))
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
        with ModelCall() as call:
            async for chunk in really(messages, *args, **_varied(model, named)):
                chunks.append(chunk)
        if not call.on_wire:
            chunks = [_chunk(await _reply_async(model, messages, named))]
        for chunk in chunks:
            yield chunk

    return astream


def _visits() -> Any:
    return active_visits()


def _varied(model: BaseChatModel, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call with the model and the parameters of the variant, which go into its request."""
    simulation = _visits().run.simulation
    if not simulation.varies_models:
        return dict(named)
    call = LLMCall(name=_name(model, named))
    changed = simulation.with_variant(call)
    renamed = {"model": changed.name} if changed.name != call.name else {}
    return {**named, **changed.params, **renamed}


def _name(model: BaseChatModel, named: Mapping[str, Any]) -> str:
    given = named.get("model") or getattr(model, "model_name", None) or getattr(model, "model", None)
    name = given or model._get_ls_params().get("ls_model_name")
    return str(name or type(model).__name__).removeprefix("models/")


def _llm_call(model: BaseChatModel, messages: Sequence[Any], named: Mapping[str, Any]) -> LLMCall:
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
    effect = _llm_call(model, messages, named)
    reply: LLMReply = _visits().perform_blocking(effect)
    return reply.as_forced_call(effect)


async def _reply_async(model: BaseChatModel, messages: Any, named: Mapping[str, Any]) -> LLMReply:
    effect = _llm_call(model, messages, named)
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
