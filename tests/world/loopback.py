"""A server on the loopback interface that records requests and gives prepared answers."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class CannedReply:
    """An answer: `json`, `events` (a stream of them), or `text`."""

    json: Any = None
    events: Sequence[Mapping[str, Any] | str] = ()
    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        if self.events:
            return "".join(map(_event, self.events)).encode()
        return (json.dumps(self.json) if self.json is not None else self.text).encode()

    @property
    def content_type(self) -> str:
        if self.events:
            return "text/event-stream"
        return "application/json" if self.json is not None else "text/plain; charset=utf-8"


def _event(event: Mapping[str, Any] | str) -> str:
    """Return the text of an event. Events with a type have it on a separate line, as Anthropic's do."""
    if isinstance(event, str):
        return f"data: {event}\n\n"
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as received. Header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Loopback:
    """The server: `url`, the requests `asked`, and the remaining answers. The last answer is repeated."""

    def __init__(self, answers: Sequence[CannedReply]) -> None:
        self.asked: list[ReceivedRequest] = []
        self.url = ""
        self._answers = list(answers)

    def answer(self, asked: ReceivedRequest) -> CannedReply:
        self.asked.append(asked)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@contextmanager
def loopback(*answers: CannedReply) -> Iterator[Loopback]:
    """Yield a running server that gives these answers in order."""
    told = Loopback(answers)
    with answering(told.answer) as told.url:
        yield told


@contextmanager
def answering(answer: Callable[[ReceivedRequest], CannedReply]) -> Iterator[str]:
    """Yield the URL of a server that answers requests concurrently, by a function."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = (
            -1
        )  # sent by Python's own code: a run that ends with the answer finds no thread of ours at work

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answered = answer(ReceivedRequest(self.command, self.path, headers, body))
            self.send_response(answered.status)
            for name, value in {"content-type": answered.content_type, **answered.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answered.body)))
            self.end_headers()
            self.wfile.write(answered.body)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exception(), ConnectionError):  # whoever asked may have been killed
                super().handle_error(request, client_address)

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def silent_url() -> Iterator[str]:
    """Yield a URL that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def refusing_url() -> str:
    """Return a URL at which nothing listens."""
    with loopback(CannedReply()) as server:
        return server.url
