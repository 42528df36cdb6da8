"""The world of a scenario, made from a trace: a stub for each call, in order.

A stub is no longer than it must be: what is the same for all calls of a name is written once, arguments appear where
they tell answers apart, and a latency or usage where there was one. What ran inside of a call that a stub answers is
left out, as it will not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from harness.authoring.writer import Gap
from harness.graph.effects import EFFECTS
from harness.graph.to_json import compact_json, from_json
from harness.graph.trace import Event
from harness.world.failures import KINDS
from harness.world.stub_models import HumanStub

_OUTER: Final = ("tool", "handler", "script", "agent", "mcp")
"""Kinds of calls inside of which others are made."""


@dataclass(frozen=True)
class Exchange:
    """A call and its answer, which are events of a trace. `inside` is the number of the call around it, or None."""

    call: Event
    answer: Event
    inside: int | None

    @property
    def kind(self) -> str:
        """The kind of the call."""
        return str(self.call["kind"])

    @property
    def number(self) -> int:
        """The number of the call in its trace."""
        return int(self.call["call"])

    @property
    def args(self) -> Mapping[str, Any]:
        """The arguments; those of a model call are empty."""
        return self.call["request"].get("args") or {}

    @property
    def entry(self) -> tuple[str, ...]:
        """The keys of the world under which its stubs are."""
        return entry_of(self.call)


def entry_of(call: Event) -> tuple[str, ...]:
    """Return the keys of the world under which the stubs of a call are: its kind, and a node, a name, a server."""
    effect = EFFECTS[call["kind"]]
    if effect.stubs == "server":
        return effect.key, str(call["request"].get("server", "")), str(call["name"])
    if effect.stubs == "name":
        return effect.key, str(call["name"])
    by_node = effect.kind in ("llm", "human") and call["node"]
    return (effect.key, str(call["node"])) if by_node else (effect.key,)


def exchanges(events: Iterable[Event]) -> list[Exchange]:
    """Return the calls of a trace that were answered, in the order they were made.

    A call that nothing answered, one that was refused, and one that the end of the run cut off have no answer.
    """
    began: dict[int, tuple[Event, int | None]] = {}
    open_calls: dict[int, Event] = {}
    answers: dict[int, Event] = {}
    for event in events:
        if event["event"] == "call":
            around = [number for number, outer in open_calls.items() if _may_contain(outer, event)]
            began[event["call"]] = event, around[-1] if around else None
            open_calls[event["call"]] = event
        elif event["event"] == "answer":
            open_calls.pop(event["call"], None)
            if not event.get("refused") and (event.get("error") or {}).get("type") != "UnscriptedCall":
                answers[event["call"]] = event
    return [Exchange(call, answers[at], inside) for at, (call, inside) in began.items() if at in answers]


def _may_contain(outer: Event, inner: Event) -> bool:
    """True if the code of one call that is open may make the other: it is of another kind, or of a node inside."""
    node, within = outer["node"], inner["node"]
    deeper = within.startswith(f"{node}/")
    return outer["kind"] in _OUTER and (deeper or (node == within and outer["kind"] != inner["kind"]))


def world_of(
    found: Sequence[Exchange], is_real: Callable[[Exchange], bool], *, by_node: bool = True
) -> dict[str, Any]:
    """Return the world in which these calls get these answers.

    Args:
        found: the calls, in order.
        is_real: tells which calls need no stub.
        by_node: the answers of models and people are listed by node, and not all in one list.
    """
    left_out: set[int] = set()
    by_entry: dict[tuple[str, ...], list[Exchange]] = {}
    for each in found:
        if each.inside in left_out or (each.inside is not None and _is_stubbed(each.inside, found, is_real)):
            left_out.add(each.number)
        elif not is_real(each):
            in_order = EFFECTS[each.kind].stubs == "list" and not by_node
            by_entry.setdefault(each.entry[: 1 if in_order else None], []).append(each)
    world: dict[str, Any] = {}
    # A node's name alone matches nodes of nested graphs, too: those with a path come first.
    for (key, *names), calls in sorted(by_entry.items(), key=lambda item: "/" not in item[0][-1]):
        stubs = _in_order(calls) if EFFECTS[calls[0].kind].stubs == "list" else _by_arguments(calls)
        if not names:
            world[key] = stubs
        elif len(names) == 1:
            alone = (
                key not in ("llm", "human") and len(stubs) == 1 and not stubs[0].keys() & {"args", "times"}
            )
            world.setdefault(key, {})[names[0]] = stubs[0] if alone else stubs
        else:
            server = world.setdefault(key, {}).setdefault(names[0], {"tools": []})
            server["tools"].append({"name": names[1], "stubs": stubs})
    return {effect.key: world[effect.key] for effect in EFFECTS.values() if effect.key in world}


def _is_stubbed(number: int, found: Sequence[Exchange], is_real: Callable[[Exchange], bool]) -> bool:
    return any(each.number == number and not is_real(each) for each in found)


def _in_order(calls: Sequence[Exchange]) -> list[Any]:
    """Return a stub for each call; equal ones that follow each other are one, with `times`."""
    stubs: list[Any] = []
    for each in calls:
        stub = _ANSWERS[each.kind](each) | _latency(each)
        if stubs and (stubs[-1] == stub or _without_times(stubs[-1]) == stub):
            stubs[-1] = {**stub, "times": stubs[-1].get("times", 1) + 1}
        else:
            stubs.append(stub)
    return [
        stub["reply"] if [*stub] == ["reply"] and isinstance(stub["reply"], str) else stub for stub in stubs
    ]


def _without_times(stub: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in stub.items() if key != "times"}


def _by_arguments(calls: Sequence[Exchange]) -> list[dict[str, Any]]:
    """Return stubs for the calls of one name: one for all, one for each of their arguments, or in order."""
    answered = [(dict(each.args), _ANSWERS[each.kind](each) | _latency(each)) for each in calls]
    if all(stub == answered[0][1] for _, stub in answered):
        return [answered[0][1]]
    distinct: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for args, stub in answered:
        if (args, stub) not in distinct:
            distinct.append((args, stub))
    different = [args for args, _ in distinct]
    if all(different.count(args) == 1 for args in different) and not _overlap(different):
        return [{"args": args, **stub} for args, stub in distinct]
    return [{**stub, "times": 1} for _, stub in answered]


def _overlap(arguments: Sequence[Mapping[str, Any]]) -> bool:
    """True if some arguments are contained in others, so that one stub would answer both, or are matchers."""
    from harness.matchers.value import is_matcher

    if any(is_matcher(value) for args in arguments for value in (args, *args.values())):
        return True
    return any(
        one is not other and one.items() <= other.items()
        if _hashable(one, other)
        else one.keys() != other.keys()
        for one in arguments
        for other in arguments
    )


def _hashable(*mappings: Mapping[str, Any]) -> bool:
    return not any(isinstance(value, dict | list) for each in mappings for value in each.values())


def _was_cut_off(answer: Event) -> bool:
    """True if nobody waited for the answer any more: a time limit had passed, or the run had failed elsewhere."""
    return bool((answer.get("error") or {}).get("type") == "CancelledError")


def _latency(exchange: Exchange) -> dict[str, Any]:
    latency = exchange.answer.get("latency")
    if _was_cut_off(exchange.answer):
        latency = round((latency or 0) + 1, 6)  # later than when it was cut off
    return {"latency": latency} if latency else {}


def _answer(exchange: Exchange, of_value: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    answer = exchange.answer
    if _was_cut_off(answer):
        return of_value(Gap("cut off before it came"))
    if answer.get("error"):
        return {"error": _error(answer["error"])}
    if "gap" in answer:
        return of_value(Gap(str(answer["gap"])))
    return of_value(answer.get("value"))


def _error(error: Mapping[str, Any]) -> Any:
    """Return an error as a stub writes it: the kind alone, if its message is that of the kind."""
    kind, message = str(error.get("type") or ""), str(error.get("message") or "")
    for name, (exception, default) in KINDS.items():
        if exception.__name__ == kind:
            return name if message == default else {"kind": name, "message": message}
    own = {} if kind in ("", "RuntimeError") or not kind.isidentifier() else {"type": kind}
    return {"kind": "exception", **own, "message": message}


def _model_reply(value: Any) -> dict[str, Any]:
    if isinstance(value, Gap):
        return {"reply": value}
    stub: dict[str, Any] = {}
    text, calls = value.get("text") or "", value.get("tool_calls") or ()
    if value.get("chunks"):  # a trace has their number
        stub["chunks"] = _pieces(text, value["chunks"])
    elif text or not calls:
        data = from_json(text)
        as_data = isinstance(data, dict | list) and compact_json(data) == text and not calls
        stub |= {"json": data} if as_data else {"reply": text}
    if calls:
        stub["tool_calls"] = [
            {key: call[key] for key in ("name", "args", "id") if call.get(key) is not None} for call in calls
        ]
    for key in ("usage", "finish_reason"):
        if value.get(key):
            stub[key] = value[key]
    return stub


def _pieces(text: str, count: int) -> list[str]:
    """Return the pieces of a streamed text: as many as there were, as long as each other."""
    ends = [round(len(text) * at / count) for at in range(count + 1)]
    return [text[start:end] for start, end in pairwise(ends)]


def _human_reply(value: Any) -> dict[str, Any]:
    own = {*HumanStub.model_fields, "reply"}
    if isinstance(value, Mapping) and value and not own & value.keys():
        return dict(value)
    return {"reply": value}


def _http_reply(exchange: Exchange) -> dict[str, Any]:
    args = exchange.args
    asked: dict[str, Any] = {"method": args["method"]} if args.get("method") not in (None, "GET") else {}
    asked["url"] = exchange.call["name"]
    if args.get("query"):
        asked["query"] = args["query"]
    return asked | _answer(exchange, _response)


def _response(value: Any) -> dict[str, Any]:
    if isinstance(value, Gap):
        return {"text": value}
    stub = {"status": value["status"]} if value.get("status", 200) != 200 else {}
    text = value.get("text") or ""
    data = from_json(text)
    if text:
        stub |= {"json": data} if data is not None and compact_json(data) == text else {"text": text}
    return stub | ({"headers": value["headers"]} if value.get("headers") else {})


def _tool_result(value: Any) -> dict[str, Any]:
    """Return what a tool of an MCP server gives: a text, a value, or blocks of content."""
    if isinstance(value, Gap):
        return {"return": value}
    blocks, structured = value.get("content") or [], value.get("structured")
    texts = [block["text"] for block in blocks if block.keys() <= {"type", "text"} and "text" in block]
    if value.get("is_error"):
        return {"error": {"kind": "exception", "message": "\n".join(texts)}}
    if structured is not None and (not texts or from_json(texts[0]) == structured):
        return {"return": structured}
    if (
        isinstance(structured, Mapping)
        and [*structured] == ["result"]
        and from_json(texts[0]) == structured["result"]
    ):
        return {"return": structured["result"]}
    if structured is None and len(texts) == len(blocks) == 1:
        return {"return": texts[0]}
    return {"content": blocks}


def _passages(value: Any) -> dict[str, Any]:
    if isinstance(value, Gap):
        return {"return": {"context": value, "sources": []}}
    has_passages = isinstance(value, Mapping) and value.get("passages")
    return {"return": value["passages"] if has_passages else value}


_ANSWERS: Final[Mapping[str, Callable[[Exchange], dict[str, Any]]]] = {
    **dict.fromkeys(EFFECTS, lambda exchange: _answer(exchange, lambda value: {"return": value})),
    "llm": lambda exchange: _answer(exchange, _model_reply),
    "human": lambda exchange: _answer(exchange, _human_reply),
    "http": _http_reply,
    "mcp": lambda exchange: _answer(exchange, _tool_result),
    "retrieval": lambda exchange: _answer(exchange, _passages),
}
"""The answer of each kind of call, as a stub writes it."""


def inputs_of(events: Iterable[Event]) -> Iterator[tuple[str, Any]]:
    """Yield what a conversation was given, in order: ("input", value) or ("resume", value).

    Several answers to pauses of one moment are a mapping from the paused nodes.
    """
    paused: list[str] = []
    resumed: list[Any] = []
    for event in events:
        if event["event"] == "resume" and event["graph"] == "":
            resumed.append(_given(event))
            continue
        if resumed:
            yield "resume", resumed[0] if len(resumed) == 1 else dict(zip(paused, resumed, strict=False))
            paused, resumed = [], []
        if event["event"] == "input" and event["graph"] == "":
            yield "input", _given(event)
        elif event["event"] == "node_pause":
            paused.append(f"{event['graph']}{event['node']}")
    if resumed:
        yield "resume", resumed[0]


def given_in(events: Sequence[Event]) -> dict[str, Any]:
    """Return the input of a conversation, or its turns if there are several, with ends that are not as usual."""
    given = list(inputs_of(events))
    if len(given) == 1:
        return {"input": given[0][1]} if given[0][1] is not None else {}
    ends = [event["status"] for event in events if event["event"] == "end" and event["graph"] == ""]
    turns: list[dict[str, Any]] = []
    for at, (kind, value) in enumerate(given):
        is_resumed = at + 1 < len(given) and given[at + 1][0] == "resume"
        usual = "interrupted" if is_resumed else "completed"
        status = ends[at] if at < len(ends) else usual
        turns.append({kind: value} | ({"expect": {"status": status}} if status != usual else {}))
    return {"turns": turns} if turns else {}


def _given(event: Event) -> Any:
    return event["value"] if "value" in event else Gap(str(event.get("gap", "it was not exported")))
