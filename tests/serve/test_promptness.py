"""The server adds no delays: it does not wait for timers."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import pytest

from harness.serve import Serving, serving
from harness.serve.server import responder_for, serve_until_interrupted
from harness.time.real import real
from harness.world.spec import WorldSpec
from tests.timing import shortest


def test_a_later_request_on_a_connection_is_answered_as_soon_as_the_first(
    serve: Callable[[str], Serving],
) -> None:
    server = serve("http: [{method: GET, url: /calm, text: calm, times: any}]")
    with httpx.Client() as client:

        def took() -> float:
            began = real.perf_counter()
            assert client.get(f"{server.url}/calm").text == "calm"
            return real.perf_counter() - began

        took()
        assert shortest(took, below=0.035) < 0.035  # the system confirms packets after 0.04 s


def test_connections_that_are_being_accepted_at_its_end_are_closed() -> None:
    clients = []
    with serving(WorldSpec()) as server:
        place = httpx.URL(server.url)
        clients += [socket.create_connection((place.host, place.port or 0), timeout=5) for _ in range(32)]
    for client in clients:
        with client, suppress(ConnectionResetError):
            assert client.recv(1) == b""


def test_it_shuts_down_without_delay() -> None:
    def took() -> float:
        with serving(WorldSpec()):
            began = real.perf_counter()
        return real.perf_counter() - began

    assert shortest(took, below=0.1) < 0.1


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_as_soon_as_its_address_is_printed(
    asked: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It notes for good that a server of this process was ended by a signal, and would send no events any more.
    monkeypatch.setattr("sse_starlette.sse.AppStatus.should_exit", False)
    said: list[str] = []

    def by_itself(*_: Any) -> None:
        said.append("the process is to end")
        raise KeyboardInterrupt

    def ready(server: Serving) -> None:
        said.append("ready")
        signal.raise_signal(asked)
        said.append("the server is to end")

    before = signal.signal(asked, by_itself)
    try:
        serve_until_interrupted(responder_for(WorldSpec()), ready=ready)
    finally:
        signal.signal(asked, before)
    assert said[:2] == ["ready", "the server is to end"]


def test_the_address_is_printed_before_the_providers_are_imported() -> None:
    program = """if True:
        import signal, sys
        from harness.serve.server import responder_for, serve_until_interrupted
        from tests.world.stubs import world_spec

        def ready(server):
            print(*({"openai", "anthropic"} & sys.modules.keys()))
            signal.raise_signal(signal.SIGINT)

        world = world_spec(llm=["hello"])
        serve_until_interrupted(responder_for(world), ready=ready)
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
