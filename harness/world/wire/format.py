"""The interface of a provider's wire format: reads requests as effects, writes answers and errors as bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, Protocol

from harness.graph.effects import LLMCall
from harness.world.spec import ErrorKind
from harness.world.wire.reply import Reply

RefusalKind = ErrorKind | Literal["unscripted", "not_found", "forbidden", "too_large"]

STATUS: Final[Mapping[RefusalKind, int]] = {
    "rate_limit": 429,
    "server_error": 500,
    "auth": 401,
    "invalid_request": 400,
    "context_length": 400,
    "content_filter": 400,
    "exception": 500,
    "unscripted": 400,  # a status that clients do not retry
    "not_found": 404,
    "forbidden": 403,
    "too_large": 413,
}

Json = dict[str, Any]


class Refusal(Exception):
    """A request that is answered with an error. `param` names the part of the request that is invalid."""

    def __init__(self, kind: RefusalKind, message: str, *, param: str | None = None) -> None:
        self.kind: RefusalKind = kind
        self.param = param
        super().__init__(message)

    @property
    def status(self) -> int:
        """The HTTP status of the error."""
        return STATUS[self.kind]


class WireFormat(Protocol):
    """A provider's wire format. Each is a module. `PACKAGE` is the package with the provider's types, for answers."""

    @property
    def PACKAGE(self) -> str: ...

    def read(self, body: Json) -> LLMCall:
        """Return a request as an effect.

        Raises:
            Refusal: the provider would refuse it.
        """
        ...

    def response_json(self, reply: Reply, body: Json) -> Json:
        """Return the body of an answer that is not streamed."""
        ...

    def events(self, reply: Reply, body: Json) -> Iterator[str]:
        """Yield an answer as server-sent events."""
        ...

    def error_json(self, refusal: Refusal) -> Json:
        """Return the body of an error."""
        ...
