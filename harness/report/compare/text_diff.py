"""Compare two texts, by lines and by the words of a line.

Lines of the result start as in a diff: `-` for a removed line, `+` for an added line, a space for context. In a line
that starts with `~` some words changed: `[-removed words-]{+added words+}`, as in `git diff --word-diff`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from harness.report.formatting import cut

_TOKEN: Final = re.compile(r"\w+|\s+|[^\w\s]")
_CONTEXT: Final = 1
"""Lines of context before and after a change."""
_AROUND: Final = 40
"""Characters of context around a change within a line."""
_MAX_TEXT: Final = 200
"""Maximum number of characters shown of a changed text."""
_ALIKE: Final = 0.4
"""The words of two lines are compared if they share at least this part."""
_MAX_COMPARED: Final = 1_000_000
"""Maximum number of pairs of words, or of lines, to compare."""

Step = tuple[str, int, int, int, int]


def diff_lines(before: str, after: str) -> list[str]:
    """Return the lines that differ, with context; empty if the texts are equal.

    >>> diff_lines("Answer in one sentence.", "Answer in two sentences.")
    ['~ Answer in [-one sentence-]{+two sentences+}.']
    """
    one, other = (text.split("\n") for text in (before, after))
    return [*_lines(one, other)] if before != after else []


def _lines(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    found = steps(before, after)
    for number, (kind, start, end, at, to) in enumerate(found):
        if kind == "equal":
            head = before[start : start + _CONTEXT] if number else []
            tail = before[max(end - _CONTEXT, start + len(head)) : end] if number < len(found) - 1 else []
            left = end - start - len(head) - len(tail)
            yield from (f"  {_clip(line)}" for line in head)
            if left and head and tail:
                yield "  …"
            yield from (f"  {_clip(line)}" for line in tail)
            continue
        paired = min(end - start, to - at)
        for old, new in zip(before[start : start + paired], after[at : at + paired], strict=True):
            yield from _changed_line(old, new)
        yield from (f"- {_clip(line)}" for line in before[start + paired : end])
        yield from (f"+ {_clip(line)}" for line in after[at + paired : to])


def word_changes(before: str, after: str) -> list[tuple[str, str]]:
    """Split two texts into (before, after) parts; both are equal where nothing changed.

    >>> word_changes("Answer briefly.", "Answer kindly.")
    [('Answer ', 'Answer '), ('briefly', 'kindly'), ('.', '.')]
    """
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    return [
        ("".join(old[start:end]), "".join(new[at:to]))
        for _, start, end, at, to in _merged(steps(old, new), old)
    ]


def _changed_line(before: str, after: str) -> Iterator[str]:
    """Yield the change of one line: by words if enough of it is unchanged."""
    changes = word_changes(before, after)
    stayed = sum(len(was) for was, now in changes if was == now)
    if stayed < _ALIKE * max(len(before), len(after)):
        yield from (f"- {_clip(before)}", f"+ {_clip(after)}")
        return
    parts = []
    for number, (was, now) in enumerate(changes):
        if was == now:
            parts.append(_shorten(was, first=number == 0, last=number == len(changes) - 1))
        else:
            parts.append((f"[-{_clip(was)}-]" if was else "") + (f"{{+{_clip(now)}+}}" if now else ""))
    yield "~ " + "".join(parts)


def steps(before: Sequence[object], after: Sequence[object], most: int = _MAX_COMPARED) -> list[Step]:
    """Return the steps from one list to the other, like difflib.

    What is between an equal beginning and end is one change if it has more than `most` pairs of items.
    """
    short = min(len(before), len(after))
    head = next((at for at in range(short) if before[at] != after[at]), short)
    tail = next((at for at in range(short - head) if before[-1 - at] != after[-1 - at]), short - head)
    one, other = before[head : len(before) - tail], after[head : len(after) - tail]
    found: list[Step] = [("equal", 0, head, 0, head)] if head else []
    if one and other and len(one) * len(other) <= most:
        matcher = SequenceMatcher(None, one, other, autojunk=False)
        found += [
            (kind, start + head, end + head, at + head, to + head)
            for kind, start, end, at, to in matcher.get_opcodes()
        ]
    elif one or other:
        found.append(("replace", head, head + len(one), head, head + len(other)))
    if tail:
        found.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    return found


def _merged(found: Sequence[Step], words: Sequence[str]) -> list[Step]:
    """Merge changes that are separated by nothing but white space."""
    merged: list[Step] = []
    for number, step in enumerate(found):
        kind, start, end, at, to = step
        inside = 0 < number < len(found) - 1
        if kind == "equal" and not (inside and "".join(words[start:end]).isspace()):
            merged.append(step)
        elif merged and merged[-1][0] != "equal":
            _, first, _, began, _ = merged[-1]
            merged[-1] = ("replace", first, end, began, to)
        else:
            merged.append(("replace", start, end, at, to))
    return merged


def _shorten(text: str, *, first: bool, last: bool) -> str:
    """Shorten an unchanged text to the parts next to changes."""
    if len(text) <= 2 * _AROUND:
        return text
    return ("" if first else text[:_AROUND]) + "…" + ("" if last else text[-_AROUND:])


def _clip(text: str) -> str:
    return cut(text, _MAX_TEXT)
