"""Secrets split over the events of a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.secrets import Secrets
from tests.secrets.sample import KEY, NO_SECRETS, OPENAI, SECRETS


def sse(*events: object, end: str = "\n") -> str:
    return "".join(f"data: {json.dumps(event)}{end}{end}" for event in events)


def streamed(*events: object, secrets: Secrets = SECRETS) -> list[Any]:
    body = secrets.body(sse(*events).encode(), "text/event-stream").decode()
    return [json.loads(line.removeprefix("data: ")) for line in body.split("\n") if line]


def chat(text: str, index: int = 0) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": index, "delta": {"content": text}}]}


def arguments(text: str, index: int = 0) -> dict[str, Any]:
    return {
        "choices": [
            {"index": 0, "delta": {"tool_calls": [{"index": index, "function": {"arguments": text}}]}}
        ]
    }


def block(text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def partial(text: str, index: int = 0) -> dict[str, Any]:
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": "input_json_delta", "partial_json": text},
    }


def response(text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": text}


@pytest.mark.parametrize("event", [chat, arguments, block, partial, response])
def test_the_placeholder_of_a_split_secret_is_in_its_first_event(event: Any) -> None:
    texts = ["The key", " is " + KEY[:3], KEY[3:9], KEY[9:] + ", ", "yes"]
    assert streamed(*map(event, texts)) == [*map(event, ["The key", f" is {OPENAI}", "", ", ", "yes"])]


@pytest.mark.parametrize("event", [chat, arguments, block, partial, response])
def test_interleaved_texts_are_scrubbed_separately(event: Any) -> None:
    one, two, rest = event(KEY[:9], 0), event(KEY[:5], 1), event(KEY[9:], 0)
    assert streamed(one, two, rest, event(KEY[5:], 1)) == [
        event(OPENAI, 0),
        event(OPENAI, 1),
        event("", 0),
        event("", 1),
    ]


@pytest.mark.parametrize("event", [arguments, partial])
def test_events_stay_json_if_a_secret_ends_with_a_quote(event: Any) -> None:
    secrets = Secrets({"APP_TOKEN": 'Zq81kdjEwp"'})
    assert streamed(event("Zq81kdjEwp"), event('" yes'), secrets=secrets) == [
        event("<secret:APP_TOKEN>"),
        event(" yes"),
    ]


@pytest.mark.parametrize("event", [arguments, partial])
def test_secret_fields_of_partial_arguments_are_replaced(event: Any) -> None:
    parts = ['{"us', 'er": "me", "pass', 'word": "hun', "ter", '22", "n"', ": 1}"]
    scrubbed = ['{"us', 'er": "me", "pass', 'word": "<secret:password>', "", '", "n"', ": 1}"]
    assert streamed(*map(event, parts), secrets=Secrets({})) == [*map(event, scrubbed)]


def test_a_text_streamed_token_by_token_is_kept() -> None:
    tokens = [{"token": "Hel"}, {"token": "lo "}, {"token": "password1"}]
    assert streamed(*tokens, secrets=Secrets({})) == tokens
    assert streamed({"token": "Hello"}, secrets=Secrets({})) == [{"token": "<secret:token>"}]


def test_the_rest_of_a_stream_is_unchanged() -> None:
    head, tail = KEY[:6], json.dumps(KEY[6:])[1:-1]
    stream = (
        "\ufeff: hello\r\n\r\nevent: x\r\nid: 1\r\nretry:5\r\n"
        'data: {"a":"%s","b":1.0}\r\n\r\n'
        'data:{"a":"%s\\u00e9"}\n\n\n'
        'data:  {"c" :\r\ndata: 1e5 }\r\n\r\n'
        "data: {bad json}\r\rdata\rdata: [DONE]\n\n"
        'nonsense\ndata: {"half": "of an ev'
    )
    body = (stream % (head, tail)).encode()
    assert NO_SECRETS.body(body, "text/event-stream; charset=utf-8") == body
    assert SECRETS.body(body, "text/event-stream; charset=utf-8").decode() == stream % (OPENAI, "")


def test_events_that_are_not_json_are_scrubbed_as_one_text() -> None:
    body = f"data: a {KEY[:7]}\n\ndata: {KEY[7:]} b\n\n: {KEY}\nid: {KEY}\n\n"
    assert SECRETS.body(body.encode(), "text/event-stream").decode() == (
        f"data: a {OPENAI}\n\ndata:  b\n\n: {OPENAI}\nid: {OPENAI}\n\n"
    )


def test_lines_of_json_are_scrubbed_as_a_stream() -> None:
    lines = "".join(json.dumps({"message": {"content": text}}) + "\n" for text in (KEY[:7], KEY[7:] + "!"))
    assert SECRETS.body(lines.encode(), "application/x-ndjson").decode() == (
        f'{{"message": {{"content": "{OPENAI}"}}}}\n{{"message": {{"content": "!"}}}}\n'
    )
