"""Exceptions for scripted errors, with the class names and texts of the providers' clients.

Class names follow the providers' Python clients, so that a manifest's error handling by `type` works as in
production.
"""

from __future__ import annotations

import builtins

from harness.world.spec import ErrorAnswer


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


def to_exception(answer: ErrorAnswer) -> Exception:
    """Return the exception of a scripted error. Source: docs/scenario-format.md, "The world"."""
    if answer.kind == "exception":
        return _builtin(answer.type or "RuntimeError", answer.message or "")
    exception, text = KINDS[answer.kind]
    error = exception(text if answer.message is None else answer.message)
    error.kind = answer.kind
    return error


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
