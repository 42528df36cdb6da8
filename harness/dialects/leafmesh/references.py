"""References to agents and entry points, and the syntax of conditions and `wait_for`. NOTES 1.8."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from harness.dialects.leafmesh import conditions, wait_for
from harness.dialects.leafmesh.path_patterns import EACH, Match, matches, texts
from harness.dialects.leafmesh.syntax import LanguageError
from harness.errors import Problem, Span
from harness.source.document import Document
from harness.source.suggest import did_you_mean

_MEMBER: Final = re.compile(r"[\w-]+")
_ESCALATION: Final = ("manager", "escalation", "targets", EACH)


class References:
    """The names that a mesh defines, and checks of the names that it uses."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.agents = {str(path[-1]): path for path, _ in matches(document.value, "agents", EACH)}
        self.entry_points = {
            value: path for path, value in texts(document.value, "entry_points", EACH, "name")
        }

    def problems(self) -> Iterator[Problem]:
        """Yield duplicate and unknown names, and conditions and `wait_for` expressions with syntax errors."""
        yield from self._check_duplicates()
        yield from self._check_agents("the entry point's target", "entry_points", EACH, "target")
        yield from self._check_agents("can_call", "agents", EACH, "can_call", EACH, "agent")
        yield from self._check_agents("the escalation target's agent", *_ESCALATION, "agent")
        for path, name in texts(self.document.value, *_ESCALATION, "entry_point"):
            if name not in self.entry_points:
                text = f"the escalation target's entry_point: there is no entry point '{name}'"
                hint = did_you_mean(name, self.entry_points)
                yield Problem("unknown-entry-point", text, self.document.span(path), hint)
        yield from self._check_test_scenarios()
        yield from self._check_waits()
        yield from self._check_conditions()

    def _check_duplicates(self) -> Iterator[Problem]:
        first: dict[str, int] = {}
        for path, name in texts(self.document.value, "entry_points", EACH, "name"):
            where = self.document.span(path)
            if name in first:
                text = f"a second entry point '{name}' (first in line {first[name]})"
                yield Problem("duplicate-name", text, where)
            first.setdefault(name, where.line)

    def _check_test_scenarios(self) -> Iterator[Problem]:
        """Warn about unknown entry points of test scenarios; the mesh itself runs without them."""
        for path, scenario in matches(self.document.value, "evolution", "test_scenarios", EACH):
            name = scenario.get("entry_point", "test") if isinstance(scenario, dict) else None
            if isinstance(name, str) and name not in self.entry_points and name not in self.agents:
                text = f"a test scenario enters '{name}', which is neither an entry point nor an agent"
                where = self.document.span((*path, "entry_point"))
                hint = did_you_mean(name, self.entry_points)
                yield Problem("unknown-entry-point", text, where, hint, "warning")

    def _check_agents(self, what: str, *pattern: Any) -> Iterator[Problem]:
        for path, name in texts(self.document.value, *pattern):
            if name not in self.agents:
                yield self._unknown_agent(what, name, self.document.span(path))

    def _unknown_agent(self, what: str, name: str, where: Span) -> Problem:
        text = f"{what}: there is no agent '{name}'"
        return Problem("unknown-agent", text, where, did_you_mean(name, self.agents))

    def _check_waits(self) -> Iterator[Problem]:
        for place in texts(self.document.value, "agents", EACH, "wait_for"):
            yield from list(self._check_syntax(place, wait_for.parse)) or self._check_members(place)
        for place in texts(self.document.value, "agents", EACH, "wait_for", EACH):
            if place.value not in self.agents:
                faults = list(self._check_syntax(place, lambda item: wait_for.parse([item])))
                yield from faults or self._check_members(place)

    def _check_members(self, place: Match) -> Iterator[Problem]:
        for found in _MEMBER.finditer(place.value):
            if found[0].lower() not in ("and", "or") and found[0] not in self.agents:
                where = self.document.span_in_text(place.path, found.start(), len(found[0]))
                yield self._unknown_agent("wait_for", found[0], where)

    def _check_conditions(self) -> Iterator[Problem]:
        for pattern in (("agents", EACH, "can_call", EACH, "condition"), ("entry_points", EACH, "condition")):
            for place in texts(self.document.value, *pattern):
                yield from self._check_syntax(place, conditions.parse)

    def _check_syntax(self, place: Match, parse: Callable[[str], Any]) -> Iterator[Problem]:
        text = place.value.strip()
        try:
            parse(text)
        except LanguageError as error:
            where = self.document.span_in_text(place.path, place.value.index(text) + error.offset)
            yield Problem("bad-expression", str(error), where)
