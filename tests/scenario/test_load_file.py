"""A scenario file becomes scenarios. Source: docs/scenario-format.md."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FormatError
from harness.scenario.load import discover, load_file
from harness.scenario.model import MISSING, Scenario
from harness.world.spec import WorldSpec

Load = Callable[[str], tuple[Scenario, ...]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load_text(text: str) -> tuple[Scenario, ...]:
        file = tmp_path / "suite" / "a.scenario.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"harness: 1\n{text}")
        return load_file(file).scenarios

    return load_text


@pytest.fixture
def one(load: Load) -> Callable[[str], Scenario]:
    def load_one(keys: str) -> Scenario:
        (scenario,) = load(f"manifest: m.yaml\nscenarios:\n  - {{name: x, {keys}}}")
        return scenario

    return load_one


def test_a_scenario_with_nothing_said_has_the_defaults_of_the_table(load: Load) -> None:
    (scenario,) = load("manifest: m.yaml\nscenarios: [{name: x}]")
    assert scenario.weight == 1.0
    assert scenario.timeout_s == 30.0
    assert scenario.repeat == 1
    assert scenario.pass_score == 1.0
    assert (scenario.skip, scenario.xfail, scenario.dialect, scenario.agent, scenario.cassette) == (None,) * 5
    assert scenario.seed == 0
    assert scenario.tags == ()
    assert scenario.description == ""
    assert not scenario.allow_unused
    assert scenario.world == WorldSpec()
    assert scenario.expect.values == {}
    assert not scenario.conversation
    assert [turn.input for turn in scenario.turns] == [MISSING]


def test_everything_a_scenario_says_is_there(load: Load, tmp_path: Path) -> None:
    (scenario,) = load(
        "manifest: [../agents/a.yaml, b.json]\ndialect: loki\nagent: g\nenv: {A: x}\nenv_passthrough: [HOME]\n"
        "components: {m: small}\n"
        "scenarios:\n"
        "  - {name: n, description: d, tags: [t, u-1], weight: 2, timeout: 5, repeat: 3, pass_score: 0.5, skip: s,\n"
        "     xfail: f, seed: 7, input: {a: 1}, cassette: tape, allow_unused: true}"
    )
    assert scenario.manifests == (tmp_path / "agents/a.yaml", tmp_path / "suite/b.json")
    assert (scenario.dialect, scenario.agent) == ("loki", "g")
    assert (scenario.env, [*scenario.env_passthrough]) == ({"A": "x"}, ["HOME"])
    assert (scenario.components, scenario.components_at["m"].column) == ({"m": "small"}, 17)
    assert (scenario.description, scenario.tags) == ("d", ("t", "u-1"))
    assert (scenario.weight, scenario.timeout_s, scenario.repeat, scenario.pass_score) == (2.0, 5.0, 3, 0.5)
    assert (scenario.skip, scenario.xfail, scenario.seed) == ("s", "f", 7)
    assert (scenario.cassette, scenario.allow_unused) == ("tape", True)
    assert scenario.turns[0].input == {"a": 1}
    assert (scenario.span.line, scenario.span.column) == (9, 12)


def test_a_scenario_overrides_the_file(load: Load, tmp_path: Path) -> None:
    first, second = load(
        "manifest: a.yaml\ndialect: loki\nagent: g\nenv: {A: x, B: y}\nscenarios:\n  - name: first\n"
        "  - {name: second, manifest: b.yaml, dialect: yagra, entry_point: h, env: {B: z}}"
    )
    assert (first.manifests[0].name, first.dialect, first.agent, first.env) == (
        "a.yaml",
        "loki",
        "g",
        {"A": "x", "B": "y"},
    )
    assert (second.manifests[0].name, second.dialect, second.agent, second.env) == (
        "b.yaml",
        "yagra",
        "h",
        {"A": "x", "B": "z"},
    )


def test_files_are_yaml_1_2(one: Callable[[str], Scenario]) -> None:
    scenario = one("input: {no: on, n: 012, d: 2024-05-01}")
    assert scenario.turns[0].input == {"no": "on", "n": 12, "d": "2024-05-01"}


# ---------------------------------------------------------------- defaults


def test_defaults_are_merged_mappings_key_by_key_the_rest_replaced(load: Load) -> None:
    (scenario,) = load(
        "manifest: m.yaml\n"
        "defaults: {timeout: 9, tags: [a, b], input: {x: {p: 1, q: 1}}, expect: {state: {k: 1}, path: [a]}}\n"
        "scenarios: [{name: x, tags: [c], input: {x: {q: 2}}, expect: {state: {l: 2}, path: [b]}}]"
    )
    assert scenario.timeout_s == 9.0
    assert scenario.tags == ("c",)
    assert scenario.turns[0].input == {"x": {"p": 1, "q": 2}}
    assert scenario.expect.values == {"state": {"k": 1, "l": 2}, "path": ["b"]}
    assert scenario.expect.spans["state"].line == 4


def test_who_answers_for_a_name_is_replaced_and_not_mixed(load: Load) -> None:
    (scenario,) = load(
        "manifest: m.yaml\ndefaults: {tools: {a: {return: 1, latency: 2}, b: {return: 2}}}\n"
        "scenarios: [{name: x, tools: {a: {error: timeout}, c: real}}]"
    )
    assert list(scenario.world.tools) == ["a", "b", "c"]
    stub, _ = scenario.world.stubs("tool")
    assert (stub.answer, stub.latency) == ({}, 0.0)
    assert stub.error is not None


def test_a_matcher_is_replaced_and_not_mixed(load: Load) -> None:
    (scenario,) = load(
        "manifest: m.yaml\ndefaults: {expect: {state: {k: {$gt: 1}}}}\n"
        "scenarios: [{name: x, expect: {state: {k: {$lt: 5}}}}]"
    )
    assert scenario.expect.values == {"state": {"k": {"$lt": 5}}}


def test_what_a_scenario_says_takes_the_place_of_defaults_that_cannot_stand_beside_it(load: Load) -> None:
    first, second = load(
        "manifest: m.yaml\ndefaults: {agent: a, input: hi, human: [yes]}\n"
        "scenarios: [{name: x, entry_point: b}, {name: y, turns: [{input: one}, {resume: two}]}]"
    )
    assert (first.agent, first.turns[0].input) == ("b", "hi")
    assert (second.agent, second.conversation, second.world.human) == ("a", True, [])


# ---------------------------------------------------------------- turns and expectations


def test_turns_have_input_or_resume_a_world_and_expectations(one: Callable[[str], Scenario]) -> None:
    scenario = one(
        "llm: [late], turns: [{input: a, llm: [early], expect: {status: interrupted}}, {resume: {}}, {resume: null}]"
    )
    assert scenario.conversation
    first, second, third = scenario.turns
    assert (first.input, first.resume) == ("a", MISSING)
    assert [stub.answer for stub in first.world.llm] == [{"reply": "early"}]
    assert first.expect is not None
    assert first.expect.values == {"status": "interrupted"}
    assert (second.input, second.resume, second.expect) == (MISSING, {}, None)
    assert third.resume is None
    assert first.span is not None
    assert first.span.line == 4


def test_null_is_an_input_of_its_own(one: Callable[[str], Scenario]) -> None:
    assert one("input: null").turns[0].input is None


def test_expectations_are_kept_as_written_with_weights_and_places(one: Callable[[str], Scenario]) -> None:
    expect = one(
        "expect: {path: [a, [b, c]], output: null, unused: true, weights: {path: 2, unused: 0}}"
    ).expect
    assert expect.values == {"path": ["a", ["b", "c"]], "output": None, "unused": True}
    assert expect.weights == {"path": 2.0, "unused": 0.0}
    assert str(expect.spans["path"]).endswith("a.scenario.yaml:4:30")


FULL_EXPECT = """
    expect:
      status: failed
      path: [a, [b, c]]
      path_includes: [a]
      visits: {a: 1, b: {$gte: 1}}
      max_visits: {a: 2}
      never: [z]
      routes: [{from: a, to: b}]
      state: {x: {$gt: 1}, l: [{$any: true}]}
      output: {$contains: x}
      state_schema: {type: object}
      output_schema: true
      calls: [{llm: gpt*, node: a}, {tool: t, args: {q: {$regex: "^x"}}, ok: false}]
      calls_order: any
      never_calls: [{http: "*"}]
      call_counts: {llm: 3, "tool:get": 1}
      error: {type: ValueError, message: {$contains: bad}, node: a}
      interrupt: [x, {q: 1}]
      latency: {total: 3, nodes: {a: 1.5}}
      usage: {input_tokens: 1, output_tokens: 2, llm_calls: 3}
      warnings: [{$contains: w}, exact]
      never_warnings: [{$regex: w}]
      checks: [{that: 'state.x > 2', name: big, weight: 2}]
      custom: [{call: own.checks.polite, args: {least: 2}, name: polite, weight: 2}]
      judge: [{rubric: kind, model: gpt, threshold: 0.8, weight: 1}]
      unused: true
      weights: {status: 0, checks: 2, calls: 1.5}
