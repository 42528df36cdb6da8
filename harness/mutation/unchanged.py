"""The unchanged runs of the scenarios: what they reach, and with what the runs of mutants are compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from harness.graph.model import START
from harness.graph.trace import Event
from harness.mutation.execution import Chain, Run
from harness.mutation.mutant import Agent, Mutant
from harness.scenario.model import Scenario
from harness.settings import Projects
from harness.variants.independence import reads_requests

_TIMES: Final = 5.0
_LEAST_S: Final = 30.0
"""The limit of real time of a mutant: so many times what the unchanged run took, and at least so many seconds."""
_ASKS: Final = frozenset({"llm", "agent"})


@dataclass(frozen=True)
class Unchanged:
    """The runs of a scenario without any mutant.

    Attributes:
        number: its number.
        scenario: the scenario.
        runs: one for each repeat.
        reads: an answer, or a check, depends on what models are told; or none of them is asked.
    """

    number: int
    scenario: Scenario
    runs: Sequence[Run]
    reads: bool = True

    @property
    def judges(self) -> bool:
        """True if mutants can be judged by it: it passes, and its manifest is not refused."""
        return all(run.outcome.passed and run.outcome.observed.status != "invalid" for run in self.runs)

    @property
    def real_timeout_s(self) -> float:
        """The real seconds that a mutant may take."""
        return max(_LEAST_S, _TIMES * max(run.outcome.wall for run in self.runs))

    @cached_property
    def reached(self) -> frozenset[str]:
        """The names of the nodes that ran, of nested graphs as well, and of what calls were made from."""
        found = {START}
        for run in self.runs:
            for event in run.events:
                path = f"{event.get('graph') or ''}{event.get('node') or ''}"
                if event["event"] in ("node_start", "call") and path:
                    found.update((path, *path.split("/")))
        return frozenset(found)

    def reaches(self, mutant: Mutant) -> bool:
        """True if the run reached the part that a mutant changes, or may notice it otherwise."""
        expected = self.scenario.expect.values
        if not {"warnings", "never_warnings"}.isdisjoint(expected):  # a manifest warns whatever runs
            return True
        if any(mention.name in mutant.names for mention in self.scenario.mentions):
            return True
        if mutant.in_prompt and not self.reads:
            return False
        return mutant.node is None or mutant.node in self.reached


def unchanged(number: int, scenario: Scenario, projects: Projects) -> Chain[Unchanged]:
    """Run a scenario without any mutant."""
    runs = yield scenario
    asks = any(call["kind"] in _ASKS for run in runs for call in run.outcome.observed.calls)
    return Unchanged(number, scenario, runs, not asks or _reads(scenario, projects))


def _reads(scenario: Scenario, projects: Projects) -> bool:
    expected = scenario.expect.values
    conditions = map(str, expected.get("checks", ()))
    return (
        reads_requests(scenario, projects.of(scenario.file))
        or bool(expected.get("custom"))
        or any("prompt" in each or "request" in each for each in conditions)
    )


def agents_of(runs: Iterable[Unchanged]) -> list[Agent]:
    """Return the agents that scenarios run, each with what their runs showed."""
    found: dict[object, list[Unchanged]] = {}
    for each in runs:
        scenario, outcome = each.scenario, each.runs[0].outcome
        key = (scenario.manifests, scenario.dialect, scenario.agent, outcome.agent)
        found.setdefault(key, []).append(each)
    return [_agent(of) for of in found.values()]


def _agent(of: Sequence[Unchanged]) -> Agent:
    agent = Agent(of[0].scenario, tuple(each.number for each in of))
    for run in (run for each in of for run in each.runs):
        observed = run.outcome.observed
        agent.shape, agent.dialect = run.outcome.shape, run.outcome.dialect
        called = ((str(call["node"]), call["name"]) for call in observed.calls if call["kind"] == "tool")
        agent.tools |= dict.fromkeys(called)
        if isinstance(observed.state, dict):
            agent.lists |= {key: None for key, value in observed.state.items() if isinstance(value, list)}
        _note_writes(agent, run.events)
    return agent


def _note_writes(agent: Agent, events: Sequence[Event]) -> None:
    """Note the keys that nodes wrote. Some write the whole state: what they leave as it was does not count."""
    known: dict[str, Any] = {}
    for event in events:
        kind, graph = event["event"], event.get("graph") or ""
        if kind in ("call", "node_pause"):
            path = f"{graph}{event['node']}"
            agent.acting.update((path, path.partition("/")[0]))
        written = event.get("update" if kind == "node_end" else "value")
        if graph or kind not in ("node_end", "input", "resume") or not isinstance(written, dict):
            continue
        if kind == "node_end":
            new = [str(key) for key, value in written.items() if key not in known or known[key] != value]
            agent.keys.setdefault(event["node"], {}).update(dict.fromkeys(new))
        known.update(written)
