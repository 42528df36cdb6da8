"""The failures that a world may answer with: their kinds in scenarios, and their exceptions."""

from __future__ import annotations

import builtins
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, Tag, model_validator

from harness.source.models import Mistake, mistaken
from harness.world.field_types import LEFT_OUT, Seconds, Strict, by_shape

ErrorKind = Literal[
    "rate_limit",
    "timeout",
    "connection",
    "server_error",
    "auth",
    "invalid_request",
    "context_length",
    "content_filter",
    "malformed",
    "exception",
]


class RemoteError(Exception):
    """Base class of the errors of models, tools and servers. `kind` is the error's name in scenarios."""

    kind = ""


class RateLimitError(RemoteError):
    """Too many requests."""


class APITimeoutError(RemoteError, TimeoutError):
    """No answer within the time limit."""


class APIConnectionError(RemoteError, ConnectionError):
    """The server cannot be reached."""


class InternalServerError(RemoteError):
    """The server failed."""


class AuthenticationError(RemoteError):
    """The credentials were refused."""


class BadRequestError(RemoteError):
    """The request was refused."""


class ContextLengthError(BadRequestError):
    """The prompt is longer than the model's context."""


class ContentFilterError(RemoteError):
    """The answer was blocked by a content filter."""


class MalformedAnswerError(RemoteError):
    """The answer cannot be parsed."""


KINDS: dict[str, tuple[type[RemoteError], str]] = {
    "rate_limit": (RateLimitError, "429 rate limit exceeded"),
    "timeout": (APITimeoutError, "request timed out"),
    "connection": (APIConnectionError, "Connection refused"),
    "server_error": (InternalServerError, "500 internal server error"),
    "auth": (AuthenticationError, "401 unauthorized"),
    "invalid_request": (BadRequestError, "400 invalid request"),
    "context_length": (ContextLengthError, "400 context length exceeded"),
    "content_filter": (ContentFilterError, "response blocked by content filter"),
    "malformed": (MalformedAnswerError, "an answer that cannot be parsed"),
}


def _builtin(name: str, message: str) -> Exception:
    """Return the built-in exception of this name with exactly this text; for any other name, a new class."""
    base = getattr(builtins, name, Exception)
    if not (isinstance(base, type) and issubclass(base, Exception)) or issubclass(base, ExceptionGroup):
        base = Exception
    if base is Exception or issubclass(base, KeyError | UnicodeError):
        # These do not show their argument as their text: KeyError quotes it, UnicodeError takes five arguments.
        base = type(name, (base,), {"__str__": lambda _: message, "__init__": lambda _, *_args: None})
    exception: Exception = base(message)
    return exception


_BUILT_IN: Final = tuple(
    sorted(
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, Exception)
    )
)


def _exception(name: str) -> str:
    """Check the name of a built-in exception, or of one of the agent's own (such as `LensDirty`, `ProviderError`)."""
    if name in _BUILT_IN:
        return name
    if not name.isidentifier() or hasattr(builtins, name):
        raise mistaken(Mistake(f"'{name}' is not the name of an exception"))
    meant = get_close_matches(name, _BUILT_IN, n=1, cutoff=0.9)
    if meant:
        raise mistaken(
            Mistake(f"there is no built-in exception '{name}'", hint=f"did you mean '{meant[0]}'?")
        )
    return name


class ErrorMapping(Strict):
    """`{kind, message?, type?, retry_after?}`."""

    model_config = ConfigDict(title="an error")

    kind: ErrorKind = Field(description="The kind of error.")
    message: str = Field(LEFT_OUT, description="Its text; each kind has a default.")
    type: Annotated[str, AfterValidator(_exception)] = Field(
        LEFT_OUT, description="The built-in exception, for kind `exception`; RuntimeError by default."
    )
    retry_after: Seconds = Field(
        LEFT_OUT, description="Seconds after which a client may retry, sent as a header."
    )

    @model_validator(mode="after")
    def _type_goes_with_exception(self) -> ErrorMapping:
        if self.written("type") and self.kind != "exception":
            raise mistaken(
                Mistake("'type' goes with kind: exception", ("type",), True, code="conflicting-keys")
            )
        return self

    @classmethod
    def of(cls, raised: Exception) -> ErrorMapping:
        """Return the error that stands for an exception of the user's code."""
        given = {"kind": "exception", "message": str(raised), "type": type(raised).__name__}
        return cls.model_construct({*given}, **given)

    def exception(self) -> Exception:
        """Return the exception to raise in the node."""
        if self.kind == "exception":
            return _builtin(self.type or "RuntimeError", self.message or "")
        exception, text = KINDS[self.kind]
        error = exception(text if self.message is None else self.message)
        error.kind = self.kind
        return error


@cache
def _error(kind: ErrorKind) -> ErrorMapping:
    return ErrorMapping.model_construct({"kind"}, kind=kind)


if TYPE_CHECKING:
    Error = ErrorMapping
else:
    Error = Annotated[
        Annotated[ErrorKind, AfterValidator(_error), Tag("text")] | Annotated[ErrorMapping, Tag("mapping")],
        by_shape("an error: its kind, or a mapping with kind, message and type"),
    ]
