"""HTTP requests and responses as data, independent of the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Request:
    """An HTTP request. The method is in upper case, however the client was given it; header names are in lower case.

    `timeout_s` is the client's time limit for the answer; None if there is none, or it is not known.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout_s: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", self.method.upper())


@dataclass(frozen=True)
class Response:
    """An HTTP response with its body decoded. Header names are in lower case and may be repeated."""

    status: int
    reason: str = ""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


class PreparedReply(Protocol):
    """An answer that is known without sending the request: recorded or scripted.

    response    None if none arrives; then see `failure`
    duration_s  arrival time, in virtual seconds since the request
    chunks_s    arrival time of each part of a streamed body, in seconds since the request
    failure     the client's exception and its text (`ConnectError: refused`); "" if nothing ever arrives
    """

    @property
    def response(self) -> Response | None: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def chunks_s(self) -> tuple[float, ...]: ...
    @property
    def failure(self) -> str: ...


@dataclass(frozen=True)
class SendResult:
    """The result of sending a request: a response, or the client's exception as text.

    passed_through  the client's own response, if its body is a stream that is passed through
    """

    response: Response | None
    chunks_s: tuple[float, ...] = ()
    failure: str = ""
    passed_through: Any = None
