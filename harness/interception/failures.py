"""Converts exceptions of clients to text and back.

The text is `ConnectError: refused`; with the exception's `reason`, `MaxRetryError(NewConnectionError): …`; for an
exception while the body was read, `DecodeError in the body: …`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

_FAILURE_TEXT: Final = re.compile(
    r"(?P<name>\w+)(?:\((?P<reason>\w+)\))?(?P<body> in the body)?: (?P<text>.*)", re.DOTALL
)
_OF_REASON: Final = re.compile(r"^<urlopen error (.*)>$|\(Caused by \w+\(['\"](.*)['\"]\)\)$", re.DOTALL)


def failure_text(error: Exception, *, in_body: bool = False) -> str:
    """Return an exception as text. `in_body` is True if it was raised while the body was read."""
    reason = getattr(error, "reason", None)
    name = type(error).__name__ + (f"({type(reason).__name__})" if isinstance(reason, Exception) else "")
    return f"{name}{' in the body' * in_body}: {error}"


def is_in_body(failure: str) -> bool:
    """True if the exception was raised while the body was read, after status and headers."""
    found = _FAILURE_TEXT.fullmatch(failure)
    return found is not None and found["body"] is not None


def scripted_failure(kind: Literal["connection", "timeout"], text: str) -> str:
    """Return the text of a failure that each family of clients raises as its own exception of this kind."""
    return f"{kind}: {text}"


def to_exception(
    failure: str, modules: Sequence[Any], kinds: tuple[type[Exception], ...], own: Mapping[str, str]
) -> Exception:
    """Return the exception for a text.

    It has the class named in the text, if that is in `modules` and a subclass of one of `kinds`, else the first of
    `kinds`. `own` maps the kind of a scripted failure to the family's text, with `{}` for the message.

    It has the same text, and a `reason` if it had one, but no other attributes that its constructor would set.
    """
    kind, _, message = failure.partition(": ")
    if kind in own:
        failure = own[kind].format(message)
    found = _FAILURE_TEXT.fullmatch(failure)
    if found is None:
        return _with_text(kinds[0], failure)
    error = _with_text(_class(found["name"], modules, kinds) or kinds[0], found["text"])
    if found["reason"]:
        inner = _OF_REASON.search(found["text"])
        text = next(filter(None, inner.groups()), "") if inner else found["text"]
        error.reason = _with_text(_class(found["reason"], modules, (Exception,)) or Exception, text)  # type: ignore[attr-defined]
    return error


def _class(name: str, modules: Sequence[Any], kinds: tuple[type[Exception], ...]) -> type[Exception] | None:
    for module in modules:
        cls = getattr(module, name, None)
        if isinstance(cls, type) and issubclass(cls, kinds):
            return cls
    return None


def _with_text(cls: type[Exception], text: str) -> Exception:
    # Constructors require objects that no longer exist: a pool, a connection, an address.
    names = {"__str__": lambda _: text, "__module__": cls.__module__, "__doc__": cls.__doc__}
    alike: Any = type(cls.__name__, (cls,), names)
    error: Exception = alike.__new__(alike, text)
    return error
