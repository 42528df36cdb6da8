"""The same traffic gives the same files, unchanged files are not written, and a replay is equal everywhere."""

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.settings import RecordMode
from tests import forked
from tests.recording.project import Project, told
from tests.recording.test_record_and_replay import CASES, SLOW_FIRST, UMBRELLA, WEATHER, Case

OVERLAPPING = Case("shelf", "input: {iterated_word: [Kiel, Lund]}", SLOW_FIRST, None, 2)
LONG_AGO = 1_000_000_000


def twice(project: Project, case: Case) -> Iterator[dict[str, bytes]]:
    """Yield the files of the cassette after each of two recordings of the same traffic."""
    scenario = project.scenario(case.agent, case.keys)
    port = 0
    for _ in range(2):
        with project.serving(case.served, port=port) as server:
            project.record(scenario)
        port = urlsplit(server.url).port or 0
        files = project.recorded_files()
        assert set(files) > {"it/meta.yaml"}
        yield files


@pytest.mark.parametrize("case", [*CASES.values(), OVERLAPPING], ids=[*CASES, "calls that overlap"])
def test_recording_the_same_traffic_twice_gives_the_same_files(project: Project, case: Case) -> None:
    first, second = (
        {name: data for name, data in files.items() if not name.endswith("meta.yaml")}
        for files in twice(project, case)
    )
    assert second == first


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=20)


def written(value: Any) -> str:
    """Return the value as YAML."""
    return json.dumps(value, ensure_ascii=False)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3))
def test_any_texts_are_recorded_and_replayed_unchanged(project: Project, said: list[tuple[str, str]]) -> None:
    turns = [{"input": asked, "expect": {"output": answered}} for asked, answered in said]
    scenario = project.scenario("weather", f"turns: {written(turns)}")
    with project.serving(f"llm: {written([{'reply': answered} for _, answered in said])}"):
        recorded = project.record(scenario)
    assert recorded.passed
    assert told(project.replay(scenario)) == told(recorded)


# ------------------------------------------------------------ files that stay as they are


def grown_old(project: Project) -> dict[str, int]:
    """Set an old date on the files of the cassette, and return their times."""
    meta = project.read("cassettes/it/meta.yaml")
    day = next(line for line in meta.splitlines() if line.startswith("recorded:"))
    project.write("cassettes/it/meta.yaml", meta.replace(day, 'recorded: "2001-09-09"'))
    for path in project.cassettes.rglob("*.yaml"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return times(project)


def times(project: Project) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in project.cassettes.rglob("*.yaml")}


@pytest.mark.parametrize("mode", [RecordMode.NONE, RecordMode.ONCE, RecordMode.NEW_EPISODES, RecordMode.LIVE])
@pytest.mark.parametrize("case", ["an OpenAI model and a tool", "an MCP server over HTTP"])
def test_a_run_that_records_nothing_new_touches_no_file(
    project: Project, mode: RecordMode, case: str
) -> None:
    scenario = project.scenario(CASES[case].agent, CASES[case].keys)
    with project.serving(CASES[case].served) as server:
        project.record(scenario)
    before = grown_old(project)
    with project.serving(CASES[case].served) as server:
        (outcome,) = project.run(scenario, mode)
    assert outcome.passed
    assert times(project) == before
    if mode is not RecordMode.LIVE:
        assert server.requests == []


@pytest.mark.parametrize("mode", [RecordMode.ALL, RecordMode.REWRITE])
def test_traffic_that_is_the_same_again_is_not_written_again(project: Project, mode: RecordMode) -> None:
    scenario = project.scenario("weather", UMBRELLA)
    with project.serving(WEATHER) as server:
        project.record(scenario)
    before = grown_old(project)
    with project.serving(WEATHER, port=urlsplit(server.url).port or 0):
        project.run(scenario, mode)
    assert times(project)["http.yaml"] == before["http.yaml"]
    assert times(project)["meta.yaml"] > before["meta.yaml"]


# ------------------------------------------------------------ wherever it runs


def test_replays_are_the_same_under_any_hash_seed(project: Project) -> None:
    cases = {
        "mcp": CASES["an MCP server over HTTP"],
        "tools": CASES["two such tools in one reply"],
        "overlapping": OVERLAPPING,
    }
    recorded = {}
    for name, case in cases.items():
        scenario = project.scenario(case.agent, case.keys, name=name, cassette=name)
        with project.serving(case.served):
            recorded[name] = project.record(scenario).digest
    command = ["harness", "run", "-q", *(f"{name}.scenario.yaml" for name in cases), "--json", "lines.jsonl"]
    assert os.environ.get("PYTHONHASHSEED") != forked.HASH_SEED
    assert forked.run(command).returncode == 0
    lines = [json.loads(line) for line in project.read("lines.jsonl").splitlines()]
    assert {line["scenario"]: line["digest"] for line in lines} == recorded  # under the seed of this process
