"""Lines of text about a recording session: requests, tokens, and the files that were written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.report.formatting import plural
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.recording.interactions import Traffic
    from harness.scenario.outcome import RecordingResult


def recorded_lines(recorded: Sequence[RecordingResult], *, quiet: bool) -> Iterator[str]:
    """Yield a line for all cassettes, and unless `quiet` one for each; nothing if nothing was to be recorded."""
    if not recorded:
        return
    whole = recorded[0].traffic
    for each in recorded[1:]:
        whole += each.traffic
    files = sum(len(each.files) for each in recorded)
    yield ""
    yield f"recorded: {_described(whole)}; {plural(files, 'file')} written"
    for each in () if quiet else recorded:
        yield f"  {shown_path(each.folder)}  {_cassette(each)}"


def _cassette(one: RecordingResult) -> str:
    asked = _described(one.traffic)
    if one.problem:
        return f"stays as it was: {one.problem.splitlines()[0]} ({asked})"
    left = f"; {one.unused} recorded before and not used now, which --rewrite drops" if one.unused else ""
    if not one.traffic:
        return f"nothing was missing{left}"
    return f"{asked} → {', '.join(one.files) or 'the same as before, nothing is written'}{left}"


def _described(traffic: Traffic) -> str:
    if not traffic:
        return "nothing asked"
    parts = [plural(traffic.requests, "request")] if traffic.requests else []
    parts += [plural(traffic.people, "question") + " to a person"] if traffic.people else []
    tokens = f"{traffic.input_tokens:,} tokens in, {traffic.output_tokens:,} out"
    return ", ".join([*parts, *([tokens] if traffic.input_tokens or traffic.output_tokens else [])])
