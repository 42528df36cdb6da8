"""Describes the differences between a recorded and a requested JSON value, one line each, with changed words marked.

`[-recorded-]` and `{+requested+}` mark changes, as in `git diff --word-diff`. Lists are aligned before they are
compared, so that an inserted item is one difference.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import islice
from typing import Any, Final

from harness.source.display import clip, printable
from harness.units import is_number

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_CONTEXT: Final = 24  # characters of unchanged text shown on either side of a change
_CHANGED: Final = 80  # characters shown of one change
_LINE: Final = 320  # characters shown of all changes of a text
_MAX_WORDS: Final = 300  # words compared, from the first that differs
_MAX_PAIRS: Final = 400  # pairs of list items whose similarity is computed
_MAX_ITEMS: Final = 2_000  # items of lists that are aligned
_MAX_DEPTH: Final = 100
_BRIEF: Final = 120  # characters shown of a value
_SAMPLE: Final = 400  # characters of a text compared by `similarity`
_MIN_SIMILARITY: Final = 0.4


def differences(recorded: Any, asked: Any, *, path: str = "", limit: int = 100) -> list[str]:
    """Return one line for each difference, at most `limit`; an empty list if the values are equal.

    An item inserted into or left out of a list is one difference. A chat message is named by its role. `path` is a
    prefix for the paths in the lines, such as `body`.
    """
    return [_line(at, describe()) for at, describe in islice(_differences(recorded, asked, path, 0), limit)]


def distance(recorded: Any, asked: Any, *, limit: int = 100) -> int:
    """Return the number of differences, at most `limit`; faster than describing them."""
    return sum(1 for _ in islice(_differences(recorded, asked, "", 0), limit))


_Difference = tuple[str, Callable[[], str]]  # the path, and a function that makes the text


def _differences(recorded: Any, asked: Any, path: str, depth: int) -> Iterator[_Difference]:
    if recorded is asked:
        return
    if depth < _MAX_DEPTH and isinstance(recorded, dict) and isinstance(asked, dict):
        yield from _mapping_differences(recorded, asked, path, depth)
    elif depth < _MAX_DEPTH and isinstance(recorded, list) and isinstance(asked, list):
        yield from _list_differences(recorded, asked, path, depth)
    elif isinstance(recorded, str) and isinstance(asked, str):
        if recorded != asked:
            yield path, lambda: f'"{word_diff(recorded, asked)}"'
    elif not _is_equal(recorded, asked):
        yield path, lambda: _changed(recorded, asked)


def _is_equal(one: Any, other: Any) -> bool:
    return bool(one == other) if is_number(one) and is_number(other) else _text(one) == _text(other)


def _mapping_differences(
    recorded: dict[str, Any], asked: dict[str, Any], path: str, depth: int
) -> Iterator[_Difference]:
    for key in [*recorded, *(key for key in asked if key not in recorded)]:
        below = _below(path, key)
        if key not in asked:
            yield below, partial(_only, "only in the recording", recorded[key])
        elif key not in recorded:
            yield below, partial(_only, "not in the recording", asked[key])
        else:
            yield from _differences(recorded[key], asked[key], below, depth + 1)


def _only(where: str, value: Any) -> str:
    return f"{where}: {brief(value)}"


def _changed(recorded: Any, asked: Any) -> str:
    return f"[-{brief(recorded)}-]{{+{brief(asked)}+}}"


def _below(path: str, key: str) -> str:
    if key == "content" and path.endswith(")"):
        return path  # `messages[0] (system)` is clear without it
    shown = key if re.fullmatch(r"[\w-]{1,60}", key) else f'["{clip(key, 60)}"]'
    return f"{path}.{shown}" if path and not shown.startswith("[") else path + shown


def _line(path: str, text: str) -> str:
    return printable(f"{path}: {text}" if path else text)


# ---------------------------------------------------------------- lists


def _list_differences(recorded: list[Any], asked: list[Any], path: str, depth: int) -> Iterator[_Difference]:
    if not any(isinstance(item, str | list | dict) for item in (*recorded, *asked)):  # such as an embedding
        if recorded != asked:
            yield path, lambda: _changed(recorded, asked)
        return
    for first, second in _align(recorded, asked):
        if second is None and first is not None:
            yield (
                _item(path, first, recorded[first]),
                partial(_only, "only in the recording", recorded[first]),
            )
        elif first is None and second is not None:
            yield _item(path, second, asked[second]), partial(_only, "not in the recording", asked[second])
        elif first is not None and second is not None:
            below = _item(path, second, asked[second], recorded[first])
            yield from _differences(recorded[first], asked[second], below, depth + 1)


def _item(path: str, at: int, *items: Any) -> str:
    names = {_name(item) for item in items}
    name = names.pop() if len(names) == 1 else ""
    return f"{path}[{at}] ({clip(name, 40)})" if name else f"{path}[{at}]"


def _name(item: Any) -> str:
    """Return the role of a message or the name of a tool; "" for anything else."""
    if not isinstance(item, dict):
        return ""
    function = item.get("function")
    inner = function.get("name") if isinstance(function, dict) else None
    return next((name for name in (item.get("role"), item.get("name"), inner) if isinstance(name, str)), "")


_Pair = tuple[int | None, int | None]


def _align(recorded: Sequence[Any], asked: Sequence[Any]) -> Iterator[_Pair]:
    """Yield the indices of the items to compare, leaving out equal ones; None stands for a missing counterpart."""
    one, other = [_text(item) for item in recorded], [_text(item) for item in asked]
    head = _common_prefix_length(one, other)
    tail = _common_prefix_length(one[head:][::-1], other[head:][::-1])
    one, other = one[head : len(one) - tail], other[head : len(other) - tail]
    if len(one) > _MAX_ITEMS or len(other) > _MAX_ITEMS:
        blocks: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(one), 0, len(other))]
    else:
        blocks = SequenceMatcher(None, one, other).get_opcodes()
    for kind, from_one, to_one, from_other, to_other in blocks:
        if kind != "equal":
            pairs = _pair(one[from_one:to_one], other[from_other:to_other])
            for first, second in pairs:
                yield (
                    None if first is None else head + from_one + first,
                    None if second is None else head + from_other + second,
                )


def _common_prefix_length(one: Sequence[str], other: Sequence[str]) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _pair(one: Sequence[str], other: Sequence[str]) -> list[_Pair]:
    """Pair changed items with their former versions, in order, so that the sum of the similarities is largest."""
    rows, columns = len(one), len(other)
    if rows == columns == 1 or rows * columns > _MAX_PAIRS:
        both = min(rows, columns)
        rest = [(at, None) for at in range(both, rows)] + [(None, at) for at in range(both, columns)]
        return [*((at, at) for at in range(both)), *rest]
    # best[i][j]: the largest sum of similarities of pairs of one[i:] with other[j:]
    alike = [[_pair_similarity(a, b) for b in other] for a in one]
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + alike[i][j])
    pairs: list[_Pair] = []
    i = j = 0
    while i < rows or j < columns:
        if i < rows and j < columns and alike[i][j] and best[i][j] == best[i + 1][j + 1] + alike[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif j == columns or (i < rows and best[i][j] == best[i + 1][j]):
            pairs.append((i, None))
            i += 1
        else:
            pairs.append((None, j))
            j += 1
    return pairs


def _pair_similarity(one: str, other: str) -> float:
    """Return the similarity of two items, 0 to 1; 0 for items with too little in common to be a pair."""
    found = similarity(one, other)
    return found if found >= _MIN_SIMILARITY else 0.0


def similarity(one: str, other: str, *, sample: int = _SAMPLE) -> float:
    """Return the share of common words in the first `sample` characters of two texts, in any order: 0 to 1."""
    first, second = (Counter(_WORD.findall(text[:sample])) for text in (one, other))
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 1.0


# ---------------------------------------------------------------- texts


def word_diff(recorded: str, asked: str) -> str:
    """Return the changed words, marked, with a little of the text around them.

    >>> word_diff("You are a helpful assistant", "You are a terse assistant")
    'You are a [-helpful-]{+terse+} assistant'
    """
    one, other = _WORD.findall(recorded), _WORD.findall(asked)
    head = _common_prefix_length(one, other)
    tail = _common_prefix_length(one[head:][::-1], other[head:][::-1])
    before, after = "".join(one[:head]), "".join(one[len(one) - tail :])
    one, other = one[head : len(one) - tail], other[head : len(other) - tail]
    if max(len(one), len(other)) > _MAX_WORDS:
        one, other, after = one[:_MAX_WORDS], other[:_MAX_WORDS], "…"
    matcher = SequenceMatcher(str.isspace, one, other, autojunk=False)
    if matcher.ratio() < _MIN_SIMILARITY:  # marking word by word would only confuse
        return (
            _excerpt(before, tail=_CONTEXT) + _mark("".join(one), "".join(other)) + _excerpt(after, _CONTEXT)
        )
    pieces = [_excerpt(before, tail=_CONTEXT)]
    opcodes = matcher.get_opcodes()
    for number, (kind, from_one, to_one, from_other, to_other) in enumerate(opcodes):
        if kind == "equal":
            pieces.append(_excerpt("".join(one[from_one:to_one]), _CONTEXT, _CONTEXT))
        else:
            pieces.append(_mark("".join(one[from_one:to_one]), "".join(other[from_other:to_other])))
        if sum(map(len, pieces)) > _LINE and number + 1 < len(opcodes):
            return "".join(pieces) + " …"
    return "".join(pieces) + _excerpt(after, _CONTEXT)


def _mark(recorded: str, asked: str) -> str:
    was, now = _cut(recorded), _cut(asked)
    if was == now:  # one long word, its difference cut off
        start = max(_common_prefix_length(recorded, asked) - _CONTEXT, 0)
        was, now = "…" + _cut(recorded[start:]), "…" + _cut(asked[start:])
    return (f"[-{was}-]" if recorded else "") + (f"{{+{now}+}}" if asked else "")


def _cut(text: str) -> str:
    return _visible(text if len(text) <= _CHANGED else f"{text[:_CHANGED]}…")


def _excerpt(text: str, head: int = 0, tail: int = 0) -> str:
    """Return the first and the last characters of an unchanged text; all of it if that is little longer."""
    if len(text) <= head + tail + _CONTEXT:
        return _visible(text)
    return f"{_visible(text[:head])}…{_visible(text[len(text) - tail :])}"


_BLANK: Final = re.compile("[\n\r\t\xa0\u1680\u2000-\u200d\u202f\u205f\u3000]")


def _visible(text: str) -> str:
    """Replace line breaks and unusual blanks by their escapes: they may be the only difference."""
    return _BLANK.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


# ---------------------------------------------------------------- other values


def brief(value: Any) -> str:
    """Return the value as JSON, shortened."""
    return clip(_visible(_brief(value, 0)), _BRIEF)


def _brief(value: Any, depth: int) -> str:
    if isinstance(value, dict | list) and value and depth > 3:
        return "{…}" if isinstance(value, dict) else "[…]"
    if isinstance(value, dict):
        shown = [f'"{clip(key, 40)}": {_brief(item, depth + 1)}' for key, item in islice(value.items(), 6)]
        return "{" + ", ".join(shown + ["…"] * (len(value) > 6)) + "}"
    if isinstance(value, list):
        shown = [_brief(item, depth + 1) for item in value[:6]]
        return "[" + ", ".join(shown + [f"… {len(value)} items"] * (len(value) > 6)) + "]"
    return f'"{clip(value, _BRIEF)}"' if isinstance(value, str) else _text(value)


def _text(value: Any) -> str:
    """Return canonical JSON: equal for equal values only."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=repr)
    except RecursionError:
        return "nested too deeply to be shown"
