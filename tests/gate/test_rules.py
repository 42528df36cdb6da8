"""Each rule fails a worse run, names the affected scenario, and passes an equal run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FormatError
from harness.gate.judge import Verdict, judge
from harness.gate.policy import Policy, Rules, read_policy
from harness.gate.ruling import Ruling
from tests.gate.runs import RunSpec, write_run

GOOD = RunSpec(tags=["billing"], repeats=1)
RUN = {"x": GOOD, "y": GOOD, "z": RunSpec(suite="b.scenario.yaml")}
FAILS = {"verdict": "failed", "score": 0.5, "failed": {"path": "expected b, was c"}}


def worse(**change: Any) -> dict[str, RunSpec]:
    return {**RUN, "x": replace(GOOD, **change)}


def verdict(
    folder: Path, after: dict[str, RunSpec], rules: str, before: dict[str, RunSpec] | None = None
) -> Verdict:
    policy = folder / "gate.yaml"
    policy.write_text(f"gate: {{{rules}}}\n", encoding="utf-8")
    baseline = write_run(folder / "before", before) if before else None
    return judge(write_run(folder / "after", after), read_policy(policy, folder), baseline)


def only(found: Verdict, rule: str) -> Ruling:
    [ruling] = [ruling for ruling in found.rulings if ruling.rule == rule]
    return ruling


RULES = [
    ("min_pass_rate: 1.0", worse(**FAILS), "passed", "failed"),
    ("min_fitness: 0.9", worse(**FAILS), 1.0, 0.5),
    ("max_p50_latency: 1.0", {**RUN, "x": replace(GOOD, latency=9.0), "y": replace(GOOD, latency=8.0)}, 1.0, 9.0),
    ("max_p95_latency: 1.0", worse(latency=9.0), 1.0, 9.0),
    ("max_cost: 0.03", worse(cost=0.5), 0.01, 0.5),
    ("max_tokens: 300", worse(tokens=500), 100, 500),
    ("max_flaky: 0", worse(verdict=["passed", "failed"], repeats=2), "1 of 1 passed", "1 of 2 passed"),
    ("max_errors: 0", worse(verdict="error"), "passed", "error"),
    ("no_new_failures: true", worse(**FAILS), "passed", "failed"),
    ("no_new_failures: true", worse(verdict="error"), "passed", "error"),
    ("no_new_failures: true", {"y": RUN["y"], "z": RUN["z"]}, "passed", "missing"),
    ("no_new_failures: true", worse(verdict="skipped"), "passed", "skipped"),
    ("allow_removed: false", {"y": RUN["y"], "z": RUN["z"]}, "passed", "missing"),
    ("max_fitness_drop: 0.1", worse(**FAILS), 1.0, 0.5),
    ("max_latency_increase: 0.1", worse(latency=2.0), 1.0, 2.0),
    ("max_cost_increase: 0.1", worse(cost=0.02), 0.01, 0.02),
    ("max_tokens_increase: 0.1", worse(tokens=200), 100.0, 200.0),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "after", "was", "became"), RULES, ids=[str(rule[0]) for rule in RULES])
def test_a_rule_fails_a_worse_run_and_names_the_scenario(
    tmp_path: Path, rule: str, after: dict[str, RunSpec], was: Any, became: Any
) -> None:
    ruling = only(verdict(tmp_path, after, rule, RUN), rule.partition(":")[0])

    assert not ruling.passed
    first = ruling.scenarios[0]
    assert (first.id, first.before, first.after) == ("a.scenario.yaml::x", was, became)


@pytest.mark.parametrize("rule", list(dict.fromkeys(str(rule[0]) for rule in RULES)))
def test_a_rule_passes_an_equal_run(tmp_path: Path, rule: str) -> None:
    found = verdict(tmp_path, RUN, rule, RUN)

    assert [ruling.rule for ruling in found.rulings] == [rule.partition(":")[0]]
    assert found.passed


def test_the_check_that_changed_is_told_and_not_what_failed_before(tmp_path: Path) -> None:
    before = worse(score=0.8, failed={"output": "was Nine."})
    after = worse(**FAILS | {"failed": {"output": "was Nine.", "path": "expected b, was c"}})

    ruling = only(verdict(tmp_path, after, "no_new_failures: true", before), "no_new_failures")

    assert list(ruling.scenarios[0].checks) == ["path: expected b, was c"]


def test_coverage_tells_what_is_missing_and_what_it_was(tmp_path: Path) -> None:
    before = {"x": RunSpec(), "y": RunSpec(manifest="other.yaml")}
    after = {"x": RunSpec(taken=["classify"]), "y": RunSpec(manifest="other.yaml")}

    ruling = only(verdict(tmp_path, after, "min_coverage: {nodes: 0.9, branches: 1}", before), "min_coverage")

    assert not ruling.passed
    assert ruling.actual == {"nodes": 0.5, "branches": None}
    assert ruling.details == ["triage.yaml: 100 % → 50.0 % of its nodes; not answer"]
    assert ruling.note == "no graph has branches"
    assert verdict(tmp_path, before, "min_coverage: {nodes: 1}").passed


@pytest.mark.parametrize(
    ("part", "fails"),
    [
        ("suite: b.scenario.yaml", False),
        ("suite: a.scenario.yaml", True),
        ("tag: billing", True),
        ("manifest: triage.yaml", True),
    ],
)
def test_rules_of_a_part_look_at_it_alone(tmp_path: Path, part: str, fails: bool) -> None:
    rules = "min_pass_rate: 1, no_new_failures: true, min_coverage: {nodes: 1}, max_fitness_drop: 0"
    found = verdict(tmp_path, worse(**FAILS), f"by: [{{{part}, {rules}}}]", RUN)

    assert len(found.rulings) == 4
    assert {ruling.scope for ruling in found.rulings} == {tuple(part.split(": "))}
    assert found.passed is not fails


def test_of_a_part_what_is_gone_counts_by_what_the_baseline_says_of_it(tmp_path: Path) -> None:
    gone = {"y": GOOD, "z": RUN["z"]}
    parts = "{tag: billing, allow_removed: false}, {suite: b.scenario.yaml, allow_removed: false}"

    found = verdict(tmp_path, gone, f"allow_removed: true, by: [{parts}]", RUN)

    assert [ruling.passed for ruling in found.rulings] == [True, False, True]


def test_scenarios_may_be_removed_where_that_is_allowed(tmp_path: Path) -> None:
    found = verdict(
        tmp_path, {"y": GOOD}, "no_new_failures: true, allow_removed: true", {"x": GOOD, "y": GOOD}
    )

    assert found.passed
    assert only(found, "allow_removed").actual == 1


def test_a_scenario_that_was_renamed_is_gone_and_its_new_name_is_told(tmp_path: Path) -> None:
    before = {"a double charge": GOOD, "y": GOOD}
    after = {"a double charge goes to billing": GOOD, "y": GOOD}

    [gone] = only(verdict(tmp_path, after, "allow_removed: false", before), "allow_removed").scenarios

    assert (gone.id, gone.after) == ("a.scenario.yaml::a double charge", "missing")
    assert gone.checks == ["perhaps renamed: 'a double charge goes to billing' is new in this file"]


def test_removed_scenarios_and_errors_fail_also_where_no_rule_is_written(tmp_path: Path) -> None:
    found = verdict(tmp_path, {"y": RunSpec("error")}, "max_tokens: 1000", {"x": GOOD, "y": GOOD})

    assert [ruling.rule for ruling in found.rulings if not ruling.passed] == ["max_errors", "allow_removed"]


def test_without_a_policy_all_pass_and_none_that_passed_fails(tmp_path: Path) -> None:
    before, after = write_run(tmp_path / "before", RUN), write_run(tmp_path / "after", RUN)

    assert [ruling.rule for ruling in judge(after, Policy(Rules())).rulings] == ["min_pass_rate"]
    rules = [ruling.rule for ruling in judge(after, Policy(Rules()), before).rulings]
    assert rules == ["min_pass_rate", "no_new_failures"]


def test_new_scenarios_are_told_and_judged_without_a_before(tmp_path: Path) -> None:
    found = verdict(
        tmp_path, {**RUN, "new": RunSpec("failed")}, "min_pass_rate: 0.5, no_new_failures: true", RUN
    )

    assert found.passed
    assert list(found.notes) == ["1 scenario not in the baseline: a.scenario.yaml::new"]


def test_a_change_of_the_fitness_is_weighted_and_one_of_the_latency_is_not(tmp_path: Path) -> None:
    before = {"heavy": RunSpec(weight=3.0), "light": RunSpec()}
    after = {
        "heavy": RunSpec(weight=3.0, verdict="failed", score=0.8, latency=1.3),
        "light": RunSpec(verdict="failed", score=0.6, latency=1.5),
    }
    found = verdict(tmp_path, after, "max_fitness_drop: 0.1, max_latency_increase: 0.1", before)
    fitness, latency = only(found, "max_fitness_drop"), only(found, "max_latency_increase")
    assert fitness.actual == pytest.approx((3 * 0.2 + 0.4) / 4)
    assert latency.actual == pytest.approx((0.3 + 0.5) / 2)
    assert [scenario.id.rpartition("::")[2] for scenario in fitness.scenarios] == ["heavy", "light"]
    assert [scenario.id.rpartition("::")[2] for scenario in latency.scenarios] == ["light", "heavy"]


def test_a_fitness_names_the_scenarios_that_lost_the_most_first(tmp_path: Path) -> None:
    scored = RunSpec(verdict="failed", score=0.5)
    after = {
        "full": GOOD,
        "low": scored,
        "heavy": replace(scored, weight=3.0, score=0.9),
        "left out": RunSpec(verdict="skipped"),
    }
    ruling = only(verdict(tmp_path, after, "min_fitness: 0.9"), "min_fitness")
    assert [scenario.id.rpartition("::")[2] for scenario in ruling.scenarios] == ["low", "heavy"]


def test_flakiness_without_repeats_is_noted(tmp_path: Path) -> None:
    assert only(verdict(tmp_path, RUN, "max_flaky: 0"), "max_flaky").note == "no scenario ran more than once"
    twice = {**RUN, "x": RunSpec(repeats=2)}
    assert only(verdict(tmp_path, twice, "max_flaky: 0"), "max_flaky").note == ""


def test_a_bound_that_is_reached_exactly_holds(tmp_path: Path) -> None:
    many = {f"s{n}": GOOD for n in range(20)}
    after = {**many, "s0": replace(GOOD, verdict="failed", score=0.0)}

    assert verdict(
        tmp_path, after, "max_fitness_drop: 0.05, min_pass_rate: 0.95, min_fitness: 0.95", many
    ).passed


NOISY = [1.0, 0.5, 1.0, 0.0, 1.0]


def test_with_repeats_a_drop_must_be_more_than_chance(tmp_path: Path) -> None:
    before = {f"s{n}": RunSpec(score=NOISY, repeats=5, varies=True) for n in range(12)}
    noise = {**before, "s3": RunSpec(score=[0.5, 0.5, 1.0, 0.0, 1.0], repeats=5, varies=True)}
    drop = {name: replace(said, score=[0.5, 0.0, 0.5, 0.0, 0.5]) for name, said in before.items()}

    chance = only(verdict(tmp_path, noise, "max_fitness_drop: 0", before), "max_fitness_drop")
    real = only(verdict(tmp_path, drop, "max_fitness_drop: 0", before), "max_fitness_drop")

    assert chance.passed
    assert chance.interval is not None
    assert chance.interval[0] <= 0 < chance.actual < chance.interval[1]
    assert not real.passed
    assert real.interval is not None
    assert real.interval[0] > 0


def test_with_answers_at_random_a_drop_must_be_more_than_chance_at_one_repeat_as_well(tmp_path: Path) -> None:
    before = {f"s{n}": RunSpec(score=float(n % 4 != 0), latency=1.0 + n % 3, varies=True) for n in range(20)}
    chance = {**before, "s1": replace(before["s1"], score=0.0), "s4": replace(before["s4"], latency=2.5)}
    real = {
        name: replace(spec, score=0.0, latency=3 * (1.0 + n % 3))
        for n, (name, spec) in enumerate(before.items())
    }
    rules = "max_fitness_drop: 0, max_latency_increase: 0"

    noise, worse = verdict(tmp_path, chance, rules, before), verdict(tmp_path, real, rules, before)

    assert noise.passed
    assert only(noise, "max_fitness_drop").actual > 0
    assert only(noise, "max_fitness_drop").interval is not None
    assert [ruling.passed for ruling in worse.rulings] == [False, False]


def some_pass(*passed: bool) -> RunSpec:
    """A scenario with answers at random, of which these repeats pass."""
    return RunSpec([("failed", "passed")[each] for each in passed], repeats=len(passed), varies=True)


def test_a_scenario_with_answers_at_random_fails_only_if_it_passes_less_often_than_chance_explains(
    tmp_path: Path,
) -> None:
    always, once_less, never = some_pass(*[True] * 5), some_pass(*[True] * 4, False), some_pass(*[False] * 5)
    before = {"broken": always, "chance": always, "flaky": once_less, "exact": RunSpec()}
    after = {"broken": never, "chance": once_less, "flaky": once_less, "exact": RunSpec()}

    ruling = only(verdict(tmp_path, after, "no_new_failures: true", before), "no_new_failures")

    assert not ruling.passed
    [broken] = ruling.scenarios
    assert (broken.id, broken.before, broken.after) == (
        "a.scenario.yaml::broken", "5 of 5 passed", "0 of 5 passed",
    )  # fmt: skip
    assert ruling.note == (
        "1 scenario flaky in both runs: a.scenario.yaml::flaky; "
        "1 scenario failing more often, no more than chance explains: a.scenario.yaml::chance"
    )


def test_scenarios_with_answers_at_random_that_fail_together_are_more_than_chance(tmp_path: Path) -> None:
    """No repeat of any scenario shows it alone."""
    before = {f"s{n}": some_pass(True) for n in range(20)}
    one = only(
        verdict(tmp_path, {**before, "s0": some_pass(False)}, "no_new_failures: true", before),
        "no_new_failures",
    )
    many = {f"s{n}": some_pass(n >= 8) for n in range(20)}
    all_ = only(verdict(tmp_path, many, "no_new_failures: true", before), "no_new_failures")

    assert one.passed
    assert one.note.endswith(
        "a.scenario.yaml::s0; 1 repeat cannot show more of a single scenario: --repeat 5"
    )
    assert (all_.passed, all_.actual) == (False, 8)


def test_repeats_that_cannot_differ_are_compared_exactly(tmp_path: Path) -> None:
    before = {f"s{n}": RunSpec(repeats=3) for n in range(20)}
    after = {**before, "s3": RunSpec("failed", repeats=3)}

    ruling = only(verdict(tmp_path, after, "max_fitness_drop: 0", before), "max_fitness_drop")

    assert not ruling.passed
    assert ruling.interval is None


def test_repeats_are_paired_and_the_rest_is_told(tmp_path: Path) -> None:
    before, after = (
        {"x": RunSpec(latency=[1.0, 2.0], repeats=2)},
        {"x": RunSpec(latency=[1.0, 2.0, 90.0], repeats=3)},
    )

    ruling = only(verdict(tmp_path, after, "max_latency_increase: 0", before), "max_latency_increase")

    assert (ruling.actual, ruling.note) == (0, "1 repeat in only one of the runs")


def test_what_was_nothing_and_is_something_is_worse_without_bound(tmp_path: Path) -> None:
    found = verdict(tmp_path, {"x": RunSpec(tokens=5)}, "max_tokens_increase: 1", {"x": RunSpec(tokens=0)})

    ruling = only(found, "max_tokens_increase")
    assert not ruling.passed
    assert (ruling.as_json()["actual"], ruling.note) == (None, "there was none before")


def test_a_latency_that_nothing_has_does_not_hold(tmp_path: Path) -> None:
    ruling = only(
        verdict(tmp_path, {"x": RunSpec("error")}, "max_p95_latency: 5, max_errors: 1"), "max_p95_latency"
    )

    assert (ruling.passed, ruling.actual, ruling.note) == (False, None, "no run finished")


NOTHING = [
    (
        "max_cost: 1",
        {"x": RunSpec(cost=None)},
        None,
        "max_cost: what the run costs is not known: no price of gpt-4o",
    ),
    (
        "max_cost_increase: 1",
        {"x": RunSpec(cost=None)},
        {"x": RunSpec()},
        "'a.scenario.yaml::x' costs is not known",
    ),
    ("min_pass_rate: 1", {"x": RunSpec("skipped")}, None, "no scenario was judged: all were skipped"),
    ("min_coverage: {nodes: 1}", {"x": RunSpec(taken=[], nodes=[])}, None, "no graph ran"),
    ("max_latency_increase: 1", {"x": RunSpec("error")}, {"x": RunSpec("error")}, "finished in both"),
    ("no_new_failures: true", {"x": RunSpec()}, None, "no_new_failures needs a baseline"),
    ("by: [{tag: bilin, min_fitness: 1}]", {"x": GOOD}, None, "did you mean 'billing'"),
    (
        "by: [{tag: billing, max_fitness_drop: 1}]",
        {"x": RunSpec(), "y": GOOD},
        {"x": RunSpec()},
        "of tag 'billing'",
    ),
]


@pytest.mark.parametrize(
    ("rule", "after", "before", "message"), NOTHING, ids=[str(each[0]) for each in NOTHING]
)
def test_a_rule_over_nothing_is_an_error(
    tmp_path: Path, rule: str, after: dict[str, RunSpec], before: dict[str, RunSpec] | None, message: str
) -> None:
    with pytest.raises(FormatError) as refused:
        verdict(tmp_path, after, rule, before)

    assert message in str(refused.value)
    assert str(refused.value.problems[0].span).startswith(f"{tmp_path}/gate.yaml:1:")


def test_a_known_cost_over_the_bound_fails_whatever_else_costs(tmp_path: Path) -> None:
    assert not verdict(tmp_path, {"x": RunSpec(cost=None), "y": RunSpec(cost=5.0)}, "max_cost: 1").passed


def test_tokens_that_nobody_reports_are_told(tmp_path: Path) -> None:
    ruling = only(verdict(tmp_path, {"x": RunSpec(tokens=0)}, "max_tokens: 1"), "max_tokens")

    assert ruling.note == "1 call of models, none of which reports tokens"
