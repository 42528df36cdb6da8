"""Scripted MCP servers, tested with the SDK's own client."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel

from harness.serve import Serving
from tests import forked

Serve = Callable[[str], Serving]

SHOP = """
mcp:
  shop:
    tools:
      - name: find
        description: Finds things.
        input_schema: {type: object, properties: {q: {type: string}}, required: [q]}
        stubs:
          - {args: {q: pears}, return: {count: 3}}
          - {args: {q: storm}, error: {kind: server_error, message: out of order}}
          - {args: {q: text}, return: calm, times: 1}
  far: real
"""


def over_http(url: str, ask: Callable[[ClientSession], Awaitable[Any]]) -> Any:
    async def asked() -> Any:
        async with streamable_http_client(url) as streams, ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            return await ask(session)

    return asyncio.run(asked())


def over_stdio(file: Path, server: str, ask: Callable[[ClientSession], Awaitable[Any]]) -> Any:
    program, *args = forked.command("harness", "serve", file, "--stdio", server)
    command = StdioServerParameters(command=program, args=args)

    async def asked() -> Any:
        with file.with_suffix(".log").open("w") as log:
            async with (
                stdio_client(command, errlog=log) as streams,
                ClientSession(streams[0], streams[1]) as session,
            ):
                await session.initialize()
                return await ask(session)

    return asyncio.run(asked())


async def conversation(session: ClientSession) -> list[Any]:
    """Return what the server lists and answers, in wire spelling."""
    found: list[BaseModel] = [await session.list_tools()]
    for args in ({"q": "pears"}, {"q": "storm"}, {"q": "text"}, {}):
        found.append(await session.call_tool("find", args))
    return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in found]


def check(found: list[Any]) -> None:
    listed, pears, storm, text, nothing = found
    [tool] = listed["tools"]
    assert (tool["name"], tool["description"], tool["inputSchema"]["required"]) == (
        "find",
        "Finds things.",
        ["q"],
    )
    assert pears["structuredContent"] == {"count": 3}
    assert (storm["isError"], storm["content"][0]["text"]) == (True, "out of order")
    assert text["content"] == [{"type": "text", "text": "calm"}]
    assert nothing["isError"]
    assert "'q' is a required property" in nothing["content"][0]["text"]


def test_over_streamable_http(serve: Serve) -> None:
    server = serve(SHOP)
    assert list(server.mcp_urls) == ["shop"]
    check(over_http(server.mcp_urls["shop"], conversation))
    assert [str(request).partition(" (")[0] for request in server.requests] == [
        "MCP shop find -> mcp.shop.find: return: {'count': 3}",
        "MCP shop find -> mcp.shop.find: error server_error",
        "MCP shop find -> mcp.shop.find: return: 'calm'",
    ]


def test_over_stdio(scenario: Callable[[str], Path]) -> None:
    file = scenario(SHOP)
    check(over_stdio(file, "shop", conversation))
    told = file.with_suffix(".log").read_text()
    assert "MCP shop find -> mcp.shop.find: return: 'calm' (" in told
    assert "0 stubs not used up" in told


def test_a_call_that_nothing_answers_is_a_protocol_error(serve: Serve) -> None:
    async def ask(session: ClientSession) -> str:
        with pytest.raises(Exception, match="nothing answers MCP tool 'find' of server 'shop'") as raised:
            await session.call_tool("find", {"q": "plums"})
        return str(raised.value)

    told = over_http(serve(SHOP).mcp_urls["shop"], ask)
    assert "nearest stub: mcp.shop.find: return: {'count': 3}" in told


def test_several_clients_at_once(serve: Serve) -> None:
    url = serve(SHOP).mcp_urls["shop"]

    async def one() -> Any:
        async with streamable_http_client(url) as streams, ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            done = await session.call_tool("find", {"q": "pears"})
            return done.model_dump(by_alias=True)["structuredContent"]

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(one() for _ in range(5)))

    assert asyncio.run(all_of_them()) == [{"count": 3}] * 5


@pytest.mark.parametrize(
    ("name", "status", "told"),
    [("shpo", 404, "did you mean 'shop'?"), ("far", 404, "no MCP server 'far' is served here")],
)
def test_only_scripted_servers_are_served(serve: Serve, name: str, status: int, told: str) -> None:
    answer = httpx.post(f"{serve(SHOP).url}/mcp/{name}", json={})
    assert answer.status_code == status
    assert told in answer.json()["error"]["message"]


def test_a_server_with_an_error_cannot_be_reached(serve: Serve) -> None:
    server = serve("mcp: {shop: {error: connection}, mine: {error: {kind: auth, message: no entry}}}")
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):  # it may not have read all of it
        httpx.post(server.mcp_urls["shop"], json={})
    refused = httpx.post(server.mcp_urls["mine"], json={})
    assert (refused.status_code, refused.json()["error"]["message"]) == (401, "no entry")
