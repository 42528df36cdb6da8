"""(o) 1,200 runs with a real call each, recorded twenty at once from a provider that answers after a second.

200 cases, two variants and three repeats, in real time: it needs idle processors.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.measure import Figure

CASES, REPEATS, AT_ONCE = 200, 3, 20
ANSWER_S = 1.0
TARGET, DURATION_TARGET_S = 1.3, 1.05
MANIFEST = """\
manifest_version: 1
llms: [{id: model, version: "1.0.0", provider: openai, model_name: gpt-4o-mini}]
prompts: [{id: manner, version: "1.0.0", instructions: Repeat what you hear.}]
agents:
  parrot:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: say
      nodes:
        - name: say
          type: call_llm
          args:
            llm: {id: model}
            prompt:
              - {role: system, content: 'prompts["manner"]["instructions"]'}
              - {role: messages, content: state.messages}
            state_updates: {messages: '[llm_response]'}
      edges: []
"""
SCENARIOS = """\
harness: 1
manifest: parrot.yaml
scenarios:
  - name: parrot
    cassette: parrot
    repeat: {repeats}
    input: ${{case.text}}
    expect: {{output: heard}}
    cases:
{cases}
"""
VARIANTS = "harness: 1\nvariants: [{name: polite, prompts: {manner: Be polite.}}]\n"


def run() -> list[Figure]:
    """Record with `harness score`, and return the figures."""
    with TemporaryDirectory() as folder, _provider() as url:
        cases = "\n".join(f"      - {{text: case {number}}}" for number in range(CASES))
        Path(folder, "parrot.yaml").write_text(MANIFEST)
        Path(folder, "p.scenario.yaml").write_text(SCENARIOS.format(repeats=REPEATS, cases=cases))
        Path(folder, "v.yaml").write_text(VARIANTS)
        harness = str(Path(sys.executable).with_name("harness"))
        command = [harness, "score", "p.scenario.yaml", "--variants", "v.yaml", "--yes"]
        environment = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url, "CI": ""}
        began = time.monotonic()
        subprocess.run(
            [*command, "--record-mode", "new_episodes", "-j", str(AT_ONCE)],
            cwd=folder,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        took_s = time.monotonic() - began
        texts = (path.read_text() for path in Path(folder, "cassettes").rglob("meta.yaml"))
        durations = [float(found) for text in texts for found in re.findall(r"duration_s: (\S+)", text)]
    calls = CASES * REPEATS * 2
    assert len(durations) == calls, len(durations)
    ideal_s = calls * ANSWER_S / AT_ONCE
    return [
        Figure(
            "o",
            f"{calls} calls, {AT_ONCE} at once / the ideal {ideal_s:g} s",
            took_s / ideal_s,
            target=TARGET,
        ),
        Figure("o", "median recorded duration", median(durations), "s", DURATION_TARGET_S),
    ]


@contextmanager
def _provider() -> Iterator[str]:
    """Serve a model of OpenAI on the loopback interface, and yield its address."""
    message = {"role": "assistant", "content": "heard"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini"}
    body = json.dumps({**head, "choices": [choice], "usage": usage}).encode()
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", asked, re.IGNORECASE)
                await reader.readexactly(int(length[1]) if length else 0)
                await asyncio.sleep(ANSWER_S)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0, backlog=100))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
