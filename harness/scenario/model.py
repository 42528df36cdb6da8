"""The data model of a scenario: what to run, its world, its inputs and its expectations.

Built by `harness.scenario.load`; names are those of docs/scenario-format.md.
"""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.dialects.request import Changes, LoadRequest
from harness.errors import Problem, Span
from harness.graph.model import Graph, Rerun
from harness.graph.names import has_caller
from harness.graph.native import Invocation, NativeGraph, StoredItem
from harness.settings import RecordMode, Settings
from harness.source.display import did_you_mean
from harness.source.document import real_path, relative_path, shown_path

if TYPE_CHECKING:
    from harness.scenario.mentions import Mention
    from harness.world.spec import WorldSpec
    from harness.world.stub_models import LLMStub


@cache
def _no_world() -> WorldSpec:
    from harness.world.spec import WorldSpec  # reports name scenarios, and read no worlds

    return WorldSpec()


class _Missing:
    """The value of `input` or `resume` if it is not written (None is a valid value)."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "MISSING"  # the same object in every process


MISSING: Final = _Missing()


@dataclass(frozen=True)
class Expectations:
    """The `expect` mapping of a scenario or turn.

    Attributes:
        values: the expected value of each check, as written.
        weights: the weights by check.
        spans: the locations by key, and by `key[index]` for each item that is a check of its own.
        prompts: by index of the judge, the prompts of the scenario or project that replace the library's.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    spans: Mapping[str, Span] = field(default_factory=dict)
    prompts: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Allowed:
    """A failure that is fine. What is None may be anything; `message` is a part of the text, `node` a glob."""

    type: str | None = None
    message: str | None = None
    node: str | None = None


@dataclass(frozen=True)
class Exploration:
    """The `explore` mapping of a scenario: what must hold in any run, and the failures that are allowed."""

    invariants: Expectations = field(default_factory=Expectations)
    allow: tuple[Allowed, ...] = ()


@dataclass(frozen=True)
class Variation:
    """The changes that a variant makes to a scenario: its manifest, the models that answer, and their parameters."""

    name: str
    changes: Changes = field(default_factory=Changes)
    models: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    is_baseline: bool = False
    changes_graph: bool = False
    """True if the graph may differ, since its manifest, a part of it, or variables were changed."""
    is_same: bool = False
    """True if the scenario and its manifest already have all these values."""
    real_timeout_s: float | None = None
    """The most real seconds of one run, if that is less than the setting `real_timeout`."""


@dataclass(frozen=True)
class Turn:
    """One input (or resume, or rerun) of a conversation. Its `world` has priority over the scenario's.

    `entry` is where the input enters; None for the agent of the scenario.
    """

    input: Any = MISSING
    entry: str | None = None
    resume: Any = MISSING
    rerun: Rerun | None = None
    world: WorldSpec = field(default_factory=_no_world)
    expect: Expectations | None = None
    span: Span | None = None


@dataclass(frozen=True)
class NativeKeys:
    """The values that a scenario of an app gives to its invocation. `spans` are the locations of the keys."""

    config: Mapping[str, Any]
    context: Mapping[str, Any] | None
    store: tuple[StoredItem, ...]
    spans: Mapping[str, Span]


_LATE: Final = ("turns", "conversation", "world", "native", "expect", "explore", "mentions", "warnings")


