"""A server loses no time: what it does at once does not wait for a timer."""

import time
from collections.abc import Callable

import httpx

from harness.serve import Serving, serving
from harness.world.spec import WorldSpec
from tests.patience import least


def test_a_later_request_on_a_connection_is_answered_as_soon_as_the_first(
    serve: Callable[[str], Serving],
) -> None:
    server = serve("http: [{method: GET, url: /calm, text: calm, times: any}]")
    with httpx.Client() as client:

        def took() -> float:
            began = time.perf_counter()
            assert client.get(f"{server.url}/calm").text == "calm"
            return time.perf_counter() - began

        took()
        assert least(took, below=0.035) < 0.035  # the system confirms packets after 0.04 s


def test_it_ends_as_soon_as_it_is_to() -> None:
    def took() -> float:
        with serving(WorldSpec()):
            began = time.perf_counter()
        return time.perf_counter() - began

    assert least(took, below=0.1) < 0.1
