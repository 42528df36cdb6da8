"""Text that explains why a scenario run did not pass, and its weight and colours on a terminal.

The text itself is plain, since files and other processes get it as well. Styles are words that both rich and pytest's
terminal writer know.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal

from harness.errors import CassetteMissing, Span
from harness.report.cause import Reasons, reasons
from harness.report.formatting import path_text, plural, seconds, short_name, short_words, wrapped_lines
from harness.scenario.outcome import CheckResult, Outcome
from harness.source.display import clip, printable
from harness.source.document import shown_path


def rerun_text(scenario: str, seed: int, repeat: int, variant: str | None, command: str = "pytest") -> str:
    """Return the command that runs a scenario again, given by its id, with seed, repeat and variant as a comment.

    `command` is what ran it, such as `harness run --live`.
    """
    more = [f"seed {seed}"]
    more += [f"repeat {repeat}"] if repeat else []
    more += [f"variant {variant}"] if variant else []
    _, _, name = scenario.partition("::")
    if command == "pytest" and any(mark in name for mark in ("::", "[")):
        command = "harness run"  # pytest gives these marks in a node id a meaning of its own
    return printable(f"{command} {shlex.quote(scenario)}  # {', '.join(more)}")


def trace_command(outcome: Outcome) -> str:
    """Return the command that shows the trace of a run; "" if its trace was not kept."""
    return trace_text(outcome.id, outcome.repeat, outcome.variant) if outcome.traced else ""


def trace_text(scenario: str, repeat: int, variant: str | None) -> str:
    """Return the same command for a scenario given by its id."""
    options = f" --repeat {repeat}" if repeat else ""
    options += f" --variant {shlex.quote(variant)}" if variant else ""
    return printable(f"harness trace {shlex.quote(scenario)}{options}")


def report_argument(scenarios: Path, report: Path) -> str:
    """Return a space and the results folder, as the last argument of `harness trace`; "" if it is the default."""
    usual = default_report(scenarios)
    return "" if usual.resolve() == report.resolve() else f" {shlex.quote(shown_path(report))}"


def default_report(scenarios: Path) -> Path:
    """Return the default results folder of the project that this scenario file belongs to."""
    from harness.settings import load_settings

    return load_settings(scenarios.parent if scenarios.exists() else None).report


Detail = Literal["short", "normal", "full"]
"""short   the cause, without source lines, and the command that runs it again
normal  the cause with its source lines, and what happened; consequences of the cause are only named
full    every failed check, and every frame of an exception"""

_MAX_LISTED: Final = 5
_MAX_SCENARIOS: Final = 30
_ARGS_LENGTH: Final = 60
_WARNING_LENGTH: Final = 300
_REASON_LENGTH: Final = 120

_CUT_OFF: Final = ("real-timeout", "worker-died")
"""Codes of runs that were killed from outside, so that their path is unknown."""

_PLACE: Final = re.compile(r"(.+):(\d+):(\d+)")


def failure_text(
    outcome: Outcome,
    detail: Detail = "normal",
    same: Sequence[str] = (),
    report: Path | None = None,
    command: str = "pytest",
) -> str:
    """Return plain text without a final line break: why the run did not pass, where, and how to run it again.

    In order: the scenario and its score; the cause (the error that ended the run, or each failed check) with source
    lines; the names of the checks that are consequences; warnings; the path; the last calls; the command that runs
    it again; the command that shows its trace.

    Args:
        outcome: the run.
        detail: the amount of detail.
        same: ids of other scenarios that failed for the same reason.
        report: the results folder, for the trace command; None leaves that out.
        command: the command that ran it, for the command that runs it again; "" if there is none.
    """
    why = reasons(outcome)
    if detail == "full":
        why = Reasons(why.is_error, [*why.checks, *why.consequences], (), None)
    consequences = f"\n{_consequences(why.consequences)}" if why.consequences else ""
    blocks = [_header(outcome, len(same))]
    if why.is_error:
        blocks.append("\n".join(_error(outcome, detail)) + consequences)
    blocks += [_check(check, detail) + (consequences if check is why.cause else "") for check in why.checks]
    blocks += [_check(check, detail) for check in outcome.too_late]
    facts = "\n".join(_facts(outcome, detail, why, report, command))
    return with_same("\n\n".join([*blocks, facts]), same)


def failed_checks(outcome: Outcome) -> str:
    """Return the cause on one line: the error, the check that could not be evaluated, or the failed checks' names."""
    why = reasons(outcome)
    error = outcome.observed.error
    if why.is_error and error is not None:
        text = str(error.get("message") or "")
        # The message is clear without its type if it has a code: a located problem, or an unscripted call.
        text = text if error.get("code") else f"{error.get('type')}: {text}"
    elif broken := next((check for check in why.checks if check.broken), None):
        text = f"{short_name(broken.name)} {broken.message}"
    elif why.checks:
        text = ", ".join(short_name(check.name) for check in why.checks)
    elif outcome.latency_penalty:  # every check holds, but the latency penalty lowered the score
        text = "latency.total"
    else:
        text = outcome.reason or "could not be judged"
    return printable(short_words((text.splitlines() or [""])[0]).rstrip(":"))


