"""(g) Replayed model calls in the harness, compared with the same calls of the same client on vcrpy alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import Figure, medians, seconds
from harness.graph.effects import LLMCall
from harness.interception.messages import Request, Response
from harness.recording.backend import BackendOptions, RecordedBackend
from harness.recording.folder import CassetteFolder
from harness.recording.interactions import Interaction, Recording
from harness.recording.scrubber import Scrubber
from harness.secrets import Secrets
from harness.time.clock import VirtualTimeLoop
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec

TARGET = 1.3
ROUNDS = 15
CALLS = 50
MODEL = "gpt-4o-mini"
URL = "https://api.openai.com/v1/chat/completions"
SYSTEM = "You are the clerk of a parcel service. " * 40
ENVIRONMENT = {"OPENAI_API_KEY": "sk-0123456789abcdefghijklmnop", "SHOP_TOKEN": "tok-abcdefghijklmnop"}


def run() -> list[Figure]:
    """Measure, and return the figures: a cassette of 50 calls is loaded and replayed in a new event loop."""
    with TemporaryDirectory() as folder:
        cassette = CassetteFolder(Path(folder), "calls")
        cassette.save({1: Recording(http=tuple(_interaction(number) for number in range(CALLS)))})
        alone = partial(_on_vcrpy, cassette.path / "http.yaml")
        ours = partial(_on_harness, cassette)
        assert alone() == ours()
        works: dict[str, Callable[[], object]] = {"vcrpy": alone, "harness": ours}
        took = medians({name: partial(seconds, work) for name, work in works.items()}, ROUNDS)
    return [
        Figure("g", f"{CALLS} replayed calls / vcrpy alone", took["harness"] / took["vcrpy"], target=TARGET),
        Figure("g", "vcrpy alone, a call", took["vcrpy"] / CALLS * 1000, "ms"),
    ]


def _interaction(number: int) -> Interaction:
    from json import dumps

    request = {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"Where is parcel {number}?"},
        ],
        "stream": False,
    }
    message = {"role": "assistant", "content": f"Parcel {number} is on its way.", "refusal": None}
    answer = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 8, "total_tokens": 308},
    }
    headers = {"content-type": "application/json"}
    return Interaction(
        Request("POST", URL, headers, dumps(request).encode()),
        Response(200, "OK", tuple(headers.items()), dumps(answer).encode()),
        turn=1,
        duration_s=0.5,
    )


def _messages(number: int) -> list[Any]:
    from langchain_core.messages import HumanMessage, SystemMessage

    return [SystemMessage(content=SYSTEM), HumanMessage(content=f"Where is parcel {number}?")]


def _on_vcrpy(path: Path) -> list[str]:
    import vcr
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    async def calls() -> list[str]:
        model = ChatOpenAI(model=MODEL, api_key=SecretStr("unused"))
        return [str((await model.ainvoke(_messages(number))).content) for number in range(CALLS)]

    # Without comparing bodies, vcrpy's default: it would compare each body with all earlier ones.
    with vcr.use_cassette(str(path), record_mode="none"):
        return asyncio.run(calls())


def _on_harness(cassette: CassetteFolder) -> list[str]:
    async def calls(backend: RecordedBackend) -> list[str]:
        world = ScriptedWorld(WorldSpec(), backend=backend)
        try:
            return [await _reply(world, number) for number in range(CALLS)]
        finally:
            await world.close()

    backend = RecordedBackend(
        BackendOptions(recorded=cassette.load(), scrubber=Scrubber(Secrets(ENVIRONMENT)))
    )
    with backend.intercepted(), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(calls(backend))


async def _reply(world: ScriptedWorld, number: int) -> str:
    call = LLMCall(name=MODEL, provider="openai", messages=tuple(_messages(number)))
    return str((await world.answer(call, {})).value.text)
