"""Validation of documents against pydantic models, with located problems, and the JSON Schemas of the models.

`validate` returns an instance of the model, or raises one located problem for each mistake. The problem of an unknown
key points at the key and suggests the nearest known one; that of a union is about the member that was meant. A
validator with several messages, or with a hint, raises `mistaken(...)`.

A model controls the messages about it:

* `model_config = ConfigDict(title="a stub")` is its name;
* the first of the `examples` of a field is shown if the field is missing;
* `elsewhere: ClassVar[Mapping[str, str]]` has hints for keys that it does not have;
* `main_key: ClassVar[str]` names the key that is meant by a plain value of that key's type in place of a mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from math import log10
from typing import Any, Final, Literal, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from harness.errors import ManifestError, Problem, SourceError
from harness.source.display import clip, did_you_mean, nearest
from harness.source.document import Document, DocumentPath
from harness.source.keys import Step, ValidationIssue, hint_where_known, models_at, without_alternatives
from harness.source.yaml import noun

Model = TypeVar("Model", bound=BaseModel)

_CLOSE: Final = 0.8
"""The similarity to a known key from which an unknown one counts as a misspelling, and not as misplaced."""
_LONGEST_NUMBER: Final = 200
"""The most bits of an integer that messages show. Python refuses to convert very large ones to text."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake that a validator found.

    Attributes:
        message: the message.
        at: the path from the validated value to the wrong one.
        on_key: the key is wrong, and not its value.
        within: the line and column (from 1) in a text value that is written in another language.
        code: the code of the problem.
        hint: the hint of the problem.
    """

    message: str
    at: DocumentPath = ()
    on_key: bool = False
    within: tuple[int, int] | None = None
    code: str = "bad-value"
    hint: str = ""


def mistaken(*mistakes: Mistake) -> PydanticCustomError:
    """Return the exception for a pydantic validator to raise. Each mistake becomes a problem of its own."""
    text = "; ".join(mistake.message for mistake in mistakes)
    return PydanticCustomError("mistaken", "{text}", {"text": text, "mistakes": mistakes})


def validate(
    model: type[Model],
    document: Document,
    path: DocumentPath = (),
    *,
    error: type[SourceError] = ManifestError,
    extra: Literal["forbid"] | None = None,
) -> Model:
    """Return the value at `path` of the document as an instance of `model`.

    `extra` forbids unknown keys even in models that ignore them.

    Raises:
        error: with every mistake, in the order of the file. The codes are `unknown-key`, `missing-key`, `wrong-type`,
            `bad-value`, and those that validators pass to `mistaken`.
    """
    part = document.at(path) if path else document
    try:
        options: Any = {} if extra is None else {"extra": extra}  # an argument since pydantic 2.12
        return model.model_validate(part.value, **options)
    except ValidationError as invalid:
        details = invalid.errors(include_url=False)
    findings = without_alternatives([_finding(detail, part.value) for detail in details])
    problems = [problem for finding in findings for problem in _problems(finding, model, part)]
    raise error(in_file_order(problems)) from None


def in_file_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems sorted by line and column, without duplicates."""
    unique = dict.fromkeys(problems)
    return sorted(unique, key=lambda p: (p.span.line, p.span.column) if p.span else (0, 0))


