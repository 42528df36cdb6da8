"""Any invalid request gets an error in the provider's format, and the server continues."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harness.serve.server
from harness.serve import Serving, connections, serving
from harness.serve.app import MAX_BODY_BYTES, WIRES
from harness.world.wire import openai_chat
from harness.world.wire.format import Refusal
from tests.world.stubs import world_spec

WORLD = world_spec(llm=[{"times": "any", "reply": "fine"}])
GOOD = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}], "input": "hi"}
GOOD |= {"contents": [{"parts": [{"text": "hi"}]}]}


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    """One server for all tests: an invalid request must not affect the next one."""
    with serving(WORLD) as served:
        yield served


def in_format(path: str, answer: httpx.Response) -> str:
    """Return the message of an error in the format of the path's provider."""
    body = answer.json()
    assert shape(body) == shape(WIRES.get(path, openai_chat).error_json(Refusal("invalid_request", "")))
    error = body.get("error", body)
    told: str = error["message"] if isinstance(error, dict) else error
    assert "Traceback" not in told
    return told


def shape(body: dict[str, Any]) -> dict[str, Any]:
    """Return the names in a body, and those in what is under them."""
    return {name: set(value) if isinstance(value, dict) else None for name, value in body.items()}


@pytest.mark.parametrize("path", WIRES)
@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b"{}", "'model' must be a text"),
        (b'{"model": 7, "messages": []}', "'model' must be a text"),
    ],
)
def test_invalid_requests_are_refused(server: Serving, path: str, body: bytes, told: str) -> None:
    answer = httpx.post(server.url + path.replace("*", ""), content=body)
    assert answer.status_code == 400
    assert told in in_format(path, answer)
    assert told in str(server.requests[-1])


@pytest.mark.parametrize(
    ("path", "change", "told"),
    [
        ("/v1/chat/completions", {"messages": None}, "'messages' must be a list"),
        ("/v1/chat/completions", {"messages": []}, "'messages' is empty"),
        ("/v1/chat/completions", {"messages": ["hi"]}, "'messages' must be a list of objects"),
        ("/v1/chat/completions", {"messages": [{"role": "usr"}]}, "'messages[0].role' is 'usr'"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": 7}]}, "'messages[0].content'"),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "name": 7}]},
            "'messages[0]' is not a message",
        ),
        ("/v1/chat/completions", {"tools": "find"}, "'tools' must be a list"),
        ("/v1/chat/completions", {"n": 2}, "'n' must be 1"),
        ("/v1/responses", {"input": 7}, "'input' must be a list"),
        ("/v1/responses", {"input": [{"role": "tool"}]}, "'input[0].role' is 'tool'"),
        ("/v1/messages", {"max_tokens": None}, "'max_tokens' must be a whole number"),
        ("/v1/messages", {"messages": [{"role": "system", "content": "x"}]}, "'system' is neither"),
        ("/v1/messages", {"messages": [{"role": "user"}]}, "'messages.0.content' must be a list"),
        ("/v1/messages", {"system": 7}, "'system' must be a list"),
    ],
)
def test_the_error_names_the_invalid_part_of_a_request(
    server: Serving, path: str, change: dict[str, Any], told: str
) -> None:
    answer = httpx.post(server.url + path, json={**GOOD, **change})
    assert answer.status_code == 400
    assert told in in_format(path, answer)


def test_any_json_gets_an_answer(server: Serving) -> None:
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
        max_leaves=12,
    )
    with httpx.Client() as client:

        @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
        @given(
            st.sampled_from(list(WIRES)),
            st.sampled_from([*GOOD, "tools", "system", "text", "stream"]),
            values,
        )
        def every(path: str, key: str, value: Any) -> None:
            answer = client.post(server.url + path.replace("*", ""), content=json.dumps({**GOOD, key: value}))
            assert answer.status_code in (200, 400)
            if answer.status_code == 400:
                in_format(path, answer)

        every()
        assert not [request for request in server.requests if "harness broke" in request.problem]


KEYS = [
    "role",
    "content",
    "parts",
    "toolUse",
    "toolResult",
    "toolConfig",
    "functionCall",
    "functionResponse",
    "functionDeclarations",
    "type",
    "text",
    "tool_calls",
    "function",
    "name",
    "id",
    "input",
    "format",
    "arguments",
]


def test_text_with_lone_surrogates_is_returned(server: Serving) -> None:
    answer = httpx.post(
        f"{server.url}/v1/chat/completions", content=b'{"model": "\\ud800", "messages": [{}]}'
    )
    assert answer.status_code == 400
    body = json.dumps({**GOOD, "model": "\ud800\x1b[31m"})
    assert httpx.post(f"{server.url}/v1/chat/completions", content=body).json()["model"] == "\ud800\x1b[31m"
    assert r"\ud800\x1b[31m" in str(server.requests[-1])


@pytest.mark.parametrize(
    ("headers", "path"), [({}, ""), ({"anthropic-version": "2023-06-01"}, "/v1/messages")]
)
def test_the_error_for_an_unknown_path_lists_the_known_paths(
    server: Serving, headers: dict[str, str], path: str
) -> None:
    for method, missing in (("GET", "/v2/chat"), ("GET", "/v1/chat/completions"), ("POST", "/mcp/shop")):
        answer = httpx.request(method, server.url + missing, headers=headers)
        assert answer.status_code == 404
        told = in_format(path, answer)
        assert "/v1/chat/completions" in told or "no MCP server 'shop'" in told


def test_a_body_that_is_too_large_is_refused(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "UNREAD_S", 60)  # a busy machine may read the answer late
    part = b"x" * (1024 * 1024)
    parts = (part for _ in range(MAX_BODY_BYTES // len(part) + 1))
    answer = httpx.post(f"{server.url}/v1/messages", content=parts)
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "request_too_large"
    assert httpx.post(f"{server.url}/v1/messages", json=GOOD).status_code == 200


def test_the_server_ends_while_clients_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness.serve.server, "_GRACE_S", 0.1)
    waiting = world_spec(llm=[{"latency": 3600.0, "reply": "late"}])
    with serving(waiting) as server:
        port = int(server.url.rpartition(":")[2])
        body = json.dumps(GOOD).encode()
        head = (
            f"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        )
        asking = socket.create_connection(("127.0.0.1", port))
        asking.sendall(head + body)
        idle = socket.create_connection(("127.0.0.1", port))
        half = socket.create_connection(("127.0.0.1", port))
        half.sendall(head)
        while not server.requests:
            httpx.get(f"{server.url}/v1/models")
    for connection in (asking, idle, half):
        connection.close()


def test_a_client_that_disconnects_during_its_request_does_not_affect_others(server: Serving) -> None:
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{")
    assert httpx.post(f"{server.url}/v1/messages", json=GOOD).status_code == 200
