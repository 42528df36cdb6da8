"""`http` stubs answer any client by method and path; the host is ignored."""

from collections.abc import Callable

import httpx
import pytest

from harness.serve import Serving

Serve = Callable[[str], Serving]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://shop.example/items/*", "/items/7"),
        ("https://*/items/?", "/items/7"),
        ("http://localhost:8000/items/7", "/items/7"),
        ("shop.example/items/*", "/items/7"),
        ("*/items/7", "/v2/items/7"),
        ("*", "/anything"),
        ("https://shop.example*", "/items/7"),
        ("https://shop.example", "/"),
        ("https://shop.example/a%20b", "/a%20b"),
    ],
)
def test_the_host_of_a_stub_is_ignored(serve: Serve, url: str, path: str) -> None:
    server = serve(f"http: [{{url: '{url}', json: [pear]}}]")
    answer = httpx.get(server.url + path)
    assert (answer.status_code, answer.json(), answer.headers["content-type"]) == (
        200,
        ["pear"],
        "application/json",
    )


def test_stubs_answer_by_method_and_arguments(serve: Serve) -> None:
    server = serve("""
http:
  - method: POST
    url: https://shop.example/items
    args: {json: {name: pear}}
    status: 201
    text: made
    headers: {X-Id: "7"}
  - {url: "https://shop.example/items", query: {page: "2"}, text: two}
  - {url: "https://shop.example/items", args: {headers: {authorization: Bearer key}}, text: yours}
  - {method: DELETE, url: "https://shop.example/items", status: 204}
""")
    url = f"{server.url}/items"
    made = httpx.post(url, json={"name": "pear"})
    assert (made.status_code, made.text, made.headers["x-id"]) == (201, "made", "7")
    assert httpx.get(url, params={"page": "2"}).text == "two"
    assert httpx.get(url, headers={"authorization": "Bearer key"}).text == "yours"
    assert httpx.delete(url).status_code == 204
    assert server.unused() == []


@pytest.mark.parametrize(
    "header", ["authorization", "x-api-key", "cookie", "x-goog-api-key", "Set-Cookie", "x-amz-security-token"]
)
def test_keys_are_not_logged(serve: Serve, header: str) -> None:
    server = serve("http: [{url: /items, args: {json: 7}}]")
    answer = httpx.get(f"{server.url}/items", headers={header: "Bearer q7Rt0"})
    assert "q7Rt0" not in answer.text
    assert "q7Rt0" not in repr(server.requests)
    assert f"'{header.lower()}': '<secret:{header.lower()}>'" in repr(server.requests)


def test_errors_have_their_status(serve: Serve) -> None:
    server = serve(
        "http: [{error: {kind: rate_limit, retry_after: 3}}, {error: connection}, {error: malformed}]"
    )
    refused = httpx.get(f"{server.url}/items")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "3")
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{server.url}/items")
    cut = httpx.get(f"{server.url}/items")
    assert cut.status_code == 200
    with pytest.raises(ValueError, match="Unterminated"):
        cut.json()


def test_a_request_that_nothing_answers_is_not_found(serve: Serve) -> None:
    answer = httpx.get(f"{serve('http: [{url: https://shop.example/items}]').url}/itms")
    assert answer.status_code == 404
    assert "nearest stub: http: an empty answer" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "stub", ["status: 101", "headers: {'a b': c}", 'headers: {a: "b\\r\\nc: d"}', "status: 304, text: body"]
)
def test_answers_that_cannot_be_sent_unchanged_do_not_break_the_server(serve: Serve, stub: str) -> None:
    server = serve(f"http: [{{{stub}}}, {{text: fine}}]")
    first = httpx.get(f"{server.url}/items")
    assert first.status_code in (200, 304, 500)
    assert "c" not in first.headers
    assert httpx.get(f"{server.url}/items").text == "fine"
