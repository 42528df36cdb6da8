"""A reference implementation of the execution model: NOTES 2, 3.3, 3.4, 4, 6.3, 11 and 13.

Only for programmatic agents with scripted outcomes. Written for comparison with the harness, not for speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.dialects.leafmesh.conditions import parse_wait_for
from harness.graph.events import Join

Output = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one start of an agent.

    output  None: it fails
    meets   True if the output meets the yields
    """

    takes: int = 0
    output: Output | None = None
    meets: bool = True


@dataclass(frozen=True)
class Agent:
    """An agent and the outcomes of its starts; the last outcome repeats."""

    outcomes: tuple[Outcome, ...]
    calls: tuple[
        tuple[str, bool | None], ...
    ] = ()  # (target, always, or None: only while its output says `go`)
    wait_for: str = ""
    timeout: int = 60
    retries: int | None = None  # None: not strict
    at_once: int | None = 1
    how: str = "dual"
    stores: bool = True


@dataclass(eq=False)
class Call:
    agent: str
    arrivals: list[Arrival]
    is_joined: bool = False
    began: int = 0
    start: int = 0
    attempts: int = 0
    ends: int = 0
    rejected: Output | None = None
    outcome: Outcome | None = None
    output: Output | None = None
    callees: dict[int, Call] = field(default_factory=dict)


@dataclass(eq=False)
class Arrival:
    output: Output
    caller: Call | None = None
    position: int = 0


@dataclass
class Failure:
    agent: str
    type: str
    began: int


