"""Detects stubs that never answer, and faults without effect. Each is a warning, when the file is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.errors import ExpressionError, Problem, Span
from harness.graph.effects import Effect
from harness.matchers.regex import last_part_matches
from harness.scenario.mentions import unknown_arguments
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath
from harness.world.spec import WorldSpec
from harness.world.stub_models import AnyStub

_OF_ALL: Final = ("kind", "node", "name", "args")
"""Fields that `request` has in `when` for every kind of effect."""


def idle_stubs(world: WorldSpec, at: Document) -> Iterator[Problem]:
    """Yield a warning for each stub of the world at `at` that never answers, and each fault without effect."""
    for effect, path, stubs in world.lists():
        for index, stub in enumerate(stubs):
            place = stub.path(path, index)
            yield from _in_matchers(effect, stub, at, place)
            if isinstance(at.at(place).value, str):  # a text asks for nothing
                continue
            before = (number for number, each in enumerate(stubs[:index]) if _answers_all_of(each, stub))
            if (number := next(before, None)) is not None:
                line = at.span((*path, number)).line
                text = "this stub never answers: the one before it, in line"
                hint = "put it first, or limit the other with `times`"
                yield _warning(f"{text} {line}, answers whatever it would", at.span(place), hint)
    for index, fault in enumerate(world.faults):
        if fault.latency == 0:
            yield _warning("this fault changes nothing", at.span(("faults", index, "latency")))


def _answers_all_of(earlier: AnyStub, later: AnyStub) -> bool:
    """True if the earlier stub is never used up and requires nothing that the later one does not require."""
    asked = earlier.written(*earlier.matchers)
    return earlier.uses == "any" and all(getattr(later, key) == getattr(earlier, key) for key in asked)


def _in_matchers(effect: type[Effect], stub: AnyStub, at: Document, path: DocumentPath) -> Iterator[Problem]:
    if stub.list_node is not None and _excludes(stub.list_node, stub.node):
        text = (
            f"this stub never answers: it is listed under '{stub.list_node}', but asks for node '{stub.node}'"
        )
        yield _warning(text, at.span((*path, "node")))
    for name, hint in unknown_arguments(effect.kind, stub.args):
        text = f"this stub never answers: no call has an argument '{name}' under '{effect.key}'"
        yield _warning(text, at.key_span((*path, "args", name)), hint)
    if stub.when is not None:
        yield from _in_condition(effect, stub.when, at.span((*path, "when")))


def _excludes(node: str, wanted: str | None) -> bool:
    plain = wanted is not None and not set("*?[") & set(node + wanted)
    return plain and not last_part_matches(str(wanted), node) and not last_part_matches(node, str(wanted))


def _in_condition(effect: type[Effect], when: str, span: Span) -> Iterator[Problem]:
    from harness.expressions.cel import compile as compile_cel

    expression = compile_cel(when)
    if not expression.names:
        try:
            never = expression.evaluate({}) is not True
        except ExpressionError:
            never = True
        if never:
            yield _warning(f"this stub never answers: '{when}' is not true for any call", span)
    fields = (*_OF_ALL, *effect.fields)
    for name, field in sorted(expression.reads):
        if name == "request" and field not in fields:
            text = f"'request' has no '{field}' here"
            yield _warning(text, span, did_you_mean(field, fields))


def _warning(text: str, span: Span, hint: str = "") -> Problem:
    return Problem("idle-stub", text, span, hint, severity="warning")
