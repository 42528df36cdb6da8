"""The responder for effects with a name (tools, handlers, agents, scripts, retrieval): stubs, or the real thing."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from harness.engine.callables import call_with, contained
from harness.errors import Nearest, UnscriptedCall, WorldError
from harness.graph.effects import (
    EFFECTS,
    SERVER,
    Effect,
    HandlerCall,
    HTTPCall,
    HumanCall,
    LLMCall,
    MCPCall,
    ScriptCall,
    ToolCall,
)
from harness.graph.messages import message_text
from harness.graph.model import State
from harness.graph.world import Answer
from harness.interception.real_effects import within_effect
from harness.secrets.secrets import given_to_this_process
from harness.source.display import clip, did_you_mean
from harness.source.imports import ImportProblem, import_object
from harness.world.scripts import Scripts
from harness.world.spec import Real, WorldSpec
from harness.world.stubs import StubHolder, StubList, can_answer

_PLAIN: Final = re.compile(r"(?!(?:null|true|false)$)[A-Za-z_](?:[\w ./-]*\w)?", re.IGNORECASE)
"""Names that need no quotes in YAML 1.2."""


def shortest_entry(kind: str, name: str, tools: Sequence[str] = ()) -> str:
    """Return the shortest entry of a scenario that answers calls of this name, or of an MCP server, as YAML."""
    if kind == SERVER:
        return shortest_server(name, *tools)
    return f"{EFFECTS[kind].key}: {{{_key(name)}: {{return: {EFFECTS[kind].example}}}}}"


def unscripted(effect: Effect, nearest: Nearest | None, hint: str) -> UnscriptedCall:
    """Return the error for an effect that nothing answers: the call, the nearest stub, and a stub to add."""
    hints = ", ".join(filter(None, (hint, effect.hint)))
    return UnscriptedCall(request_text(effect), nearest, hints, _shortest_stub(effect))


def _shortest_stub(effect: Effect) -> str:
    """Return the shortest stub that would answer a call, as YAML."""
    if isinstance(effect, HTTPCall):
        return f"http: [{{url: {json.dumps(effect.name, ensure_ascii=False)}, json: {{}}}}]"
    if isinstance(effect, MCPCall):
        return shortest_server(effect.server, effect.name)
    if not isinstance(effect, LLMCall | HumanCall):
        return shortest_entry(effect.kind, effect.name)
    wanted = effect.response_format if isinstance(effect, LLMCall) else None
    answer = f"{{json: {_example(schema_of(wanted))}}}" if wanted else '"…"'
    node = effect.node or ""
    return f"{effect.kind}: {{{_key(node)}: [{answer}]}}" if node else f"{effect.kind}: [{answer}]"


def shortest_server(name: str, *tools: str) -> str:
    """Return the shortest MCP server of this name with these tools, as YAML."""
    listed = (f'{{name: {_key(tool)}, stubs: [{{return: "…"}}]}}' for tool in tools)
    return f"mcp: {{{_key(name)}: {{tools: [{', '.join(listed)}]}}}}"


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def schema_of(response_format: Any) -> Any:
    """Return the JSON Schema in a response format; {} if there is none."""
    if not isinstance(response_format, Mapping):
        return {}
    inner = response_format.get("json_schema", response_format)
    schema = inner.get("schema", inner) if isinstance(inner, Mapping) else {}
    return {"properties": {}, **schema} if isinstance(schema, Mapping) else {}


_OF_TYPE: Final = {
    "string": '"…"',
    "integer": "1",
    "number": "1",
    "boolean": "true",
    "array": "[]",
    "object": "{}",
}


_DEEPEST: Final = 5


def _example(schema: Any, depth: int = 0) -> str:
    """Return an example value of a JSON Schema as YAML.

    It is the first choice of an `enum`, a mapping with the required keys, or a value of the schema's type. The schema
    may be invalid, since a tool sent it.
    """
    if not isinstance(schema, Mapping):
        return '"…"'
    for choices in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
        if isinstance(choices, list) and choices:
            return json.dumps(choices[0], ensure_ascii=False, default=str)
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(properties, Mapping) and depth < _DEEPEST:
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        parts = [f"{_key(name)}: {_example(properties.get(name), depth + 1)}" for name in names]
        return f"{{{', '.join(parts)}}}"
    kind = schema.get("type")
    return _OF_TYPE.get(kind, '"…"') if isinstance(kind, str) else '"…"'


def without_headers(effect: Effect) -> Effect:
    """Return an HTTP call without its headers, which may hold keys; any other effect unchanged."""
    if not isinstance(effect, HTTPCall):
        return effect
    return replace(effect, args={key: value for key, value in effect.args.items() if key != "headers"})


def request_text(effect: Effect) -> str:
    """Return a description of an effect, in a few lines."""
    where = f" in node {effect.node!r}" if effect.node else ""
    if isinstance(effect, MCPCall):
        return f"MCP tool {effect.name!r} of server {effect.server!r} with {dict(effect.args)!r}"
    if isinstance(effect, LLMCall):
        lines = [f"the call of model {effect.name!r}{where}, with {_count(effect.messages)}:"]
        shown = effect.messages[-3:]
        if len(effect.messages) > len(shown):
            lines.append("    …")
        lines += [f"    {message.type}: {short(message_text(message), 160)}" for message in shown]
        if effect.tools:
            lines.append(f"    tools: {', '.join(tool.name for tool in effect.tools)}")
        return "\n".join(lines)
    args = ", ".join(f"{key}={short(repr(value), 80)}" for key, value in effect.args.items())
    return f"{effect.kind} {effect.name}({args}){where}"


def _count(messages: Sequence[Any]) -> str:
    return "1 message" if len(messages) == 1 else f"{len(messages)} messages"


def short(text: str, limit: int) -> str:
    """Return the text on one line, clipped to `limit` characters."""
    return clip(" ".join(text.split()), limit)


Layer = StubList | Real
"""One source of answers for a name: stubs, or an entry for the real thing."""

_NATIVE: Final = Real.model_construct(real="real")


class Entries(StubHolder):
    """Answers effects by their name.

    Args:
        folders: import path of `real: pkg.mod.fn`, in front of `sys.path`.
        scripts: runs real scripts.
        are_last: a call of a name with stubs is an error if none of them answers: nobody else is asked.
    """

    def __init__(self, folders: Sequence[Path], scripts: Scripts, *, are_last: bool = True) -> None:
        self._are_last = are_last
        self._folders = folders
        self._scripts = scripts
        self._layers: dict[tuple[str, str], list[Layer]] = {}
        self._imported: dict[str, Any] = {}

    def put_in_front(self, world: WorldSpec) -> None:
        """Add the entries of a turn, in front of the existing ones."""
        for kind, known in EFFECTS.items():
            entries: Mapping[str, Any] = getattr(world, known.key) if known.stubs == "name" else {}
            for name, entry in entries.items():
                is_real = isinstance(entry, Real)
                layer: Layer = entry if is_real else StubList(entry, f"{known.key}.{name}")
                self._layers.setdefault((kind, name), []).insert(0, layer)

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the answer of the first layer for the effect's name: a stub, or the real thing.

        Raises:
            UnscriptedCall: there are stubs for this name, and none of them matches.
            WorldError: the real thing cannot be imported.
        """
        if effect.stubs != "name":
            return None
        for layer in self._layers_of(effect):
            if isinstance(layer, StubList):
                if (answer := layer.answer(effect, state)) is not None:
                    return answer
            elif (real := self._real(layer, effect)) is not None:
                return await _perform(real, effect, state)
        if (
            self._are_last
            and self.has_stubs(effect)
            and (error := self.unscripted(effect, state)) is not None
        ):
            raise error
        return None

    def can_answer(self, effects: Sequence[Effect], state: State) -> Sequence[bool]:
        """Return True for each effect that a stub would answer after the effects before it. Consumes nothing."""
        return can_answer(effects, state, self._stubs_of)

    def covers(self, effect: Effect) -> bool:
        """True if the scenario has an entry for the effect's name or alias."""
        return self._entry(effect) is not None

    def has_stubs(self, effect: Effect) -> bool:
        """True if there are stubs for this name, so that it is an error if none of them answers."""
        return any(isinstance(layer, StubList) for layer in self._entry(effect) or ())

    def unscripted(self, effect: Effect, state: State) -> UnscriptedCall | None:
        """Return the error for an effect that nothing answers; None for kinds of effects without entries."""
        if effect.stubs != "name":
            return None
        found = [near for stubs in self._stubs_of(effect) if (near := stubs.nearest(effect, state))]
        nearest = min(found, key=lambda near: len(near.reasons), default=None)
        return unscripted(effect, nearest, self._hint(effect))

    def stub_lists(self) -> Iterable[StubList]:
        layers = (layer for layers in self._layers.values() for layer in layers)
        return (layer for layer in layers if isinstance(layer, StubList))

    def _layers_of(self, effect: Effect) -> Sequence[Layer]:
        found = self._entry(effect)
        if found is not None:
            return found
        # Local sub-agents, scripts and what the dialect itself provides run for real by default.
        return [_NATIVE] if effect.is_real_by_default else []

    def _stubs_of(self, effect: Effect) -> list[StubList]:
        return [layer for layer in self._layers_of(effect) if isinstance(layer, StubList)]

    def _entry(self, effect: Effect) -> Sequence[Layer] | None:
        """Return the scenario's layers for the effect's name, else for its alias."""
        found = self._layers.get((effect.kind, effect.name))
        return self._layers.get((effect.kind, effect.alias)) if found is None and effect.alias else found

    def _real(self, entry: Real, effect: Effect) -> Callable[[], Awaitable[Any]] | None:
        dotted = entry.function
        if entry.called is not None:
            return partial(_call, entry.called, effect)
        if dotted is None:
            if isinstance(effect, ScriptCall) and effect.argv:
                return partial(self._scripts.run, effect)
            return effect.real
        if dotted not in self._imported:
            try:
                self._imported[dotted] = import_object(dotted, self._folders)
            except ImportProblem as error:
                # An error in the scenario: a node must not handle it as a failure of its tool.
                raise WorldError(f"`{effect.name}` cannot be real: {error}", entry.span) from error
        return partial(_call, self._imported[dotted], effect)

    def _hint(self, effect: Effect) -> str:
        if any(isinstance(layer, Real) and layer.function is None for layer in self._entry(effect) or ()):
            known = effect.name if (effect.kind, effect.name) in self._layers else effect.alias
            text = f"`{known}: real` names no function, and the manifest has none"
            return f"{text}: write `{known}: {effect.real_hint}`"
        names = [name for kind, name in self._layers if kind == effect.kind]
        about = "" if effect.name in names else _known(effect.name, names)
        return f"add `{effect.name}` under `{effect.key}:`" + (f" ({about})" if about else "")


