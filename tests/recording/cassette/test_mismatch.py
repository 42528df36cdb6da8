"""The error for a request without a recorded answer."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CassetteMismatch
from harness.interception.messages import Request, Response
from harness.recording.interactions import Interaction
from harness.recording.matching import Matcher
from harness.recording.mismatch import mismatch_error

CHAT = "https://api.openai.com/v1/chat/completions"
AGAIN = "harness record 'scenarios/weather.scenario.yaml::tool call'"


def chat(*texts: Any, url: Any = CHAT, **more: Any) -> Any:
    messages = [{"role": role, "content": text} for role, text in zip(("system", "user", "assistant"), texts)]  # noqa: B905
    return Request("POST", url, {}, json.dumps({"messages": messages, **more}).encode())


def recorded(*requests: Any, turn: Any = None) -> Any:
    return [
        Interaction(request, Response(200), turn=turn, line=1 + 20 * number)
        for number, request in enumerate(requests)
    ]


def why(
    request: Any, interactions: Any, used: Any = (), ignore: Any = (), again: Any = AGAIN, **more: Any
) -> Any:
    error = mismatch_error(
        request,
        interactions,
        used,
        Matcher(ignore),
        cassette="weather",
        folder=Path("cassettes/weather"),
        record_command=again,
        **more,
    )
    assert isinstance(error, CassetteMismatch)
    return str(error)


def test_it_shows_the_nearest_request_the_changes_and_the_record_command() -> None:
    interactions = recorded(
        Request("GET", "https://api.openai.com/v1/models"),
        chat("Be brief.", "What is the time?", "Noon."),
        chat("Be brief.", "What is the weather in Paris?"),
    )
    assert why(chat("Be brief.", "What is the weather in Rome?"), interactions, used={2}) == "\n".join(
        [
            f"nothing recorded in cassette 'weather' answers POST {CHAT}",
            "  nearest: interaction 3 of 3 (cassettes/weather/http.yaml:41), which was used already",
            '    messages[1] (user): "What is the weather in [-Paris-]{+Rome+}?"',
            f"  record it again: {AGAIN}",
        ]
    )


def test_the_same_endpoint_comes_before_fewer_differences() -> None:
    interactions = recorded(chat("a", "b", url="https://a.example/chat"), chat("x", "y", "z", top_p=1))
    assert "interaction 2 of 2" in why(chat("a", "b"), interactions)


def test_an_unused_request_is_shown_before_a_used_one_and_the_most_similar_first() -> None:
    asked = chat("Be brief.", "What is the weather in Rome?")
    near = chat("Be brief.", "What is the weather in Paris?")
    other = chat("Be brief.", "Tell me a story, a long one")
    assert "interaction 2 of 2 (cassettes/weather/http.yaml:21)\n" in why(asked, recorded(near, other), {0})
    assert "interaction 2 of 2" in why(asked, recorded(other, near))


def test_another_host_or_path_is_shown_as_a_difference() -> None:
    said = why(
        chat("a", url="https://b.example/v2?x=1&y=2"), recorded(chat("a", url="http://a.example/v1?x=1"))
    )
    assert 'host: "[-a-]{+b+}.example"' in said
    assert 'path: "/[-v1-]{+v2+}"' in said
    assert 'query.y: not in the recording: "2"' in said


def test_at_most_five_differences_are_shown() -> None:
    many = {f"k{number}": number for number in range(8)}
    said = why(chat("a", **many), recorded(chat("a", **dict.fromkeys(many, "x"))))
    assert said.count("[-") == 5
    assert "    … and 3 more\n" in said


def test_a_body_that_is_no_json_is_called_body() -> None:
    one, other = (Request("POST", CHAT, {}, body) for body in (b"some text", b"some other text"))
    assert 'body: "some {+other +}text"' in why(other, recorded(one))
    assert "body: [-" in why(one, recorded(Request("POST", CHAT, {}, b'{"a": 1}')))


def test_an_equal_request_that_was_used_up() -> None:
    interactions = recorded(chat("a"), chat("b"), chat("a"))
    said = why(chat("a"), interactions, used={0, 1, 2})
    assert "recorded 2 times, asked for a third time" in said
    assert "interaction 3 of 3 (cassettes/weather/http.yaml:41)" in said
    assert "recorded 1 time, asked for a second time" in why(chat("b"), interactions, used={1})
    assert "asked for the 22nd time" in why(chat("a"), recorded(*[chat("a")] * 21), used=range(21))


def test_an_equal_request_of_another_turn() -> None:
    interactions = recorded(chat("a"), turn=2)
    assert "recorded in turn 2, and asked in turn 1: interaction 1 of 1" in why(
        chat("a"), interactions, turn=1
    )
    assert "recorded in turn 2, and asked in another one" in why(chat("a"), interactions)


def test_ignored_differences_are_not_shown() -> None:
    one, other = chat("a", user="x", request_id="r1"), chat("b", user="y", request_id="r2")
    said = why(other, recorded(one), ignore=["body.user"])
    assert "[-a-]{+b+}" in said
    assert "user:" not in said
    assert "request_id" not in said


def test_a_cassette_without_http_and_no_command() -> None:
    said = why(chat("a"), [], again="")
    assert said.splitlines()[1:] == ["  no HTTP request is recorded in it"]


def test_an_interaction_of_no_file_has_no_place() -> None:
    said = why(chat("b"), [Interaction(chat("a"), None)])
    assert "nearest: interaction 1 of 1\n" in said


@pytest.mark.parametrize("url", ["https://me:secret@a.example/x?key=secret#secret", "https://[a/x?secret"])
def test_the_url_is_shown_without_parts_that_may_be_secret(url: Any) -> None:
    said = why(Request("GET", url), [])
    assert "secret" not in said
    assert "/x" in said


def test_nothing_shown_acts_on_a_terminal() -> None:
    said = why(chat("\x1b[31m", url="https://a.example/\x1b[0m"), recorded(chat("\x1b[32m")))
    assert "\x1b" not in said


def test_many_long_requests_take_a_bounded_time() -> None:
    texts = [f"{number} " + "word " * 20_000 for number in range(60)]
    began = time.process_time()
    why(chat("other"), recorded(*(chat(text) for text in texts)))
    assert time.process_time() - began < 5
