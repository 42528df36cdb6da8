"""AnyStub lists: the first stub in file order whose matchers all match answers a call."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, Final

from harness.errors import CannotEvaluate, ExpressionError, Nearest, Span, WorldError
from harness.graph.effects import Effect
from harness.graph.model import State
from harness.matchers.regex import last_part_matches
from harness.world.failures import ErrorMapping
from harness.world.spec import ScriptedAnswer
from harness.world.stub_models import AnyStub

_COMPARED: Final = (str, int, float)


@dataclass(eq=False)
class _StubState:
    """A stub and its uses, the last of them by the node `used_by`.

    `undecided` is the reason why its `when` could not be evaluated, "" once it could. `other_type` names an argument
    that has another type in a call, which the stub would else answer.
    """

    stub: AnyStub
    used: int = 0
    used_by: str = ""
    undecided: str | None = None
    other_type: str = ""

    @property
    def has_uses_left(self) -> bool:
        return self.stub.uses == "any" or self.used < self.stub.uses

    def note(self, request: _Request) -> None:
        """Remember why the call that was just compared did not meet the stub."""
        if request.undecided is not None and self.undecided != "":
            self.undecided = request.undecided
        self.other_type = self.other_type or request.other_type

    @property
    def unmet(self) -> str:
        """The reason why no call met the stub; empty if one did, or if the reason is not known."""
        if self.used:
            return ""
        if self.undecided:
            return f"its `when` has no value in any call: {self.undecided}"
        if self.other_type:
            return self.other_type
        is_false = self.undecided == "" and self.stub.uses == "any"
        return f"its `when` was false in every call: {self.stub.when}" if is_false else ""

    @property
    def unused(self) -> bool:
        return self.has_uses_left and self.stub.uses != "any"


class StubList:
    """Stubs in file order. `title` names the list in messages."""

    def __init__(self, stubs: Sequence[AnyStub], title: str) -> None:
        self.title = title
        self._lock = Lock()  # real tools make calls from threads
        self._states = [_StubState(stub) for stub in stubs]
        self._left = self._with_uses_left()  # in the same order; only these are compared with calls

    def __len__(self) -> int:
        return len(self._states)

    def put_in_front(self, stubs: Sequence[AnyStub]) -> None:
        """Add the stubs of a turn, in front of the existing ones."""
        self._states[:0] = [_StubState(stub) for stub in stubs]
        self._left = self._with_uses_left()

    def _with_uses_left(self) -> list[_StubState]:
        return [item for item in self._states if item.has_uses_left]

    def answer(self, effect: Effect, state: State) -> ScriptedAnswer | None:
        """Consume one use of the first stub that matches, and return its answer; None if there is none."""
        stub = self.consume(effect, state)
        if stub is None:
            return None
        value, error = None, None
        if stub.error is not None:
            error = stub.error.exception()
        else:
            value, error = _answered(stub, effect)
            if error is not None:  # a client of a provider is told of it as of a written error
                stub = stub.model_copy(update={"error": ErrorMapping.of(error)})
        return ScriptedAnswer(value, error, stub.latency, source=stub, title=self.title)

    def consume(self, effect: Effect, state: State) -> AnyStub | None:
        """Consume one use of the first stub that matches, and return the stub; None if there is none."""
        request = _Request(effect, state)
        with self._lock:
            for at, item in enumerate(self._left):
                fits = request.matches(item.stub)
                item.note(request)
                if fits:
                    item.used += 1
                    item.used_by = effect.node
                    if not item.has_uses_left:
                        del self._left[at]
                    return item.stub
        return None

    def put_back(self, stub: AnyStub) -> None:
        """Undo one `consume` of a stub."""
        next(item for item in self._states if item.stub is stub).used -= 1
        self._left = self._with_uses_left()

    def unused(self) -> list[str]:
        """Return a text for each stub with uses left: whether it was used, its answer, its uses, and its location."""
        return [
            f"{'not used up' if item.used else 'never used'}: {item.stub.described(self.title)}{_times_left(item)}"
            f"{f' ({item.stub.span})' if item.stub.span else ''}"
            for item in self._states
            if item.unused
        ]

    def unmet(self) -> list[tuple[str, Span | None]]:
        """Return the reason and the location of each stub that calls were compared with and never met."""
        return [(item.unmet, item.stub.span) for item in self._states if item.unmet]

    def nearest(self, effect: Effect, state: State) -> Nearest | None:
        """Return the stub with the fewest mismatches, used-up stubs last; None if there are no stubs."""
        request = _Request(effect, state)
        ranked = []
        for position, item in enumerate(self._states):
            reasons = list(request.reasons_against(item.stub))
            if not item.has_uses_left:
                by = f" by {item.used_by}" if not reasons and item.used_by != effect.node else ""
                reasons.append(f"it was used up ({item.used} of {item.stub.uses}){by}")
            ranked.append((len(reasons), position, item.stub, reasons))
        if not ranked:
            return None
        _, _, stub, reasons = min(ranked, key=lambda rank: rank[:2])
        return Nearest(stub.described(self.title), stub.span, reasons)


def _answered(stub: AnyStub, effect: Effect) -> tuple[Any, Exception | None]:
    """Return what a stub answers; if a function answers in its place, perhaps what that raised."""
    try:
        given = stub.answer_to(effect)
    except Exception as raised:
        if stub.called is None or isinstance(raised, WorldError):
            raise
        return None, raised
    try:
        return effect.answered(given), None
    except ValueError as wrong:
        raise WorldError(f"a stub under `{effect.key}:` cannot answer: {wrong}") from None


def _times_left(item: _StubState) -> str:
    if item.stub.uses == 1 or item.stub.uses == "any":
        return ""
    return f", used {item.used} of {item.stub.uses} times"


class StubHolder(ABC):
    """Holds lists of stubs, and tells of those that were not used."""

    @abstractmethod
    def stub_lists(self) -> Iterable[StubList]:
        """Return all lists."""

    def unused(self) -> list[str]:
        """Return a text for each stub with uses left, see `StubList.unused`."""
        return [text for stubs in self.stub_lists() for text in stubs.unused()]

    def unmet(self) -> list[tuple[str, Span | None]]:
        """Return the reason and the location of each stub that calls were compared with and never met."""
        return [found for stubs in self.stub_lists() for found in stubs.unmet()]


class _Request:
    """A call that is compared with many stubs. The bindings of `when` are built once."""

    def __init__(self, effect: Effect, state: State) -> None:
        self.effect = effect
        self.state = state
        self.undecided: str | None = None
        self.other_type = ""

    @cached_property
    def _bindings(self) -> dict[str, Any]:
        return {"request": self.effect.request(), "state": self.state}

    def matches(self, stub: AnyStub) -> bool:
        """True if all matchers of the stub match.

        Sets `undecided` to the reason why its `when` could not be evaluated, "" if it could, None if it was not
        tried; and `other_type` to the argument that alone differs, and in its type only, "" if there is none.
        """
        self.undecided, self.other_type = None, ""
        return (
            not self._has_other_argument(stub.arguments()) and next(self.reasons_against(stub), None) is None
        )

    def _has_other_argument(self, wanted: Mapping[str, Any] | None) -> bool:
        """True if an argument is a different text or number; a fast test for lists with many stubs."""
        from harness.matchers.value import is_matcher

        if wanted is None or is_matcher(wanted):
            return False
        given = self.effect.args
        return any(
            type(value) in _COMPARED and type(given.get(key)) is type(value) and given[key] != value
            for key, value in wanted.items()
        )

    def reasons_against(self, stub: AnyStub) -> Iterator[str]:
        """Yield the reason for each matcher of the stub that does not match."""
        effect = self.effect
        for pattern in stub.nodes:
            if not last_part_matches(pattern, effect.node):
                yield f"node is {effect.node!r}, not {pattern!r}"
        yield from stub.reasons_against(effect)
        if (wanted := stub.arguments()) is not None:
            yield from self._against_args(wanted)
        if stub.when is not None:
            yield from self._against_when(stub.when)

    def _against_args(self, wanted: Mapping[str, Any]) -> Iterator[str]:
        from harness.matchers.value import compare

        try:
            found = compare(wanted, self.effect.args).mismatches
        except CannotEvaluate as error:
            yield f"args.{error}"
            return
        if len(found) == 1:
            self.other_type = _other_type(wanted, self.effect.args)
        for mismatch in found:
            yield f"args.{mismatch.path}: {mismatch.reason}"

    def _against_when(self, when: str) -> Iterator[str]:
        from harness.expressions.cel import compile as compile_cel

        try:
            holds = compile_cel(when).evaluate(self._bindings)
        except ExpressionError as error:
            self.undecided = f"{when}: {error}"
            yield f"when: {self.undecided}"
            return
        self.undecided = "" if isinstance(holds, bool) else f"{when} is {holds!r}, neither true nor false"
        if holds is not True:
            yield f"when: {when} is {holds!r}"


def _other_type(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Tell of an argument that is written alike in a stub and a call, with another type: 5 and "5"."""
    for key, value in wanted.items():
        other = given.get(key)
        both = isinstance(value, _COMPARED) and isinstance(other, _COMPARED)
        if both and type(value) is not type(other) and str(value).lower() == str(other).lower():
            return (
                f"it asks for {key}: {json.dumps(value)}, and a call has {json.dumps(other)}, of another type"
            )
    return ""


def can_answer(
    effects: Sequence[Effect], state: State, stubs_of: Callable[[Effect], Iterable[StubList]]
) -> list[bool]:
    """Return True for each effect that one of its stub lists would answer after the effects before it.

    Consumes nothing.
    """
    used: list[tuple[StubList, AnyStub]] = []
    found = []
    try:
        for effect in effects:
            consumed = ((stubs, stubs.consume(effect, state)) for stubs in stubs_of(effect))
            first = next(((stubs, stub) for stubs, stub in consumed if stub is not None), None)
            found.append(first is not None)
            if first is not None:
                used.append(first)
    finally:
        for stubs, stub in used:
            stubs.put_back(stub)
    return found
