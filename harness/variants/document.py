"""The format of a variants file, and its reader. Source: docs/variants.md, "The file"."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, Tag, WithJsonSchema

from harness import DISTRIBUTION
from harness.dialects.request import OPERATIONS, faulty_operations
from harness.errors import FormatError, Problem, Span
from harness.recording.names import name_error
from harness.scenario.document import Version
from harness.source.display import did_you_mean
from harness.source.document import Document, hint_for_missing, read, shown_path
from harness.source.models import Mistake, editor_schema, in_file_order, mistaken, validate
from harness.world.field_types import LEFT_OUT, EnvValue, Name, PromptFile, Strict, by_shape

BASELINE: Final = "baseline"
_SEPARATOR: Final = "+"
_MAPPINGS: Final = ("prompts", "models", "params", "env")
_CHANGES: Final = (*_MAPPINGS, "manifest", "edit")


@dataclass(frozen=True)
class Prompt:
    """The text of a prompt in a variant, and its location."""

    text: str
    span: Span


@dataclass(frozen=True)
class Variant:
    """The changes that a variant makes.

    It applies to manifests that match a glob in each list of `only`. `spans` are the locations of its keys, and
    of each name of a prompt, model, parameter and variable.
    """

    name: str
    span: Span
    prompts: dict[str, Prompt] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    manifest: Path | None = None
    edit: tuple[dict[str, Any], ...] = ()
    only: tuple[tuple[str, ...], ...] = ()
    spans: dict[str, Span] = field(default_factory=dict)

    @property
    def is_baseline(self) -> bool:
        """True if the variant changes nothing."""
        return not any(getattr(self, key) for key in _CHANGES)


def _check_name(value: str) -> str:
    flaw = name_error(value) or (
        "it has a '/'" if "/" in value else "it has a '+'" if _SEPARATOR in value else ""
    )
    if flaw:
        raise mistaken(Mistake(f"'{value}' cannot be the name of a variant: {flaw}"))
    return value


def _check_patch(value: list[dict[str, Any]]) -> list[dict[str, Any]]:
    wrong = faulty_operations(value)
    if wrong:
        raise mistaken(*(Mistake(text) for text in wrong))
    return value


_POINTER: Final = {"type": "string", "pattern": "^(/|$)"}
Operation = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"op": {"enum": OPERATIONS}, "path": _POINTER, "from": _POINTER, "value": {}},
            "required": ["op", "path"],
        }
    ),
]
"""An operation of a JSON Patch."""


class VariantKeys(Strict, title="a variant"):
    """A variant, as written in the file."""

    name: Annotated[str, AfterValidator(_check_name)] = Field(description="Unique in its file.")
    prompts: dict[
        str,
        Annotated[
            Annotated[str, Tag("text")] | Annotated[PromptFile, Tag("mapping")],
            by_shape("text, or {file: PATH}"),
        ],
    ] = Field(LEFT_OUT, description="Prompts by id, as `harness prompts` lists them.")
    models: dict[str, Name] = Field(LEFT_OUT, description="Models, by the name in calls.")
    params: dict[str, Any] = Field(LEFT_OUT, description="Parameters of every model call.")
    env: dict[str, EnvValue] = Field(LEFT_OUT, description="Values for ${VAR}, over the scenario's.")
    manifest: Name = Field(LEFT_OUT, description="A manifest in place of the scenario's.")
    edit: Annotated[list[Operation], AfterValidator(_check_patch)] = Field(
        LEFT_OUT, description="A JSON Patch (RFC 6902) of the manifest."
    )
    only: list[str] = Field(LEFT_OUT, description="Globs: only manifests that one of them matches.")


class VariantsFile(Strict, title="a variants file"):
    """A variants file, as written."""

    harness: Version = Field(description="The format's version: 1.")
    variants: Annotated[list[VariantKeys], Field(min_length=1)] = Field(description="The variants.")
    matrix: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(
        LEFT_OUT,
        description="Names of variants by axis; every combination of one per axis is a variant, too.",
    )


def schema() -> dict[str, Any]:
    """Return the JSON Schema of variants files."""
    return editor_schema(VariantsFile, f"Variants file of {DISTRIBUTION}")


def read_variants(path: Path) -> list[Variant]:
    """Read the variants of a file: the baseline first, then those of the file in order, then those of its matrix.

    Raises:
        FormatError: lists everything that is wrong with the file.
    """
    document = read(path, yaml="1.2", error=FormatError)
    keys = validate(VariantsFile, document, error=FormatError)
    problems: list[Problem] = []
    written = [
        _variant(each, document.at(("variants", number)), path.parent, problems)
        for number, each in enumerate(keys.variants)
    ]
    problems += _name_problems(written)
    combined = list(_combinations(written, keys.matrix or {}, document, problems))
    if problems:
        raise FormatError(in_file_order(problems))
    empty = [variant for variant in written if variant.is_baseline] or [Variant(BASELINE, document.span())]
    return list({each.name: each for each in [*empty, *written, *combined]}.values())


def select_variants(variants: list[Variant], names: tuple[str, ...]) -> list[Variant]:
    """Return the variants with these names, or all if there are none; the baseline is always included.

    Raises:
        FormatError: there is no variant with one of the names.
    """
    known = [variant.name for variant in variants]
    for name in names:
        if name not in known:
            raise FormatError(_unknown(name, None, known))
    return [each for each in variants if not names or each.is_baseline or each.name in names]


def _unknown(name: str, place: Span | None, known: Iterable[str]) -> Problem:
    return Problem("unknown-variant", f"no variant '{name}'", place, did_you_mean(name, [*known]))


def _variant(keys: VariantKeys, at: Document, folder: Path, problems: list[Problem]) -> Variant:
    spans = {key: at.span((key,)) for key in at.value}
    for key in _MAPPINGS:
        spans |= {f"{key}.{name}": at.key_span((key, name)) for name in at.value.get(key) or {}}
    manifest = folder / keys.manifest if keys.manifest else None
    if manifest is not None and not os.path.exists(manifest):
        problems.append(_missing(manifest, spans["manifest"]))
    prompts = {}
    for id_, written in (keys.prompts or {}).items():
        place = at.span(("prompts", id_))
        text = written if isinstance(written, str) else _read_text(folder / written.file, place, problems)
        prompts[id_] = Prompt(text, place)
    return Variant(
        name=keys.name,
        span=spans["name"],
        prompts=prompts,
        models=keys.models or {},
        params=keys.params or {},
        env=keys.env or {},
        manifest=manifest,
        edit=tuple(keys.edit or ()),
        only=(tuple(keys.only),) if keys.only else (),
        spans=spans,
    )


def _missing(file: Path, place: Span) -> Problem:
    return Problem("missing-file", f"{shown_path(file)}: no such file", place, hint_for_missing(file))


def _read_text(file: Path, place: Span, problems: list[Problem]) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        problems.append(_missing(file, place))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(Problem("unreadable-file", f"{shown_path(file)}: cannot be read: {error}", place))
    return ""


def _name_problems(variants: list[Variant]) -> Iterator[Problem]:
    first: dict[str, Variant] = {}
    empty: Variant | None = None
    for variant in variants:
        if variant.name in first:
            text = f"a second variant '{variant.name}' (first in line {first[variant.name].span.line})"
            yield Problem("duplicate-name", text, variant.span)
        first.setdefault(variant.name, variant)
        if variant.is_baseline:
            if empty is not None:
                text = f"a second variant that changes nothing (first in line {empty.span.line})"
                yield Problem("conflicting-keys", text, variant.span, f"it can have {', '.join(_CHANGES)}")
            empty = variant
    if empty is None and BASELINE in first:
        text = f"the variant '{BASELINE}' changes something"
        hint = "choose another name: the baseline changes nothing"
        yield Problem("conflicting-keys", text, first[BASELINE].span, hint)


def _combinations(
    variants: list[Variant], matrix: dict[str, list[str]], document: Document, problems: list[Problem]
) -> Iterator[Variant]:
    """Yield one variant for each combination of one name per axis; the baseline adds nothing to a combination."""
    known = {variant.name: variant for variant in variants}
    if not any(each.is_baseline for each in variants):
        known.setdefault(BASELINE, Variant(BASELINE, document.span()))
    for axis, names in matrix.items():
        for number, name in enumerate(names):
            if name not in known:
                problems.append(_unknown(name, document.span(("matrix", axis, number)), known))
    if problems:
        return
    for choice in product(*matrix.values()):
        parts = [known[name] for name in choice if not known[name].is_baseline]
        if len(parts) > 1:
            yield _merge(parts, document.span(("matrix",)), problems)


def _merge(parts: list[Variant], span: Span, problems: list[Problem]) -> Variant:
    combined = Variant(_SEPARATOR.join(part.name for part in parts), span)
    for part in parts:
        both = [
            f"{key}.{name}"
            for key in _MAPPINGS
            for name in getattr(part, key)
            if name in getattr(combined, key)
        ]
        both += ["manifest"] if part.manifest and combined.manifest else []
        if both:
            text = (
                f"cannot build '{combined.name}': '{part.name}' and another variant change {', '.join(both)}"
            )
            problems.append(Problem("conflicting-keys", text, span))
        combined = replace(
            combined,
            manifest=part.manifest or combined.manifest,
            edit=(*combined.edit, *part.edit),
            only=(*combined.only, *part.only),
            **{key: getattr(combined, key) | getattr(part, key) for key in (*_MAPPINGS, "spans")},
        )
    return combined
