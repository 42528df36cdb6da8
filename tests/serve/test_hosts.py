"""Only requests to this machine's names are answered, so that a web page cannot use the server."""

from collections.abc import Iterator

import httpx
import pytest

from harness.serve import Serving, serving
from tests.world.stubs import world_spec

WORLD = world_spec(
    llm=[{"times": "any", "reply": "fine"}],
    http=[{"url": "https://shop.test/*", "times": "any", "json": {"stock": 1}}],
    mcp={"shop": {}},
)
MESSAGE = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(WORLD) as served:
        yield served


def status(server: Serving, **headers: str) -> int:
    return httpx.get(f"{server.url}/items", headers=headers).status_code


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost",
        "LOCALHOST:9",
        "localhost.",
        "a.localhost",
        "127.8.8.8",
        "[::1]:1",
    ],
)
def test_a_name_of_this_machine_is_answered(server: Serving, host: str) -> None:
    assert status(server, host=host) == 200
    assert status(server, origin=f"http://{host}") == 200


@pytest.mark.parametrize(
    "host",
    [
        "shop.test",
        "localhost.shop.test",
        "127.0.0.1.shop.test",
        "localhost@shop.test",
        "shop.test@localhost",
        "notlocalhost",
        "192.168.1.9",
        "0.0.0.0",
        "[::1",
        "",
    ],
)
def test_the_name_of_another_host_is_refused(server: Serving, host: str) -> None:
    assert status(server, host=host) == 403
    assert status(server, origin=f"https://{host}") == 403


@pytest.mark.parametrize("origin", ["null", "file://", "shop.test", "moz-extension://localhost.shop.test"])
def test_an_origin_without_a_local_host_is_refused(server: Serving, origin: str) -> None:
    assert status(server, origin=origin) == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/responses"),
        ("POST", "/v1/messages"),
        ("GET", "/v1/models"),
        ("POST", "/mcp/shop"),
        ("DELETE", "/items"),
    ],
)
def test_every_path_checks_the_host_and_the_error_has_a_hint(server: Serving, method: str, path: str) -> None:
    answer = httpx.request(method, server.url + path, headers={"host": "shop.test"}, json=MESSAGE)
    assert answer.status_code == 403
    assert "the request names the host 'shop.test'; only" in answer.json()["error"]["message"]
    assert "--allow-host" in answer.json()["error"]["message"]
    assert server.requests[-1].effect is None


def test_hosts_may_be_allowed() -> None:
    with serving(WORLD, allow_hosts=["Shop.Test"]) as server:
        assert status(server, host="shop.test:8000", origin="https://SHOP.test") == 200
        assert status(server, host="other.test") == 403
        assert status(server, host="shop.test", origin="https://other.test") == 403


def test_any_host_may_be_allowed() -> None:
    with serving(WORLD, allow_hosts=["*"]) as server:
        assert status(server, host="other.test", origin="null") == 200


def test_the_local_address_of_a_connection_is_allowed() -> None:
    with serving(WORLD, host="127.0.0.2") as server:
        assert status(server) == 200
