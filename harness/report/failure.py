"""One scenario that did not pass, as text that explains the failure without another run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from harness.errors import Span
from harness.report.formatting import plural, seconds
from harness.report.shorten import short_name, short_words
from harness.scenario.outcome import CheckResult, Outcome
from harness.source.display import clip, printable

_MOST_LISTED: Final = 5
_LONGEST_PATH: Final = 30
_ARGS_LENGTH: Final = 60
_WARNING_LENGTH: Final = 300


def failure_text(outcome: Outcome) -> str:
    """Plain text without a final line break: what was expected and found, where, and how to run it again.

    In this order: the scenario and its score; every check that failed with its message and the lines of
    the file that ask for it; the error; the last warnings; the path taken; the last calls; the command that
    runs it again.
    """
    blocks = [
        _header(outcome),
        *(_check(check) for check in _relevant_failures(outcome)),
        _run(outcome),
    ]
    return "\n\n".join(blocks)


def _relevant_failures(outcome: Outcome) -> list[CheckResult]:
    """The checks that failed; of a manifest that is refused, not those of the run that never was."""
    failed = [check for check in outcome.checks if not check.passed]
    status = [check for check in failed if check.name == "status"]
    return status if status and outcome.observed.status == "invalid" else failed


def failed_checks(outcome: Outcome) -> str:
    """The names of the checks that failed, or what kept the scenario from being judged, on one line."""
    if outcome.verdict == "error":
        message = (outcome.observed.error or {}).get("message") or outcome.reason or "could not be judged"
        return printable(short_words(message.splitlines()[0]))
    return ", ".join(short_name(check.name) for check in outcome.checks if not check.passed)


def title(outcome: Outcome) -> str:
    """The scenario's name, with variant and repeat where it has them."""
    more = [f"variant {outcome.variant}"] if outcome.variant else []
    more += [f"repeat {outcome.repeat}"] if outcome.repeat else []
    return printable(outcome.scenario + (f" [{', '.join(more)}]" if more else ""))


def _header(outcome: Outcome) -> str:
    head = f"{title(outcome)} — score {outcome.score:.2f}, {outcome.verdict}"
    return f"{head}\n  {printable(str(outcome.span or outcome.suite))}"


def _check(check: CheckResult) -> str:
    partial = f" (score {check.score:.2f})" if check.score > 0 else ""
    lines = [f"  {short_name(check.name)}{partial}"]
    lines += _indented(short_words(check.message or _difference(check)), 4)
    if check.span:
        lines += _indented(_source(check.span), 4)
    return "\n".join(lines)


def _difference(check: CheckResult) -> str:
    from harness.errors import HarnessError
    from harness.scenario.diff import one_line, readable_diff

    try:
        found = readable_diff(check.expected, check.actual)
    except HarnessError:  # an expectation that is itself malformed
        found = ""
    return found or f"expected {one_line(check.expected)}, was {one_line(check.actual)}"


def _source(span: Span) -> str:
    from harness.source.excerpt import excerpt

    shown = excerpt(span)
    return f"{span}\n{shown}" if shown else str(span)


def _indented(text: str, by: int) -> list[str]:
    return [(" " * by + line).rstrip() for line in printable(text, keep_newlines=True).split("\n")]


def _run(outcome: Outcome) -> str:
    observed = outcome.observed
    facts = [
        *_error(outcome),
        *_last("warned", list(dict.fromkeys(observed.warnings)), _warning),
        ("path", _path(observed.path)),
        *_last("calls", observed.calls, _call),
        ("rerun", rerun_command(outcome)),
    ]
    return "\n".join(f"  {label:<6} {text}".rstrip() for label, text in facts)


def _error(outcome: Outcome) -> Iterator[tuple[str, str]]:
    error = outcome.observed.error
    if error is None:
        if outcome.reason:
            yield "reason", printable(outcome.reason)
        return
    code = f" ({error['code']})" if error.get("code") else ""
    node = f" in {short_name(error['node'])}" if error.get("node") else ""
    yield "error", printable(f"{error.get('type')}{code}{node}")
    yield from (("", line) for line in _indented(short_words(str(error.get("message") or "")), 2) if line)
    if error.get("where") and error["where"] != error.get("node"):
        yield "", f"  at {printable(str(error['where']))}"


def _path(path: Sequence[Any]) -> str:
    if not path:
        return "(no node ran)"
    steps = [_step(step) for step in path]
    if len(steps) > _LONGEST_PATH:
        steps = [f"… {plural(len(steps) - _LONGEST_PATH, 'step')}", *steps[-_LONGEST_PATH:]]
    return " → ".join(steps)


def _step(step: Any) -> str:
    return f"({' | '.join(map(short_name, step))})" if isinstance(step, list) else short_name(step)


def _last(label: str, items: Sequence[Any], shown: Callable[[Any], str]) -> Iterator[tuple[str, str]]:
    """The last of these, and how many came before."""
    last = items[-_MOST_LISTED:]
    earlier = [f"… {len(items) - len(last)} earlier"] if len(items) > len(last) else []
    texts = [*earlier, *map(shown, last)]
    yield from ((label if i == 0 else "", text) for i, text in enumerate(texts))


def _warning(text: str) -> str:
    return printable(clip(" ".join(text.split()), _WARNING_LENGTH))


def _call(call: dict[str, Any]) -> str:
    from harness.scenario.diff import one_line

    parts = [f"{call.get('kind')} {short_name(call.get('name'))}"]
    if call.get("node") and call["node"] != call.get("name"):
        parts.append(f"in {short_name(call['node'])}")
    if call.get("args"):
        parts.append(one_line(call["args"], _ARGS_LENGTH))
    if call.get("latency"):
        parts.append(seconds(call["latency"]))
    if "reason" in call:
        parts.append(clip(f"refused: {' '.join(str(call['reason']).split())}", _WARNING_LENGTH))
    elif call.get("ok") is False:
        parts.append("failed")
    return printable("  ".join(parts))


def rerun_command(outcome: Outcome) -> str:
    """The command that runs the scenario again, ready to be pasted; seed, repeat and variant as a comment."""
    more = [f"seed {outcome.seed}"]
    more += [f"repeat {outcome.repeat}"] if outcome.repeat else []
    more += [f"variant {outcome.variant}"] if outcome.variant else []
    # pytest reads `::` and `[` in an id as its own.
    program = "harness run" if any(mark in outcome.scenario for mark in ("::", "[")) else "pytest"
    return printable(f"{program} {shlex.quote(outcome.id)}  # {', '.join(more)}")
