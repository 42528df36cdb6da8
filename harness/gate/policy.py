"""The rules of a gate, read from `[tool.harness.gate]` in pyproject.toml or `gate:` in a file (docs/gate.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from harness import DISTRIBUTION
from harness.errors import FormatError, Problem
from harness.source.document import Document, DocumentPath, read, shown_path
from harness.source.editor_schema import editor_schema
from harness.source.models import Mistake, describe, mistaken, validate
from harness.source.project import PYPROJECT, has_settings
from harness.units import is_number
from harness.world.field_types import LEFT_OUT, Strict

_TABLE: Final = ("tool", "harness", "gate")
_KEY: Final = "gate"
Scope = Literal["tag", "suite", "manifest"]
SCOPES: Final[tuple[Scope, ...]] = ("tag", "suite", "manifest")


def _share(value: Any) -> Any:
    if isinstance(value, str) and value.strip().endswith("%"):
        raise mistaken(
            Mistake(f"expected a share from 0 to 1, found {describe(value)}", hint=_as_share(value))
        )
    if is_number(value) and not 0 <= value <= 1:
        hint = _as_share(f"{value}%") if value > 1 else ""
        raise mistaken(Mistake(f"expected a share from 0 to 1, found {describe(value)}", hint=hint))
    return value


def _as_share(percentage: str) -> str:
    number = percentage.strip().removesuffix("%").strip()
    try:
        share = float(number) / 100
    except ValueError:
        return ""
    return f"{number} % is {share:g}" if 0 <= share <= 1 else ""


def _confidence(value: Any) -> Any:
    if is_number(value) and not 0.5 <= value < 1:
        raise mistaken(Mistake(f"expected a confidence from 0.5 to below 1, found {describe(value)}"))
    return value


Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_share)]
Amount = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class Shares(Strict):
    """A rule with several shares, at least one of which is set."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})
    without_any: ClassVar[str]

    @model_validator(mode="after")
    def _has_a_share(self) -> Self:
        if not self.bounds:
            raise mistaken(Mistake(self.without_any, hint=f"known: {', '.join(type(self).model_fields)}"))
        return self

    @property
    def bounds(self) -> dict[str, float]:
        """The shares that are set."""
        return {name: getattr(self, name) for name in self.written(*type(self).model_fields)}


class MinCoverage(Shares):
    """Minimum shares of each graph that must be covered."""

    model_config = ConfigDict(title="min_coverage")
    without_any = "min_coverage bounds nothing"

    nodes: Share = Field(default=LEFT_OUT, description="The least share of nodes.")
    edges: Share = Field(default=LEFT_OUT, description="The least share of edges.")
    branches: Share = Field(default=LEFT_OUT, description="The least share of branches.")


class ProvenNoWorse(Shares):
    """Shares by which figures may be worse than in the baseline, which the run has to prove."""

    model_config = ConfigDict(title="proven_no_worse")
    without_any = "proven_no_worse names no figure"

    fitness: Share = Field(default=LEFT_OUT, description="The largest share by which it may be lower.")
    latency: Share = Field(default=LEFT_OUT, description="The largest share by which it may be higher.")
    cost: Share = Field(default=LEFT_OUT, description="The largest share by which it may be higher.")


class Rules(Strict):
    """The rules, in the order in which they are printed. A rule that is not set does not apply."""

    model_config = ConfigDict(title="the gate")

    min_pass_rate: Share = Field(default=LEFT_OUT, description="The least pass rate: 0.95 for 95 %.")
    min_fitness: Share = Field(default=LEFT_OUT, description="The least fitness.")
    max_p50_latency: Amount = Field(
        default=LEFT_OUT, description="The largest median latency of a run, in virtual seconds."
    )
    max_p95_latency: Amount = Field(
        default=LEFT_OUT, description="The largest 95th percentile of latency, in virtual seconds."
    )
    max_cost: Amount = Field(
        default=LEFT_OUT, description="The largest cost of all runs together, in US dollars."
    )
    max_tokens: Amount = Field(
        default=LEFT_OUT, description="The most tokens that all runs together send and receive."
    )
    max_flaky: Count = Field(
        default=LEFT_OUT, description="The most scenarios whose repeats have different verdicts."
    )
    max_errors: Count = Field(
        default=LEFT_OUT, description="The most scenarios that could not be judged; 0 unless given."
    )
    min_coverage: MinCoverage = Field(
        default=LEFT_OUT, description="The least shares of each graph that all scenarios together cover."
    )
    no_drift: bool = Field(
        default=LEFT_OUT, description="True: the fitness has not fallen over the runs of the history."
    )
    no_new_failures: bool = Field(
        default=LEFT_OUT,
        description="True: no scenario that passed in the baseline fails, errors, or is removed.",
    )
    allow_removed: bool = Field(
        default=LEFT_OUT, description="True: scenarios of the baseline may be missing; false unless given."
    )
    max_fitness_drop: Share = Field(
        default=LEFT_OUT, description="The largest share by which the fitness may be below the baseline's."
    )
    max_latency_increase: Share = Field(
        default=LEFT_OUT, description="The largest share by which the latency may be above the baseline's."
    )
    max_cost_increase: Share = Field(
        default=LEFT_OUT, description="The largest share by which the cost may be above the baseline's."
    )
    max_tokens_increase: Share = Field(
        default=LEFT_OUT, description="The largest share by which the tokens may be above the baseline's."
    )
    proven_no_worse: ProvenNoWorse = Field(
        default=LEFT_OUT,
        description="Shares by which figures may be worse than the baseline's; the run has to prove it.",
    )
    confidence: Annotated[float, Field(ge=0.5, lt=1), BeforeValidator(_confidence)] = Field(
        default=LEFT_OUT, description="The confidence of intervals and tests; 0.95 unless given."
    )

    @property
    def rules(self) -> dict[str, Any]:
        """The rules that are set, with their bounds; one of `_SWITCHES` that is false counts as not set."""
        bounds = {name: getattr(self, name) for name in self.written(*RULES)}
        return {name: bound for name, bound in bounds.items() if bound is not False or name not in _SWITCHES}


_SWITCHES: Final = ("no_drift", "no_new_failures")
RULES: Final = tuple(name for name in Rules.model_fields if name != "confidence")
WITH_BASELINE: Final = RULES[RULES.index("no_new_failures") :]


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
        return not (set(self.rules.model_fields_set) & set(RULES)) and not self.by

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
