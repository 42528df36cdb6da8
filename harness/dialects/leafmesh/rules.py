"""Rules for values that the types of the models cannot express. NOTES 1.3, 1.5.

Each rule checks the raw file, so all errors are found at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from harness.dialects.kit.rules import Rules, repeated, warning
from harness.dialects.leafmesh import conditions
from harness.dialects.leafmesh.agents import template_fields
from harness.dialects.leafmesh.conditions import LanguageError
from harness.dialects.leafmesh.dialect import EACH, Match, matches, texts
from harness.dialects.leafmesh.document import TYPES
from harness.dialects.leafmesh.failures import TEMPLATE_FIELDS
from harness.errors import Problem, Severity
from harness.graph.model import END, START
from harness.graph.to_json import to_json
from harness.matchers.schema_flaws import (
    EXTERNAL,
    NO_TARGET,
    misspelt_keywords,
    schema_flaw,
    unresolved_references,
)
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath


def response_format_problems(document: Document) -> Iterator[Problem]:
    """Yield errors in the schemas of agents, and warnings of misspelt keywords."""
    for path, written in matches(document.value, "agents", EACH, "response_format"):
        if not isinstance(written, dict):
            continue
        at: DocumentPath = path
        schema: Any = written
        if written.get("type") == "json_schema":
            at = (*path, "json_schema", "schema")
            schema = next((value for _, value in matches(written, "json_schema", "schema")), None)
        if not isinstance(schema, dict):
            text = "response_format: of type json_schema, it needs a mapping 'schema' inside 'json_schema'"
            yield Problem("missing-key", text, document.span(at))
        else:
            yield from _check_schema(to_json(schema), document, at)  # replies are JSON, so dates become texts


def _check_schema(schema: Mapping[str, Any], document: Document, at: DocumentPath) -> Iterator[Problem]:
    if (flaw := schema_flaw(schema)) is not None:
        text = f"response_format is not a JSON Schema: {flaw.message}"
        yield Problem("bad-schema", text, document.span((*at, *flaw.path)), flaw.hint)
        return
    defined = [f"#/{key}/{name}" for key in ("$defs", "definitions") for name in schema.get(key, ())]
    for lost in unresolved_references(schema):
        text = f"response_format: the reference '{lost.reference}' {lost.why}"
        hint = did_you_mean(lost.reference, defined) if lost.why == NO_TARGET else ""
        # A provider may resolve an external schema; replies cannot be validated against it here.
        severity: Severity = "warning" if lost.why == EXTERNAL else "error"
        yield Problem("bad-schema", text, document.span((*at, *lost.path)), hint, severity)
    for keyword in misspelt_keywords(schema):
        text = f"response_format: '{keyword.keyword}' is not a keyword of JSON Schema, and is ignored"
        where = document.key_span((*at, *keyword.path))
        yield warning("unknown-key", text, where, f"did you mean '{keyword.meant}'?")


_SUMMARIZER: Final = "summarizer"
_TARGET_FIELDS: Final[Mapping[str, tuple[Sequence[Sequence[str]], Sequence[str]]]] = {
    "human_agent": ([("agent", "entry_point")], ()),
    "webhook": ([("url",)], ("method", "headers", "payload_template")),
    "channel": ([("provider",), ("channel_id",)], ("message_template",)),
}
"""The fields of an escalation target, by its type: required ones, one of each tuple is enough, and others."""
_TEMPLATES: Final = ("payload_template", "message_template")


def rule_problems(document: Document) -> Iterator[Problem]:
    """Yield errors for violated rules, and warnings about probable mistakes."""
    yield from _check_names(document)
    yield from _check_escalation_targets(document)
    yield from response_format_problems(document)
    yield from _check_fields(document)
    yield from _check_schedules(document)


def _check_names(document: Document) -> Iterator[Problem]:
    """Check the names of agents: the `name` of an agent is its key."""
    for path, agent in matches(document.value, "agents", EACH):
        key = path[-1]
        name = agent.get("name") if isinstance(agent, dict) else None
        if isinstance(name, str) and name != key:
            text = f"the name '{name}' is not the key of its agent, '{key}'"
            yield Problem("id-mismatch", text, document.span((*path, "name")), "correct it, or leave it out")
        if key in (START, END, ""):
            yield Problem("reserved-name", f"'{key}' is not a name for an agent", document.key_span(path))
    if isinstance(document.value, dict) and document.value.get("agents", {}) == {}:
        yield Problem("no-agent", "the mesh has no agents", document.key_span(("agents",)))
    if next(texts(document.value, "agents", EACH, "narration"), None):
        for path, _ in matches(document.value, "agents", _SUMMARIZER):
            text = f"an agent '{_SUMMARIZER}' has the name of the Summarizer: in a scenario, `{_SUMMARIZER}` is both"
            yield warning("shared-name", text, document.key_span(path), "rename the agent")


def _check_escalation_targets(document: Document) -> Iterator[Problem]:
    """Check the fields of escalation targets. spec: "EscalationTarget", "Applies To"."""
    for path, target in matches(document.value, "manager", "escalation", "targets", EACH):
        kind = target.get("type") if isinstance(target, dict) else None
        if not isinstance(kind, str) or kind not in _TARGET_FIELDS:
            continue
        for needed in _TARGET_FIELDS[kind][0]:
            if not any(target.get(field) for field in needed):
                text = f"an escalation target of type {kind} needs {' or '.join(map(repr, needed))}"
                yield Problem("missing-key", text, document.span(path))
        for key in target:
            owners = (
                o for o, (needed, others) in _TARGET_FIELDS.items() if key in (*chain(*needed), *others)
            )
            owner = next(owners, kind)
            if owner != kind:
                text = f"'{key}' does nothing in an escalation target of type {kind}"
                yield warning(
                    "other-type", text, document.key_span((*path, key)), f"it belongs to type {owner}"
                )
        for key in _TEMPLATES:
            for name in template_fields(target.get(key)):
                if name not in TEMPLATE_FIELDS:
                    text = f"{key}: nothing fills '{{{{{name}}}}}', which stays as it is"
                    hint = did_you_mean(name, TEMPLATE_FIELDS)
                    yield warning("unknown-name", text, document.span((*path, key)), hint)


def _check_fields(document: Document) -> Iterator[Problem]:
    """Warn about unknown types, and about sub-fields of a type other than object. spec: "Type Strings"."""
    for key in ("yields", "inputs"):
        for each in matches(document.value, "agents", EACH, key, EACH):
            for path, declared in _fields(each):
                is_nested = isinstance(declared, dict)
                type_ = declared.get("type") if is_nested else declared
                if isinstance(type_, str) and type_ not in TYPES:
                    text = f"unknown type '{type_}' in {key}: nothing is checked against it"
                    where = document.span((*path, "type") if is_nested else path)
                    yield warning("unknown-name", text, where, f"known: {', '.join(TYPES)}")
                if is_nested and type_ != "object" and declared.get("fields"):
                    text = f"'fields' does nothing in a field of type {type_}: it is ignored"
                    yield warning("other-type", text, document.key_span((*path, "fields")))


def _fields(place: Match) -> Iterator[Match]:
    """Yield a field, and those inside it."""
    yield place
    for path, value in matches(place.value, "fields", EACH):
        yield from _fields(Match((*place.path, *path), value))


# -------------------------------------------------------------- schedules

_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_CRON: Final[Sequence[tuple[str, int, int, Sequence[str]]]] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, ["", *_MONTHS]),
    ("day of the week", 0, 7, _DAYS),
)
_CRON_PART: Final = re.compile(r"(?:[*?]|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[1-9]\d*))?")


def _check_schedules(document: Document) -> Iterator[Problem]:
    """Warn about invalid cron expressions; not an error, since schedules are not run here."""
    for path, written in texts(document.value, "agents", EACH, "wake_up"):
        if fault := _cron_error(written):
            text = f"wake_up: '{written}' is not a cron expression: {fault}"
            hint = "minute, hour, day of the month, month, day of the week, such as `0 9 * * 1-5`"
            yield warning("bad-schedule", text, document.span(path), hint)


def _cron_error(written: str) -> str:
    """Return the reason why a text is not a cron expression; "" if it is one, or a name such as @daily."""
    if re.fullmatch(r"@[a-z]+", written):
        return ""
    parts = written.lower().split()
    if len(parts) != len(_CRON):
        return f"it has {len(parts)} fields instead of {len(_CRON)}"
    for part, (name, least, most, names) in zip(parts, _CRON, strict=True):
        for item in part.split(","):
            found = _CRON_PART.fullmatch(item)
            values = [found[key] for key in ("first", "last") if found[key]] if found else [item]
            numbers = [names.index(value) if value in names else value for value in values]
            if not found or not all(str(n).isdecimal() and least <= int(n) <= most for n in numbers):
                return f"'{item}' is not a valid {name}"
    return ""


_MEMBER: Final = re.compile(r"[\w-]+")
_ESCALATION: Final = ("manager", "escalation", "targets", EACH)


class References(Rules):
    """The names that a mesh defines, and checks of the names that it uses."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
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
            text = f"the escalation target's entry_point: there is no entry point '{name}'"
            yield from self.known_name("unknown-entry-point", text, name, self.entry_points, *path)
        yield from self._check_test_scenarios()
        yield from self._check_waits()
        yield from self._check_conditions()

    def _check_duplicates(self) -> Iterator[Problem]:
        named = [*texts(self.document.value, "entry_points", EACH, "name")]
        for at, first in repeated(name for _, name in named):
            line = self.document.span(named[first].path).line
            text = f"a second entry point '{named[at].value}' (first in line {line})"
            yield self.error("duplicate-name", text, *named[at].path)

    def _check_test_scenarios(self) -> Iterator[Problem]:
        """Warn about unknown entry points of test scenarios; the mesh itself runs without them."""
        for path, scenario in matches(self.document.value, "evolution", "test_scenarios", EACH):
            name = scenario.get("entry_point", "test") if isinstance(scenario, dict) else None
            if isinstance(name, str) and name not in self.entry_points and name not in self.agents:
                text = f"a test scenario enters '{name}', which is neither an entry point nor an agent"
                hint = did_you_mean(name, self.entry_points)
                yield self.warning("unknown-entry-point", text, *path, "entry_point", hint=hint)

    def _check_agents(self, what: str, *pattern: Any) -> Iterator[Problem]:
        for path, name in texts(self.document.value, *pattern):
            yield from self.known_name(
                "unknown-agent", f"{what}: there is no agent '{name}'", name, self.agents, *path
            )

    def _check_waits(self) -> Iterator[Problem]:
        for place in texts(self.document.value, "agents", EACH, "wait_for"):
            yield from list(self._check_syntax(place, conditions.parse_wait_for)) or self._check_members(
                place
            )
        for place in texts(self.document.value, "agents", EACH, "wait_for", EACH):
            if place.value not in self.agents:
                faults = list(self._check_syntax(place, lambda item: conditions.parse_wait_for([item])))
                yield from faults or self._check_members(place)

    def _check_members(self, place: Match) -> Iterator[Problem]:
        for found in _MEMBER.finditer(place.value):
            if found[0].lower() not in ("and", "or") and found[0] not in self.agents:
                where = self.document.span_in_text(place.path, found.start(), len(found[0]))
                text = f"wait_for: there is no agent '{found[0]}'"
                yield Problem("unknown-agent", text, where, did_you_mean(found[0], self.agents))

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
