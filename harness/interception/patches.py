"""Functions shared by the families of clients: patching, and reading the headers and bodies that clients pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

from harness.interception.messages import Response


@contextmanager
def patched(owner: Any, **functions: Any) -> Iterator[None]:
    """Replace functions of `owner`, a class or a module, within the context."""
    before = {name: vars(owner)[name] for name in functions}
    for name, function in functions.items():
        setattr(owner, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(owner, name, function)


def is_stream(headers: Mapping[str, str]) -> bool:
    """True if the body is a stream of events, which may be endless."""
    return str(headers.get("content-type") or "").startswith("text/event-stream")


def headers_of(headers: Any) -> dict[str, str]:
    """Return headers by name in lower case; of a repeated header, the first value."""
    return {_text(name).lower(): _text(_first(value)) for name, value in dict(headers).items()}


def response_of(response: Any, body: bytes) -> Response:
    """Return the response of http.client or urllib3 with this body, decoded."""
    headers = kept_response_headers(response.headers.items())
    return Response(response.status, response.reason or "", headers, body)


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the values of headers, or of a query, by name in the order given."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


def body_of(body: Any) -> bytes:
    """Return a body as bytes, given in any form that clients accept: bytes, text, a file, parts, or None.

    A file or an iterator is consumed.
    """
    if hasattr(body, "read"):
        body = body.read()
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    return b"".join(map(body_of, body))


def _first(value: Any) -> Any:
    return value if isinstance(value, (str, bytes)) else next(iter(value), "")


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


_TRANSPORT: Final = frozenset(
    [
        "connection", "content-length", "date", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
    ]
)  # fmt: skip
_REQUEST: Final = _TRANSPORT | {
    "accept-encoding", "baggage", "expect", "host", "idempotency-key", "traceparent", "tracestate", "user-agent",
    "x-request-id",
}  # fmt: skip
_RESPONSE: Final = _TRANSPORT | {
    "age", "alt-svc", "cf-ray", "content-encoding", "nel", "openai-processing-ms", "report-to", "server-timing",
    "strict-transport-security", "via", "x-envoy-upstream-service-time",
}  # fmt: skip
# The providers' clients describe themselves and the attempt in these.
_REQUEST_FAMILIES: Final = ("x-stainless-",)


def kept_request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that are recorded, by name in lower case, sorted by name."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {
        name: lower[name]
        for name in sorted(lower)
        if name not in _REQUEST and not name.startswith(_REQUEST_FAMILIES)
    }


def kept_response_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the headers of a response that are recorded, stably sorted by name in lower case."""
    lower = ((name.lower(), value) for name, value in headers)
    return tuple(sorted((pair for pair in lower if pair[0] not in _RESPONSE), key=lambda pair: pair[0]))


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
