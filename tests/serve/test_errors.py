"""Scripted errors, tested with the exceptions of the providers' own clients."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from harness.serve import Serving, serving

Serve = Callable[[str], Serving]
Ask = Callable[..., Any]

SHOP = Path(__file__).parent / "cases/shop.scenario.yaml"


def from_openai(server: Serving, *, max_retries: int = 0, **more: Any) -> Any:
    options: dict[str, Any] = {"timeout": 0.3} if more.pop("impatient", False) else {}
    with openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=max_retries, **options) as sdk:
        messages: Any = [{"role": "user", "content": "hi"}]
        done: Any = sdk.chat.completions.create(model="gpt-4o", messages=messages, **more)
        return list(done) if more.get("stream") else done.choices[0].message.content


def from_anthropic(server: Serving, *, max_retries: int = 0, **more: Any) -> Any:
    options: dict[str, Any] = {"timeout": 0.3} if more.pop("impatient", False) else {}
    with anthropic.Anthropic(
        base_url=server.anthropic_url, api_key="any", max_retries=max_retries, **options
    ) as sdk:
        messages: Any = [{"role": "user", "content": "hi"}]
        done: Any = sdk.messages.create(model="claude-x", max_tokens=9, messages=messages, **more)
        return list(done) if more.get("stream") else done.content[0].text


KINDS: list[tuple[str, int, type[Exception], str | None, type[Exception], str]] = [
    (
        "rate_limit",
        429,
        openai.RateLimitError,
        "rate_limit_exceeded",
        anthropic.RateLimitError,
        "rate_limit_error",
    ),
    ("server_error", 500, openai.InternalServerError, None, anthropic.InternalServerError, "api_error"),
    (
        "auth",
        401,
        openai.AuthenticationError,
        "invalid_api_key",
        anthropic.AuthenticationError,
        "authentication_error",
    ),
    (
        "invalid_request",
        400,
        openai.BadRequestError,
        None,
        anthropic.BadRequestError,
        "invalid_request_error",
    ),
    (
        "context_length",
        400,
        openai.BadRequestError,
        "context_length_exceeded",
        anthropic.BadRequestError,
        "invalid_request_error",
    ),
    (
        "content_filter",
        400,
        openai.BadRequestError,
        "content_filter",
        anthropic.BadRequestError,
        "invalid_request_error",
    ),
    ("exception", 500, openai.InternalServerError, None, anthropic.InternalServerError, "api_error"),
]


@pytest.mark.parametrize(("kind", "status", "by_openai", "code", "by_anthropic", "type_"), KINDS)
@pytest.mark.parametrize("stream", [False, True])
def test_each_kind_is_the_error_of_its_provider(
    serve: Serve,
    kind: str,
    status: int,
    by_openai: type[openai.APIStatusError],
    code: str | None,
    by_anthropic: type[anthropic.APIStatusError],
    type_: str,
    stream: bool,
) -> None:
    server = serve(f"llm: [{{error: {{kind: {kind}, message: not today}}, times: 2}}]")
    with pytest.raises(by_openai, match="not today") as first:
        from_openai(server, stream=stream)
    assert (first.value.status_code, first.value.code) == (status, code)
    with pytest.raises(by_anthropic, match="not today") as second:
        from_anthropic(server, stream=stream)
    assert second.value.status_code == status
    body: Any = second.value.body
    assert body["error"] == {"type": type_, "message": "not today"}


@pytest.mark.parametrize("ask", [from_openai, from_anthropic])
def test_a_client_retries_after_the_given_time(ask: Ask) -> None:
    with serving(SHOP) as server:
        assert ask(server, max_retries=1) == "Refund issued."
        assert server.unused() == []


def test_retry_after_is_sent_in_seconds_and_in_milliseconds(serve: Serve) -> None:
    server = serve("""
llm:
  - {error: {kind: rate_limit, retry_after: 1.5}}
  - {error: {kind: server_error, retry_after: 1.0e+9}}
  - {error: rate_limit}
""")
    headers = []
    for _ in range(3):
        with pytest.raises(openai.APIStatusError) as raised:
            from_openai(server)
        headers.append(
            [raised.value.response.headers.get(name) for name in ("retry-after", "retry-after-ms")]
        )
    assert headers == [["2", "1500.000"], ["86400", "86400000.000"], [None, None]]


@pytest.mark.parametrize(
    ("ask", "error"), [(from_openai, openai.APITimeoutError), (from_anthropic, anthropic.APITimeoutError)]
)
def test_a_timeout_gives_no_answer_until_the_client_leaves(
    serve: Serve, ask: Ask, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ask(serve("llm: [{error: timeout}]"), impatient=True)


@pytest.mark.parametrize(
    ("ask", "error"),
    [(from_openai, openai.APIConnectionError), (from_anthropic, anthropic.APIConnectionError)],
)
@pytest.mark.parametrize("stub", ["error: connection", "error: timeout, latency: 0.01"])
def test_the_connection_is_closed_without_an_answer(
    serve: Serve, ask: Ask, error: type[Exception], stub: str
) -> None:
    server = serve(f"llm: [{{{stub}}}, hello]")
    with pytest.raises(error) as raised:
        ask(server)
    assert type(raised.value) is error
    assert ask(server) == "hello"


@pytest.mark.parametrize("ask", [from_openai, from_anthropic])
@pytest.mark.parametrize("stream", [False, True])
def test_a_malformed_answer_is_json_that_was_cut_off(serve: Serve, ask: Ask, stream: bool) -> None:
    server = serve("llm: [{error: malformed}]")
    with pytest.raises(ValueError, match=r"Unterminated|Expecting|JSON"):
        ask(server, stream=stream)


def test_faults_apply_as_in_a_run(serve: Serve) -> None:
    server = serve("""
llm: [Refund issued., Goodbye.]
faults:
  - {effect: llm, nth: 1, node: answer, error: rate_limit}
  - {effect: llm, nth: 2, truncate: 6}
""")
    with pytest.raises(openai.RateLimitError):
        from_openai(server)
    assert from_openai(server) == "Refund"
    assert [str(request).partition(" -> ")[2].partition(" (")[0] for request in server.requests] == [
        "fault: error rate_limit",
        "llm: reply: 'Refund issued.'",
    ]
