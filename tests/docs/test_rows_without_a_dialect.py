"""Tests of the rows of docs/scenario-format.md that no scenario in the repository uses."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FormatError, UnscriptedCall
from harness.graph.effects import Effect, HandlerCall, HTTPCall, HTTPReply, RetrievalCall, ScriptCall
from harness.scenario.checks.run import run_checks
from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.scenario.outcome import Observation
from harness.world.scripted import ScriptedWorld


def scenario(folder: Path, text: str) -> Scenario:
    """Write a scenario with these keys to a file and load it."""
    path = folder / "one.scenario.yaml"
    path.write_text(f"harness: 1\nmanifest: agent.yaml\nscenarios:\n- name: one\n{text}", encoding="utf-8")
    return load_file(path).scenarios[0]


def answer(read: Scenario, effect: Effect) -> Any:
    """Return the answer of the scenario's world to an effect."""
    world = ScriptedWorld(read.world, folders=(read.file.parent,))
    return asyncio.run(world.answer(effect, {})).value


def test_http_stubs_answer_by_method_url_and_arguments(tmp_path: Path) -> None:
    read = scenario(
        tmp_path,
        """
  http:
    - {method: POST, url: "https://shop.example/*", status: 201, text: made, headers: {X-Id: "7"}}
    - {url: "https://shop.example/items", query: {page: "2"}, json: [pear]}
""",
    )
    url = "https://shop.example/items"
    made = answer(read, HTTPCall(name=url, args={"method": "POST", "url": url, "query": {}}))
    page = answer(read, HTTPCall(name=url, args={"method": "GET", "url": url, "query": {"page": "2"}}))
    assert made == HTTPReply(201, "made", None, {"x-id": "7"})
    assert page == HTTPReply(200, '["pear"]', ["pear"], {})


def test_a_handler_is_answered_by_its_entry(tmp_path: Path) -> None:
    (tmp_path / "bakery.py").write_text("def bake(loaves):\n    return loaves * 2\n", encoding="utf-8")
    read = scenario(
        tmp_path, "  handlers: {bake: bakery.bake, sell: {return: sold}, eat: [{error: timeout}]}\n"
    )
    assert answer(read, HandlerCall(name="bake", args={"loaves": 2})) == 4
    assert answer(read, HandlerCall(name="sell")) == "sold"
    with pytest.raises(UnscriptedCall):
        answer(read, HandlerCall(name="give_away"))


def test_a_script_runs_for_real_unless_it_is_stubbed(tmp_path: Path) -> None:
    async def really() -> dict[str, int]:
        return {"lines": 3}

    read = scenario(tmp_path, "  scripts: {count: {return: {lines: 8}}}\n")
    assert answer(read, ScriptCall(name="count", real=really)) == {"lines": 8}
    assert answer(read, ScriptCall(name="other", real=really)) == {"lines": 3}


def test_a_retrieval_is_answered_by_the_entry_of_its_node(tmp_path: Path) -> None:
    found = [{"text": "Rye keeps.", "source": "bread.md", "score": 0.8}]
    read = scenario(tmp_path, f"  retrieval: {{look_up: {{return: {found}}}}}\n")
    reply = answer(read, RetrievalCall(name="look_up", args={"query": "rye", "top_k": 1}))
    assert (reply.context, reply.sources, list(reply.passages)) == ("Rye keeps.", ("bread.md",), found)


def test_calls_of_every_kind_are_found_by_name(tmp_path: Path) -> None:
    read = scenario(
        tmp_path,
        """
  expect:
    calls: [{http: "https://shop.example/*"}, {script: count}, {retrieval: look_*}]
""",
    )
    made = [
        {"kind": "http", "name": "https://shop.example/items", "node": "fetch"},
        {"kind": "script", "name": "count", "node": "count"},
        {"kind": "retrieval", "name": "look_up", "node": "look_up"},
    ]
    found = {check.name: check.passed for check in run_checks(read.expect, Observation(calls=made))}
    missed = {check.name: check.passed for check in run_checks(read.expect, Observation(calls=made[:2]))}
    assert (found["calls"], missed["calls"]) == (True, False)


def test_the_cassette_key_is_read_but_answers_no_call(tmp_path: Path) -> None:
    read = scenario(tmp_path, "  cassette: last_summer\n")
    assert read.cassette == "last_summer"
    with pytest.raises(UnscriptedCall):
        answer(read, HandlerCall(name="anything"))


def test_unused_can_only_be_true(tmp_path: Path) -> None:
    assert scenario(tmp_path, "  expect: {unused: true}\n").expect.values["unused"] is True
    with pytest.raises(FormatError, match="allow_unused: true"):
        scenario(tmp_path, "  expect: {unused: false}\n")


@pytest.mark.parametrize(("cost", "holds"), [(0.5, True), (0.6, False)])
def test_a_bound_on_the_cost_is_compared_with_the_cost_of_tokens(
    tmp_path: Path, cost: float, holds: bool
) -> None:
    expect = scenario(tmp_path, "  expect: {usage: {cost: 0.5}}\n").expect
    usage = {"cost": cost, "by_model": {"ours": {"cost": cost}}}
    assert next(c for c in run_checks(expect, Observation(usage=usage)) if c.name == "usage").passed is holds


def test_a_test_scenario_must_exist_in_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("manifest_version: 1\n", encoding="utf-8")
    with pytest.raises(FormatError, match="no test scenario 'happy' in "):
        scenario(tmp_path, "  test_scenario: happy\n")
