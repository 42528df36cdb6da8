"""Tests of an app in TypeScript: it runs as a process of its own, and its models are those of a scenario file.

`harness.serve` answers it over HTTP; `npm ci` in this folder installs what it imports.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.load import load_file
from harness.serve import serving

HERE = Path(__file__).parent
SUITE = HERE / "desk.yaml"
TSX = HERE / "node_modules/.bin/tsx"

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
    pytest.mark.skipif(not TSX.exists(), reason=f"its packages are not installed: npm ci --prefix {HERE}"),
]


def ask(url: str, letter: str) -> Any:
    """Start the app, give it a letter, and return what it prints."""
    environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "any", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [TSX, "src/desk.ts"],
        cwd=HERE,
        env={**environment, "LANGSMITH_TRACING": "false"},
        input=json.dumps(letter) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(params=[scenario.name for scenario in load_file(SUITE).scenarios])
def answered(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any, Any]]:
    """The name of a scenario, what the app makes of its input, and the server that answered."""
    (scenario,) = [each for each in load_file(SUITE).scenarios if each.name == request.param]
    with serving(f"{SUITE}::{scenario.name}") as server:
        yield scenario.name, ask(server.openai_url, scenario.turns[0].input), server


EXPECTED = {
    "the agent looks up an order": (["sort", "answer", "tools", "answer"], "It was sent on Monday."),
    "other letters go to the office": (["sort", "refuse"], "Please write to the office."),
}


def test_the_app_takes_the_way_and_says_what_it_should(answered: tuple[str, Any, Any]) -> None:
    name, said, server = answered
    assert (said["path"], said["said"]) == EXPECTED[name]
    assert server.unused() == []


def test_each_request_was_answered_by_the_next_stub(answered: tuple[str, Any, Any]) -> None:
    _, _, server = answered
    lines = [request.span.line for request in server.requests]
    assert lines == sorted(set(lines))
    assert server.requests[0].effect.name == "gpt-4o-mini"
    assert server.requests[0].effect.messages[0].content == "Sort the letter."