class Waves:
    """A run of a mesh; its attributes hold the results.

    They are incomplete if the run `goes_on` after `MOST` starts.
    """

    MOST = 150

    def __init__(self, agents: Mapping[str, Agent], entry: str, given: Output) -> None:
        self.agents = agents
        self.joins = {
            name: Join(need) for name, agent in agents.items() if (need := parse_wait_for(agent.wait_for))
        }
        self.now = 0
        self.path: list[str] = []
        self.inputs: list[tuple[str, Output]] = []
        self.state: dict[str, Output] = {}
        self.upstream: dict[str, Output] = {}
        self.failures: list[Failure] = []
        self.first = Call(entry, [Arrival(given)])
        self._queue = [self.first]
        self._running: list[Call] = []
        self._open: dict[str, tuple[list[Arrival], int]] = {}
        self._closed: dict[str, int] = {}
        self._rounds: dict[str, list[tuple[int, set[str] | None]]] = {name: [] for name in agents}
        self._visits = dict.fromkeys(agents, 0)
        self._holding: set[str] = set()
        self._run()

    def _run(self) -> None:
        while not self.goes_on:
            self._start_queued()
            ending = sorted((c for c in self._running if c.ends == self.now), key=lambda call: call.start)
            if ending:
                for call in ending:
                    self._running.remove(call)
                    self._settle(call)
                continue
            waiting = {n: due for n, (_, due) in self._open.items() if n not in self._holding}
            late = [name for name, due in waiting.items() if due == self.now]
            for name in late:
                self._time_out_join(name)
            if late:
                continue
            times = [*(call.ends for call in self._running), *waiting.values()]
            if not times:
                return
            self.now = min(times)

    def _start_queued(self) -> None:
        queue, self._queue = self._queue, []
        for call in queue:
            most = self.agents[call.agent].at_once
            if most is not None and sum(c.agent == call.agent for c in self._running) >= most:
                self._queue.append(call)
            else:
                self._start(call)

    def _start(self, call: Call) -> None:
        name, agent = call.agent, self.agents[call.agent]
        self.path.append(name)
        call.start, call.attempts = len(self.path), call.attempts + 1
        call.began = call.began or call.start
        if call.is_joined and call.attempts == 1:
            self._closed[name] = call.start - 1
            self._holding.discard(name)
            del self._open[name]
        members = self.joins[name].members if name in self.joins else frozenset()
        joined = {a.caller.agent for a in call.arrivals if a.caller} & members
        if joined:
            self._rounds[name].append((call.start, joined))
        for arrival in call.arrivals:
            if arrival.caller is not None:
                arrival.caller.callees[arrival.position] = call
        given = {key: value for arrival in call.arrivals for key, value in arrival.output.items()}
        if call.arrivals[-1].caller is not None:
            given["upstream_yields"] = dict(self.upstream)
            given["calling_agent_response"] = call.arrivals[-1].output
        if call.rejected is not None:
            given["_rerun_context"] = {"attempt": call.attempts - 1, "previous_output": call.rejected}
        self.inputs.append((name, given))
        outcomes = agent.outcomes
        call.outcome = outcomes[min(self._visits[name], len(outcomes) - 1)]
        self._visits[name] += 1
        call.ends = self.now + call.outcome.takes
        self._running.append(call)

    def _settle(self, call: Call) -> None:
        name, agent, outcome = call.agent, self.agents[call.agent], call.outcome
        assert outcome is not None
        if outcome.output is None:
            self.failures.append(Failure(name, "Broken", call.began))
            return
        if agent.retries is not None and not outcome.meets:
            if call.attempts > agent.retries:
                self.failures.append(Failure(name, "YieldContractFailure", call.began))
            else:
                call.rejected = outcome.output
                self._queue.append(call)
            return
        call.output = self.state[name] = outcome.output
        if agent.stores:
            self.upstream[name] = outcome.output
        self._route(call, outcome.output)

    def _route(self, call: Call, output: Output) -> None:
        entries = list(self.agents[call.agent].calls)
        named = {target for target, _ in entries}
        entries += [
            (fan_in, True)
            for fan_in, join in self.joins.items()
            if call.agent in join.members and fan_in not in {call.agent, *named}
        ]
        called = set()
        for position, (target, always) in enumerate(entries):
            if target not in called and (always or (always is None and output["go"])):
                called.add(target)
                self._deliver(target, Arrival(output, call, position))

    def _deliver(self, target: str, arrival: Arrival) -> None:
        caller = arrival.caller
        assert caller is not None
        if target not in self.joins or caller.agent not in self.joins[target].members:
            self._queue.append(Call(target, [arrival]))
            return
        if caller.began <= self._closed.get(target, 0):
            return
        arrivals, _ = self._open.setdefault(target, ([], self.now + self.agents[target].timeout))
        arrivals.append(arrival)
        there = {each.caller.agent for each in arrivals if each.caller}
        if target not in self._holding and self.joins[target].missing(there) is None:
            self._holding.add(target)
            self._queue.append(Call(target, arrivals, is_joined=True))

    def _time_out_join(self, name: str) -> None:
        arrivals, _ = self._open.pop(name)
        self._closed[name] = len(self.path)
        self._rounds[name].append((len(self.path) + 1, None))
        began = min(arrival.caller.began for arrival in arrivals if arrival.caller)
        self.failures.append(Failure(name, "WaitForTimeout", began))

    # What it shows

    @property
    def goes_on(self) -> bool:
        return len(self.path) > self.MOST

    @property
    def error(self) -> tuple[str, str] | None:
        """Type and node of the first failure that no join tolerates."""
        return next(((each.type, each.agent) for each in self.failures if not self._is_tolerated(each)), None)

    def _is_tolerated(self, failure: Failure) -> bool:
        for name, join in self.joins.items():
            if failure.agent in join.members:
                rounds = [members for at, members in self._rounds[name] if at > failure.began]
                if rounds and rounds[0] is not None and failure.agent not in rounds[0]:
                    return True
        return False

    def response(self, call: Call | None = None) -> Output | None:
        """Return the response of a call, by default that of the entry."""
        call = call or self.first
        if call.output is None:
            return None
        result, how = dict(call.output), self.agents[call.agent].how
        for _, callee in sorted(call.callees.items()) if how != "dual" else ():
            answer = self.response(callee)
            if answer is not None:
                result.update(answer if how == "chain" else {callee.agent: answer})
        return result
