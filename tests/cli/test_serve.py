"""`harness serve`: addresses, requests, signals and errors."""

import json
import os
import signal
import subprocess
import urllib.request
from typing import Any

import pytest

from tests.cli.fixtures import Invoke, WriteSuite
from tests.forked import Process

STUBS = "{name: one, input: hi, llm: [{reply: Refund issued.}, later], mcp: {shop: {}}}"


@pytest.fixture
def start_server(suite: WriteSuite) -> Any:
    """A function that starts `harness serve` with these arguments and returns the process and its first lines."""
    started = []

    def start(*args: Any, lines: Any = 3) -> Any:
        process = Process(["harness", "serve", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        return process, [process.stdout.readline() for _ in range(lines)]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ask(url: Any) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}).encode()
    headers = {"content-type": "application/json", "user-agent": "curl/8.1"}
    request = urllib.request.Request(f"{url}/chat/completions", body, headers)
    with opener.open(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def test_the_server_prints_its_addresses_and_requests_and_exits_with_0(
    suite: WriteSuite, start_server: Any
) -> None:
    suite(STUBS)
    process, (openai, anthropic, mcp) = start_server("a.scenario.yaml")
    url = openai.strip().removeprefix("OPENAI_BASE_URL=")
    base = url.removesuffix("/v1")
    assert base.startswith("http://127.0.0.1:")
    assert anthropic == f"ANTHROPIC_BASE_URL={base}\n"
    assert mcp == f"MCP server shop: {base}/mcp/shop\n"
    assert ask(url) == "Refund issued."
    assert process.stdout.readline() == (
        "POST /v1/chat/completions gpt-4o (curl/8.1) -> llm: reply: 'Refund issued.' (a.scenario.yaml:4:34)\n"
    )
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out == "1 stub not used up:\n  never used: llm: reply: 'later' (a.scenario.yaml:4:59)\n"


def test_sigterm_ends_the_server_with_exit_code_0(suite: WriteSuite, start_server: Any) -> None:
    suite("{name: one, mcp: {shop: {}}}")
    process, _ = start_server("a.scenario.yaml")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_the_server_continues_if_its_output_is_closed(suite: WriteSuite, start_server: Any) -> None:
    suite(STUBS)
    process, (openai, *_) = start_server("a.scenario.yaml")
    process.stdout.close()
    url = openai.strip().removeprefix("OPENAI_BASE_URL=")
    assert [ask(url), ask(url)] == ["Refund issued.", "later"]


def test_a_stdio_server_can_be_interrupted(suite: WriteSuite) -> None:
    suite("{name: one, mcp: {shop: {tools: [{name: find, stubs: [{return: x, times: 2}]}]}}}")
    with Process(
        ["harness", "serve", "a.scenario.yaml", "--stdio", "shop"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        hello = {
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "shop"
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == (
        "1 stub not used up:\n"
        "  never used: mcp.shop.find: return: 'x', used 0 of 2 times (a.scenario.yaml:4:59)\n"
    )


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["missing.scenario.yaml"], "missing.scenario.yaml"),
        (["a.scenario.yaml"], "a.scenario.yaml::two"),
        (["a.scenario.yaml::tow"], "did you mean 'two'?"),
        (["a.scenario.yaml::two", "--stdio", "sohp"], "did you mean 'shop'?"),
        (["a.scenario.yaml::two", "--host", "no.such.host.invalid"], "[cannot-listen]"),
        (["a.scenario.yaml::two", "--port", "99999"], "99999"),
    ],
)
def test_an_invalid_argument_is_a_usage_error(
    suite: WriteSuite, invoke: Invoke, args: Any, told: Any
) -> None:
    suite("{name: one}", "{name: two, mcp: {shop: {}}}")
    result = invoke("serve", *args)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_missing_extra_is_named(suite: WriteSuite, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    suite("{name: one}")
    result = invoke("serve", "a.scenario.yaml")
    assert result.exit_code == 2
    assert 'pip install "agent-scenarios[serve]" [extra-missing]' in result.stderr
