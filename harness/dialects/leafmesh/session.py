"""The session of a run: its memory, and the calls of its current task. NOTES 3.4, 4, 10.7, 14."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.dialects.leafmesh.yields import RERUN
from harness.engine.context import RunContext
from harness.graph.model import Rerun

Output = Mapping[str, Any]

CALLER_OUTPUT: Final = "calling_agent_response"
UPSTREAM: Final = "upstream_yields"
FROM_CALLER: Final = (CALLER_OUTPUT, UPSTREAM)
"""The keys that are added to the input of every called agent. NOTES 3.3."""

SESSION: Final = "session"
"""The key of the session in the resources of a run."""


@dataclass(eq=False)
class Call:
    """A call of an agent, one per start.

    number   counts the starts of a task from 1
    began    number of the first start of the same call; differs from `number` for retries
    callees  the calls that its can_call entries made, by position of the entry
    output   None until the agent settles, and forever if it fails
    """

    agent: str
    number: int
    began: int
    joined: frozenset[str] | None = None
    callees: dict[int, Call] = field(default_factory=dict)
    output: Output | None = None


@dataclass(frozen=True)
class Start:
    """The arguments of one start of an agent.

    input       `input_data`, with the keys that every callee gets and, on a retry, `_rerun_context`
    caller      the agent that called it, the last of several; "" if an entry point did
    is_entered  True if an entry point called it
    rerun       the `_rerun_context` of a retry or rerun; not a field of the input that has this name
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
        """The input without the feedback of a retry or rerun."""
        return {key: value for key, value in self.input.items() if key != RERUN or self.rerun is None}


@dataclass(frozen=True)
class Round:
    """One round of a join: its fan-in agent started at call number `at`.

    `members` are the members that had arrived; None if the join timed out.
    """

    at: int
    members: frozenset[str] | None


@dataclass
class Task:
    """The run of a mesh on one input.

    entry                where the input enters; None for the entry point that the graph was loaded for
    rounds               the rounds of joins, by fan-in agent
    incompletable_joins  fan-in agents whose joins a rerun cannot complete
    """

    input: Output = field(default_factory=dict)
    entry: str | None = None
    rerun: Rerun | None = None
    incompletable_joins: frozenset[str] = frozenset()
    upstream_yields: dict[str, Output] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    rounds: defaultdict[str, list[Round]] = field(default_factory=lambda: defaultdict(list))

    def record_start(self, agent: str, began: int | None, joined: frozenset[str] | None) -> Call:
        """Record a new call, or a retry of the call that began at `began`."""
        number = len(self.calls) + 1
        call = Call(agent, number, began or number, joined)
        self.calls.append(call)
        if joined is not None:
            self.rounds[agent].append(Round(number, joined))
        return call

    def record_join_timeout(self, agent: str, arrived: Iterable[Call]) -> Call:
        """Record that a join timed out. Returns a call with number 0 for its agent, which never started."""
        self.rounds[agent].append(Round(len(self.calls) + 1, None))
        return Call(agent, 0, min(call.began for call in arrived))

    def was_joined_without(self, failed: Call, fan_in: str) -> bool:
        """True if, in the round of this failed call, the fan-in agent started without it. NOTES 13.4."""
        joined = next((each for each in self.rounds[fan_in] if each.at > failed.began), None)
        return joined is not None and joined.members is not None and failed.agent not in joined.members


@dataclass
class Session:
    """The state that is kept between the turns of a run.

    timeouts  timeouts of each agent since it last settled
    starts    the last start of each agent
    """

    id: str
    task: Task = field(default_factory=Task)
    posts: defaultdict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    errors: int = 0
    timeouts: Counter[str] = field(default_factory=Counter)
    starts: dict[str, Start] = field(default_factory=dict)

    def add_posts(self, agent: str, user: str, assistant: str) -> None:
        """Add the two memory posts of a run of an agent. NOTES 14.1."""
        about = {"agent_name": agent, "session_id": self.id}
        self.posts[agent] += [
            {"role": "user", "content": user, **about},
            {"role": "assistant", "content": assistant, **about},
        ]

    def last_posts(self, agent: str, most: int) -> Sequence[dict[str, Any]]:
        """Return the last `most` posts of an agent."""
        return [dict(post) for post in self.posts[agent][-most:]] if most else []


def session_of(run: RunContext) -> Session:
    """Return the session of a run."""
    session: Session = run.resources.setdefault(SESSION, Session(run.thread_id))
    return session