def lost_checks(outcome: Outcome) -> str:
    """Return why a run that passed has less than the full score: failed checks, or the latency penalty."""
    names = [short_name(check.name) for check in outcome.checks if not check.passed]
    return ", ".join([*names, *(["latency.total"] if outcome.latency_penalty else [])])


def title(outcome: Outcome) -> str:
    """Return the scenario's name, with its variant and repeat if it has them."""
    more = [f"variant {outcome.variant}"] if outcome.variant else []
    more += [f"repeat {outcome.repeat}"] if outcome.repeat else []
    return printable(outcome.scenario + (f" [{', '.join(more)}]" if more else ""))


def _header(outcome: Outcome, same: int) -> str:
    more = f", and {plural(same, 'more run')}" if same else ""
    head = f"{title(outcome)}{more} — score {outcome.score:.2f}, {outcome.verdict}"
    return f"{head}\n  {printable(str(outcome.span or outcome.suite))}"


def _check(check: CheckResult, detail: Detail) -> str:
    partial = f" (score {check.score:.2f})" if check.score > 0 else ""
    lines = [f"  {short_name(check.name)}{partial}"]
    lines += _indented(short_words(check.message or difference(check.expected, check.actual)), 4)
    if check.span:
        lines += _indented(str(check.span) if detail == "short" else _source(check.span), 4)
    return "\n".join(lines)


def difference(expected: Any, actual: Any) -> str:
    """Describe the difference between two values, for a check without a message."""
    from harness.errors import HarnessError
    from harness.scenario.checks.finding import one_line, readable_diff

    try:
        found = readable_diff(expected, actual)
    except HarnessError:  # an expectation that is itself malformed
        found = ""
    return found or f"expected {one_line(expected)}, was {one_line(actual)}"


def _consequences(checks: Sequence[CheckResult]) -> str:
    names = ", ".join(short_name(check.name) for check in checks)
    return f"  and {plural(len(checks), 'check')} that {'follows' if len(checks) == 1 else 'follow'} from it: {names}"


def _source(span: Span) -> str:
    from harness.secrets import hidden
    from harness.source.display import excerpt

    shown = excerpt(span, hidden)
    return f"{span}\n{shown}" if shown else str(span)


def _indented(text: str, by: int) -> list[str]:
    return [(" " * by + line).rstrip() for line in printable(text, keep_newlines=True).split("\n")]


