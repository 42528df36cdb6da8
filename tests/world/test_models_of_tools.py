"""Calls of models that real tools make with the clients of providers: `llm` stubs answer them on the wire."""

import sys

import pytest

from tests.world.tool_runs import CAUGHT, Run, found

OPENAI = """\
from openai import OpenAI
client = OpenAI(api_key="any")
messages = [{"role": "user", "content": "plums?"}]
"""
ASYNC_OPENAI = OPENAI.replace("OpenAI", "AsyncOpenAI")
ANTHROPIC = """\
from anthropic import Anthropic
client = Anthropic(api_key="any")
messages = [{"role": "user", "content": "plums?"}]
"""
MODELS = {
    "chat": OPENAI
    + """\
answer = client.chat.completions.create(model="gpt-4o", messages=messages)
return {"found": answer.choices[0].message.content}""",
    "chat_async": ASYNC_OPENAI
    + """\
answer = await client.chat.completions.create(model="gpt-4o", messages=messages)
return {"found": answer.choices[0].message.content}""",
    "chat_stream": OPENAI
    + """\
chunks = client.chat.completions.create(model="gpt-4o", messages=messages, stream=True)
return {"found": "".join(chunk.choices[0].delta.content or "" for chunk in chunks)}""",
    "chat_stream_async": ASYNC_OPENAI
    + """\
chunks = await client.chat.completions.create(model="gpt-4o", messages=messages, stream=True)
return {"found": "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])}""",
    "responses": OPENAI
    + """\
return {"found": client.responses.create(model="gpt-4o", input="plums?").output_text}""",
    "responses_stream": OPENAI
    + """\
events = client.responses.create(model="gpt-4o", input="plums?", stream=True)
return {"found": "".join(event.delta for event in events if event.type == "response.output_text.delta")}""",
    "messages": ANTHROPIC
    + """\
answer = client.messages.create(model="gpt-4o", messages=messages, max_tokens=9)
return {"found": answer.content[0].text}""",
    "messages_stream": ANTHROPIC
    + """\
with client.messages.stream(model="gpt-4o", messages=messages, max_tokens=9) as stream:
    return {"found": "".join(stream.text_stream)}""",
}
LLM_STUB = """
llm:
  - {node: fetch, model: gpt-4o, when: 'request.prompt == "plums?"', chunks: ["3", " plums"], latency: 1.5}
"""


@pytest.mark.parametrize("client", MODELS.values(), ids=MODELS)
def test_llm_stubs_answer_the_clients_of_model_providers(run_tool: Run, client: str) -> None:
    outcome = run_tool(client, LLM_STUB)
    assert found(outcome) == "3 plums"
    (call,) = [call for call in outcome.observed.calls if call["kind"] == "llm"]
    assert (call["name"], call["node"]) == ("gpt-4o", "fetch")
    assert outcome.observed.latency["nodes"] == {"fetch": 1.5}


