"""A scenario from a trace: its inputs, its world as stubs, and expectations that would notice a change.

    the trace ─▶ setting.py, world.py: the world ─▶ trial.py: it is run ─▶ expected.py: the expectations ─▶ run again

There may be several ways to say what answers (`setting.ways_to_answer`). The one whose run is most like the trace is
used, and what still differs is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.authoring.expected import expectations
from harness.authoring.setting import Setting, ways_to_answer
from harness.authoring.trial import run_trial
from harness.authoring.world import entry_of, exchanges, given_in, inputs_of, world_of
from harness.authoring.writer import Gap
from harness.errors import FormatError, Problem, SourceError
from harness.graph import observe
from harness.graph.effects import EFFECTS
from harness.graph.trace import Event
from harness.report.encoding import encode
from harness.report.traces import FORMAT, RunTrace, restored
from harness.scenario.outcome import Outcome
from harness.scenario.redaction import secrets_of_process
from harness.secrets.encodings import has_placeholder
from harness.settings import Settings


@dataclass
class Draft:
    """A scenario that is not written yet.

    Attributes:
        keys: the scenario, as it is written.
        outcome: that of its last run.
        differences: how its run differs from the trace, a sentence each.
        gaps: what the trace does not hold, a sentence each.
    """

    keys: dict[str, Any]
    outcome: Outcome
    differences: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)


def drafted(
    trace: RunTrace, setting: Setting, name: str, file: Path, head: Mapping[str, Any], settings: Settings
) -> Draft:
    """Return the scenario of a trace, which has run.

    Args:
        trace: the trace.
        setting: the agent and what the trace does not say.
        name: the name of the scenario.
        file: the file that it will be written to.
        head: the keys of that file.
        settings: those of its project.

    Raises:
        FormatError: the trace has no input (code `trace-empty`).
        SourceError: the manifest is not valid.
    """
    given, secrets = _given(trace), secrets_of_process(settings)
    found = exchanges(_without_judges(trace.events)[0])
    best: tuple[dict[str, Any], list[Outcome], list[str]] | None = None
    ended = _last_status(trace.events)
    refused: SourceError | None = None
    for is_real, by_node in ways_to_answer(setting):
        world = world_of(found, is_real, by_node=by_node)
        world = {
            **world,
            **{key: with_entries(world.get(key), entries) for key, entries in setting.world.items()},
        }
        keys = secrets.data({"name": name, **setting.keys, **given, **_used(world, trace.events)})
        trial = {**keys, "allow_unused": True, "expect": {"status": ended}}
        try:
            outcomes = run_trial(file, head, trial, settings, repeat=2, place=setting.place)
        except SourceError as error:
            refused = refused or error
            continue
        differences = list(differences_from(trace, outcomes[0]))
        if best is None or len(differences) < len(best[2]):
            best = keys, outcomes, differences
        if not differences:
            break
    if best is None:
        raise refused or AssertionError
    keys, outcomes, differences = best
    keys, last = with_expectations(_called(keys, outcomes[0]), outcomes, file, head, settings)
    return Draft(keys, last, differences, list(gaps_in(trace)))


def with_expectations(
    keys: dict[str, Any], outcomes: Sequence[Outcome], file: Path, head: Mapping[str, Any], settings: Settings
) -> tuple[dict[str, Any], Outcome]:
    """Return a scenario with what its runs with two seeds fulfil, and the outcome of a run that checks it."""
    expect = expectations(outcomes[0].observed, outcomes[-1].observed)
    keys = keys | ({"expect": expect} if expect else {})
    [last] = run_trial(file, head, keys, settings)
    return keys, last


def with_entries(stubs: Any, entries: Any) -> Any:
    """Return the stubs of a key of the world, by name, with the entries that the scenario of the trace has there."""
    if not isinstance(stubs, Mapping) or not isinstance(entries, Mapping):
        return entries
    both = {
        name: _server(stubs[name], entries[name]) for name in entries if isinstance(stubs.get(name), Mapping)
    }
    return {**stubs, **entries, **both}


def _server(stubs: Any, server: Any) -> Any:
    """Return an MCP server with stubs, and the definitions of its tools."""
    if not isinstance(server, Mapping):
        return server
    answers = {tool["name"]: tool["stubs"] for tool in stubs.get("tools", ())}
    tools = [
        {**tool, "stubs": answers.pop(tool["name"])} if tool["name"] in answers else tool
        for tool in server["tools"]
    ]
    return {**server, "tools": [*tools, *({"name": name, "stubs": each} for name, each in answers.items())]}


def _used(world: Mapping[str, Any], events: Sequence[Event]) -> dict[str, Any]:
    """Return the world without entries that the run did not need."""
    calls = [event for event in events if event["event"] == "call"]
    called = {entry_of(call)[:2] for call in calls}
    offered = {name for call in calls for name in call["request"].get("tools", ())}

    def is_needed(key: str, name: str, item: Any) -> bool:
        server = item if key == "mcp" and isinstance(item, Mapping) else {}
        is_offered = any(tool["name"] in offered for tool in server.get("tools", ()))
        return (key, name) in called or is_offered or "error" in server

    kept: dict[str, Any] = {}
    for key, value in world.items():
        if isinstance(value, Mapping):
            value = {name: item for name, item in value.items() if is_needed(key, name, item)}
        if value:
            kept[key] = value
    return kept


def _called(keys: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    """Return the scenario without the stubs of tools and the like that its run never called."""
    called = {entry_of(event)[:2] for event in outcome.events if event["event"] == "call"}
    kept = dict(keys)
    for effect in EFFECTS.values():
        if effect.stubs == "name" and isinstance(entries := keys.get(effect.key), Mapping):
            kept[effect.key] = {name: item for name, item in entries.items() if (effect.key, name) in called}
            if not kept[effect.key]:
                del kept[effect.key]
    return kept


def _given(trace: RunTrace) -> dict[str, Any]:
    """Return the input, or the turns if there are several.

    Raises:
        FormatError: there is no input, or nothing of what was said (code `trace-empty`).
    """
    events, given = trace.events, list(inputs_of(trace.events))
    if not given:
        text = "the trace has no input of the agent: it may have been cut off"
        raise FormatError(Problem("trace-empty", text))
    replies = [each.answer for each in exchanges(events) if each.kind == "llm"]
    if isinstance(given[0][1], Gap) or (replies and all("gap" in each for each in replies)):
        text = "the trace does not hold what was said, and nothing can be run without it"
        raise FormatError(Problem("trace-empty", text, hint="\n    ".join(trace.missing)))
    return given_in(events)


def _last_status(events: Sequence[Event]) -> str:
    ends = [event["status"] for event in events if event["event"] == "end" and event["graph"] == ""]
    return str(ends[-1]) if ends else "completed"


def gaps_in(trace: RunTrace) -> Iterator[str]:
    """Yield what a trace does not hold: values that were cut, secrets taken out, what its format lacks."""
    cut = sum("cut" in event for event in trace.events)
    if cut:
        yield f"{cut} of its events have values that were cut: they are longer than a trace keeps"
    secrets = sum(
        has_placeholder(json.dumps(event, ensure_ascii=False, default=str)) for event in trace.events
    )
    if secrets:
        yield f"secrets were taken out of {secrets} of its events"
    if trace.damage is not None:
        yield f"its end is missing: {trace.damage.problems[0].message}"
    yield from trace.missing


def differences_from(trace: RunTrace, outcome: Outcome) -> Iterator[str]:
    """Yield how a run differs from a trace. A trace of ours is compared event by event, others by what they have."""
    if trace.head.get("format") == FORMAT and trace.head.get("digest"):
        if outcome.digest != trace.head["digest"]:
            yield from _first_difference(trace, outcome)
        return
    yield from _observed_differences(trace.events, outcome)


def _first_difference(trace: RunTrace, outcome: Outcome) -> Iterator[str]:
    from harness.report.compare.first_difference import first_difference

    before, asked = _without_judges(trace.events)
    after, _ = _without_judges([*restored(outcome.events)])
    found = first_difference(before, after)
    if found is not None:
        where = f" in {found.node}" if found.node else ""
        yield f"first event where the runs differ: {found.what}{where}"
        yield from (
            f"  {part.place}: {_short(part.before)}, now {_short(part.after)}" for part in found.parts[:2]
        )
    elif asked:
        yield "judges were asked, whose calls are not part of the scenario"
    else:
        yield "no event differs, but a secret, a value that was cut, or where a streamed reply was cut up"


def _without_judges(events: Sequence[Event]) -> tuple[Sequence[Event], bool]:
    """Return the events up to the end of the conversation, and True if there are calls after it: those of judges."""
    last = max(
        (at for at, each in enumerate(events) if each["event"] == "end" and each["graph"] == ""), default=-1
    )
    return (
        (events[: last + 1], any(each["event"] == "call" for each in events[last:]))
        if last >= 0
        else (events, False)
    )


def _observed_differences(events: Sequence[Event], outcome: Outcome) -> Iterator[str]:
    observed = outcome.observed
    path = observe.path(events)
    is_one_node = outcome.dialect == "python"  # what an export tells of such an agent is inside of it
    if path and path != observed.path and not is_one_node:
        yield f"path: the trace has {_short(path)}, the run {_short(observed.path)}"
    calls = [event for event in events if event["event"] == "call"]
    made = [event for event in restored(outcome.events) if event["event"] == "call"]
    for kind in dict.fromkeys(call["kind"] for call in (*calls, *made)):
        before, after = ([_call(each) for each in side if each["kind"] == kind] for side in (calls, made))
        if kind == "tool" and not after and _are_plain_functions(calls, events, made):
            continue
        if sorted(before) != sorted(after):
            yield f"{kind} calls: the trace has {_short(before)}, the run {_short(after)}"
    status = _last_status(events)
    if status != observed.status:
        error = f" ({observed.error['message']})" if observed.error else ""
        yield f"status: the trace ended {status}, the run {observed.status}{error}"


def _are_plain_functions(calls: Sequence[Event], events: Sequence[Event], made: Sequence[Event]) -> bool:
    """True if the tools of an agent ran without being seen, as functions do: the model was sent all their results."""
    tools = {call["call"] for call in calls if call["kind"] == "tool"}
    results = [
        event.get("value") for event in events if event["event"] == "answer" and event["call"] in tools
    ]
    sent = encode([call["request"].get("messages") for call in made])
    return all(encode(text)[1:-1] in sent for each in results for text in _texts_in(each))


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(each)
    elif value is not None:
        yield str(value)


def _call(call: Event) -> str:
    """Return the name of a call with its arguments. The models of foreign traces have names of their provider."""
    args = call["request"].get("args")
    return call["kind"] if call["kind"] == "llm" else f"{call['name']} {encode(args or {})}"


def _short(value: Any) -> str:
    from harness.source.display import clip

    return clip(json.dumps(value, ensure_ascii=False, default=str), 160)
