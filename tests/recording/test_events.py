"""Runs of the event scheduler are recorded and replayed: work that overlapped in real time overlaps again."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.engine.events_dialect import known
from tests.recording.project import SERVED, Project, told


@pytest.fixture(autouse=True)
def _events_dialect(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with known(monkeypatch):
        yield


AGENT = """\
events: 1
start: [first, second, boss]
nodes:
  first: {effect: look_up, to: both}
  second: {effect: look_up, to: [both, aside]}
  aside: {takes: 0.01}
  boss: {asks: Is it good?, to: both}
  both: {wait_for: first AND second AND boss, timeout: 30}
"""

DESK = f"""\
import httpx


async def look_up(by: str) -> str:
    async with httpx.AsyncClient() as client:
        return (await client.get("{SERVED}/" + by)).json()
"""

SERVICE = """
http:
  - {method: GET, url: /first, json: one, latency: 0.2}
  - {method: GET, url: /second, json: two, latency: 0.05}
"""


def test_a_run_of_events_is_replayed_in_the_order_in_which_its_answers_came(project: Project) -> None:
    asked: list[str] = []

    def ask(node: str, args: Mapping[str, Any]) -> str:
        asked.append(node)
        return "yes"

    project.write("events.yaml", AGENT)
    project.write("desk.py", DESK)
    scenario = project.scenario("events", "tools: {look_up: desk.look_up}")
    with project.serving(SERVICE):
        recorded = project.record(scenario, ask=ask)
    replayed = project.replay(scenario)
    assert asked == ["boss"]
    assert recorded.observed.error is None
    assert sorted(recorded.observed.path) == ["aside", "boss", "both", "first", "second"]
    assert {"one", "two", "yes"} < {*recorded.observed.state["log"]}
    assert recorded.observed.latency["total"] >= 0.2
    assert told(replayed) == told(recorded)
