"""The functions of CEL expressions: those of cel-python, and those that the sherma specification adds.

A method is a function whose first argument stands before the dot, so every function can be called both ways.
Functions take and return CEL values. They raise ValueError for an invalid value (the message is shown to the
user), and TypeError for a wrong type or a wrong number of arguments.

Where the sherma specification says "string", the text functions accept any scalar and use its text, as sherma does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

import re2  # type: ignore[import-untyped]
from celpy.evaluation import base_functions

from harness.expressions.values import FALSE, TRUE, TYPES, integer, to_python, type_of, view

STEPS: Final = 5_000_000
"""Maximum number of items that the comprehensions of one evaluation may visit, all together."""
LONGEST_TEXT: Final = 64 * 1024 * 1024
"""In characters."""
LONGEST_LIST: Final = 5_000_000
_SHOWN: Final = 100  # characters of a text that is not valid JSON


class TooLarge(Exception):
    """Raised when an evaluation exceeds a limit. Not a `Failure`, so `default`, `has` and `||` do not absorb it."""


class Budget:
    """The number of items that an evaluation may still visit."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = STEPS

    def exceeded(self) -> NoReturn:
        """Raise TooLarge because no steps are left."""
        raise TooLarge(f"the expression looks at more than {STEPS:,} items")


def check_length(length: int, kind: type[Any]) -> None:
    """Raise TooLarge if a text or list of this length exceeds its limit."""
    if issubclass(kind, list):
        if length > LONGEST_LIST:
            raise TooLarge(f"the list would have more than {LONGEST_LIST:,} items")
    elif length > LONGEST_TEXT:
        raise TooLarge(f"the text would have more than {LONGEST_TEXT:,} characters")


Function = Callable[..., Any]


def text(value: Any) -> str:
    """Return the text of a value, as `string(value)`: booleans as `True` and `False`, containers as in Python."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, dict)):
        return str(to_python(value))
    return value.decode() if isinstance(value, bytes) else str(value)


def parse_json(value: Any) -> Any:
    """`json`: parse any JSON value, scalars included. Nulls in it stay null (see `null_as_false`)."""
    if isinstance(value, (list, dict)):
        raise TypeError("not a string")
    try:
        return view(json.loads(text(value)))
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON ({error}): {text(value)[:_SHOWN]!r}") from None
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def is_json(value: Any) -> Any:
    """`jsonValid`: true if `json` can parse the text."""
    try:
        parse_json(value)
    except (TypeError, ValueError):
        return FALSE
    return TRUE


def split(value: Any, separator: Any) -> Any:
    """`split`: split a text; an empty separator is an error."""
    if not text(separator):
        raise ValueError("the separator is empty")
    return view(text(value).split(text(separator)))


def join(items: Any, separator: Any) -> str:
    """`join`: concatenate the texts of the items."""
    texts = [text(item) for item in _items(items)]
    check_length(sum(map(len, texts)) + len(texts) * len(text(separator)), str)
    return text(separator).join(texts)


def replace(value: Any, old: Any, new: Any) -> str:
    """`replace`: replace every occurrence."""
    return _replaced(text(value), text(old), text(new))


def _replaced(value: str, old: str, new: str) -> str:
    check_length(len(value) + value.count(old) * (len(new) - len(old)), str)
    return value.replace(old, new)


def index_of(value: Any, part: Any) -> Any:
    """`indexOf`: the 0-based index of the first occurrence in code points, or -1."""
    return integer(text(value).find(text(part)))


def substring(value: Any, start: Any, end: Any) -> str:
    """`substring`: an end beyond the text means the end of the text; negative positions count from the end."""
    return text(value)[int(start) : int(end)]


def template(value: Any, replacements: Any) -> str:
    """`template`: replace `${key}` for each key, in the order of the map.

    Later keys are also replaced in inserted text.
    """
    if not isinstance(replacements, dict):
        raise TypeError("not a map")
    filled = text(value)
    for key in replacements:
        filled = _replaced(filled, "${" + text(key) + "}", text(replacements[key]))
    return filled


def last(items: Any) -> Any:
    """`last`: the last item; an empty list is an error."""
    if not isinstance(items, (list, str)):
        raise TypeError("not a list")
    if not items:
        raise ValueError("the list is empty")
    return items[len(items) - 1]


def contains(container: Any, item: Any) -> Any:
    """`contains`: a text in a text, an item in a list, a key in a map, or, for a message, a text in its content."""
    if isinstance(container, dict) and _is_message(container):
        return TRUE if any(item in part for part in _content_texts(container["content"])) else FALSE
    return TRUE if item in container else FALSE


def _is_message(value: Mapping[Any, Any]) -> bool:
    return "content" in value and ("type" in value or "role" in value)


def _content_texts(content: Any) -> list[str]:
    blocks = [content] if isinstance(content, str) else content
    return [text(block["text"] if isinstance(block, dict) else block) for block in blocks if _has_text(block)]


def _has_text(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, dict) and "text" in block)


def size(value: Any) -> Any:
    """`size`: the number of code points of a text, bytes, items of a list, or entries of a map."""
    return integer(0 if value is None else len(value))


def matches(value: str, pattern: str) -> Any:
    """`matches`: true if the RE2 pattern is found anywhere in the text."""
    return TRUE if _pattern(pattern).search(value) else FALSE


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False  # RE2 would write to the file descriptor of stderr
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        raise ValueError(reason.decode() if isinstance(reason, bytes) else str(reason)) from None


def kind(value: Any) -> type:
    """`type`: the type of a value, such as `int`, `string` or `list`."""
    return type if isinstance(value, type) else TYPES[type_of(value)]


def _conversion(convert: Function) -> Function:
    def converted(value: Any) -> Any:
        try:
            return convert(value)
        except ValueError as error:
            raise ValueError(
                "overflow" if "overflow" in str(error) else f"cannot read {text(value)!r}"
            ) from None

    return converted


def smallest(items: Any) -> Any:
    """`min`: the smallest item of a list; cel-python has it as a method of lists."""
    return min(_items(items))


def _items(items: Any) -> Any:
    if not isinstance(items, (list, str, dict)):
        raise TypeError("not a list")
    return items


# cel-python keeps its operators in the same table, under names like `_+_`, which are no identifiers.
_BUILT_IN = {name: call for name, call in base_functions.items() if name.isidentifier()}
_CONVERSIONS = ("bool", "bytes", "double", "duration", "int", "timestamp", "uint")

FUNCTIONS: Mapping[str, Function] = {
    **_BUILT_IN,
    **{name: _conversion(_BUILT_IN[name]) for name in _CONVERSIONS},
    "contains": contains,
    "indexOf": index_of,
    "join": join,
    "json": parse_json,
    "jsonValid": is_json,
    "last": last,
    "lowerAscii": lambda value: text(value).lower(),
    "matches": matches,
    "min": smallest,
    "replace": replace,
    "size": size,
    "split": split,
    "string": text,
    "substring": substring,
    "template": template,
    "trim": lambda value: text(value).strip(),
    "type": kind,
    "upperAscii": lambda value: text(value).upper(),
}