def _known(name: str, names: Sequence[str]) -> str:
    """Return a suggestion, if there is one, with all known names."""
    hint = did_you_mean(name, names)
    return f"{hint} known: {', '.join(names)}" if hint.startswith("did") else hint


async def _call(target: Any, effect: Effect) -> Any:
    """Call a function that the scenario names in place of the real one."""
    if isinstance(effect, HandlerCall) and effect.convention is not None:
        return await effect.convention(target)
    with given_to_this_process(effect.env if isinstance(effect, ToolCall) else {}):
        return await call_with(target, effect.args)


async def _perform(real: Callable[[], Awaitable[Any]], effect: Effect, state: State) -> Answer:
    """Return the result of the real thing. `SystemExit` and the like become failures of the effect."""
    return Answer(value=await contained(within_effect(real, effect, state)))


class StubLists(StubHolder):
    """Answers model calls, HTTP requests and questions to people."""

    def __init__(self) -> None:
        self._lists = {kind: StubList((), each.key) for kind, each in EFFECTS.items() if each.stubs == "list"}

    def put_in_front(self, world: WorldSpec) -> None:
        """Add the stubs of a turn, in front of the existing ones."""
        for kind, stubs in self._lists.items():
            stubs.put_in_front(getattr(world, EFFECTS[kind].key))
        self.names_address = self.names_address or any(stub.url for stub in world.http)

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the answer of the first stub that matches; None if there is none."""
        stubs = self._lists.get(effect.kind)
        return None if stubs is None else stubs.answer(effect, state)

    def can_answer(self, effects: Sequence[Effect], state: State) -> Sequence[bool]:
        """Return True for each effect that a stub would answer after the effects before it. Consumes nothing."""
        return can_answer(effects, state, lambda effect: filter(None, [self._lists.get(effect.kind)]))

    names_address = False
    """True if there are stubs for HTTP requests to an address."""

    def covers(self, effect: Effect) -> bool:
        """True if there is a stub for this kind, used or not."""
        return bool(self._lists.get(effect.kind))

    def unscripted(self, effect: Effect, state: State) -> UnscriptedCall | None:
        """Return the error for an effect that nothing answers; None for other kinds of effects."""
        stubs = self._lists.get(effect.kind)
        if stubs is None:
            return None
        return unscripted(effect, stubs.nearest(effect, state), f"add a stub under `{effect.kind}:`")

    def stub_lists(self) -> Iterable[StubList]:
        return self._lists.values()
