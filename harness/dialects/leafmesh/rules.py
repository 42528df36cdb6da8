"""Rules for values that the types of the models cannot express. NOTES 1.3, 1.5.

Each rule checks the raw file, so all errors are found at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from harness.dialects.leafmesh.document import TYPES
from harness.dialects.leafmesh.escalation import TEMPLATE_FIELDS
from harness.dialects.leafmesh.path_patterns import EACH, Match, matches, texts
from harness.dialects.leafmesh.response_formats import response_format_problems
from harness.dialects.leafmesh.templates import template_fields
from harness.errors import Problem
from harness.graph.model import END, START
from harness.source.document import Document
from harness.source.suggest import did_you_mean

_SUMMARIZER: Final = "summarizer"
_TARGET_FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "human_agent": ("agent", "entry_point"),
    "webhook": ("url", "method", "headers", "payload_template"),
    "channel": ("provider", "channel_id", "message_template"),
}
_TEMPLATES: Final = ("payload_template", "message_template")
_REQUIRED_FIELDS: Final[Mapping[str, Sequence[tuple[str, ...]]]] = {
    "human_agent": (("agent", "entry_point"),),
    "webhook": (("url",),),
    "channel": (("provider",), ("channel_id",)),
}
"""The required fields of an escalation target, by its type; one field of each tuple is enough."""


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
            yield Problem("shared-name", text, document.key_span(path), "rename the agent", "warning")


def _check_escalation_targets(document: Document) -> Iterator[Problem]:
    """Check the fields of escalation targets. spec: "EscalationTarget", "Applies To"."""
    for path, target in matches(document.value, "manager", "escalation", "targets", EACH):
        kind = target.get("type") if isinstance(target, dict) else None
        if not isinstance(kind, str) or kind not in _TARGET_FIELDS:
            continue
        for needed in _REQUIRED_FIELDS[kind]:
            if not any(target.get(field) for field in needed):
                text = f"an escalation target of type {kind} needs {' or '.join(map(repr, needed))}"
                yield Problem("missing-key", text, document.span(path))
        for key in target:
            owner = next((other for other, fields in _TARGET_FIELDS.items() if key in fields), kind)
            if owner != kind:
                text = f"'{key}' does nothing in an escalation target of type {kind}"
                hint = f"it belongs to type {owner}"
                yield Problem("other-type", text, document.key_span((*path, key)), hint, "warning")
        for key in _TEMPLATES:
            for name in template_fields(target.get(key)):
                if name not in TEMPLATE_FIELDS:
                    text = f"{key}: nothing fills '{{{{{name}}}}}', which stays as it is"
                    hint = did_you_mean(name, TEMPLATE_FIELDS)
                    yield Problem("unknown-name", text, document.span((*path, key)), hint, "warning")


def _check_fields(document: Document) -> Iterator[Problem]:
    """Warn about unknown types, and about sub-fields of a type other than object. spec: "Type Strings"."""
    for key in ("yields", "inputs"):
        for each in matches(document.value, "agents", EACH, key, EACH):
            for path, declared in _fields(each):
                type_path = (*path, "type") if isinstance(declared, dict) else path
                type_ = declared.get("type") if isinstance(declared, dict) else declared
                if isinstance(type_, str) and type_ not in TYPES:
                    text = f"unknown type '{type_}' in {key}: nothing is checked against it"
                    hint = f"known: {', '.join(TYPES)}"
                    yield Problem("unknown-name", text, document.span(type_path), hint, "warning")
                if isinstance(declared, dict) and type_ != "object" and declared.get("fields"):
                    text = f"'fields' does nothing in a field of type {type_}: it is ignored"
                    yield Problem("other-type", text, document.key_span((*path, "fields")), "", "warning")


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
            yield Problem("bad-schedule", text, document.span(path), hint, "warning")


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
