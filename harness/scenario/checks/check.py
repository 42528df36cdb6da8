"""`Check`: one key of `expect`, with everything that other parts of the package ask about it.

A check is declared at its function, and registered by a field of `Expect` in `harness.scenario.document_expect`,
which is the model of its value:

    @check(names=(nodes_listed,), vacuous=(empty,), untried=(), reads=("path",), origin=Origin.EXCESS)
    def never(expected, observed) -> Finding: …

Nothing that it must declare has a default: a check that says nothing about its names would accept any misspelt one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Protocol

from harness.matchers.vacuous import VacuousPart, vacuous_parts
from harness.scenario.checks.finding import Finding
from harness.scenario.mentions import Mention
from harness.scenario.outcome import Observation, Origin
from harness.source.document import Document

Function = Callable[..., Finding | None]
"""A function of (expected, observed), and for some of an index or an option; None if there is nothing to check."""
Names = Callable[[str, Document], Iterable[Mention]]
"""Yields the names in the value of a key of the `expect` mapping."""
Vacuous = Callable[[str, Mapping[str, Any]], Iterable[VacuousPart]]
"""Yields the parts of the value of a key of the `expect` mapping that cannot fail."""
Untried = Callable[[str, Mapping[str, Any], Observation], Iterable[tuple[str, str]]]
"""Yields what of the value of a key of the `expect` mapping a run has not exercised, each with a hint."""

_RULES: Final = ("names", "vacuous", "untried")


@dataclass(frozen=True)
class Check:
    """A check of `expect`.

    Attributes:
        function: compares the expected value with the observation.
        names: rules for the names in its value, which are looked up (`harness.scenario.names`); () if it has none.
        vacuous: rules for values that cannot fail (`harness.scenario.idle`).
        untried: rules for values that a run compared with nothing (`harness.scenario.idle`).
        reads: the fields of the observation that it is tried on (`harness.scenario.believed`), if any.
        origin: what its failure comes from (`harness.report.cause`).
        exact: any other value of what it reads fails an expected one without matchers.
        apart: each item or value of its value can fail by itself.
        items: its value is a list of items, each of which is a check of its own. The function gets their index.
        gate: unless it has a weight, it sets the score to 0 if it fails, and does not count while it holds.
        option: another key of `expect`, whose value the function gets if it is written.
    """

    function: Function
    _: KW_ONLY
    names: tuple[Names, ...]
    vacuous: tuple[Vacuous, ...]
    untried: tuple[Untried, ...]
    reads: tuple[str, ...]
    origin: Origin
    exact: bool = False
    apart: bool = False
    items: bool = False
    gate: bool = False
    option: str = ""

    def __post_init__(self) -> None:
        for rules in _RULES:
            if not (isinstance(found := getattr(self, rules), tuple) and all(map(callable, found))):
                raise TypeError(f"`{rules}` of check '{self.function.__name__}' is no tuple of functions")


def check(**facts: Any) -> Callable[[Function], Check]:
    """Return a decorator that makes a function a `Check`.

    Raises:
        TypeError: one of the `facts` is missing: its names, its vacuous values, what it leaves untried, what it
            reads, its origin.
    """

    def declared(function: Function) -> Check:
        missing = [fact for fact in (*_RULES, "reads", "origin") if fact not in facts]
        if missing:
            raise TypeError(f"check '{function.__name__}' does not declare its {', '.join(missing)}")
        return Check(function, **facts)

    return declared


class _Field(Protocol):
    metadata: list[Any]


def checks_of(fields: Mapping[str, _Field], *, apart: Iterable[str]) -> Mapping[str, Check]:
    """Return the checks that the fields of a model are annotated with. Fields in `apart`, and options, have none.

    Raises:
        TypeError: a field has no check.
    """
    found = {key: each for key, field in fields.items() for each in field.metadata if isinstance(each, Check)}
    options = {each.option for each in found.values()}
    for key in fields:
        if key not in found and key not in options and key not in apart:
            raise TypeError(f"'{key}' of `expect` is annotated with no check")
    return found


def empty(key: str, expect: Mapping[str, Any]) -> Iterator[VacuousPart]:
    """Tell of a list or mapping of expectations in which there is none."""
    if not expect[key]:
        yield VacuousPart((), f"'{key}' lists nothing, so it cannot fail", on_key=True)


def saying_nothing(key: str, expect: Mapping[str, Any]) -> Iterator[VacuousPart]:
    """Tell of the parts of an expected value that say nothing. `error: {}` says that there is one."""
    if expect[key] or key != "error":
        yield from vacuous_parts(expect[key])
