"""`harness.run`: an agent runs once, in a world that Python gives, and `Run` is what happened."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.api.conversation import Beginning
    from harness.api.keys import Expect, RunKeys, World
    from harness.api.moment import Listener, Moment


class AlreadyContinued(HarnessError):
    """A conversation that went on from a run already. Each run is one moment of it."""

    code = "already-continued"


@dataclass(frozen=True)
class Call:
    """A call of a model, a tool, a service, a person.

    Attributes:
        kind: `llm`, `tool`, `mcp`, `http`, `handler`, `script`, `agent`, `human` or `retrieval`.
        name: the model, tool, URL, …
        node: the node that made it, `outer/inner` in nested graphs.
        args: its arguments; of a model call empty.
        ok: False if it failed; `reason` says why.
        latency: virtual seconds.
        prompt: the last message of a model call.
        reply: the text that the model answered; None for other calls, and if it failed.
        tool_calls: the tools that the model asked for, each `{name, args}`.
        usage: `{input_tokens, output_tokens}`, if the model reported them.
    """

    kind: str
    name: str
    node: str
    args: Mapping[str, Any]
    ok: bool
    latency: float
    reason: str = ""
    refused: bool = False
    prompt: str = ""
    reply: str | None = None
    tool_calls: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, repr=False, eq=False)
class Run:
    """A run of an agent, up to a moment of its conversation. Times are virtual seconds.

    Attributes:
        status: `completed`, `interrupted`, `failed`, `timeout` or `invalid`.
        path: the nodes in the order they started; a nested list ran in one superstep.
        state: the final state; messages are mappings.
        output: the result, see docs/scenario-format.md.
        visits: the number of starts of each node.
        routes: the transitions, `[from, to]`.
        interrupts: the values that it paused with.
        latency: `{total, nodes: {name: seconds}, visits: {name: [seconds]}}`; `visits` has nodes visited again.
        usage: `{llm_calls, input_tokens, output_tokens, cost, by_model, by_node}`.
        warnings: texts.
        error: `{type, message, node, …}` of the failure, or None.
        digest: the SHA-256 of the trace: two runs with the same digest are equal.
        coverage: `{nodes, edges, branches}` that it reached.
    """

    status: str
    path: list[Any]
    state: Any
    output: Any
    visits: dict[str, int]
    routes: list[list[str]]
    interrupts: list[Any]
    latency: dict[str, Any]
    usage: dict[str, Any]
    warnings: list[str]
    error: dict[str, Any] | None
    digest: str
    coverage: dict[str, Any]
    _moment: Moment

    @cached_property
    def trace(self) -> list[dict[str, Any]]:
        """The events, see docs/results.md."""
        from harness.report.traces import restored

        return [*restored(self._moment.outcome.events)]

    def calls(self, **matching: str) -> list[Call]:
        """Return its calls in order; with a kind and a name (glob), such as `tool="find_*"`, only those.

        Raises:
            TypeError: there is no such kind of call.
        """
        from harness.graph.effects import EFFECTS
        from harness.matchers.regex import last_part_matches

        for kind in matching:
            if kind not in EFFECTS:
                raise TypeError(f"calls() has no kind {kind!r}: one of {', '.join(EFFECTS)}")
        found = [Call(**call) for call in self._moment.outcome.observed.calls]
        if not matching:
            return found
        return [
            call
            for call in found
            if call.kind in matching and last_part_matches(matching[call.kind], call.name)
        ]

    def send(self, input: Any, /, **world: Unpack[World]) -> Run:
        """Go on with another input, and return the run up to its end. `world` is added in front of what answers.

        Raises:
            AlreadyContinued: the conversation went on from here already.
        """
        return self._next("input", input, world)

    def resume(self, answer: Any = None, /, **world: Unpack[World]) -> Run:
        """Answer what it paused for, and return the run up to its end; see `send`.

        Without an answer it goes on from a breakpoint; a mapping changes the state first.
        """
        return self._next("resume", {} if answer is None else answer, world)

    def _next(self, kind: str, value: Any, world: Mapping[str, Any]) -> Run:
        moment = self._moment
        if moment.is_continued:
            text = "this run went on already: send() and resume() belong to the run that it returned"
            raise AlreadyContinued(text)
        run = run_from(moment.beginning.next_turn(kind, value, world), moment.listener)
        moment.is_continued = True
        return run

    def check(self, **expect: Unpack[Expect]) -> Run:
        """Check expectations: the keys and values of `expect` in a scenario. Stubs that are left over fail, too.

        Returns this run. A UserWarning names each that no run could fail.

        Raises:
            AssertionError: one does not hold, with the text that a scenario shows.
            FormatError: a key or value is wrong.
            ValueError: `judge` is given: a model would have to be called.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        from harness.report.failure import failure_text
        from harness.scenario.believed import unfailing
        from harness.scenario.checks.run import run_checks
        from harness.scenario.score import judgement_of

        moment = self._moment
        if "judge" in expect:
            raise ValueError("check() calls no model: `judge` belongs in a scenario")
        scenario = moment.beginning.scenario(expect)
        observed = moment.outcome.observed
        if "custom" in expect:
            asyncio.run(moment.run_custom_checks(scenario.expect))
        checks = run_checks(scenario.expect, observed, allow_unused=scenario.allow_unused)
        judged = judgement_of(
            checks,
            observed,
            scenario.expect,
            timeout_s=scenario.timeout_s,
            pass_score=scenario.pass_score,
            turns=(),
        )
        moment.checks += checks
        if judged.verdict != "passed":
            moment.verdict = judged.verdict
            shown = [replace(check, span=None) for check in checks]
            failed = replace(
                moment.outcome, checks=shown, verdict=judged.verdict, score=judged.score, span=None
            )
            raise AssertionError(failure_text(failed, command=""))
        if expect:
            told = [*scenario.warnings, *unfailing(scenario, None, [(observed, scenario.expect)])]
            for problem in told:
                warnings.warn(problem.message, stacklevel=2)
        return self

    def to_scenario(self, name: str | None = None) -> str:
        """Return a scenario file, as YAML, that does the same. A callable is written as the answers that it gave."""
        return self._moment.written(name)

    def __repr__(self) -> str:
        error = f", error={self.error['type']}: {self.error['message']}" if self.error else ""
        return f"<Run {self.status}: {' → '.join(map(str, self.path))}; output={self.output!r}{error}>"

    def _repr_html_(self) -> str:
        from harness.api.page import page_of

        return page_of(self._moment.outcome)


