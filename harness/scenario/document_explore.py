"""The pydantic model of `explore`: what no run of an agent may do, whatever the world answers.

Source: docs/explore.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ConfigDict, Field, create_model

from harness.scenario.document_expect import Expect, part_of_expect
from harness.scenario.model import Allowed, Exploration
from harness.source.document import Document
from harness.world.field_types import LEFT_OUT, Name, Strict

INVARIANTS: Final = (
    *("never", "never_calls", "max_visits", "checks", "output_schema", "state_schema", "call_counts"),
    *("usage", "latency", "custom"),
)
"""The checks that make sense for any run."""


class AllowedFailure(Strict):
    """A failure that is fine."""

    model_config = ConfigDict(title="an allowed failure")

    type: Name = Field(LEFT_OUT, description="The name of its type.")
    message: str = Field(LEFT_OUT, description="A part of its text.")
    node: Name = Field(LEFT_OUT, description="The node in which it happens (glob).")


if TYPE_CHECKING:
    _Invariants = Expect
else:
    _Invariants = create_model(
        "_Invariants",
        __base__=Strict,
        **{key: (Expect.model_fields[key].annotation, Expect.model_fields[key]) for key in INVARIANTS},
    )


class Explore(_Invariants):
    """The rules that no run may break, whatever the world answers. Failed and paused runs are judged, too."""

    model_config = ConfigDict(title="'explore'")

    allow: list[AllowedFailure] = Field(
        LEFT_OUT, examples=["allow: [{type: RateLimitError}]"], description="Failures that are fine."
    )

    def exploration(self, at: Document) -> Exploration:
        """Return what is written at `at`."""
        allowed = tuple(Allowed(each.type, each.message, each.node) for each in self.allow or ())
        return Exploration(part_of_expect(at, INVARIANTS), allowed)
