"""A session: what agents said in it, and the calls of its present task. NOTES 3.4, 4, 10.7, 14."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.dialects.leafmesh.yields import RERUN
from harness.engine.context import RunContext
from harness.graph.model import Rerun

Output = Mapping[str, Any]

SESSION: Final = "session"
"""The resource of a run that holds its session."""


@dataclass(eq=False)
class Call:
    """One start of an agent.

    `number` counts the starts of a task from 1, and `began` is the number of the first attempt of the same call.
    `callees` are the calls its can_call entries made, by the position of the entry. `output` stays None until it
    settles, and for ever if it fails.
    """

    agent: str
    number: int
    began: int
    joined: frozenset[str] | None = None
    callees: dict[int, Call] = field(default_factory=dict)
    output: Output | None = None


@dataclass(frozen=True)
class Start:
    """One start of an agent.

    input       `input_data`, with the keys that every callee gets and, after a failure, `_rerun_context`
    caller      who called it, the last of several; empty where an entry point did
    is_entered  True if an entry point did
    rerun       the `_rerun_context` of a rerun or a second try; a field of that name in the input is not one
    context     the `context` of Python functions. NOTES 3.5
    """

    call: Call
    input: dict[str, Any]
    caller: str
    is_entered: bool
    rerun: Mapping[str, Any] | None = None
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def plain_input(self) -> dict[str, Any]:
        """Its input without the feedback of a rerun."""
        return {key: value for key, value in self.input.items() if key != RERUN or self.rerun is None}


@dataclass(frozen=True)
class Round:
    """A join that started its agent, with the members that arrived, or (None) that timed out, at this start."""

    at: int
    members: frozenset[str] | None


@dataclass
class Task:
    """What one input set off. `rounds` are by fan-in agent, `left_alone` are those that a rerun cannot call."""

    input: Output = field(default_factory=dict)
    rerun: Rerun | None = None
    left_alone: frozenset[str] = frozenset()
    upstream_yields: dict[str, Output] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    rounds: defaultdict[str, list[Round]] = field(default_factory=lambda: defaultdict(list))

    def started(self, agent: str, began: int | None, joined: frozenset[str] | None) -> Call:
        """A new call, or a new attempt of the call that began at `began`."""
        number = len(self.calls) + 1
        call = Call(agent, number, began or number, joined)
        self.calls.append(call)
        if joined is not None:
            self.rounds[agent].append(Round(number, joined))
        return call

    def join_timed_out(self, agent: str, arrived: Iterable[Call]) -> Call:
        """The join of an agent is over without a start of it. Returns the call that is not made, of no number."""
        self.rounds[agent].append(Round(len(self.calls) + 1, None))
        return Call(agent, 0, min(call.began for call in arrived))

    def goes_on_without(self, failed: Call, fan_in: str) -> bool:
        """True if a fan-in agent started in the round of this failed call, and without it. NOTES 13.4."""
        of_it = next((each for each in self.rounds[fan_in] if each.at > failed.began), None)
        return of_it is not None and of_it.members is not None and failed.agent not in of_it.members


@dataclass
class Session:
    """What lasts over the turns of a run.

    `timeouts` counts those of an agent since it last settled, `starts` has the last start of each.
    """

    id: str
    task: Task = field(default_factory=Task)
    posts: defaultdict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    errors: int = 0
    timeouts: Counter[str] = field(default_factory=Counter)
    starts: dict[str, Start] = field(default_factory=dict)

    def remember(self, agent: str, user: str, assistant: str) -> None:
        """Add the two posts of a run of an agent. NOTES 14.1."""
        about = {"agent_name": agent, "session_id": self.id}
        self.posts[agent] += [
            {"role": "user", "content": user, **about},
            {"role": "assistant", "content": assistant, **about},
        ]

    def recalled(self, agent: str, most: int) -> Sequence[dict[str, Any]]:
        """The last posts of an agent."""
        return [dict(post) for post in self.posts[agent][-most:]] if most else []


def session_of(run: RunContext) -> Session:
    """The session of a run."""
    session: Session = run.resources.setdefault(SESSION, Session(run.thread_id))
    return session
