"""The real HTTP client, against a real server."""

import asyncio
from typing import Any

import httpx
import pytest

from harness.graph.effects import HTTPReply
from harness.graph.http_call import http_call
from harness.world.http_client import HTTPClient
from tests.world.loopback import CannedReply, Loopback, ReceivedRequest, loopback, refusing_url


def send(server: Loopback, method: str = "GET", path: str = "/", **what: Any) -> HTTPReply:
    """Return the answer to one request."""
    return send_all(server, (method, path, what))[0]


def send_all(server: Loopback, *requests: tuple[str, str, dict[str, Any]]) -> list[HTTPReply]:
    async def main() -> list[HTTPReply]:
        client = HTTPClient()
        try:
            return [
                await client.send(http_call(method, server.url + path, **what))
                for method, path, what in requests
            ]
        finally:
            await client.close()

    return asyncio.run(main())


def sent(method: str, path: str, **what: Any) -> ReceivedRequest:
    """Return the request as received."""
    with loopback(CannedReply()) as server:
        send(server, method, path, **what)
        return server.asked[0]


def test_method_query_and_headers_are_sent() -> None:
    asked = sent("PUT", "/orders?a=1&a=2", query={"b": "x y", "c": ["3", "4"]}, headers={"X-Kind": "test"})
    assert (asked.method, asked.path) == ("PUT", "/orders?a=1&a=2&b=x+y&c=3&c=4")
    assert asked.headers["x-kind"] == "test"
    assert asked.body == b""


def test_json_goes_with_its_content_type() -> None:
    asked = sent("POST", "/", json={"größe": 3})
    assert asked.headers["content-type"] == "application/json"
    assert asked.json == {"größe": 3}


def test_a_form_goes_with_its_content_type() -> None:
    asked = sent("POST", "/", form={"a": "1 2", "b": ["x", "y"]})
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.body == b"a=1+2&b=x&b=y"


def test_a_content_type_that_is_given_stays() -> None:
    asked = sent("POST", "/", json={}, headers={"Content-Type": "application/vnd.api+json"})
    assert asked.headers["content-type"] == "application/vnd.api+json"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_without_a_body_there_is_no_content_type(method: str) -> None:
    assert "content-type" not in sent(method, "/").headers


def test_the_answer_is_whole_whatever_its_status() -> None:
    with loopback(CannedReply(json={"why": "gone"}, status=404, headers={"X-Trace": "7"})) as server:
        reply = send(server)
    assert (reply.status, reply.json, reply.text) == (404, {"why": "gone"}, '{"why": "gone"}')
    assert reply.headers["x-trace"] == "7"


@pytest.mark.parametrize(("text", "json"), [("größe", None), ("[1]", [1]), ("", None), ("[" * 100_000, None)])
def test_json_is_what_can_be_read_as_json(text: str, json: Any) -> None:
    with loopback(CannedReply(text=text)) as server:
        reply = send(server)
    assert (reply.text, reply.json) == (text, json)


def test_a_redirect_is_an_answer() -> None:
    with loopback(CannedReply(status=302, headers={"location": "/elsewhere"})) as server:
        reply = send(server)
        assert (reply.status, reply.headers["location"], len(server.asked)) == (302, "/elsewhere", 1)


def test_cookies_are_not_kept() -> None:
    with loopback(CannedReply(headers={"set-cookie": "session=1; Path=/"})) as server:
        send_all(server, ("GET", "/", {}), ("GET", "/", {}))
        assert ["cookie" in asked.headers for asked in server.asked] == [False, False]


def test_an_unreachable_server_is_an_error_of_the_client() -> None:
    with pytest.raises(httpx.ConnectError):
        send(Loopback([]), path=refusing_url())


def test_closing_what_was_never_used() -> None:
    asyncio.run(HTTPClient().close())
