"""Incomplete answers over streamable HTTP are detected while they are read."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest

from harness.world.mcp.session import end_with_broken_answers

ANSWER = b'data: {"jsonrpc": "2.0", "id": 1, "result": {}}\n\n'


class Body(httpx.AsyncByteStream):
    """A body of these pieces, which then ends or fails."""

    def __init__(self, pieces: Sequence[bytes], *, breaks: bool) -> None:
        self.pieces, self.breaks = pieces, breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece
        if self.breaks:
            raise httpx.RemoteProtocolError("peer closed connection")


@pytest.mark.parametrize(
    ("kind", "body", "reasons"),
    [
        ("application/json", Body([b"{"], breaks=True), ["the server broke off its answer"]),
        ("application/json", Body([b"{}"], breaks=False), []),
        ("text/event-stream", Body([], breaks=False), ["SSE stream ended without a response"]),
        ("text/event-stream", Body([b": ping\n\n"], breaks=True), ["SSE stream ended without a response"]),
        ("text/event-stream", Body([ANSWER[:20], ANSWER[20:]], breaks=False), []),
        ("text/event-stream", Body([ANSWER], breaks=True), []),
        ("text/event-stream", Body([b"id: 7\ndata: {}\n\n"], breaks=True), []),  # goes on after event 7
    ],
    ids=[
        "json breaks off",
        "json",
        "no event",
        "a comment",
        "in two pieces",
        "after the answer",
        "to be continued",
    ],
)
def test_an_answer_that_breaks_off_is_noticed(kind: str, body: Body, reasons: Any) -> None:
    async def main() -> list[str]:
        failed: list[str] = []

        def answer(_: httpx.Request) -> httpx.Response:
            return httpx.Response(200, headers={"content-type": kind}, stream=body)

        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            end_with_broken_answers(http, failed.append)
            try:
                await http.post("http://weather.test/mcp", json={})
            except httpx.TransportError:
                assert body.breaks
        return failed

    assert asyncio.run(main()) == reasons


def test_a_compressed_stream_is_not_looked_into() -> None:
    async def main() -> list[str]:
        failed: list[str] = []
        headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
        body = Body([gzip.compress(ANSWER)], breaks=False)
        transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=headers, stream=body))
        async with httpx.AsyncClient(transport=transport) as http:
            end_with_broken_answers(http, failed.append)
            assert (await http.post("http://weather.test/mcp", json={})).content == ANSWER
        return failed

    assert asyncio.run(main()) == []
