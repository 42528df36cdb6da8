"""The rules of a gate, read from `[tool.harness.gate]` in pyproject.toml or `gate:` in a file (docs/gate.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import ConfigDict, Field, create_model, model_validator

from harness import DISTRIBUTION
from harness.errors import FormatError, Problem
from harness.gate.changes import CHANGE_RULES, REMOVED_RULES
from harness.gate.rule import Confidence
from harness.gate.rules import RUN_RULES
from harness.gate.ruling import SCOPES, Scope
from harness.source.document import Document, DocumentPath, read, shown_path
from harness.source.models import Mistake, editor_schema, mistaken, validate
from harness.source.project import PYPROJECT, has_settings
from harness.world.field_types import LEFT_OUT, Strict

_TABLE: Final = ("tool", "harness", "gate")
_KEY: Final = "gate"
RULES: Final = {rule.name: rule for rule in (*RUN_RULES, *REMOVED_RULES, *CHANGE_RULES)}
"""All rules, in the order in which they are printed."""
DEFAULT_CONFIDENCE: Final = 0.95
_Keys = TypeVar("_Keys", bound=Strict)


def _with_rules(model: type[_Keys]) -> type[_Keys]:
    """Return the model with a key for each rule."""
    keys: dict[str, Any] = {
        rule.name: (rule.bound, Field(default=LEFT_OUT, description=rule.description))
        for rule in RULES.values()
    }
    return create_model(model.__name__, __base__=model, __module__=model.__module__, **keys)


@_with_rules
class Rules(Strict):
    """The rules. One that is not set does not apply."""

    model_config = ConfigDict(title="the gate")

    confidence: Confidence = Field(
        default=LEFT_OUT, description="The confidence of intervals and tests; 0.95 unless given."
    )

    if TYPE_CHECKING:  # the keys of rules are those of `RULES`

        def __init__(self, **keys: Any) -> None: ...

    @property
    def rules(self) -> dict[str, Any]:
        """The rules that are set, with their bounds; a switch that is false counts as not set."""
        bounds = {name: getattr(self, name) for name in self.written(*RULES)}
        return {
            name: bound for name, bound in bounds.items() if bound is not False or not RULES[name].is_switch
        }


class PartRules(Rules):
    """The rules of a part of the scenarios."""

    model_config = ConfigDict(
        title="a part of the gate",
        json_schema_extra={"oneOf": [{"required": [scope]} for scope in SCOPES], "minProperties": 2},
    )

    tag: str = Field(default=LEFT_OUT, description="The scenarios with this tag.")
    suite: str = Field(default=LEFT_OUT, description="The scenarios of this file.")
    manifest: str = Field(default=LEFT_OUT, description="The scenarios of this manifest.")

    @model_validator(mode="after")
    def _names_a_part(self) -> PartRules:
        named = self.written(*SCOPES)
        if len(named) != 1:
            found = f"found {' and '.join(named)}" if named else "found none"
            raise mistaken(Mistake(f"expected one of tag, suite and manifest, {found}"))
        if not self.rules:
            raise mistaken(Mistake(f"no rule for {named[0]} '{getattr(self, named[0])}'"))
        return self

    @property
    def scope(self) -> tuple[Scope, str]:
        """The kind of the part, and its name."""
        [kind] = self.written(*SCOPES)
        return kind, getattr(self, kind)  # type: ignore[return-value]


class _PolicyKeys(Rules):
    """A policy as written."""

    by: list[PartRules] = Field(default=LEFT_OUT, description="Rules for parts of the scenarios.")
    baseline: str = Field(
        default=LEFT_OUT, description="The run or file to compare with, relative to this file."
    )


class PolicyFile(Strict):
    """A policy file as written."""

    model_config = ConfigDict(title="a policy file")

    gate: _PolicyKeys = Field(description="The rules, as under [tool.harness.gate].")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of policy files."""
    return editor_schema(PolicyFile, f"Policy of the gate of {DISTRIBUTION}")


@dataclass(frozen=True)
class Policy:
    """The rules that apply to a run.

    rules     for the whole run; `by` has those of parts
    baseline  the run or file to compare with, unless the command line names one
    source    the location of the rules, as shown to users; "" for the defaults
    document  the file of the rules, and their path in it
    """

    rules: Rules
    by: tuple[PartRules, ...] = ()
    baseline: Path | None = None
    source: str = ""
    document: tuple[Document, DocumentPath] | None = None

    @property
    def is_default(self) -> bool:
        """True if no rule is set, so that `default_rules` apply."""
        return not (self.rules.model_fields_set & RULES.keys()) and not self.by

    def problem(self, code: str, message: str, part: int | None, key: str, hint: str = "") -> Problem:
        """Return a problem with a rule of the whole run, or of `by[part]`, at its location."""
        if self.document is None:
            return Problem(code, message, None, hint)
        document, path = self.document
        where = (*path, *(() if part is None else ("by", part)), key)
        return Problem(code, message, document.key_span(where), hint)


def default_rules(*, baseline: bool) -> Rules:
    """Return the rules that apply if none are set."""
    given: Mapping[str, Any] = {"min_pass_rate": 1.0} | ({"no_new_failures": True} if baseline else {})
    return Rules(**given)


def read_policy(file: Path | None, project: Path) -> Policy:
    """Read the policy in a file, or that of the project if `file` is None.

    Raises:
        FormatError: it cannot be read, or has an unknown key or a bad bound.
    """
    if file is None:
        file = project / PYPROJECT
        if not file.is_file() or not has_settings(file):
            return Policy(Rules())
        document = read(file, error=FormatError)
        if _KEY not in document.value["tool"]["harness"]:
            return Policy(Rules())
    else:
        document = read(file, yaml="1.2", error=FormatError)
    path = _TABLE if file.suffix == ".toml" else (_KEY,)
    written = (
        _read_toml(document)
        if file.suffix == ".toml"
        else validate(PolicyFile, document, error=FormatError).gate
    )
    baseline = file.parent / written.baseline if written.baseline else None
    return Policy(written, tuple(written.by or ()), baseline, shown_path(file), (document, path))


def _read_toml(document: Document) -> _PolicyKeys:
    value = document.value
    for key in _TABLE:
        if not isinstance(value, dict) or key not in value:
            message = f"{document.file} has no table [{'.'.join(_TABLE)}]"
            raise FormatError(Problem("missing-key", message))
        value = value[key]
    return validate(_PolicyKeys, document, _TABLE, error=FormatError)
