"""The subject of an exploration: an agent of a manifest, or a scenario that leaves answers open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, Final

from harness.authoring.setting import Setting, keys_of_scenario, world_of_scenario
from harness.authoring.target import Target
from harness.authoring.trial import unwritten
from harness.dialects.registry import agents_of
from harness.errors import FormatError, Problem
from harness.explore.written import Keys
from harness.graph.model import START, Declared, Graph
from harness.graph.trace import Event
from harness.scenario import SUFFIXES
from harness.scenario.app_process import graph_outside_runs
from harness.scenario.model import Exploration, Scenario
from harness.scenario.outcome import Outcome
from harness.scenario.real_limit import progress
from harness.scenario.run import run_scenario
from harness.settings import Projects, Settings, Traces
from harness.source.display import did_you_mean
from harness.source.document import shown_path
from harness.units import instant_text

PATIENCE_S: Final = 86_400.0
"""The virtual seconds that a run of a manifest may take: people and joins may wait longer than scenarios do."""
_USUAL_S: Final = 30
"""The limit of a scenario that gives none."""


_MOST_VISITS: Final = 100


def most_visits(graph: Graph) -> int:
    """Return the visits of nodes after which a run counts as endless, far below what dialects allow."""
    return max(_MOST_VISITS, 20 * len(graph.nodes))


def from_entry(shape: Mapping[str, Any], entry: str | None) -> Mapping[str, Any]:
    """Return the parts of a graph (`graph_shape`) that one of its entry points leads to; all, if it has only one."""
    routes = [tuple(re.split(r" -> | \[", branch, maxsplit=2)[:2]) for branch in shape["branches"]]
    ways = dict(zip(shape["branches"], routes, strict=True))
    begins = {way for branch, way in ways.items() if way[0] == START and branch.endswith(f" [{entry}]")}
    if not begins:
        return shape
    inside = {target for _, target in begins}
    onward = [way for way in (*routes, *map(tuple, shape["edges"])) if way[0] != START]
    while more := {to for source, to in onward if source in inside} - inside:
        inside |= {*more, *(shape["nodes"] if "*" in more else ())}
    kept = {
        "nodes": [node in inside for node in shape["nodes"]],
        "edges": [tuple(edge) in begins or edge[0] in inside for edge in shape["edges"]],
        "branches": [way in begins or way[0] in inside for way in routes],
    }
    parts = {part: list(compress(shape[part], kept[part])) for part in kept}
    lines = {part: list(compress(shape["lines"][part], kept[part])) for part in kept}
    return {**shape, **parts, "lines": lines}


@dataclass(frozen=True)
class Subject:
    """The subject of an exploration.

    Attributes:
        name: its name in messages.
        scenario: the scenario whose stubs answer first; of a manifest, one without any.
        graph: its graph; of an app, as far as it is known without importing it.
        settings: those of its project.
        keys: the keys that a scenario of it has, such as `agent`.
        world: entries of its scenario that are real, and the tools of its MCP servers.
    """

    name: str
    scenario: Scenario
    graph: Graph
    settings: Settings
    keys: Mapping[str, Any]
    world: Mapping[str, Any]

    @property
    def manifest(self) -> Path:
        """Its manifest."""
        return self.scenario.manifests[0]

    @property
    def declared(self) -> Declared:
        """The data that its manifest declares."""
        return self.graph.declared()

    @property
    def laws(self) -> Exploration:
        """The laws that must hold besides the rules that always do."""
        return self.scenario.explore or Exploration()

    def keys_for(self, events: Sequence[Event]) -> Keys:
        """Return the keys that a scenario of a run has besides its input and world."""
        is_long = any(event["at"] > _USUAL_S for event in events[-1:]) and "timeout" not in self.keys
        return {**self.keys, **({"timeout": PATIENCE_S} if is_long else {})}

    def head(self, file: Path) -> Keys:
        """Return the other keys of a file with its scenarios."""
        return {"harness": 1, "manifest": self._setting.manifest_from(file.parent)}

    def unwritten(self, file: Path, keys: Keys, times: int = 1) -> Scenario:
        """Return a scenario as if the file had it, which may have so many times the visits of a search.

        Raises:
            SourceError: it is not valid.
        """
        most = times * most_visits(self.graph)
        return replace(unwritten(file, self.head(file), keys, self.settings), most_visits=most)

    def trial(self, file: Path, keys: Keys, times: int = 1) -> Outcome:
        """Return the outcome of such a scenario.

        Raises:
            SourceError: it is not valid.
            KeyboardInterrupt: it was asked to end.
        """
        [outcome] = run_scenario(self.unwritten(file, keys, times), replace(self.settings, traces=Traces.ALL))
        progress.raise_if_stopped()
        return outcome

    def target(self, file: Path) -> Target:
        """Return what writes scenarios to a file; one that exists keeps its own.

        Raises:
            FormatError: it cannot be written.
        """
        return Target.at(file, self._setting)

    @property
    def _setting(self) -> Setting:
        return Setting(self.scenario.manifests, {}, {}, None)


def of_manifest(manifest: Path, agent: str | None, projects: Projects) -> Iterator[Subject]:
    """Yield the agent of a manifest; of several, each unless one is named.

    Raises:
        SourceError: it is no manifest, is not valid, or has no such agent.
    """
    _, agents = agents_of(manifest, None)
    if agent and agents and agent not in agents:
        text = f"{shown_path(manifest)} has no agent '{agent}'"
        raise FormatError(Problem("unknown-agent", text, hint=did_you_mean(agent, agents)))
    for name in [agent] if agent else agents if len(agents) > 1 else [None]:
        keys = {"agent": name} if name else {}
        file = manifest.with_name(manifest.name.partition(":")[0] + SUFFIXES[0])
        settings = projects.around(manifest.parent.resolve())
        head, named = {"harness": 1, "manifest": manifest.name}, f"explored {name or ''}".strip()
        scenario = replace(unwritten(file, head, {"name": named, **keys}, settings), timeout_s=PATIENCE_S)
        graph = graph_outside_runs(scenario, settings)
        shown = f"{manifest}" + (f" {name}" if name else "")
        yield Subject(shown, scenario, graph, settings, keys, {})


def of_scenario(scenario: Scenario, settings: Settings) -> Subject:
    """Return a scenario as what is explored: what its stubs answer stays as written.

    Raises:
        SourceError: its manifest is not valid.
    """
    scenario = scenario.whole()
    keys = keys_of_scenario(scenario)
    keys |= {"seed": scenario.seed} if scenario.seed else {}
    keys |= {"now": instant_text(scenario.now)} if scenario.now else {}
    graph = graph_outside_runs(scenario, settings)
    return Subject(scenario.id, scenario, graph, settings, keys, world_of_scenario(scenario))