def run(manifest: Any, input: Any = None, /, **given: Unpack[RunKeys]) -> Run:
    """Run an agent once, offline and in virtual time, and return what happened.

    Args:
        manifest: the path of a manifest, of a folder with a `langgraph.json`, or `app/graph.py:graph`; or an object:
            a compiled LangGraph graph, a builder, or any callable, which is an agent of one node.
        input: the first input; its form depends on the dialect.
        **given: keys of a scenario and of its world, with the same values (`RunKeys`). A callable may stand for a
            stub: under `tools` and `handlers` it gets the arguments of the call, elsewhere the request; what it
            raises, the call fails with. `record_mode` is that of `--record-mode`.

    Raises:
        FormatError: a key or a value is wrong, with the nearest known key.

    An agent that fails raises nothing: see `Run.status` and `Run.error`. An object, and an agent with callables, runs
    in this process; an app that is given by its path alone has one of its own.

    >>> import harness
    >>> def shout(input):
    ...     return input.upper()
    >>> harness.run(shout, "hello").output
    'HELLO'
    """
    from harness.api.conversation import beginning_of

    return run_from(beginning_of(manifest, input, given, Path("python.scenario.yaml"), "run"))


async def arun(manifest: Any, input: Any = None, /, **given: Unpack[RunKeys]) -> Run:
    """Do the same as `run` inside of a running event loop, for notebooks and async tests: it runs in a thread."""
    return await asyncio.to_thread(lambda: run(manifest, input, **given))


_IN_LOOP: Final = (
    "an event loop runs in this thread: use `await harness.arun(…)`; "
    "in front of `agent_run`, `send` and `resume` write `await asyncio.to_thread(…)`: "
    "await asyncio.to_thread(run.send, input)"
)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_from(beginning: Beginning, listener: Listener | None = None) -> Run:
    """Run a conversation from its beginning to its last turn.

    Raises:
        RuntimeError: an event loop runs in this thread, such as that of a notebook or of an async test.
    """
    if _is_in_loop():
        raise RuntimeError(_IN_LOOP)
    from harness.api.given import UNKNOWN, path_of
    from harness.api.moment import Moment
    from harness.scenario.run import run_scenario
    from harness.settings import Traces

    with beginning.loaded() as scenario:
        [outcome] = run_scenario(scenario, replace(beginning.settings, traces=Traces.ALL))
    if not isinstance(beginning.manifest, str | Path):
        named = path_of(beginning.manifest, beginning.settings.project)
        outcome.manifest = named if named != UNKNOWN else outcome.manifest
    observed = outcome.observed
    moment = Moment(beginning, outcome, listener)
    if listener is not None:
        listener(moment)
    return Run(
        **{each.name: getattr(observed, each.name) for each in fields(Run) if hasattr(observed, each.name)},
        digest=outcome.digest,
        coverage=outcome.coverage,
        _moment=moment,
    )
