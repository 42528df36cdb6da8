"""The laws that must hold in every run of an agent, and what breaks them.

A run ends. It ends completed, paused, or by a failure that is allowed. Its output and state are valid under what the
manifest declares. Nodes that wait for others are not left waiting. The invariants of the scenario hold.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from harness.errors import ExpressionError
from harness.graph.events import EventGraph
from harness.graph.model import Graph, Schema
from harness.graph.native import NativeGraph
from harness.graph.trace import Event
from harness.matchers.json_schema import schema_validator
from harness.matchers.regex import last_part_matches
from harness.scenario.checks.run import run_checks
from harness.scenario.document_expect import CHECKS
from harness.scenario.model import Allowed, Exploration
from harness.scenario.outcome import CheckResult, Observation
from harness.source.display import clip
from harness.source.document import shown_path
from harness.world.failures import KINDS

Type = Literal["crash", "endless", "stuck", "schema", "invariant", "unhandled-fault"]
NOT_JUDGED: Final = (
    *("unscripted-call", "world", "real-timeout", "harness-broke", "provider", "extra-missing"),
    "program-missing",
)
"""The codes of errors that say nothing about the agent."""
_ENDLESS: Final = ("endless-loop", "too-many-steps", "too-many-starts", "visit-limit")
_ENDLESS_TYPES: Final = ("GraphRecursionError",)
_OF_FAULTS: Final = {*KINDS, *(exception.__name__ for exception, _ in KINDS.values())}
_ASIDE: Final = re.compile(r";? \(?did you mean [^?]*\?\)?| \([^()]*\)")
_TEXTS_OF_FAULTS: Final = tuple(text for _, text in KINDS.values())
_DRAWN: Final = re.compile(
    r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\d+(?:\.\d+)?|(?<= of )[a-z]+(?: and [a-z]+)?(?= in )|(?<=, found )[^,;:]*",
    re.DOTALL,
)
"""The parts of a message that may depend on what was drawn: texts, remarks, numbers, types of operands, values."""


@dataclass(frozen=True)
class Breach:
    """A law that was broken.

    Attributes:
        type: its kind.
        cause: the cause, on one line.
        where: `file:line:column` of the manifest, or of the user's code; None if it is not known. For a value, it is
            that of the node that wrote it last.
        key: the same for the same cause, whatever was drawn.
        about: a word or two that tell it from others, for names.
        expect: the expectations that say so in a scenario.
    """

    type: Type
    cause: str
    where: str | None
    key: str
    about: str = ""
    expect: Mapping[str, Any] = field(default_factory=dict)


def breach(
    observed: Observation, graph: Graph, events: Sequence[Event], laws: Exploration, has_faults: bool
) -> Breach | None:
    """Return what a run broke first; None if it broke nothing. `has_faults`: a fault was drawn in it."""
    found = next(_breaches(observed, graph, events, laws), None)
    if found is not None and found.type == "crash" and has_faults:
        return replace(found, type="unhandled-fault")
    return found


def _breaches(
    observed: Observation, graph: Graph, events: Sequence[Event], laws: Exploration
) -> Iterator[Breach]:
    yield from _broken_invariants(observed, laws)
    if observed.status == "timeout" or (
        observed.status == "failed"
        and not any(_is_allowed(observed.error or {}, each) for each in laws.allow)
    ):
        found = failure(observed)
        yield replace(found, where=found.where or _place(graph, found.about))
    if observed.status == "completed":
        yield from _never_started(observed, graph, events)
        yield from _against_declared(observed, graph, events)


def _place(graph: Graph, node: str) -> str | None:
    return next((str(each.span) for each in graph.nodes if each.name == node and each.span), None)


def _is_allowed(error: Mapping[str, Any], meant: Allowed) -> bool:
    return (
        meant.type in (None, error["type"])
        and (meant.message is None or meant.message in error["message"])
        and (meant.node is None or last_part_matches(meant.node, error["node"] or ""))
    )


def failure(observed: Observation) -> Breach:
    """Return the breach of a run that failed or did not end in time."""
    error = observed.error
    if error is None:
        return _endless(observed, f"the run does not end in time; it is last in {observed.path[-1:]}", None)
    frame = error["traceback"][-1] if error["traceback"] else None
    place = f"{shown_path(frame['file'])}:{frame['line']}" if frame else error["where"]
    node = f" in '{error['node']}'" if error["node"] else ""
    cause = clip(f"{error['type']}{node}: {' '.join(error['message'].split())}", 200)
    if error["code"] in _ENDLESS or error["type"] in _ENDLESS_TYPES:
        return _endless(observed, cause, place)
    text = "" if error["code"] == ExpressionError.code else _DRAWN.sub("…", _ASIDE.sub("", error["message"]))
    at = place if frame else f"{error['node']} {place} {text}"  # an expression is its place
    if _is_fault(observed, error):  # which of them it is makes no difference to the node
        return Breach("crash", cause, place, f"fault {error['node']}", f"{error['node'] or ''}")
    about = f"{error['node'] or ''} {error['type']}"
    return Breach("crash", cause, place, f"{error['type']} {error['code']} {at}", about)


def _is_fault(observed: Observation, error: Mapping[str, Any]) -> bool:
    """True if a run failed by a fault. Clients have errors of their own for it: then a call of the node had one."""
    if not error["traceback"] and (
        error["type"] in _OF_FAULTS or error["message"].endswith(_TEXTS_OF_FAULTS)
    ):
        return True
    is_own = error["traceback"] and not issubclass(getattr(builtins, error["type"], OSError), OSError)
    faulty = (call["node"] for call in observed.calls if call.get("reason") in _TEXTS_OF_FAULTS)
    return error["code"] is None and not is_own and error["node"] in faulty


def _endless(observed: Observation, cause: str, where: str | None) -> Breach:
    """Return the breach of a run without an end, which is known by the node where it enters its round."""
    most = max(observed.visits.values(), default=0)
    entry = next((node for node, number in observed.visits.items() if number * 2 > most), "")
    return Breach("endless", cause, where, f"endless {entry}", entry)


def _broken_invariants(observed: Observation, laws: Exploration) -> Iterator[Breach]:
    if not laws.invariants.values:
        return
    for result in run_checks(laws.invariants, observed, allow_unused=True, default_status=observed.status):
        if not result.passed and result.name != "status":
            key = check_of(result, laws.invariants.values)
            value = [result.expected] if CHECKS[key].items else result.expected
            where = str(result.span) if result.span else None
            cause = clip(" ".join(f"{result.name}: {result.message}".split()), 200)
            about = result.name
            yield Breach(
                "invariant", cause, where, f"{about} {where}", about, _expecting(observed, {key: value})
            )


def check_of(result: CheckResult, expect: Mapping[str, Any]) -> str:
    """Return the key of a check; an item of a list may have a name of its own. "" if it is none of these."""
    lists = (key for key in expect if key in CHECKS and CHECKS[key].items and result.expected in expect[key])
    return result.name if result.name in expect else next(lists, "")


def _against_declared(observed: Observation, graph: Graph, events: Sequence[Event]) -> Iterator[Breach]:
    ends = [each for each in events if each["event"] == "node_end" and each.get("graph") == ""]
    declared = graph.declared()
    for what, schema, value in (
        ("output", declared.output, observed.output),
        ("state", declared.state, observed.state),
    ):
        if schema is not None and (wrong := _first_error(schema, value)):
            place, keyword, message = wrong
            cause = clip(f"{what}{place}: {message}", 200)
            key = f"{what}{place} {keyword}"
            expect = _expecting(observed, {f"{what}_schema": schema})
            name = re.split(r"\W", place.lstrip("."))[0]
            writers = [each for each in ends if name in each["update"]] or ends
            where = next((_place(graph, each["node"]) for each in reversed(writers)), None)
            yield Breach("schema", cause, where, key, f"{what}{place}", expect)


def _first_error(schema: Schema, value: Any) -> tuple[str, str, str] | None:
    """Return the place, keyword and message of the first error of a value under a schema; None if it is valid."""
    error = min(
        schema_validator(schema).iter_errors(value), key=lambda each: str(each.json_path), default=None
    )
    return None if error is None else (error.json_path.removeprefix("$"), str(error.validator), error.message)


def _never_started(observed: Observation, graph: Graph, events: Sequence[Event]) -> Iterator[Breach]:
    """Yield the nodes that some of those they wait for have reached, and that did not start after that."""
    for node, members in waiting(graph).items():
        arrived: dict[str, None] = {}
        for event in events:
            source = _arrival(event, node, graph)
            if source in members:
                arrived[source] = None
        missing = [each for each in members if each not in arrived]
        if arrived and missing and node not in observed.visits:
            cause = (
                f"'{node}' never starts: it waits for {', '.join(missing)}, and only {', '.join(arrived)} ran"
            )
            yield Breach(
                "stuck", cause, _place(graph, node), f"{node} {missing}", node, {"path_includes": [node]}
            )


def _arrival(event: Event, node: str, graph: Graph) -> str:
    """Return the node from which something arrives at a node; "" if nothing does."""
    if event.get("graph") != "":
        return ""
    if isinstance(graph, NativeGraph):  # LangGraph waits for the nodes themselves
        return str(event["node"]) if event["event"] == "node_end" else ""
    return str(event["source"]) if event["event"] == "route" and event["target"] == node else ""


def waiting(graph: Graph) -> Mapping[str, Sequence[str]]:
    """Return the nodes that wait until several others have run, and those."""
    if isinstance(graph, EventGraph):
        return {name: sorted(join.members) for name, join in graph.joins.items() if _waits_for_all(join)}
    if isinstance(graph, NativeGraph):  # outside of its runs, it has not been imported
        builder = getattr(graph.compiled, "builder", None)
        return {end: sorted(sources) for sources, end in getattr(builder, "waiting_edges", ())}
    return {}


def _waits_for_all(join: Any) -> bool:
    return all(join.missing(join.members - {each}) is not None for each in join.members)


def _expecting(observed: Observation, expect: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return expectations of a run that ends as this one did."""
    return expect if observed.status == "completed" else {"status": observed.status, **expect}