"""


def test_every_key_of_expect_is_taken(load: Load) -> None:
    (scenario,) = load(f"manifest: m.yaml\nscenarios:\n  - name: x{FULL_EXPECT}")
    assert len(scenario.expect.values) == 25
    items = {"checks[0]", "custom[0]", "judge[0]"}
    assert set(scenario.expect.spans) == {*scenario.expect.values, "weights", *items}


# ---------------------------------------------------------------- finding and importing


def test_files_are_found_below_folders_in_order_each_once(tmp_path: Path) -> None:
    for name in (
        "b/x.scenario.yaml",
        "a/y.scenario.yml",
        "a/z.yaml",
        ".git/w.scenario.yaml",
        "c.scenario.yaml",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = discover([tmp_path / "a/z.yaml", tmp_path, tmp_path / "b"])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == [
        "a/z.yaml",
        "a/y.scenario.yml",
        "b/x.scenario.yaml",
        "c.scenario.yaml",
    ]


def test_a_file_is_listed_once_however_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.scenario.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    relative = [Path("a/x.scenario.yaml"), Path("./a"), Path("a/../a")]
    given = [*relative, tmp_path / "a", tmp_path / "a/../a/x.scenario.yaml"]
    for path in given:
        assert discover([path]) == [Path("a/x.scenario.yaml")]
    assert discover(given) == [Path("a/x.scenario.yaml")]


def test_a_folder_behind_a_link_is_not_taken_for_its_neighbour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far/inner").mkdir(parents=True)
    (tmp_path / "far/x.scenario.yaml").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "far/inner")
    monkeypatch.chdir(tmp_path)
    assert discover([Path("link/..")]) == [Path("link/../x.scenario.yaml")]


def test_a_path_that_does_not_exist_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    with pytest.raises(FormatError) as caught:
        discover([tmp_path / "scenarois"])
    (problem,) = caught.value.problems
    assert problem.code == "missing-file"
    assert problem.hint == f"did you mean '{tmp_path / 'scenarios'}'?"


def test_importing_the_loader_is_cheap() -> None:
    heavy = ("langgraph", "langchain_core", "celpy", "mcp", "jsonschema")
    code = f"import sys, harness.scenario.load; print([m for m in {heavy} if m in sys.modules])"
    found: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_numbers_and_booleans_in_env_are_the_text_they_are_written_as(tmp_path: Path) -> None:
    file = tmp_path / "a.scenario.yaml"
    file.write_text("harness: 1\nmanifest: m\nenv: {N: 3, D: 0.5, B: true, T: x}\nscenarios: [{name: a}]\n")
    [scenario] = load_file(file).scenarios
    assert scenario.env == {"N": "3", "D": "0.5", "B": "true", "T": "x"}
