"""The types of bounds, as a policy writes them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from harness.source.models import Mistake, describe, mistaken
from harness.units import is_number
from harness.world.field_types import LEFT_OUT, Strict


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
Confidence = Annotated[float, Field(ge=0.5, lt=1), BeforeValidator(_confidence)]


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
