"""Scripted errors as exceptions: the class a provider's client would raise, and its text.

Class names follow the providers' Python clients, so that `type` in a manifest's error handling reads as it
would in production.
"""

from __future__ import annotations

import builtins

from harness.world.spec import ErrorAnswer


class RemoteError(Exception):
    """Base of the errors a model, tool or server answers with. `kind` is what the scenario calls it."""

    kind = ""


class RateLimitError(RemoteError):
    """Too many requests."""


class APITimeoutError(RemoteError, TimeoutError):
    """No answer in time."""


class APIConnectionError(RemoteError, ConnectionError):
    """The other side cannot be reached."""


class InternalServerError(RemoteError):
    """The other side broke."""


class AuthenticationError(RemoteError):
    """The credentials were refused."""


class BadRequestError(RemoteError):
    """The request was refused."""


class ContextLengthError(BadRequestError):
    """The prompt is longer than the model takes."""


class ContentFilterError(RemoteError):
    """The answer was withheld."""


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
    """The exception a scripted error raises. Source: docs/scenario-format.md, "The world"."""
    if answer.kind == "exception":
        return _builtin(answer.type or "RuntimeError", answer.message or "")
    exception, text = KINDS[answer.kind]
    error = exception(text if answer.message is None else answer.message)
    error.kind = answer.kind
    return error


def _builtin(name: str, message: str) -> Exception:
    """The built-in exception of that name with exactly that text; any other name makes a class of its own."""
    base = getattr(builtins, name, Exception)
    if not (isinstance(base, type) and issubclass(base, Exception)) or issubclass(base, ExceptionGroup):
        base = Exception
    if base is Exception or issubclass(base, KeyError | UnicodeError):
        # The text of these is not their argument: a KeyError quotes it, a UnicodeError wants five.
        base = type(name, (base,), {"__str__": lambda _: message, "__init__": lambda _, *_args: None})
    exception: Exception = base(message)
    return exception
