"""A client's exception as text, and again as an exception.

`ConnectError: refused`, or with what it was raised for `MaxRetryError(NewConnectionError): …`, or with where
`DecodeError in the body: …`.
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
    """An exception as text; `in_body`: it came while the body was read."""
    reason = getattr(error, "reason", None)
    name = type(error).__name__ + (f"({type(reason).__name__})" if isinstance(reason, Exception) else "")
    return f"{name}{' in the body' * in_body}: {error}"


def is_in_body(failure: str) -> bool:
    """True if the exception came while the body was read, after status and headers."""
    found = _FAILURE_TEXT.fullmatch(failure)
    return found is not None and found["body"] is not None


def scripted(kind: Literal["connection", "timeout"], text: str) -> str:
    """A failure that each family raises as its own exception of this kind."""
    return f"{kind}: {text}"


def to_exception(
    failure: str, modules: Sequence[Any], kinds: tuple[type[Exception], ...], own: Mapping[str, str]
) -> Exception:
    """The exception that a text names: of its class, if that is in `modules` and one of `kinds`, else of the first.

    `own` has the family's texts for a scripted failure, by its kind, with `{}` for its message.

    It has the same text, and a `reason` if it had one, but no other attribute that its constructor would set.
    """
    kind, _, message = failure.partition(": ")
    if kind in own:
        failure = own[kind].format(message)
    found = _FAILURE_TEXT.fullmatch(failure)
    if found is None:
        return _saying(kinds[0], failure)
    error = _saying(_class(found["name"], modules, kinds) or kinds[0], found["text"])
    if found["reason"]:
        inner = _OF_REASON.search(found["text"])
        text = next(filter(None, inner.groups()), "") if inner else found["text"]
        error.reason = _saying(_class(found["reason"], modules, (Exception,)) or Exception, text)  # type: ignore[attr-defined]
    return error


def _class(name: str, modules: Sequence[Any], kinds: tuple[type[Exception], ...]) -> type[Exception] | None:
    for module in modules:
        cls = getattr(module, name, None)
        if isinstance(cls, type) and issubclass(cls, kinds):
            return cls
    return None


def _saying(cls: type[Exception], text: str) -> Exception:
    # Constructors want what is not there any more: a pool, a connection, an address.
    names = {"__str__": lambda _: text, "__module__": cls.__module__, "__doc__": cls.__doc__}
    alike: Any = type(cls.__name__, (cls,), names)
    error: Exception = alike.__new__(alike, text)
    return error