def _error(outcome: Outcome, detail: Detail) -> Iterator[str]:
    """Yield the error that ended the run, the frames in the user's code, and the node or line it concerns."""
    error = outcome.observed.error or {}
    code = f" ({error['code']})" if error.get("code") else ""
    node = f" in {short_name(error['node'])}" if error.get("node") else ""
    where = error.get("where")
    # The message of a located problem begins with its location, which is shown below with the source line.
    message = short_words(str(error.get("message") or "")).removeprefix(f"{where}: ")
    yield printable(f"  {error.get('type')}{code}{node}")
    yield from (line for line in _indented(message, 4) if line)
    yield from _frames(outcome, detail)
    if where and where != error.get("node"):
        # The source line of a node adds nothing to its name.
        blamed = detail != "short" and (error.get("node") is None or error.get("code") == "world")
        yield from _indented(f"at {_location(str(where)) if blamed else where}", 4)


def _frames(outcome: Outcome, detail: Detail) -> Iterator[str]:
    own = (outcome.observed.error or {}).get("traceback") or []
    frames = (outcome.observed.frames or own) if detail == "full" else own[-1:] if detail == "short" else own
    for frame, alike in groupby(frames, lambda frame: {**frame, "raised": ""}):
        *_, last = again = list(alike)
        times = f"  × {len(again)}" if len(again) > 1 else ""
        yield printable(f"    {frame['file']}:{frame['line']} in {short_name(frame['function'])}{times}")
        if frame["source"]:
            yield printable(f"      {clip(frame['source'], 100)}")
        if last["raised"] and last is not frames[-1]:
            yield printable(f"      {clip(last['raised'], _WARNING_LENGTH)}")


def _location(where: str) -> str:
    """Return `file:line:column` with the source line and a caret; other texts unchanged."""
    found = _PLACE.fullmatch(where)
    if found is None:
        return where
    return _source(Span(found[1], int(found[2]), int(found[3])))


def _facts(
    outcome: Outcome, detail: Detail, why: Reasons, report: Path | None, command: str
) -> Iterator[str]:
    observed = outcome.observed
    facts: list[tuple[str, str]] = []
    if detail != "short":
        if outcome.reason:
            facts.append(("reason", printable(outcome.reason)))
        if observed.error and not why.is_error:
            lines = list(_error(outcome, "short"))
            facts += [("" if i else "error", line.removeprefix("  ")) for i, line in enumerate(lines)]
        facts += _last_items("raised", observed.raised, _raised)
        facts += _last_items("warned", list(dict.fromkeys(observed.warnings)), _warning)
        cut_off = (observed.error or {}).get("code") in _CUT_OFF
        facts.append(("path", "(not known)" if cut_off and not observed.path else path_text(observed.path)))
        shown = [str(error.get("message")) for error in (observed.error, *observed.raised) if error]
        facts += _last_items("why", observed.causes, _warning)
        facts += _last_items("calls", observed.calls, partial(_call, shown=shown))
    if (observed.error or {}).get("code") == CassetteMissing.code:
        command = "harness record"
    if command:
        again = rerun_text(outcome.id, outcome.seed, outcome.repeat, outcome.variant, command)
        facts.append(("rerun", again))
    if report is not None and (command := trace_command(outcome)):
        facts.append(("trace", command + report_argument(Path(outcome.suite), report)))
    return map(_fact, facts)


def _fact(fact: tuple[str, str]) -> str:
    label, text = fact
    return f"  {label:<6} {text}".rstrip()


def with_same(text: str, ids: Sequence[str]) -> str:
    """Insert the ids of other scenarios that failed for the same reason into a `failure_text`."""
    names = [printable(name) for name in ids[:_MAX_SCENARIOS]]
    names += [f"… and {len(ids) - _MAX_SCENARIOS} more"] if len(ids) > _MAX_SCENARIOS else []
    before, rerun, after = text.rpartition("\n  rerun ")
    same = [_fact(("" if i else "same", name)) for i, name in enumerate(names)]
    return "\n".join([before, *same]) + rerun + after


def _last_items(label: str, items: Sequence[Any], shown: Callable[[Any], str]) -> Iterator[tuple[str, str]]:
    """Return the last items under a label, with the number of consecutive repeats and of earlier items."""
    rows = [(item, len(list(alike))) for item, alike in groupby(items)]
    last = rows[-_MAX_LISTED:]
    before = len(items) - sum(times for _, times in last)
    texts = [f"… {before} earlier"] if before else []
    texts += [shown(item) + (f"  × {times}" if times > 1 else "") for item, times in last]
    yield from ((label if i == 0 else "", text) for i, text in enumerate(texts))