def test_the_address_of_a_provider_may_be_set_in_the_environment(
    run_tool: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://models.test/openai/v1")
    assert found(run_tool(MODELS["chat"], LLM_STUB)) == "3 plums"


def test_a_model_call_that_nothing_answers_ends_the_run_tool(run_tool: Run) -> None:
    outcome = run_tool(MODELS["chat"], LLM_STUB.replace("gpt-4o", "o3"))
    message = (outcome.observed.error or {})["message"]
    assert "nothing answers the call of model 'gpt-4o' in node 'fetch'" in message
    assert "model is 'gpt-4o', not 'o3'" in message


REFUSED_MODELS = """\
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
asked, other = ChatOpenAI(model="gpt-4o", api_key="any"), ChatOpenAI(model="o3", api_key="any")
claude = ChatAnthropic(model="gpt-4o", api_key="any")
text = "nothing"
try:
    {}
except BaseException:
    text = (await other.ainvoke("plums?")).content
return {{"found": text}}"""
ABSORBING = {
    "ainvoke": 'text = (await asked.ainvoke("plums?")).content',
    "invoke": 'text = asked.invoke("plums?").content',
    "agenerate": 'text = str(await asked.agenerate([[HumanMessage("plums?")]] * 2))',
    "fallbacks": 'text = (await asked.with_fallbacks([other]).ainvoke("plums?")).content',
    "retries": """\
retrying = asked.with_retry(stop_after_attempt=3, wait_exponential_jitter=False)
    text = (await retrying.ainvoke("plums?")).content""",
    "abatch": 'text = str(await asked.abatch(["plums?"] * 2, return_exceptions=True))',
    "astream": 'text = "".join([chunk.content async for chunk in asked.astream("plums?")])',
    "anthropic": 'text = (await claude.with_fallbacks([other]).ainvoke("plums?")).content',
}


@pytest.mark.parametrize("asking", ABSORBING.values(), ids=ABSORBING)
def test_after_a_model_call_that_nothing_answers_no_other_is_answered(run_tool: Run, asking: str) -> None:
    outcome = run_tool(REFUSED_MODELS.format(asking), "llm: [{model: o3, times: 3, reply: 3 plums}]")
    error = outcome.observed.error or {}
    assert (error["type"], error["node"]) == ("UnscriptedCall", "fetch")
    assert "nothing answers the call of model 'gpt-4o' in node 'fetch'" in error["message"]
    assert "nearest stub: llm: reply: '3 plums'" in error["message"]
    asked = [call for call in outcome.observed.calls if call["kind"] == "llm"]
    assert [(call["name"], call["ok"]) for call in asked] == [("gpt-4o", False)]
    assert len(outcome.observed.unused) == 1


SIDE_BY_SIDE = """\
version: "1.0"
start_at: begin
end_at: [fetch, other]
state_schema: {found: {type: str}, begun: {type: str}, more: {type: str}}
nodes:
  - {id: begin, handler: begin}
  - {id: fetch, handler: fetch}
  - {id: other, handler: other}
edges: [{source: begin, target: fetch}, {source: begin, target: other}]
"""


def test_after_a_refused_request_a_node_beside_it_performs_no_effect(run_tool: Run) -> None:
    absorbing = """\
import asyncio, httpx
try:
    httpx.get("https://shop.test/items")
except BaseException:
    await asyncio.sleep(9)
return {"found": "absorbed"}"""
    keys = """\
http: [{url: "https://shop.test/orders", text: none}]
handlers:
  begin: {return: {begun: "yes"}}
  fetch: real_tool.fetch
  other: {return: {more: "yes"}}
"""
    outcome = run_tool(absorbing, keys, SIDE_BY_SIDE)
    error = outcome.observed.error or {}
    assert (error["type"], error["node"]) == ("UnscriptedCall", "fetch")
    assert "nothing answers http https://shop.test/items" in error["message"]
    assert "other" not in [call["name"] for call in outcome.observed.calls]


def test_an_error_of_a_model_is_the_client_s_own(run_tool: Run) -> None:
    body = MODELS["chat"].replace('api_key="any"', 'api_key="any", max_retries=0')
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    outcome = run_tool(CAUGHT.format(lines), "llm: [{error: rate_limit}]")
    assert "openai.RateLimitError" in found(outcome).split()


def test_http_stubs_answer_a_provider_s_address_where_no_llm_stub_does(run_tool: Run) -> None:
    outcome = run_tool(
        'import requests\nreturn {"found": requests.get("https://api.openai.com/v1/models").json()["data"][0]["id"]}',
        'http: [{url: "https://api.openai.com/v1/models", json: {data: [{id: mine}]}}]',
    )
    assert found(outcome) == "mine"


@pytest.mark.parametrize("package", ["openai", "anthropic"])
def test_a_provider_s_package_is_not_needed_to_answer_as_it_does(
    run_tool: Run, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    url = {
        "openai": "https://api.openai.com/v1/chat/completions",
        "anthropic": "https://api.anthropic.com/v1/messages",
    }[package]
    body = f"""\
import httpx
asked = {{"model": "m", "max_tokens": 9, "messages": [{{"role": "user", "content": "?"}}]}}
return {{"found": httpx.post("{url}", json=asked).text}}"""
    assert "good morning" in found(run_tool(body, "llm: [good morning]"))


def test_an_answer_that_cannot_be_written_ends_the_run_tool(
    run_tool: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client would take it for a broken connection, and try again."""

    def broken(*_: object) -> None:
        raise ImportError("no such class in this version")

    monkeypatch.setattr("harness.world.tool_requests.model_response", broken)
    error = run_tool(MODELS["chat"], "llm: [{reply: hi, times: any}]").observed.error or {}
    assert "no such class in this version" in error["message"]