@dataclass(frozen=True)
class Scenario:
    """One scenario. Times are in virtual seconds.

    Attributes:
        turns: exactly one if `conversation` is False, which means that no `turns` are written.
        mentions: the names in the scenario and its turns, which must exist.
        warnings: those raised when the file was read.
        imported: the instant at which its app is imported; None: that of `now`.
        pending: builds the rest of a scenario that is a row of `cases`, see `whole`.
        variation: the variant as which it runs.
        in_process: an app runs in this process, and not in one of its own.
        most_visits: the visits of nodes after which a run counts as endless; None: as the graph has it.
    """

    file: Path
    name: str
    span: Span
    manifests: tuple[Path, ...]
    manifest_span: Span | None = None
    dialect: str | None = None
    agent: str | None = None
    agent_span: Span | None = None
    components: Mapping[str, str] = field(default_factory=dict)
    components_at: Mapping[str, Span] = field(default_factory=dict)
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
    now: datetime | None = None
    imported: datetime | None = None
    turns: tuple[Turn, ...] = field(default_factory=lambda: (Turn(),))
    conversation: bool = False
    world: WorldSpec = field(default_factory=_no_world)
    native: NativeKeys | None = None
    cassette: str | None = None
    allow_unused: bool = False
    expect: Expectations = field(default_factory=Expectations)
    explore: Exploration | None = None
    mentions: tuple[Mention, ...] = ()
    warnings: tuple[Problem, ...] = ()
    pending: Callable[[], Scenario] | None = None
    variation: Variation | None = None
    in_process: bool = False
    most_visits: int | None = None

    def whole(self) -> Scenario:
        """Return the complete scenario.

        A row of `cases` gets its world, turns and expectations only here, when it runs.

        Raises:
            FormatError: a value of the row is invalid where the scenario inserts it.
        """
        if self.pending is None:
            return self
        built = self.pending()
        late = {name: getattr(built, name) for name in _LATE}
        return replace(self, pending=None, **late)

    @property
    def id(self) -> str:
        """FILE::NAME, as in results and on the command line."""
        return f"{shown_path(self.file)}::{self.name}"

    @property
    def variant(self) -> str:
        """The name of the variant as which it runs; "" if there is none."""
        return self.variation.name if self.variation is not None else ""

    @property
    def in_manifest(self) -> bool:
        """True if it is written in the manifest that it runs, and not in a scenario file."""
        return self.file in self.manifests

    @property
    def worlds(self) -> tuple[WorldSpec, ...]:
        """Its world, and that of each turn."""
        return self.world, *(turn.world for turn in self.turns)

    @property
    def expectations(self) -> tuple[Expectations, ...]:
        """Its expectations, and those of each turn that has some."""
        return self.expect, *(turn.expect for turn in self.turns if turn.expect is not None)

    @property
    def draws(self) -> bool:
        """True if its world draws random numbers from the seed, for faults with a `rate`."""
        return any(fault.rate not in (None, 1) for world in self.worlds for fault in world.faults)


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario file without errors."""

    path: Path
    scenarios: tuple[Scenario, ...]


_NEAR: Final = 0.8
"""Minimum similarity at which an environment variable is suggested; a process has dozens of them."""


def load_request(
    scenario: Scenario, settings: Settings, recorded: Mapping[str, str] | None = None
) -> LoadRequest:
    """Return the request for the graph of a scenario.

    `recorded` are values for variables that the process lacks.
    """
    known: Mapping[str, str] = ChainMap(os.environ, dict(recorded or {}))
    environment = {name: known[name] for name in scenario.env_passthrough if name in known}
    return LoadRequest(
        paths=scenario.manifests,
        agent=scenario.agent,
        components=scenario.components,
        env={**environment, **scenario.env},
        folders=import_folders(scenario, settings),
        hooks=tuple(scenario.world.hooks),
        allowed=settings.allow_paths,
        named_at=scenario.manifest_span,
        agent_at=scenario.agent_span,
        components_at=scenario.components_at,
        hooks_at={each.name: each.span for each in scenario.mentions if each.role == "hook" and each.span},
        changes=scenario.variation.changes if scenario.variation else Changes(),
        invocation=_invocation(scenario, settings),
    )


def real_timeout_of(scenario: Scenario, settings: Settings) -> float:
    """Return the most real seconds of one run of a scenario that makes no real calls."""
    own = scenario.variation.real_timeout_s if scenario.variation is not None else None
    return settings.real_timeout if own is None else min(own, settings.real_timeout)


def _invocation(scenario: Scenario, settings: Settings) -> Invocation:
    native = scenario.native or NativeKeys({}, None, (), {})
    return Invocation(
        config=native.config,
        context=native.context,
        store=native.store,
        thread=place(scenario.file, scenario.name, settings.project),
        offline=settings.record_mode is RecordMode.NONE,
    )


@lru_cache(1024)
def place(file: Path, name: str, project: Path) -> str:
    """Return the name of a scenario in its project, which is the same on every machine."""
    return f"{relative_path(file, project)}::{name}"


def problems_of_native_keys(scenario: Scenario, graph: Graph) -> Iterator[Problem]:
    """Yield a problem for each key, and each input that is a list, of a scenario whose agent is no app."""
    if isinstance(graph, NativeGraph):
        return
    for turn in scenario.turns:
        if isinstance(turn.input, list):
            yield Problem("bad-value", "input: expected text or a mapping, found a list", turn.span)
    spans = dict(scenario.native.spans) if scenario.native is not None else {}
    stored = [each.spans["store"] for each in scenario.expectations if "store" in each.values]
    spans |= dict.fromkeys(["expect.store"][: len(stored)], *stored[:1])
    for key, span in spans.items():
        text = f"'{key}' is of LangGraph apps and plain functions: {graph.dialect} has nothing of that kind"
        yield Problem("unknown-key", text, span)


def absent_variables(
    scenario: Scenario, recorded: Mapping[str, str], sources: Iterable[Path] = ()
) -> Iterator[Problem]:
    """Yield a warning for each name in `env_passthrough` that is in neither the process, nor `env`, nor `recorded`.

    A name that has a default in one of the files `sources` gives no warning.
    """
    for name, span in scenario.env_passthrough.items():
        if not (
            name in os.environ or name in scenario.env or name in recorded or _has_default(name, sources)
        ):
            text = f"'env_passthrough' names {name}, which is not set in the environment"
            hint = did_you_mean(name, sorted(os.environ), cutoff=_NEAR, listing=False)
            yield Problem("missing-variable", text, span, hint, severity="warning")


def _has_default(name: str, sources: Iterable[Path]) -> bool:
    """True if one of these files contains `${NAME:-default}` or, as in LeafMesh, `${NAME:default}`."""
    written = f"${{{name}:".encode()
    return any(path.is_file() and written in path.read_bytes() for path in sources)


def import_folders(scenario: Scenario, settings: Settings) -> tuple[Path, ...]:
    """Return the folders from which Python modules are imported: those of the scenario, manifests and settings."""
    return _resolved((scenario.file, *scenario.manifests), tuple(settings.pythonpath), os.getcwd())


@lru_cache(maxsize=1024)
def _resolved(files: tuple[Path, ...], folders: tuple[Path, ...], _current: str) -> tuple[Path, ...]:
    """Resolve these folders and those of the files.

    `_current`, on which relative paths depend, is part of the cache key.
    """
    return tuple(dict.fromkeys(map(real_path, (*(file.parent for file in files), *folders))))


MUTATOR_NODE: Final = "mutator"
"""The node name from which the mutator is called."""


def mutator_stubs(world: WorldSpec) -> tuple[LLMStub, ...]:
    """Return the stubs of the mutator, in order."""
    return tuple(stub for stub in world.llm if MUTATOR_NODE in stub.nodes)


def without_mutator(world: WorldSpec, graph: Graph) -> WorldSpec:
    """Return the world without the mutator's stubs, unless the graph has a node of that name."""
    others = [stub for stub in world.llm if MUTATOR_NODE not in stub.nodes]
    if len(others) == len(world.llm) or has_caller(graph, MUTATOR_NODE):
        return world
    return world.model_copy(update={"llm": others})
