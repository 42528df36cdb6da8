"""A conversation in which a person is the world: each call that nothing answers is asked for, and answered.

The agent is run again with each answer, from the beginning: a run takes no time, and what was answered before is
answered again. So every answer is a stub as soon as it is given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any, Final

from harness.authoring.trial import run_trial
from harness.authoring.world import entry_of
from harness.errors import FormatError, Problem
from harness.graph.effects import EFFECTS
from harness.graph.to_json import from_json
from harness.graph.trace import Event
from harness.report.traces import restored
from harness.scenario.outcome import Outcome
from harness.settings import Settings
from harness.source.display import clip
from harness.world.failures import KINDS

Ask = Callable[[str, str], str]
"""Shows what is asked for, and returns what was typed. The second text is the prompt.

It raises EOFError if nobody answers.
"""

REAL: Final = "real"
"""Typed, and written, if the thing itself is to answer."""
_SHOWN: Final = 600
_MOST: Final = 200
"""Answers to one conversation."""


def interviewed(
    keys: dict[str, Any], file: Path, head: Mapping[str, Any], settings: Settings, ask: Ask
) -> tuple[dict[str, Any], Outcome]:
    """Return the scenario with the answers of a person, and the outcome of its last run.

    Args:
        keys: the scenario: its name, its agent, its input. Answers are added as they are given.
        file: the file that it will be written to.
        head: the keys of that file.
        settings: those of its project.
        ask: asks the person.

    Raises:
        EOFError: the person does not answer.
        FormatError: something is missing that no answer gives, such as an MCP server (code `not-answered`).
        SourceError: the manifest is not valid.
    """
    for _ in range(_MOST):
        trial = {**keys, "allow_unused": True, "expect": {"status": "completed"}}
        [outcome] = run_trial(file, head, trial, settings)
        events = [*restored(outcome.events)]
        call = _unanswered(events)
        if call is not None:
            _add(keys, entry_of(call), _asked(call, ask))
        elif outcome.observed.status == "interrupted":
            paused = _paused(events)
            typed = ask(f"{paused} waits for a person:\n{_text(outcome.observed.interrupts)}", "answer")
            if not typed:
                return keys, outcome
            _add(keys, ("human", paused), _data(typed))
        elif (outcome.observed.error or {}).get("type") == "UnscriptedCall":
            raise FormatError(Problem("not-answered", str((outcome.observed.error or {})["message"])))
        elif outcome.observed.status != "completed":
            return keys, outcome
        else:
            typed = ask(f"the agent answers: {_text(outcome.observed.output)}", "next input, or Enter to end")
            if not typed:
                return keys, outcome
            keys["turns"] = [
                *(keys.get("turns") or [{"input": keys.pop("input", None)}]),
                {"input": _data(typed)},
            ]
    raise FormatError(Problem("not-answered", f"{_MOST} answers, and the conversation has not ended"))


def _unanswered(events: list[Event]) -> Event | None:
    """Return the first call that nothing answered."""
    calls = {event["call"]: event for event in events if event["event"] == "call"}
    for event in events:
        if event["event"] == "answer" and (event.get("error") or {}).get("type") == "UnscriptedCall":
            return calls[event["call"]]
    return None


def _paused(events: list[Event]) -> str:
    return next(
        f"{each['graph']}{each['node']}" for each in reversed(events) if each["event"] == "node_pause"
    )


def _asked(call: Event, ask: Ask) -> dict[str, Any] | str:
    """Ask for the answer to a call, and return it as a stub, or `REAL`."""
    request, kind = call["request"], call["kind"]
    node = f" in {call['node']}" if call["node"] else ""
    if kind != "llm":
        shown = f"{kind} {call['name']}{node} is called with {_text(request.get('args') or {})}"
        may_be_real = EFFECTS[kind].stubs == "name" and kind != "retrieval"
        typed = ask(shown, f"result (text, JSON, !error{' or real' if may_be_real else ''})")
        if may_be_real and typed == REAL:
            return REAL
        return _failure(typed) or _RESULTS.get(kind, lambda value: {"return": value})(_data(typed))
    tools = request.get("tools") or []
    new = [
        indent(f"{each['type']}: {clip(_content(each), _SHOWN)}", "    ")[2:]
        for each in request.get("messages", ())[-3:]
    ]
    offered = f"\n  tools: {', '.join(tools)}" if tools else ""
    forms = "reply, or TOOL {…}" if tools else "reply"
    typed = ask(f"the model {call['name']}{node} is asked:\n" + "\n".join(new) + offered, forms)
    while tools:
        name, _, rest = typed.strip().partition(" ")
        args = from_json(rest or "{}")
        if name in tools and isinstance(args, dict):
            return {"tool_calls": [{"name": name, "args": args}]}
        if not (rest.startswith("{") and name.isidentifier() and (name in tools or isinstance(args, dict))):
            break
        why = f"{rest} is not valid JSON" if name in tools else f"the model is not offered the tool {name}"
        typed = ask(f"{why}{offered}", forms)
    data = _data(typed)
    return _failure(typed) or ({"json": data} if isinstance(data, dict | list) else {"reply": typed})


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    calls = message.get("tool_calls")
    parts = [content if isinstance(content, str) else _text(content), _text(calls) if calls else ""]
    return " ".join(part for part in parts if part)


def _failure(typed: str) -> dict[str, Any] | None:
    """Return the error that was typed: `!rate_limit`, or `!` and a message; None if it is none."""
    if not typed.startswith("!"):
        return None
    kind, _, message = typed[1:].partition(" ")
    if kind in KINDS:
        return {"error": {"kind": kind, "message": message} if message else kind}
    return {"error": {"kind": "exception", "message": typed[1:].strip()}}


def real_entries(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a scenario that are real, by key and name."""
    found = {
        effect.key: {name: item for name, item in entries.items() if item == REAL}
        for effect in EFFECTS.values()
        if isinstance(entries := keys.get(effect.key), dict)
    }
    return {key: entries for key, entries in found.items() if entries}


_RESULTS: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "http": lambda value: {"text": value} if isinstance(value, str) else {"json": value},
    "human": lambda value: {"reply": value},
}


def _data(typed: str) -> Any:
    value = from_json(typed)
    return typed if value is None and typed.strip() != "null" else value


def _text(value: Any) -> str:
    return clip(json.dumps(value, ensure_ascii=False, default=str), _SHOWN)


def _add(keys: dict[str, Any], entry: tuple[str, ...], stub: Any) -> None:
    """Add an answer to the world of a scenario. Each answers one call, in the order they were given."""
    key, *names = entry
    if stub == REAL:
        keys.setdefault(key, {})[names[0]] = REAL
        return
    if key not in ("llm", "human", "http"):
        stub = {**stub, "times": 1}
    if not names:
        keys.setdefault(key, []).append(stub)
    elif len(names) == 1:
        keys.setdefault(key, {}).setdefault(names[0], []).append(stub)
    else:
        tools = keys.setdefault(key, {}).setdefault(names[0], {"tools": []})["tools"]
        tool = next((each for each in tools if each["name"] == names[1]), None)
        if tool is None:
            tool = {"name": names[1], "stubs": []}
            tools.append(tool)
        tool["stubs"].append(stub)
