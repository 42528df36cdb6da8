"""Laws that hold for every run: it is never worse than itself, and a regression is always caught."""

import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.gate.judge import judge
from harness.gate.policy import Policy, Rules
from tests.gate.runs import RunSpec, write_lines

COMPARED = Rules(
    no_new_failures=True,
    allow_removed=False,
    max_errors=10_000,
    max_fitness_drop=0.0,
    max_latency_increase=0.0,
    max_cost_increase=0.0,
    max_tokens_increase=0.0,
)
REPEATS = 3
figures = st.lists(st.floats(0, 100, allow_subnormal=False), min_size=REPEATS, max_size=REPEATS)


def run_specs(verdicts: st.SearchStrategy[Any]) -> st.SearchStrategy[RunSpec]:
    return st.builds(
        RunSpec,
        verdict=verdicts,
        score=st.lists(st.floats(0, 1, allow_subnormal=False), min_size=REPEATS, max_size=REPEATS),
        latency=figures,
        tokens=st.lists(st.integers(0, 10_000), min_size=REPEATS, max_size=REPEATS),
        cost=figures,
        repeats=st.integers(1, REPEATS),
        weight=st.floats(0.1, 10),
        varies=st.booleans(),
        tags=st.lists(st.sampled_from(["billing", "slow"]), unique=True),
        variant=st.none() | st.just("terse"),
    )


any_verdict = st.lists(st.sampled_from(["passed", "failed", "error"]), min_size=REPEATS, max_size=REPEATS)
runs = st.dictionaries(st.sampled_from("abcdefghijklmnop"), run_specs(any_verdict), min_size=1, max_size=12)
finished = run_specs(st.just("passed"))


@settings(deadline=None, max_examples=20)
@given(runs, finished)
def test_a_run_against_itself_is_never_worse(run: dict[str, RunSpec], sure: RunSpec) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written = write_lines(Path(folder, "run"), {**run, "sure": sure})

        assert judge(written, Policy(COMPARED), written).passed


@settings(deadline=None, max_examples=20)
@given(runs, finished, st.sampled_from(["failed", "error", "skipped", "missing"]), st.data())
def test_a_single_regression_is_always_caught_and_named(
    run: dict[str, RunSpec], sure: RunSpec, becomes: str, data: st.DataObject
) -> None:
    sure = replace(sure, varies=False)
    before = {**run, "sure": sure, "kept": RunSpec()}
    after = dict(before)
    if becomes == "missing":
        del after["sure"]
    else:
        verdicts = [*["passed"] * (sure.repeats - 1), becomes]
        broken = data.draw(st.permutations(verdicts)) if becomes != "skipped" else "skipped"
        after["sure"] = replace(sure, verdict=broken)
    with tempfile.TemporaryDirectory() as folder:
        folders = [write_lines(Path(folder, name), said) for name, said in (("1", before), ("2", after))]

        [ruling] = [
            each
            for each in judge(folders[1], Policy(COMPARED), folders[0]).rulings
            if each.rule == "no_new_failures"
        ]

    assert not ruling.passed
    assert [each.id for each in ruling.scenarios] == ["a.scenario.yaml::sure"]
    assert (ruling.scenarios[0].before, ruling.scenarios[0].after) == ("passed", becomes)


@settings(deadline=None, max_examples=10)
@given(runs, runs, finished, st.randoms(use_true_random=False))
def test_the_verdict_is_the_same_on_every_rerun_and_in_every_order(
    before: dict[str, RunSpec], after: dict[str, RunSpec], sure: RunSpec, order: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        verdicts = []
        for shuffled in (None, order):
            old = write_lines(Path(folder, "old"), {**before, "sure": sure}, order=shuffled)
            new = write_lines(Path(folder, "new"), {**after, "sure": sure}, order=shuffled)
            verdicts.append(judge(new, Policy(COMPARED), old).as_json())

    assert verdicts[0] == verdicts[1]
