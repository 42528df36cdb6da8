"""Whatever a scenario file contains, it is read or refused with located problems."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import FormatError
from harness.scenario.load import load_file
from harness.source.display import render

SEED = """\
harness: 1
manifest: [m.yaml, n.json]
dialect: sherma
env: {A: x}
defaults: {timeout: 10, tags: [t], tools: {a: {return: 1}}}
scenarios:
  - name: one
    input: {messages: [{role: human, content: hi}]}
    llm: {a: [hi, {json: {x: 1}, when: state.x == 1, times: any}], b: [{tool_calls: [{name: t, args: {}}]}]}
    tools: {t: pkg.mod.fn, u: [{args: {q: {$gt: 1}}, error: {kind: exception, type: KeyError}}]}
    mcp: {s: {tools: [{name: t, input_schema: {type: object}, stubs: [{return: 1}]}], latency: 1}}
    http: [{method: GET, url: u, query: {a: b}, status: 200, json: {}}]
    human: {n: [yes, {decision: no, latency: 2}]}
    faults: [{effect: llm, nth: 1, error: timeout}]
    expect:
      path: [a, [b, c]]
      state: {x: {$all: [{$type: integer}, {$cel: value > 1}]}, l: [{$any: true}]}
      calls: [{tool: t, args: {q: 1}}]
      latency: {total: 3, nodes: {a: 1}}
      checks: [{that: state.x > 1}]
      weights: {path: 2}
  - name: two
    turns: [{input: a, expect: {status: interrupted}}, {resume: {}}]
"""

SCALARS = [None, True, 0, -1, 2.5, float("nan"), 10**400, "x", "real", "a.b", ""]
CONTAINERS = [
    [],
    {},
    [1],
    ["a"],
    [{}],
    [[[]]],
    {"a": 1},
    {"$foo": 1},
    {"$gt": []},
    {"real": "x"},
    {"error": "x"},
]
VALUES = st.sampled_from([*SCALARS, *CONTAINERS])


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in the data."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += [(value, key), *places(item)]
    return found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("laws") / "a.scenario.yaml"


def read_or_refuse(file: Path, text: str) -> None:
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load_file(file)
    except FormatError as error:
        texts = [render(problem, list, text) for problem in error.problems]
    else:
        return
    assert texts
    assert all(texts)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_file_with_other_values_is_read_or_refused(file: Path, data: st.DataObject) -> None:
    value = yaml.safe_load(SEED)
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(value)))
        if data.draw(st.booleans()):
            container[key] = copy.deepcopy(data.draw(VALUES))
        elif isinstance(container, dict) and key in container:
            container[data.draw(st.sampled_from(["reply", "input", "turns", "error", "$gt", "zz"]))] = (
                container.pop(key)
            )
    read_or_refuse(file, yaml.safe_dump(value, sort_keys=False))


@given(
    st.integers(0, len(SEED)),
    st.integers(0, 30),
    st.text(alphabet="{}[]:,&*!|>'\"\n\t -#%@`ax1$\x00\x07é\ud800", max_size=4),
)
def test_a_damaged_file_is_read_or_refused(file: Path, at: int, cut: int, put_in: str) -> None:
    read_or_refuse(file, SEED[:at] + put_in + SEED[at + cut :])
