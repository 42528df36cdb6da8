"""Permission to call real systems, from one owner for all the processes that record.

    a request ──asks──▶ Permits: budget (spending.py), connections and pauses of its host (throttle.py)
              ◀─────── it may be sent, or a refusal
              ──ends──▶ the status: is it to be sent again? ──▶ its tokens

A permit is a connection of its own, open while the request is under way. One that breaks off, because its process was
killed, gives back what it held. If the owner has ended, nothing more is sent.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from threading import Condition, Lock, Thread
from typing import Any, Final
from urllib.parse import urlsplit

from harness.errors import BudgetSpent, OwnerEnded
from harness.interception.interceptor import Permit
from harness.interception.messages import Request, Response
from harness.recording.human import Ask
from harness.recording.interactions import tokens_of
from harness.recording.spending import Spending, model_of
from harness.recording.throttle import RETRY, Sent, Throttle
from harness.time.real import real

_BACKLOG: Final = 64
"""The most processes that may wait to be accepted."""
_SHOWN_USD: Final = 0.00005
"""The least cost that is shown: a smaller one would be $0.0000."""


class Permits:
    """The owner. Use it as a context manager, which returns the source of permits for this process and others.

    Args:
        spending: counts the calls of models, and has the budget.
        max_connections: the most requests that one host gets at once.
        ask: asks a person at the terminal; None if nobody can be asked.
        tell: called with a message for the person who waits.
    """

    def __init__(
        self,
        spending: Spending,
        max_connections: float = math.inf,
        ask: Ask | None = None,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.spending, self._tell = spending, tell
        self.in_flight = 0
        """The number of requests under way, whose responses nobody has kept yet."""
        self._throttle = Throttle(max_connections)
        self.ask, self._one_question = ask, Lock()
        self._changed = Condition()
        self._draining = False
        self._ended = False
        self._shared: dict[str, Any] = {}
        """The values that processes share, by key; None while one of them makes it."""

    def __enter__(self) -> PermitSource:
        key = secrets.token_bytes(32)
        self._listener = Listener(authkey=key, backlog=_BACKLOG)
        Thread(target=self._accept, name="permits", daemon=True).start()
        return PermitSource(self._listener.address, key, asks=self.ask is not None, began=real.now())

    def __exit__(self, *_: object) -> None:
        self._ended = True
        with suppress(OSError):
            Client(self._listener.address).close()  # wakes the thread that accepts, which then ends
        self._listener.close()

    def status(self) -> str:
        """Return a text about the calls so far, such as `12 in flight · $0.42 · waiting 8 s for api.openai.com`."""
        with self._changed:
            spent, pauses = self.spending, self._throttle.pauses()
            parts = [f"{self.in_flight} in flight"] if self.in_flight else []
        if spent.cost >= _SHOWN_USD:
            parts.append(f"${spent.cost:.2f}" if spent.cost >= 1 else f"${spent.cost:.4f}")
        elif spent.calls:
            parts.append(f"{spent.calls:,} call{'s' * (spent.calls != 1)}")
        parts += [f"waiting {math.ceil(left_s)} s for {host}" for host, left_s in pauses.items()]
        return " · ".join(parts)

    @contextmanager
    def drained(self) -> Iterator[None]:
        """Send no requests within the context. It is entered when those under way, which are paid for, have ended."""
        self._draining = True
        with self._changed:
            if self.in_flight:
                calls = "a call" if self.in_flight == 1 else f"{self.in_flight} calls"
                self._tell(f"waiting for {calls} in flight; Ctrl-C does not wait")
            while self.in_flight:
                self._changed.wait(0.1)  # Ctrl-C can end it
        try:
            yield
        finally:
            self._draining = False
            with self._changed:
                self._changed.notify_all()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (EOFError, OSError, AuthenticationError):
                if self._ended:
                    return
                continue
            Thread(target=self._serve, args=(connection,), name="a permit", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):
            request = connection.recv()
            if isinstance(request, _Question):
                connection.send(self._answer(request))
            elif isinstance(request, _Wanted):
                self._share(connection, request.key)
            else:
                self._permit(connection, request)

    def _answer(self, question: _Question) -> str | None:
        try:
            with self._one_question:
                return self.ask(question.node, question.args) if self.ask is not None else None
        except EOFError:
            return None

    def _share(self, connection: Connection, key: str) -> None:
        """Tell a process where something is that another one made, or let it make it: all others wait for that."""
        with self._changed:
            while key in self._shared and self._shared[key] is None:
                self._changed.wait()
            found = self._shared.setdefault(key, None)
        connection.send(found)
        if found is not None:
            return
        try:
            made = connection.recv()
            with self._changed:
                self._shared[key] = made
                self._changed.notify_all()
            connection.recv()  # until its maker ends
        finally:
            with self._changed:
                del self._shared[key]
                self._changed.notify_all()

    def _permit(self, connection: Connection, asked: _Asked) -> None:
        sent, again = Sent(asked.host), True
        while again:
            if refusal := self._begin(sent, asked):
                connection.send(refusal)
                return
            status: int | None = None
            headers: Mapping[str, str] = {}
            with suppress(EOFError, OSError):
                connection.send("")
                status, headers = connection.recv()
            if again := self._end(sent, asked, status, headers):
                connection.send(True)
        used = None
        with suppress(EOFError, OSError):
            connection.send(False)
            used = connection.recv()
        with self._changed:
            self.in_flight -= 1
            self.spending.add(asked.model, used)
            self._changed.notify_all()

    def _begin(self, sent: Sent, asked: _Asked) -> str:
        """Wait until a request may be sent, and return ""; or the reason why it may not."""
        with self._changed:
            while True:
                wait_s = (
                    math.inf if self._draining else self._throttle.wait_s(asked.host, patient=asked.patient)
                )
                if not wait_s:
                    if self.spending.waits(asked.model):
                        wait_s = math.inf
                    elif refusal := self.spending.refusal(asked.model):
                        return refusal
                    else:
                        break
                self._changed.wait(None if wait_s == math.inf else wait_s)
            self.in_flight += 1
            self._throttle.begin(sent)
            return ""

    def _end(self, sent: Sent, asked: _Asked, status: int | None, headers: Mapping[str, str]) -> bool:
        with self._changed:
            again = self._throttle.end(sent, status, headers)
            if again:
                self.in_flight -= 1
                self.spending.take_back(asked.model)
            self._changed.notify_all()
            return again


# ---------------------------------------------------------------- in the processes that record


@dataclass(frozen=True)
class _Asked:
    host: str
    model: str | None
    patient: bool


@dataclass(frozen=True)
class _Wanted:
    key: str


@dataclass(frozen=True)
class _Question:
    node: str
    args: Mapping[str, Any]


@dataclass(frozen=True)
class PermitSource:
    """The source of permits for any process: it can be sent to one, and is inherited by forks.

    asks   there is a person at the terminal
    began  the instant at which the command began to call real systems
    """

    address: Any
    key: bytes
    asks: bool
    began: datetime

    def permit(self, request: Request, *, patient: bool) -> Permit:
        """Ask for a permit; `Permit.wait` waits for it.

        With `patient` false, it does not wait for other requests of this process to end.
        """
        return _RemotePermit(self._asked(_Asked(urlsplit(request.url).netloc, model_of(request), patient)))

    def ask(self, node: str, args: Mapping[str, Any]) -> str:
        """Ask the person at the terminal of the command; see `harness.recording.human.Ask`.

        Raises:
            EOFError: nobody will answer.
        """
        with self._asked(_Question(node, args)) as connection:
            answer: str | None = connection.recv()
        if answer is None:
            raise EOFError
        return answer

    @contextmanager
    def shared(self, key: str) -> Iterator[Connection]:
        """Yield a connection that says where the other processes have what is called `key`.

        If it says None, this process is to make it, and to send where it is: others are told so until the connection
        is closed.

        Raises:
            OwnerEnded: the command has ended.
        """
        with self._asked(_Wanted(key)) as connection:
            yield connection

    def _asked(self, request: _Asked | _Question | _Wanted) -> Connection:
        try:
            connection = Client(self.address, authkey=self.key)
            connection.send(request)
        except (OSError, EOFError):
            raise OwnerEnded from None
        return connection


class _RemotePermit(Permit):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def wait(self) -> None:
        try:
            refusal = self._connection.recv()
        except (OSError, EOFError):
            raise OwnerEnded from None
        if refusal:
            raise BudgetSpent(refusal)

    def answered(self, response: Response | None) -> bool:
        headers = {name: value for name, value in response.headers if name in RETRY} if response else {}
        with suppress(OSError, EOFError):  # the answer is there, and is kept
            self._connection.send((response.status if response else None, headers))
            return bool(self._connection.recv())
        return False

    def spent(self, response: Response | None) -> None:
        with suppress(OSError):
            self._connection.send(tokens_of(response))
        self.close()

    def close(self) -> None:
        self._connection.close()


_sources: list[PermitSource] = []


def current_source() -> PermitSource | None:
    """Return the source of the permits of runs in this process; None if they need none."""
    return _sources[-1] if _sources else None


@contextmanager
def permits_from(source: PermitSource | None) -> Iterator[None]:
    """Let the runs that begin within the context, and in processes that are forked there, ask for permits."""
    if source is not None:
        _sources.append(source)
    try:
        yield
    finally:
        if source is not None:
            _sources.remove(source)
