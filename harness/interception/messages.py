"""HTTP requests and responses as data, whatever client sends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Request:
    """An HTTP request. Header names are in lower case.

    `timeout_s` is how long its client waits for an answer; None where it has no limit, or the limit is not known.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout_s: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Response:
    """An HTTP response, its body decoded. Header names are in lower case and may come more than once."""

    status: int
    reason: str = ""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


class PreparedReply(Protocol):
    """An answer that is known before the request is sent: recorded, or scripted.

    response    None when none comes: see `failure`
    duration_s  when it comes, in virtual seconds since the request
    chunks_s    when each part of a streamed body comes, since the request
    failure     the client's exception and its text (`ConnectError: refused`); "" when nothing ever comes
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
    """The result of a request: a response, or the client's exception as text.

    through  the client's own response, whose body is still to come; where nothing is kept, streams are not waited for
    """

    response: Response | None
    chunks_s: tuple[float, ...] = ()
    failure: str = ""
    passed_through: Any = None
