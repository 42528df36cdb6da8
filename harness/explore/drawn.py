"""The answers that the world could give: the last responder of a world, which draws them.

A drawn answer is a stub, as a scenario would have it. So a run with drawn answers and its scenario file are answered
in the same way.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from harness.errors import Span, UnscriptedCall
from harness.explore.draw import Draw
from harness.explore.values import NotDrawable, arguments, broken, wrong_arguments
from harness.graph.effects import (
    Effect,
    HandlerCall,
    HTTPCall,
    HumanCall,
    LLMCall,
    MCPCall,
    MCPEndpoint,
    ScriptCall,
    ToolSpec,
)
from harness.graph.model import Declared, State
from harness.graph.world import Answer
from harness.interception.real_effects import current_model_call
from harness.matchers.regex import glob_matches
from harness.world.entries import schema_of
from harness.world.mcp.fake import fake_session
from harness.world.mcp.servers import result_of
from harness.world.mcp.tools import MCPResult, MCPSession, MCPTool
from harness.world.responder import LastResponder
from harness.world.spec import ScriptedAnswer, WorldSpec
from harness.world.stub_models import AnyStub, HTTPStub, HumanStub, LLMStub, MCPStub, ReturnStub
from harness.world.stubs import StubList

ERRORS: Final = ("rate_limit", "timeout", "connection", "server_error", "content_filter")
MALFORMED: Final = "malformed"
FAULTS: Final[Mapping[str, Sequence[str]]] = {
    "llm": (*ERRORS, MALFORMED),
    "http": ("connection", "timeout", MALFORMED),
    **dict.fromkeys(("tool", "mcp", "agent", "handler"), ("timeout", "connection", "server_error")),
}
"""The faults of each kind of call."""
KINDS_OF_FAULTS: Final = (*ERRORS, MALFORMED)

_STUBS: Final[Mapping[str, type[AnyStub]]] = {
    "llm": LLMStub,
    "human": HumanStub,
    "http": HTTPStub,
    "mcp": MCPStub,
}
_FAULT_OF: Final = 12
"""One of so many answers is a fault."""
_MOST_TOOL_ROUNDS: Final = 4
"""Replies with tool calls that a node gets: after them, the model has what it wanted."""
_MOST_HUMAN_ANSWERS: Final = 5
"""Answers of people in a run: they give up."""
_EDITABLE: Final = ("string", "integer", "number", "boolean")
"""The types of fields that a person edits at a breakpoint: what code holds as objects is no JSON."""
_DECISIONS: Final = ("approve", "reject", "edit", "respond")
_LATE_S: Final = 7_200
"""The virtual seconds after which a person answers late."""
_STATUSES: Final = (200, 404, 429, 500)
_OF_CONNECTORS: Final = "connector_response"
_OF_MODELS: Final = "llm_response"
"""The names that functions of a mesh have for the answers of another system, and of a model. In sherma, the latter is
a message, which has a content."""


@dataclass
class Drawn(LastResponder):
    """Draws the answers to all effects that nothing else answers.

    Attributes:
        faults: the faults that were drawn, as (kind of call, node, fault).
        problem: why something could not be drawn.
        is_silent: a person does not answer.
        unreal: what was answered, and did not run for real: (kind of call, name).
        answers: the answers, as stubs.
    """

    draw: Draw
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    problem: str = ""
    is_silent: bool = False
    unreal: set[tuple[str, str]] = field(default_factory=set)
    answers: list[Mapping[str, Any]] = field(default_factory=list)
    _ahead: defaultdict[tuple[str, str, str], deque[Mapping[str, Any] | None]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    _kept: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    _answered: int = 0
    _resumed: int = 0
    _tool_rounds: Counter[str] = field(default_factory=Counter)
    _tools: dict[str, ToolSpec] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._is_stubborn = self.draw.rarely(6)

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return a drawn answer; None if a person does not answer, and for what cannot be drawn."""
        model = current_model_call()
        if isinstance(effect, HTTPCall) and model is not None and not model.requested:
            return None  # of a chat model that speaks no known wire format, which is answered as a whole
        ahead = self._ahead[_key(effect)]
        written = ahead.popleft() if ahead else self._draw(effect)
        if written is None:
            return None
        self.answers.append(written)
        stub = _STUBS.get(effect.kind, ReturnStub).model_validate(written)
        if isinstance(effect, MCPCall):
            return ScriptedAnswer(result_of(stub), source=stub, title="drawn")
        return StubList([stub], "drawn").answer(effect, state)

    def can_answer(self, effects: Sequence[Effect], state: State) -> Sequence[bool]:
        """Return True for each effect that is answered. That a person answers is drawn now, and stays so."""
        return [
            not isinstance(effect, HumanCall) or self._is_answered(effect, effects[:at])
            for at, effect in enumerate(effects)
        ]

    def _is_answered(self, effect: Effect, before: Sequence[Effect]) -> bool:
        key = _key(effect)
        at, ahead = sum(_key(each) == key for each in before), self._ahead[key]
        while len(ahead) <= at:
            ahead.append(self._draw(effect))
        return ahead[at] is not None

    def covers(self, effect: Effect) -> bool:
        """True for what is answered here whatever the run does: not people, and nothing that runs for real."""
        is_built_in = isinstance(effect, HandlerCall) and effect.real is not None
        return not isinstance(effect, HumanCall | MCPCall) and not is_built_in

    def session(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
        """Return a session with a server that has the tools which the manifest declares."""
        listed = self.draw.declared.servers.get(endpoint.id, ())
        if not listed:
            self.problem = f"the tools of the MCP server '{endpoint.id}' are not declared"
        tools = [MCPTool(tool.name, tool.description, dict(tool.schema)) for tool in listed]

        async def call(name: str, args: dict[str, Any]) -> MCPResult:
            answer = await self.answer(MCPCall(name=name, args=args, endpoint=endpoint), {})
            assert answer is not None
            result: MCPResult = answer.value
            return result

        return fake_session(endpoint.id, tools, call)

    def put_in_front(self, world: WorldSpec) -> None:
        """Do nothing: stubs are in front of it."""

    def resume(self) -> Mapping[str, Any] | None:
        """Draw what goes on at a breakpoint: nothing else, mostly; an edit of a field; or nobody does."""
        kind = self.draw.choose(6) if self._resumed < _MOST_HUMAN_ANSWERS else 5
        self._resumed += 1
        if kind == 5:
            return None
        declared = (self.draw.declared.state or {}).get("properties", {})
        fields = {name: each for name, each in declared.items() if each.get("type") in _EDITABLE}
        if kind < 4 or not fields:
            return {}
        name = self.draw.one_of(sorted(fields))
        return {name: self.draw.value(fields[name])}

    def unscripted(self, effect: Effect, state: State) -> UnscriptedCall | None:
        """Return None: others have the error."""
        return None

    def unused(self) -> list[str]:
        """Return nothing: answers are drawn when they are needed."""
        return []

    def unmet(self) -> list[tuple[str, Span | None]]:
        """Return nothing."""
        return []

    # ------------------------------------------------------------ drawing

    def _draw(self, effect: Effect) -> Mapping[str, Any] | None:
        """Draw an answer, as a stub has it. In some runs, the world answers a node as it did before."""
        own = effect.kind, effect.node or effect.name
        if own in self._kept:
            return self._kept[own]
        make = _ANSWERS.get(effect.kind)
        if make is None:
            return None
        self.unreal.add((effect.kind, effect.name))
        try:
            fault = self._fault(effect)
            written = fault if fault is not None else make(self, effect)
        except NotDrawable as error:  # the agent may take it for an error of its own
            self.problem = f"{effect.kind} '{effect.name or effect.node}': {error}"
            raise
        if fault is not None and "tool_calls" not in fault and self.draw.choose(2):
            self._kept[own] = fault  # for the rest of the run, so that retries do not help
        is_said = fault is None and written is not None and "tool_calls" not in written
        if self._is_stubborn and is_said and not isinstance(effect, HumanCall):
            self._kept[own] = written or {}  # a model may never be content; a person gives up
        return written

    def _fault(self, effect: Effect) -> Mapping[str, Any] | None:
        """Draw a fault, at most one for a node, or None."""
        kinds = [kind for kind in FAULTS.get(effect.kind, ()) if kind in self.draw.faults]
        if not kinds or not self.draw.rarely(_FAULT_OF):
            return None
        is_safe = isinstance(effect, HandlerCall) and effect.node not in self.draw.declared.fallible
        if is_safe or effect.node in [node for _, node, _ in self.faults]:
            return None
        kind = self.draw.one_of(kinds)
        written = _malformed(self.draw, effect) if kind == MALFORMED else {"error": kind}
        if written is not None:
            self.faults.append((effect.kind, effect.node, kind))
        return written

    def _llm(self, call: LLMCall) -> Mapping[str, Any]:
        draw, schema = self.draw, _demanded(call)
        if schema is not None:
            return {"json": draw.value(schema)}
        self._tools |= {tool.name: tool for tool in call.tools}
        number = draw.choose(4) if call.tools and self._tool_rounds[call.node] < _MOST_TOOL_ROUNDS else 0
        if not number:
            if (declared := draw.declared.results.get(("llm", call.node))) is not None:
                return {"json": draw.value(declared)}
            is_message = "content" in draw.mined.reads.get(_OF_MODELS, {})
            read = draw.shape(call.node) if is_message else draw.shape(call.node, _OF_MODELS)
            if read.get("properties") and draw.choose(2):
                return {"json": draw.value(read)}
            return {"reply": draw.text()}
        self._tool_rounds[call.node] += 1
        tools = [draw.one_of(call.tools) for _ in range(number)]
        return {
            "tool_calls": [
                {"name": tool.name, "args": arguments(tool, draw.choose, draw.literals)} for tool in tools
            ]
        }

    def _result(self, effect: Effect) -> Mapping[str, Any]:
        """Draw the result of a tool and the like: as declared, else what later expressions read, else a text."""
        schema = self.draw.declared.results.get((effect.kind, effect.name))
        if schema is None:
            return {"return": self._undeclared(effect)}
        is_free = isinstance(effect, HandlerCall)
        return {"return": self.draw.value(self._read_later(schema) if is_free else schema)}

    def _read_later(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema of what a handler may write, which has all that code reads and no code writes."""
        mined, properties = self.draw.mined, dict(schema.get("properties", {}))
        read = [key for key in properties if key in mined.read_by_code and key not in mined.written]
        for key in read:
            if mined.reads.get(key) and properties[key].get("type") in ("object", "array"):
                properties[key] = {"allOf": [properties[key], self.draw.shape(key)]}
        return {**schema, "properties": properties, "required": [*schema.get("required", ()), *read]}

    def _undeclared(self, effect: Effect) -> Any:
        read = self.draw.shape(effect.name, _OF_CONNECTORS)
        if read.get("properties") or isinstance(effect, HandlerCall | ScriptCall):
            return self.draw.value(read or {"type": "object"})
        return self.draw.text()

    def _http(self, effect: HTTPCall) -> Mapping[str, Any]:
        status = self.draw.one_of(_STATUSES) if self.draw.rarely(3) else 200
        if status != 200:
            self.faults.append((effect.kind, effect.node, f"status {status}"))
            return {"status": status, "json": {"error": "drawn"}}
        schema = _declared_response(effect, self.draw.declared)
        return {"json": self.draw.value(schema) if schema is not None else self._undeclared(effect)}

    def _human(self, effect: HumanCall) -> Mapping[str, Any] | None:
        draw = self.draw
        self._answered += 1
        kind = draw.choose(8) if self._answered <= _MOST_HUMAN_ANSWERS else 7
        if kind == 7:
            self.is_silent = True
            return None
        late = {"latency": _LATE_S} if draw.rarely(8) else {}
        return {"reply": self._said(effect, kind), **late}

    def _said(self, effect: HumanCall, kind: int) -> Any:
        """Draw what a person says: a decision, what the manifest declares or its code reads, an option, a text."""
        draw = self.draw
        if reviewed := _reviewed(effect.args.get("value")):
            return {"decisions": [self._decision(*each) for each in reviewed]}
        if (schema := draw.declared.results.get(("human", effect.node))) is not None:
            return draw.value(schema)
        read = draw.shape("interrupt")
        if read.get("properties"):
            return draw.value(read)
        offered = _options(effect.args)
        if offered and kind < 5:
            return draw.one_of(offered)
        return "" if kind == 6 else draw.text()

    def _decision(self, action: Mapping[str, Any], allowed: Sequence[str]) -> Mapping[str, Any]:
        """Draw what a person decides of an action: an edit changes its arguments as their schema allows."""
        kind = self.draw.one_of(allowed)
        if kind == "respond":
            return {"type": kind, "message": self.draw.text()}
        if kind != "edit":
            return {"type": kind}
        tool = self._tools.get(action["name"])
        args = action.get("args", {})
        edited = arguments(tool, self.draw.choose, self.draw.literals) if tool is not None else args
        return {"type": kind, "edited_action": {"name": action["name"], "args": edited}}

    def _retrieval(self, effect: Effect) -> Mapping[str, Any]:
        found = range(self.draw.choose(3))
        return {"return": [{"text": self.draw.text(), "source": f"{at}.md"} for at in found]}


def _key(effect: Effect) -> tuple[str, str, str]:
    return effect.kind, effect.node, effect.name


def _demanded(call: LLMCall) -> Mapping[str, Any] | None:
    """Return the schema that the call demands of its reply; None if it is free."""
    is_schema = call.response_format is not None and call.response_format.get("type") != "json_object"
    if is_schema and (schema := schema_of(call.response_format)):
        return dict(schema)
    if forced := call.forced_tool:
        return next((tool.schema for tool in call.tools if tool.name == forced), None)
    return None


def _declared_response(call: HTTPCall, declared: Declared) -> Mapping[str, Any] | None:
    """Return the schema of a response: by the node, else by the URL, of which `*` is any part."""
    for (kind, name), schema in declared.results.items():
        if kind == "http" and (name == call.node or glob_matches(name, call.name)):
            return schema
    return None


def _options(args: Mapping[str, Any]) -> Sequence[Any]:
    """Return the answers that a question offers."""
    asked = args.get("value")
    for known in (args, asked if isinstance(asked, Mapping) else {}):
        found = known.get("options") or known.get("choices")
        if isinstance(found, Sequence) and not isinstance(found, str):
            return found
    return ()


def _reviewed(value: Any) -> list[tuple[Mapping[str, Any], Sequence[str]]]:
    """Return the actions in a question of LangChain's human-in-the-loop middleware, each with what is allowed."""
    try:
        allowed = {
            each["action_name"]: [kind for kind in _DECISIONS if kind in each["allowed_decisions"]]
            for each in value["review_configs"]
        }
        actions = value["action_requests"]
        return [(action, allowed.get(action["name"]) or _DECISIONS[:1]) for action in actions]
    except (KeyError, TypeError, AttributeError):  # a question of another form
        return []


def _malformed(draw: Draw, call: Effect) -> Mapping[str, Any] | None:
    if not isinstance(call, LLMCall):
        return {"text": "<html>drawn</html>"}
    schema = _demanded(call) or draw.declared.results.get(("llm", call.node))
    if schema is not None:
        return {"reply": broken(schema, draw.choose)}
    if not call.tools:
        return None
    if draw.choose(2):
        return {"tool_calls": [{"name": "no_such_tool", "args": {}}]}
    tool = draw.one_of(call.tools)
    return {"tool_calls": [{"name": tool.name, "args": wrong_arguments(tool, draw.choose)}]}


_ANSWERS: Final[Mapping[str, Callable[[Drawn, Any], Mapping[str, Any] | None]]] = {
    "llm": Drawn._llm,
    "http": Drawn._http,
    "human": Drawn._human,
    "retrieval": Drawn._retrieval,
    **dict.fromkeys(("tool", "mcp", "handler", "script", "agent"), Drawn._result),
}
