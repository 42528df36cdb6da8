"""A scenario as data: what to run, in which world, with which input, and what to expect.

Built by `harness.scenario.load`; names are those of docs/scenario-format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness.dialects.changes import Changes
from harness.errors import Problem, Span
from harness.graph.model import Rerun
from harness.scenario.mentions import Mention
from harness.source.document import shown_path
from harness.world.spec import WorldSpec


class _Missing:
    """The value of `input` or `resume` where none was written (None is a value of its own)."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "MISSING"  # the same object in every process


MISSING: Final = _Missing()


ITEMIZED: Final = ("checks", "custom", "judge")
"""Keys of `expect` whose every item is a check of its own."""


@dataclass(frozen=True)
class Expectations:
    """The `expect` mapping: each check's expected value as written, its weight, and where it stands.

    `spans` are by key, and by `key[index]` for those of `ITEMIZED`. `prompts` are those that a judge has in place of
    the library's, by its index: of the scenario, or of the project.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    spans: Mapping[str, Span] = field(default_factory=dict)
    prompts: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Variation:
    """What a variant makes different in a scenario: its manifest, the models that answer, their parameters."""

    name: str
    changes: Changes = field(default_factory=Changes)
    models: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    is_baseline: bool = False
    changes_graph: bool = False
    """Whether the graph may be another: its manifest, parts of it, or variables were changed."""
    is_same: bool = False
    """Whether all that is changed is in the scenario and its manifest already."""


@dataclass(frozen=True)
class Turn:
    """One input (or resume, or rerun) of a conversation. `world` is added in front of the scenario's."""

    input: Any = MISSING
    resume: Any = MISSING
    rerun: Rerun | None = None
    world: WorldSpec = field(default_factory=WorldSpec)
    expect: Expectations | None = None
    span: Span | None = None


_LATE: Final = ("turns", "conversation", "world", "expect", "mentions", "warnings")


@dataclass(frozen=True)
class Scenario:
    """One scenario. Times are virtual seconds.

    Without `turns` there is exactly one turn, and `conversation` is False. `mentions` are the names in it and in its
    turns that have to exist somewhere. `warnings` were raised when its file was read. `pending` builds what a row of
    `cases` makes of it, see `whole`. `variation` is that of the variant it runs as.
    """

    file: Path
    name: str
    span: Span
    manifests: tuple[Path, ...]
    manifest_span: Span | None = None
    dialect: str | None = None
    agent: str | None = None
    agent_span: Span | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    env_passthrough: Mapping[str, Span] = field(default_factory=dict)
    description: str = ""
    tags: tuple[str, ...] = ()
    weight: float = 1.0
    timeout_s: float = 30.0
    repeat: int = 1
    pass_score: float = 1.0
    skip: str | None = None
    xfail: str | None = None
    seed: int = 0
    turns: tuple[Turn, ...] = (Turn(),)
    conversation: bool = False
    world: WorldSpec = field(default_factory=WorldSpec)
    cassette: str | None = None
    allow_unused: bool = False
    expect: Expectations = field(default_factory=Expectations)
    mentions: tuple[Mention, ...] = ()
    warnings: tuple[Problem, ...] = ()
    pending: Callable[[], Scenario] | None = None
    variation: Variation | None = None

    def whole(self) -> Scenario:
        """The scenario with its world, turns and expectations, which a row of `cases` has only when it runs.

        Raises:
            FormatError: a value of the row does not fit where the scenario puts it.
        """
        if self.pending is None:
            return self
        built = self.pending()
        late = {name: getattr(built, name) for name in _LATE}
        return replace(self, pending=None, **late)

    @property
    def id(self) -> str:
        """FILE::NAME, as results name it and as a command line takes it."""
        return f"{shown_path(self.file)}::{self.name}"

    @property
    def variant(self) -> str:
        """The name of the variant it runs as; "" of none."""
        return self.variation.name if self.variation is not None else ""

    @property
    def in_manifest(self) -> bool:
        """True if it stands in the manifest that it runs, and not in a scenario file."""
        return self.file in self.manifests

    @property
    def worlds(self) -> tuple[WorldSpec, ...]:
        """Its world, and what each turn puts in front of it."""
        return self.world, *(turn.world for turn in self.turns)

    @property
    def expectations(self) -> tuple[Expectations, ...]:
        """What is expected of it as a whole, and of each turn that says something."""
        return self.expect, *(turn.expect for turn in self.turns if turn.expect is not None)

    @property
    def draws(self) -> bool:
        """True if its world draws from the seed: faults with a `rate`."""
        return any(fault.rate not in (None, 1) for world in self.worlds for fault in world.faults)


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario file that was read without errors."""

    path: Path
    scenarios: tuple[Scenario, ...]
