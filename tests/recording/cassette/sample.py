"""A recording with all kinds of content, and helpers for tests of its files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.interception.messages import Request, Response
from harness.recording.folder import (
    CassetteFolder,
)
from harness.recording.interactions import Exchange, HumanReply, Interaction, Recording, RecordingMetadata

CHAT = "https://api.openai.com/v1/chat/completions"
PROMPT = {"model": "gpt", "messages": [{"role": "user", "content": "Wie heiß? 😀\nSag"}], "n": 1}


def interaction(text: str = "hello", *, turn: int = 1, duration: float = 0.5, **more: Any) -> Interaction:
    body = json.dumps(PROMPT | {"user": text}).encode()
    response = Response(
        200, "OK", (("content-type", "application/json"),), json.dumps({"said": text}).encode()
    )
    request = Request("POST", CHAT, {"content-type": "application/json"}, body)
    return Interaction(request, response, turn, duration, **more)


FAILED = Interaction(Request("GET", "http://a.example/x"), None, 2, 1.5, failure="ConnectError: refused")
EXCHANGE = Exchange(
    {"jsonrpc": "2.0", "id": 1, "method": "ping"}, ({"jsonrpc": "2.0", "id": 1, "result": {}},), 1, 0.1
)
ABOUT = RecordingMetadata(
    "scenarios/a.scenario.yaml::a",
    "2026-01-31",
    {"agent.yaml": "0" * 64},
    {"openai": "3.5"},
    {"BASE_URL": "http://x"},
)
RECORDING = Recording(
    (interaction("one", chunks_s=(0.25, 0.5)), FAILED, interaction("two", turn=2)),
    {"weather": (EXCHANGE,)},
    (HumanReply("ask", {"question": "Really?"}, {"yes": True}, 1),),
    ABOUT,
)


def told(recording: Recording | None) -> Any:
    """Return the content of a recording without line numbers."""

    def body(data: bytes) -> Any:
        try:
            return json.loads(data)
        except ValueError:
            return data

    assert recording is not None
    http = [
        replace(one, request=replace(one.request, body=body(one.request.body)), line=0)
        for one in recording.http
    ]
    mcp = {
        name: [(e.sent, e.received, e.turn, e.duration_s) for e in all] for name, all in recording.mcp.items()
    }
    return http, mcp, recording.human, recording.metadata


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def saved(tmp_path: Path, recording: Recording) -> dict[str, str]:
    """Return the files of the cassette `a` with this recording."""
    CassetteFolder(tmp_path, "a").save({1: recording})
    return {name: data.decode() for name, data in files(tmp_path / "a").items()}


def loaded(tmp_path: Path, number: int = 1) -> Recording:
    """Load a recording of the cassette `a`, which must exist."""
    recording = CassetteFolder(tmp_path, "a").load(number)
    assert recording is not None
    return recording


def write(folder: Path, **contents: str | bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (folder / f"{name}.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())


def of_vcr(response: str, request: str = "body: null") -> str:
    return f"""\
interactions:
- request:
    {request}
    headers: {{Accept: ['*/*'], x-number: 1}}
    method: GET
    uri: https://a.example/
  response:
{response}
version: 1
"""