def _raised(error: dict[str, Any]) -> str:
    """Describe an exception that did not end the run, with the line of the user's code that raised it."""
    last = error["traceback"][-1]
    message = " ".join(f"{error['type']}: {error['message']}".split())
    place = f"{last['file']}:{last['line']} in {short_name(last['function'])}: {clip(last['source'], 100)}"
    return printable(f"{clip(message, _WARNING_LENGTH)}  {place}")


def _warning(text: str) -> str:
    return printable(clip(" ".join(text.split()), _WARNING_LENGTH))


def _shortened(text: str) -> str:
    """Return a text on one line; of a long one the first and the last line, which has the error of a traceback."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    shown = " ".join(lines)
    if len(shown) <= _REASON_LENGTH or len(lines) == 1:
        return clip(shown, _WARNING_LENGTH)
    return " … ".join(clip(line, _REASON_LENGTH) for line in (lines[0], lines[-1]))


def _call(call: dict[str, Any], shown: Sequence[str]) -> str:
    """Describe a call and its result. The reason of a failure is left out if it is in one of the `shown` texts."""
    from harness.scenario.checks.finding import one_line

    parts = [f"{call.get('kind')} {short_name(call.get('name'))}"]
    if call.get("node") and call["node"] != call.get("name"):
        parts.append(f"in {short_name(call['node'])}")
    if call.get("args"):
        parts.append(one_line(call["args"], _ARGS_LENGTH))
    if call.get("latency"):
        parts.append(seconds(call["latency"]))
    if call.get("ok") is False:
        reason = str(call.get("reason") or "")
        word = "refused" if call.get("refused") else "failed"
        parts.append(
            f"{word}: {_shortened(reason)}" if reason and not any(reason in text for text in shown) else word
        )
    return printable("  ".join(parts))


Part = tuple[str, str]
"""A piece of a line, and its style: words such as `bold red`, or ""."""

_STYLES: Final = {"heading": "bold", "expected": "green", "actual": "bold red"}
_TEXT: Final = r"'(?:[^']|'')*'|\"(?:[^\"\\]|\\.)*\""
_EMPHASISED: Final = (
    re.compile(r"(?P<heading>\S.*)"),
    re.compile(r" +expected: +(?P<expected>.*)"),
    re.compile(r" +actual: +(?P<actual>.*)"),
    re.compile(
        rf" .*?\bexpected (?P<expected>{_TEXT}|.*?), was (?P<actual>{_TEXT}|\w+(?=: )|.*?(?= \(|$)).*"
    ),
)
"""The lines with emphasised parts: values end at a reason in parentheses or after a colon."""


def emphasised(text: str, width: int | None) -> Iterator[list[Part]]:
    """Yield the lines of a `failure_text`, wrapped to the width (None: not wrapped), each as its parts."""
    for line, pieces in wrapped_lines(text, width):
        found = next(filter(None, (pattern.fullmatch(line) for pattern in _EMPHASISED)), None)
        spans = [(*found.span(name), _STYLES[name]) for name in found.groupdict()] if found else []
        end = 0
        for piece in pieces:
            words = piece.lstrip(" ")
            start = max(line.find(words, end), end)
            end = start + len(words)
            yield [part for part in _parts(piece, start - (len(piece) - len(words)), spans) if part[0]]


def _parts(piece: str, start: int, spans: Sequence[tuple[int, int, str]]) -> Iterator[Part]:
    """Yield the parts of a piece. `start` is the position of its first character in the line that has the spans."""
    at = 0
    for *ends, style in spans:
        begin, end = (min(max(each - start, at), len(piece)) for each in ends)
        yield piece[at:begin], ""
        yield piece[begin:end], style
        at = end
    yield piece[at:], ""
