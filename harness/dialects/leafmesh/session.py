"""The session of a run: its memory, and the calls of its current task. NOTES 3.4, 4, 10.7, 14."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final

from harness.dialects.leafmesh.document import Agent, Fields, Mesh, Nested
from harness.engine.context import RunContext
from harness.errors import HarnessError
from harness.graph.model import Rerun
from harness.graph.to_json import as_text, compact_json
from harness.source.models import describe
from harness.units import is_number

RERUN: Final = "_rerun_context"

_DEFAULTS: Final = {"string": str, "number": int, "list": list, "object": dict, "boolean": bool}
_CLASSES: Final[Mapping[str, Any]] = {"string": str, "boolean": bool, "list": list | tuple, "object": Mapping}
"""The classes of values, by their type in `yields`. A value of an unknown type may be anything."""


class YieldContractFailure(HarnessError):
    """The output of a strict agent violates its yields; `violations` are texts by (dotted) key."""

    code = "yield-contract"

    def __init__(self, agent: str, output: Mapping[str, Any], violations: Mapping[str, str]) -> None:
        self.output, self.violations = output, violations
        super().__init__(f"'{agent}' breaks the contract of its yields: {'; '.join(violations.values())}")

    def rerun_context(self, attempt: int) -> dict[str, Any]:
        """Return the `_rerun_context` of the next attempt."""
        return {
            "previous_output": dict(self.output),
            "validation_errors": list(self.violations.values()),
            "attempt": attempt,
        }


def violations(fields: Fields, output: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys, sub-fields too, that are missing or have a wrong type, each with a message."""
    for key, declared in fields.items():
        name, type_ = f"{prefix}{key}", _type(declared)
        if key not in output:
            yield name, f"'{name}' is missing ({type_})"
        elif not _has_type(type_, output[key]):
            yield name, f"'{name}' is {describe(output[key])}, not of type {type_}"
        elif isinstance(declared, Nested) and isinstance(output[key], Mapping):
            yield from violations(declared.fields, output[key], f"{name}.")


def fill_missing(agent: Agent, output: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Fill in the missing keys of an output; return it with a message per missing or mistyped key."""
    result = dict(output)
    notes = []
    for key, declared in agent.yields.items():
        type_ = _type(declared)
        if key not in output:
            result[key] = _DEFAULTS.get(type_, NoneType)()  # an unknown type
            notes.append(f"yields '{key}' is missing: it is filled with {result[key]!r}")
        elif not _has_type(type_, output[key]):
            notes.append(f"yields '{key}' is {describe(output[key])}, not of type {type_}: it is kept")
    return result, notes


def stored_yields(agent: Agent, output: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of an output for `upstream_yields`: declared keys, or all if there are none. NOTES 3.4."""
    return {key: output[key] for key in agent.yields if key in output} if agent.yields else dict(output)


def _type(declared: str | Nested) -> str:
    return declared.type if isinstance(declared, Nested) else declared


def _has_type(type_: str, value: Any) -> bool:
    if type_ == "number":
        return is_number(value)
    return isinstance(value, _CLASSES.get(type_, object))


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
        for role, content in (("user", user), ("assistant", assistant)):
            post = {"role": role, "content": content, "agent_name": agent, "session_id": self.id}
            self.posts[agent].append(post)

    def last_posts(self, agent: str, most: int) -> Sequence[dict[str, Any]]:
        """Return the last `most` posts of an agent."""
        return [dict(post) for post in self.posts[agent][-most:]] if most else []


def session_of(run: RunContext) -> Session:
    """Return the session of a run."""
    session: Session = run.resources.setdefault(SESSION, Session(run.thread_id))
    return session


def user_message(start: Start) -> str:
    """Return the result of the `input_processor`, else the input. NOTES 7.2."""
    prepared = start.context["prepared_data"]
    if "clean_user_input" in prepared:
        return as_text(prepared["clean_user_input"])
    shown = {key: value for key, value in start.plain_input.items() if key != CALLER_OUTPUT}
    if list(shown) == ["message"] and isinstance(shown["message"], str):
        return shown["message"]
    return compact_json(shown)


def response(mesh: Mesh, task: Task, *, whole: bool = False) -> dict[str, Any] | None:
    """Return the response of the entry agent: None if it failed, empty if nothing was started.

    With `whole`, also None if an agent that the response waits for has not settled.
    """
    if not task.calls:
        return {}
    made: dict[Call, dict[str, Any] | None] = {}
    for call in reversed(task.calls):  # callees start after their callers
        made[call] = _response(mesh, call, made, whole)
    first = task.calls[0]
    return next((made[call] for call in reversed(task.calls) if call.began == first.began), None)


def _response(
    mesh: Mesh, call: Call, of: Mapping[Call, dict[str, Any] | None], whole: bool
) -> dict[str, Any] | None:
    if call.output is None:
        return None
    result = dict(call.output)
    how = mesh.agents[call.agent].communication_type
    for _, callee in sorted(call.callees.items()) if how != "dual" else ():
        answer = of[callee]
        if answer is None and whole:
            return None
        if answer is not None:
            result.update(answer if how == "chain" else {callee.agent: answer})
    return result
