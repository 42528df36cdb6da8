"""`harness.run`: an agent runs once, in a world that Python gives, and `Run` is what happened."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from harness.errors import FormatError, HarnessError, Problem

if TYPE_CHECKING:
    from harness.api.callables import Callables
    from harness.api.keys import Expect, RunKeys, World
    from harness.scenario.model import Expectations, Scenario
    from harness.scenario.outcome import CheckResult, Outcome, Verdict
    from harness.settings import Settings

_SCENARIO_KEYS: Final = (
    *(
        "agent",
        "dialect",
        "env",
        "config",
        "context",
        "store",
        "seed",
        "timeout",
        "cassette",
        "faults",
        "now",
    ),
)
_OBSERVED: Final = (
    *(
        "status",
        "path",
        "state",
        "output",
        "visits",
        "routes",
        "interrupts",
        "latency",
        "usage",
        "warnings",
        "error",
    ),
)


def _located(manifest: Path, file: Path) -> str:
    """Return the path of a manifest from the folder of a file; it was given from the current one, or from there.

    Raises:
        FormatError: there is no such file or folder, nor a module for an object.
    """
    from harness.dialects.langgraph.target import is_object
    from harness.source.document import hint_for_missing, shown_path

    for found in (manifest, file.parent / manifest):
        written = Path(str(found).rpartition(":")[0]) if is_object(found) else found
        if written.exists() or (is_object(found) and written.suffix != ".py"):
            return os.path.relpath(found, file.parent)
    text = f"manifest {shown_path(manifest)}: no such file"
    raise FormatError(Problem("missing-file", text, hint=hint_for_missing(manifest)))


def _told(problem: Problem, lines: Sequence[str]) -> Problem:
    """Return a problem of a scenario that is in no file: with what is written there, in place of where."""
    line = problem.span.line if problem.span is not None else 0
    written = f": {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""
    return replace(problem, message=f"{problem.message}{written}", span=None)


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


@dataclass(frozen=True)
class Beginning:
    """The beginning of a conversation: the scenario as it is written so far, and who answers.

    Attributes:
        manifest: a path, or an object.
        keys: the scenario, with placeholders for callables.
        turns: the turns, each with its input or answer and its own world.
        callables: those of the scenario, and of each turn.
        file: the file that the scenario is of, on which ids and imports depend.
        settings: those of its project.
    """

    manifest: Any
    keys: Mapping[str, Any]
    turns: Sequence[Mapping[str, Any]]
    callables: Sequence[Callables]
    file: Path
    settings: Settings

    def scenario(self, expect: Mapping[str, Any], manifest: str = "") -> Scenario:
        """Return the scenario with these expectations, without its callables.

        Raises:
            FormatError: a key or a value is wrong.
        """
        from harness.authoring.writer import file_text
        from harness.graph.to_json import to_json
        from harness.scenario.load import load_file

        keys = {**self.keys, **(self.turns[0] if len(self.turns) == 1 else {"turns": self.turns})}
        keys |= {"expect": to_json(dict(expect))} if expect else {}
        try:
            text = file_text({"harness": 1, "manifest": manifest or str(self.manifest)}, [keys])
        except TypeError as error:  # no data
            hint = "a callable stands for a whole stub, and hooks are dotted paths"
            raise FormatError(Problem("wrong-type", f"a value is no data: {error}", hint=hint)) from None
        try:
            [found] = load_file(self.file, self.settings, text=text).scenarios
        except FormatError as error:
            raise FormatError([_told(problem, text.splitlines()) for problem in error.problems]) from None
        return found

    @contextmanager
    def loaded(self) -> Iterator[Scenario]:
        """Yield the scenario, ready to run: its callables answer, and its manifest can be imported."""
        from harness.api.callables import place_callables
        from harness.api.given import manifest_of

        with manifest_of(self.manifest) as named:
            scenario = self.scenario({}, named)
            in_process = not isinstance(self.manifest, str | Path) or any(self.callables)
            worlds = [scenario.world, *(turn.world for turn in scenario.turns[1:])]
            for world, callables in zip(worlds, self.callables, strict=True):
                place_callables(world, callables)
            for stub in (stub for world in worlds for stub in world.stubs()):
                stub.place(None)  # it is written nowhere
            mentions = tuple(replace(each, span=None) for each in scenario.mentions)
            yield replace(scenario, in_process=in_process, warnings=(), manifest_span=None, mentions=mentions)

    def next_turn(self, kind: str, value: Any, world: Mapping[str, Any]) -> Beginning:
        """Return the conversation with one more turn. What was answered is answered again."""
        from harness.api.callables import without_callables
        from harness.graph.to_json import to_json

        written, found = without_callables(world)
        known = [{path: each.again() for path, each in callables.items()} for callables in self.callables]
        return replace(
            self, turns=[*self.turns, {kind: to_json(value), **written}], callables=[*known, found]
        )


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
    return run_from(beginning_of(manifest, input, given, Path("python.scenario.yaml"), "run"))


async def arun(manifest: Any, input: Any = None, /, **given: Unpack[RunKeys]) -> Run:
    """Do the same as `run` inside of a running event loop, for notebooks and async tests: it runs in a thread."""
    return await asyncio.to_thread(lambda: run(manifest, input, **given))


def beginning_of(
    manifest: Any,
    input: Any,
    given: Mapping[str, Any],
    file: Path,
    name: str,
    settings: Settings | None = None,
) -> Beginning:
    """Return the beginning of a conversation, for the arguments of `run`. Raises as that does."""
    from harness.api.callables import WORLD_KEYS, without_callables
    from harness.graph.to_json import to_json
    from harness.settings import Projects, RecordMode
    from harness.source.display import did_you_mean

    known = (*_SCENARIO_KEYS, *WORLD_KEYS, "hooks", "record_mode", "allow_unused")
    for key in given:
        if key not in known:
            text = f"'{key}' is no key of a run"
            raise FormatError(Problem("unknown-key", text, hint=did_you_mean(key, known)))
    world, callables = without_callables({key: given[key] for key in (*WORLD_KEYS, "hooks") if key in given})
    keys = {
        key: to_json(given[key]) for key in (*_SCENARIO_KEYS, "allow_unused") if given.get(key) is not None
    }
    if settings is None:
        mode = given.get("record_mode") or "none"
        if mode not in (modes := [each.value for each in RecordMode]):
            text = f"record_mode: expected one of {', '.join(modes)}, found {mode!r}"
            raise FormatError(Problem("wrong-type", text))
        settings = Projects(record_mode=RecordMode(mode)).around(Path.cwd())
    if isinstance(manifest, str | Path):
        manifest = _located(Path(manifest), file)
    turn = {} if input is None else {"input": to_json(input)}
    return Beginning(manifest, {"name": name, **keys, **world}, [turn], [callables], file, settings)


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
        latency: `{total, nodes: {name: seconds}}`.
        usage: `{llm_calls, input_tokens, output_tokens, cost, by_model, by_node}`.
        warnings: texts.
        error: `{type, message, node, …}` of the failure, or None.
        digest: the SHA-256 of the trace: two runs with the same digest are equal.
        coverage: `{nodes, edges, branches}` that it reached.
        trace: the events, see docs/results.md.
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
    trace: list[dict[str, Any]]
    _moment: Moment

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

        Returns this run.

        Raises:
            AssertionError: one does not hold, with the text that a scenario shows.
            FormatError: a key or value is wrong.
            ValueError: `judge` is given: a model would have to be called.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        from harness.report.failure import failure_text
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


@dataclass
class Moment:
    """The memory of a run besides its results.

    Attributes:
        beginning: how the conversation went so far.
        outcome: the outcome of the run.
        listener: called with each run of the conversation.
        checks: the results of the checks so far, and the worst `verdict` of them.
        is_continued: the conversation went on.
    """

    beginning: Beginning
    outcome: Outcome
    listener: Listener | None
    checks: list[CheckResult] = field(default_factory=list)
    verdict: Verdict = "passed"
    is_continued: bool = False

    def judged(self, failure: str) -> Outcome:
        """Return the outcome with the checks so far. `failure` is why the test around it failed; "" if it passed."""
        verdict = "failed" if failure and self.verdict == "passed" else self.verdict
        score = 1.0 if verdict == "passed" else 0.0
        checks = [replace(check, span=None) for check in self.checks]  # they are written in no scenario file
        return replace(self.outcome, checks=checks, verdict=verdict, score=score, reason=failure, span=None)

    def left_over(self) -> list[str]:
        """Return a text for each stub that was not used, unless that is allowed."""
        return [] if self.beginning.keys.get("allow_unused") else list(self.outcome.observed.unused)

    async def run_custom_checks(self, expect: Expectations) -> None:
        """Call the functions of `custom`, and keep their verdicts."""
        from harness.scenario.model import import_folders
        from harness.scenario.turns import run_custom_checks

        observed, scenario = self.outcome.observed, self.beginning.scenario({})
        observed.custom_verdicts.clear()
        folders = import_folders(scenario, self.beginning.settings)
        await run_custom_checks(observed, expect, scenario, self.outcome.seed, folders)

    def written(self, name: str | None) -> str:
        """Return the scenario file of the conversation."""
        from harness.api.callables import WORLD_KEYS
        from harness.api.given import path_of
        from harness.authoring.expected import expectations
        from harness.authoring.world import exchanges, world_of
        from harness.authoring.writer import file_text
        from harness.graph.effects import EFFECTS
        from harness.report.traces import restored
        from harness.scenario.redaction import secrets_of

        began = self.beginning
        keys, *later = [{**began.keys, **began.turns[0]}, *began.turns[1:]]
        turns = {
            "turns": [
                {kind: turn[kind] for kind in ("input", "resume") if kind in turn} for turn in began.turns
            ]
        }
        answered = {path for callables in began.callables for path in callables}
        by_name = [effect.key for effect in EFFECTS.values() if effect.stubs == "name"]
        stubbed = {
            (key, name)
            for part in (keys, *later)
            for key in by_name
            for name, entry in part.get(key, {}).items()
            if not isinstance(entry, str) or (key, name) in answered
        }
        real = {
            key: named
            for key in by_name
            if (
                named := {
                    name: item for name, item in keys.get(key, {}).items() if (key, name) not in stubbed
                }
            )
        }
        world = world_of(
            exchanges([*restored(self.outcome.events)]),
            lambda each: EFFECTS[each.kind].stubs == "name" and each.entry not in stubbed,
        )
        world |= {key: {**world.get(key, {}), **named} for key, named in real.items()}
        own = {key: value for key, value in began.keys.items() if key not in WORLD_KEYS}
        given = turns if later else began.turns[0]
        expect = expectations(self.outcome.observed, self.outcome.observed)
        secrets = secrets_of(began.scenario({}), began.settings)
        written = secrets.data({**own, "name": name or own["name"], **given, **world, "expect": expect})
        return file_text({"harness": 1, "manifest": path_of(began.manifest, began.file.parent)}, [written])


Listener = Callable[[Moment], None]
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
    from harness.report.traces import restored
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
        **{name: getattr(observed, name) for name in _OBSERVED},
        digest=outcome.digest,
        coverage=outcome.coverage,
        trace=[*restored(outcome.events)],
        _moment=moment,
    )
