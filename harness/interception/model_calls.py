"""The calls of chat models in progress, which learn whether a model has made a request that its stub can answer.

A chat model of LangChain is answered where its request is read, so that its own client parses, streams and retries.
Whether it makes such a request is known only when it is called: one may run in this process, or speak a protocol
that stubs do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harness.time.turns import CARRIED


class NotOnWire(BaseException):
    """Ends a chat model's own attempt: its request is in no wire format that stubs can answer."""


class ModelCall:
    """A call of a chat model.

    Attributes:
        requested: it has made a request in the wire format of a provider.
        answered: a request of it was answered as plain HTTP, which may have been all that it needs.
    """

    def __init__(self) -> None:
        self.requested = self.answered = False

    @property
    def on_wire(self) -> bool:
        """True if what the model's own implementation returned comes from answers."""
        return self.requested or self.answered


_current: ContextVar[ModelCall | None] = ContextVar("_current", default=None)


CARRIED.append(_current)


def current_model_call() -> ModelCall | None:
    """Return the call of a chat model that the current code belongs to."""
    return _current.get()


@contextmanager
def model_call() -> Iterator[ModelCall]:
    """Note the requests of a chat model that is called inside."""
    call = ModelCall()
    token = _current.set(call)
    try:
        yield call
    finally:
        _current.reset(token)