def describe(value: Any) -> str:
    """Describe a value in a few words, for "expected …, found …"."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"text '{clip(value, 41)}'"
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
        return f"a number of about {round(value.bit_length() * log10(2)):,} digits"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, Sequence):
        return "a list" if value else "an empty list"
    return f"a {type(value).__name__}"


# ---------------------------------------------------------------- locations of errors


def _finding(detail: ErrorDetails, root: Any) -> ValidationIssue:
    """Convert a pydantic error, splitting its `loc` into steps in the document and labels of union members."""
    loc = detail["loc"]
    key = None
    if detail["type"] == "missing" and loc:
        loc, key = loc[:-1], str(loc[-1])
    readings = list(islice(_readings(loc, root), 32))
    steps = next((steps for steps, value in readings if value is detail["input"]), readings[0][0])
    context = detail.get("ctx") or {}
    return ValidationIssue(detail["type"], steps, detail["input"], detail["msg"], context, key)


def _readings(loc: tuple[int | str, ...], value: Any) -> Iterable[tuple[tuple[Step, ...], Any]]:
    """Yield the interpretations of `loc`: its steps, as in `ValidationIssue.steps`, and the value they lead to.

    Pydantic mixes the names of union members into `loc`. For one that is also a key, both interpretations are given.
    """
    if not loc:
        yield (), value
        return
    first, rest = loc[0], loc[1:]
    inside = isinstance(value, dict) and first in value
    if inside or (isinstance(value, list) and isinstance(first, int) and 0 <= first < len(value)):
        for steps, found in _readings(rest, value[first]):
            yield ((True, first), *steps), found
    for steps, found in _readings(rest, value):
        yield ((False, first), *steps), found


# ---------------------------------------------------------------- messages


_ERRORS_BY_TYPE: Final = {
    "text": ("string_type", "string_sub_type"),
    "a whole number": ("int_type", "int_parsing", "int_from_float"),
    "a number": ("float_type", "float_parsing"),
    "a finite number": ("finite_number",),
    "true or false": ("bool_type", "bool_parsing"),
    "a list": ("list_type", "tuple_type", "set_type"),
    "a mapping": ("dict_type", "mapping_type", "model_type", "model_attributes_type"),
    "nothing": ("none_required",),
}
_EXPECTED: Final = {error: name for name, errors in _ERRORS_BY_TYPE.items() for error in errors}
_QUOTED: Final = re.compile(r"'((?:[^'\\]|\\.)*)'")
_PLAIN: Final = re.compile(r"[\w.-][\w ./-]{0,39}")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_WITH_UNIT: Final = re.compile(r"-?\d+(\.\d+)? ?[a-zA-Z%]{1,7}")


def _problems(finding: ValidationIssue, model: type[BaseModel], document: Document) -> list[Problem]:
    path = finding.path
    if finding.type == "mistaken":
        return [_of_mistake(mistake, path, document) for mistake in finding.context["mistakes"]]
    if (finding.on_key or finding.type == "invalid_key") and not isinstance(finding.found, str):
        path = (*_around_key(finding), finding.found)
        if finding.on_key:
            message = f"this key is read as {noun(finding.found)}, not as text"
            return [Problem("key-not-text", message, document.key_span(path), "quote it")]
    if finding.type in ("extra_forbidden", "invalid_key"):
        models = models_at(model, finding.steps[:-1])
        known = dict.fromkeys(key for candidate in models for key in keys_of(candidate))
        key, message = str(path[-1]), f"unknown key '{path[-1]}'{_within(models)}"
        hint = "" if nearest(key, known, cutoff=_CLOSE) else hint_where_known(key, model, finding.steps[:-1])
        return [Problem("unknown-key", message, document.key_span(path), hint or did_you_mean(key, known))]
    if finding.type == "missing":
        models = models_at(model, finding.steps)
        message = f"missing key '{finding.key}'{_within(models)}"
        hint = _misspelt(finding.key, finding, models) or _example(finding.key, models)
        return [Problem("missing-key", message, document.span(path), hint)]
    if finding.type == "union_tag_not_found" and "discriminator" in finding.context:
        key = finding.context["discriminator"].strip("'")
        candidates = models_at(model, finding.steps)
        hint = _misspelt(key, finding, candidates) or _choices(key, candidates)
        return [Problem("missing-key", f"missing key '{key}'", document.span(path), hint)]
    if finding.type == "union_tag_invalid":
        path = (*path, finding.context["discriminator"].strip("'"))
    code, message, hint = _code_message_hint(finding, path)
    if code in ("wrong-type", "bad-value") and not hint:
        hint = _written_out(finding.found, models_at(model, finding.steps))
        hint = hint or _example_around(finding.steps, model)
    span = document.key_span(path) if finding.on_key else document.span(path)
    return [Problem(code, message, span, hint)]


def _around_key(finding: ValidationIssue) -> DocumentPath:
    """Return the path of the mapping whose key is wrong. Pydantic turns keys into texts, unless they are integers."""
    steps = finding.steps[:-1] if finding.on_key else finding.steps
    return tuple(step for inside, step in steps[:-1] if inside)


def _misspelt(missing: str | None, finding: ValidationIssue, models: Sequence[type[BaseModel]]) -> str:
    """Return a hint if an ignored unknown key is probably a misspelling of the missing one; or ""."""
    ignored = all(candidate.model_config.get("extra") == "ignore" for candidate in models)
    if missing is None or not ignored or not isinstance(finding.found, Mapping):
        return ""
    known = {key for candidate in models for key in keys_of(candidate)}
    found = nearest(missing, [key for key in finding.found if isinstance(key, str) and key not in known])
    return f"'{found}' is not known: did you mean '{missing}'?" if found is not None else ""


def _example(key: str | None, models: Sequence[type[BaseModel]]) -> str:
    """Return a hint with the first of the `examples` of a field, or ""."""
    fields = [
        field
        for candidate in models
        for name, field in candidate.model_fields.items()
        if key == (field.alias or name)
    ]
    return next((f"write {field.examples[0]}" for field in fields if field.examples), "")


def _example_around(steps: Sequence[Step], model: type[BaseModel]) -> str:
    """Return a hint with an example for the nearest enclosing key that a model has, or ""."""
    for end in reversed(range(len(steps))):
        inside, key = steps[end]
        models = models_at(model, steps[:end]) if inside and isinstance(key, str) else []
        if any(key in keys_of(candidate) for candidate in models):
            return _example(str(key), models)
    return ""


def _written_out(value: Any, models: Sequence[type[BaseModel]]) -> str:
    """Return a hint with the mapping that a plain value probably stands for (see `main_key`), or ""."""
    for candidate in models:
        key = getattr(candidate, "main_key", None)
        if key is not None and type(value) is candidate.model_fields[key].annotation:
            others = (name for name, field in candidate.model_fields.items() if field.is_required())
            return f"write {{{', '.join([f'{key}: {value}', *(f'{name}: …' for name in others if name != key)])}}}"
    return ""


def _of_mistake(mistake: Mistake, path: DocumentPath, document: Document) -> Problem:
    path = (*path, *mistake.at)
    if mistake.within:
        span = document.span_within(path, *mistake.within)
    else:
        span = document.key_span(path) if mistake.on_key else document.span(path)
    return Problem(mistake.code, mistake.message, span, mistake.hint)


def _code_message_hint(finding: ValidationIssue, path: DocumentPath) -> tuple[str, str, str]:
    """Return code, message and hint for a value of the wrong type, or one that is not allowed."""
    value = finding.found
    if finding.type == "union_tag_invalid" and isinstance(value, Mapping):
        value = value.get(path[-1], finding.context["tag"])
    name, found = _name(path), describe(value)
    expected = [_EXPECTED[kind] for kind in finding.kinds if kind in _EXPECTED]
    if expected:
        *others, last = dict.fromkeys(expected)
        wanted = f"{', '.join(others)} or {last}" if others else last
        return "wrong-type", f"{name}expected {wanted}, found {found}", _hint(wanted, finding.found)
    if finding.type in ("literal_error", "enum", "union_tag_invalid"):
        context = finding.context
        options = _QUOTED.findall(str(context.get("expected") or context.get("expected_tags")))
        listed = ", ".join(options)
        message = f"{name}expected {'one of ' if len(options) > 1 else ''}{listed}, found {found}"
        hint = _hint("text", value) if not isinstance(value, str) and str(value) in options else ""
        return "bad-value", message, hint or did_you_mean(str(value), options, listing=False)
    if finding.type in ("value_error", "assertion_error"):
        return "bad-value", str(finding.context.get("error", finding.message)), ""
    hint = _hint("text", value) if finding.type == "shape" and "text" in finding.message else ""
    return "bad-value", f"{name}{_reworded(finding.message)}, found {found}", hint


def _placeholder(value: Any) -> str:
    """Return a placeholder that YAML reads as a list in a list, such as `[[URL]]`; "" if it is none."""
    match value:
        case [[str(name)]]:
            return f"[[{name}]]"
    return ""


def _hint(wanted: str, value: Any) -> str:
    """Return a hint on how to write the wanted type, if the intention is clear from the value; or ""."""
    if wanted == "text" and isinstance(value, (bool, int, float, date)):
        return "quote it to make it text"
    if wanted == "text" and (name := _placeholder(value)):
        return f"fill in the placeholder {name}, or quote it to make it text"
    if wanted == "a list" and isinstance(value, str) and _PLAIN.fullmatch(value):
        return f"a list of one is written [{value}]"
    if wanted == "a list" and value is None:
        return "leave its key out, or write []"
    if wanted == "a list" and isinstance(value, Mapping) and value:
        return "each of its items begins with '- '"
    if wanted == "a mapping" and isinstance(value, list) and {type(item) for item in value} == {dict}:
        return "its items are `key: value`, and none begins with '- '"
    if wanted in ("a number", "a whole number") and isinstance(value, str):
        if _NUMBER.fullmatch(value):
            return "write it without quotes"
        return "write the number without its unit" if _WITH_UNIT.fullmatch(value) else ""
    return ""


def _reworded(message: str) -> str:
    """Adapt a message of pydantic to the style of the others."""
    message = re.sub(r"^(Input|String|List|Dictionary|Value|Tuple) should ", "must ", message)
    message = re.sub(r"( after validation)?, not \d+$", "", message)
    return message[:1].lower() + message[1:]


def _choices(key: str, models: Sequence[type[BaseModel]]) -> str:
    """Return a hint with the possible values of the discriminator of a union, or ""."""
    fields = [candidate.model_fields[key] for candidate in models if key in candidate.model_fields]
    values = dict.fromkeys(str(value) for field in fields for value in get_args(field.annotation))
    return f"one of {', '.join(values)}" if values else ""


def _name(path: DocumentPath) -> str:
    """Return the name of a value in messages: its key, with the indices after it."""
    for at in range(len(path) - 1, -1, -1):
        if isinstance(path[at], str):
            return f"{path[at]}{''.join(f'[{step}]' for step in path[at + 1 :])}: "
    return ""


def _within(models: Sequence[type[BaseModel]]) -> str:
    titles = dict.fromkeys(model.model_config.get("title") for model in models)
    title = next(iter(titles)) if len(titles) == 1 else None
    return f" in {title}" if title else ""


def keys_of(model: type[BaseModel]) -> list[str]:
    """Return the keys of a model, in its order, as they are written in files."""
    return [field.alias or name for name, field in model.model_fields.items()]


# ---------------------------------------------------------------- schemas for editors

_SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def editor_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the files that a model validates, with which editors check them.

    The first line of such a file names it: `# yaml-language-server: $schema=scenario.schema.json`. Rules that it
    cannot express (CEL, keys that exclude each other, files that must exist) are checked when a file is loaded.
    """
    derived = model.model_json_schema(by_alias=True)
    _without_artefacts(derived)
    return {"$schema": _SCHEMA_DIALECT, **derived, "title": title}


def _without_artefacts(node: Any) -> None:
    """Remove artefacts of pydantic: titles and examples of keys, and null as the default of optional keys."""
    if isinstance(node, list):
        for item in node:
            _without_artefacts(item)
    elif isinstance(node, dict):
        if node.get("default", ...) is None:
            del node["default"]
        for key, value in node.items():
            if key == "properties":
                for entry in value.values():
                    entry.pop("title", None)
                    entry.pop("examples", None)
            if key not in ("default", "enum", "const"):
                _without_artefacts(value)
