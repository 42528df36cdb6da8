import json
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.report.figures import FIGURES
from harness.report.markdown import markdown
from harness.report.repeats import ExactSum, total
from harness.report.results import line
from harness.report.summary import Entries, Summary, Warnings, summarise
from harness.scenario.outcome import Observation, Outcome
from harness.scenario.score import pass_at_k, pass_hat_k, wilson
from tests.report.fixtures import MakeCheck, MakeOutcome


def _summary(*outcomes: Any) -> Any:
    return summarise(line(outcome) for outcome in outcomes)


def test_verdicts_are_counted_and_errors_kept_apart_from_failures(outcome: MakeOutcome) -> None:
    verdicts = ["passed", "passed", "failed", "error", "skipped"]
    total = _summary(*(outcome(verdict, scenario=f"s{i}") for i, verdict in enumerate(verdicts)))["total"]
    assert {name: total[name] for name in ("runs", "passed", "failed", "errors", "skipped")} == {
        "runs": 5,
        "passed": 2,
        "failed": 1,
        "errors": 1,
        "skipped": 1,
    }


def test_the_pass_rate_leaves_out_skipped_runs_and_has_a_wilson_interval(outcome: MakeOutcome) -> None:
    runs = [outcome(verdict, scenario=verdict) for verdict in ("passed", "failed", "error", "skipped")]
    total = _summary(*runs)["total"]
    assert total["pass_rate"] == pytest.approx(1 / 3)
    assert total["pass_rate_interval"] == list(wilson(1, 3))


def test_fitness_is_the_weighted_mean_of_the_scores(outcome: MakeOutcome) -> None:
    heavy = outcome("failed", scenario="heavy", weight=3.0, score=0.5)
    light = outcome(scenario="light", weight=1.0, score=1.0)
    skipped = outcome("skipped", scenario="skipped", weight=9.0)
    assert _summary(heavy, light, skipped)["total"]["fitness"] == pytest.approx((3 * 0.5 + 1) / 4)


def test_repeats_do_not_increase_the_weight_of_a_scenario(outcome: MakeOutcome) -> None:
    once = outcome(scenario="once", score=1.0)
    often = [outcome("failed", scenario="often", repeat=i, score=0.2 * i) for i in range(4)]
    assert _summary(once, *often)["total"]["fitness"] == pytest.approx((1 + 0.3) / 2)


def test_latency_percentiles_are_of_virtual_seconds(outcome: MakeOutcome) -> None:
    runs = [outcome(scenario=str(i), latency={"total": float(i), "nodes": {}}) for i in range(101)]
    latency = _summary(*runs)["total"]["latency"]
    assert latency == {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


def test_runs_that_never_ran_do_not_count_as_fast(outcome: MakeOutcome) -> None:
    slow = outcome(latency={"total": 4.0, "nodes": {}})
    refused = outcome("passed", scenario="refused", status="invalid", latency={"total": 0.0, "nodes": {}})
    broken = outcome("error", scenario="broken", latency={"total": 0.0, "nodes": {}})
    assert _summary(slow, refused, broken)["total"]["latency"]["p50"] == 4.0


def test_tokens_cost_and_wall_time_add_up(outcome: MakeOutcome) -> None:
    usage = {"llm_calls": 2, "input_tokens": 10, "output_tokens": 5, "cost": 0.1, "by_model": {}}
    total = _summary(*(outcome(scenario=str(i), usage=usage, wall=0.25) for i in range(3)))["total"]
    assert total["tokens"] == {"input": 30, "output": 15, "total": 45}
    assert total["llm_calls"] == 6
    assert total["cost"] == pytest.approx(0.3)
    assert total["wall"] == 0.75


def test_every_figure_of_the_table_is_in_a_group(outcome: MakeOutcome) -> None:
    total = _summary(outcome())["total"]
    assert [figure.label for figure in FIGURES if figure.of(total) is None] == []


def test_warnings_are_counted(outcome: MakeOutcome) -> None:
    summary = _summary(outcome(warnings=["a", "b"]), outcome(suite="other", warnings=["a"]), outcome())
    assert summary["total"]["warnings"] == 3
    assert summary["suites"]["other"]["warnings"] == 1


def test_repeats_give_pass_at_k_and_pass_hat_k(outcome: MakeOutcome) -> None:
    verdicts = ["passed", "failed", "passed"]
    total = _summary(*(outcome(verdict, repeat=i) for i, verdict in enumerate(verdicts)))["total"]
    assert total["pass_at_k"] == {str(k): pass_at_k(3, 2, k) for k in (1, 2, 3)}
    assert total["pass_hat_k"] == {str(k): pass_hat_k(3, 2, k) for k in (1, 2, 3)}


def test_scenarios_that_cannot_differ_count_for_every_k(outcome: MakeOutcome) -> None:
    """One scenario in ten passes now and then, and nine always fail."""
    varying = [
        outcome(verdict, repeat=i, varies=True) for i, verdict in enumerate(["passed", *["failed"] * 4])
    ]
    others = [outcome("failed", scenario=f"fails {n}") for n in range(9)]
    total = _summary(*varying, *others)["total"]
    assert total["pass_at_k"]["5"] == pytest.approx(1 / 10)
    assert total["pass_hat_k"]["1"] == pytest.approx(0.2 / 10)


def test_a_scenario_counts_once_in_the_pass_rate_however_often_it_ran(outcome: MakeOutcome) -> None:
    often = [outcome("failed", repeat=i, varies=True) for i in range(10)]
    total = _summary(*often, outcome("passed", scenario="other"))["total"]
    assert total["pass_rate"] == 0.5


def test_ten_repeats_of_ten_scenarios_are_less_certain_than_a_hundred_scenarios(outcome: MakeOutcome) -> None:
    def interval(scenarios: int, repeats: int) -> float:
        outcomes = [
            outcome("passed" if n < 0.8 * scenarios else "failed", scenario=f"s{n}", repeat=i, varies=True)
            for n in range(scenarios)
            for i in range(repeats)
        ]
        low, high = _summary(*outcomes)["total"]["pass_rate_interval"]
        return float(high - low)

    assert interval(10, 10) == pytest.approx(interval(10, 1))
    assert interval(10, 10) > 2 * interval(100, 1)


def _figures(*outcomes: Outcome) -> tuple[int, int, float, Any]:
    total = _summary(*outcomes)["total"]
    assert total["pass_rate_interval"] == list(wilson(*_counted(total)))
    return total["runs"], total["distinct_runs"], total["pass_rate"], list(total["pass_hat_k"])


def _counted(total: Any) -> tuple[int, int]:
    counted = total["distinct_runs"] - total["skipped"]
    return round(total["pass_rate"] * counted), counted


def test_repeats_that_cannot_differ_count_once(outcome: MakeOutcome) -> None:
    same = [outcome(repeat=i) for i in range(99)]
    assert _figures(*same) == (99, 1, 1.0, ["1"])
    assert _figures(*same, outcome("failed", scenario="other")) == (100, 2, 0.5, ["1"])


def test_repeats_that_may_differ_each_count(outcome: MakeOutcome) -> None:
    assert _figures(*(outcome(repeat=i, varies=True) for i in range(3))) == (3, 3, 1.0, ["1", "2", "3"])


def test_repeats_that_do_differ_each_count(outcome: MakeOutcome) -> None:
    drawn = [outcome(repeat=i, output=i % 2) for i in range(4)]
    assert _figures(*drawn) == (4, 4, 1.0, ["1", "2", "3", "4"])


def test_repeats_of_one_recording_count_once_and_those_of_two_twice(outcome: MakeOutcome) -> None:
    replayed = [outcome(repeat=i, recording=i % 2 + 1) for i in range(6)]
    assert _figures(*replayed) == (6, 2, 1.0, ["1", "2"])


def test_skipped_runs_count_as_distinct(outcome: MakeOutcome) -> None:
    assert _figures(outcome(), outcome("skipped", scenario="s")) == (2, 2, 1.0, ["1"])


def test_a_scenario_with_different_verdicts_over_its_repeats_is_flaky(outcome: MakeOutcome) -> None:
    flaky = [outcome(verdict, repeat=i) for i, verdict in enumerate(["passed", "failed"])]
    steady = [outcome("failed", scenario="steady", repeat=i) for i in range(2)]
    assert _summary(*flaky, *steady)["total"]["flaky"] == [
        {"id": "triage.scenario.yaml::a double charge", "variant": None, "passed": 1, "runs": 2}
    ]


def test_list_of_flaky_scenarios_is_bounded(outcome: MakeOutcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.report.group.MAX_FLAKY", 2)
    runs = [
        outcome(verdict, scenario=name, repeat=i)
        for name in "ebcda"
        for i, verdict in enumerate(["passed", "failed"])
    ]
    summary = _summary(*runs)
    assert [each["id"].partition("::")[2] for each in summary["total"]["flaky"]] == ["a", "b"]
    assert summary["left_out"]["flaky"] == 3
    assert "(1 of 2 passed), … and 3 more" in markdown(summary)


def test_two_variants_of_a_scenario_are_not_flaky(outcome: MakeOutcome) -> None:
    summary = _summary(outcome(variant="a"), outcome("failed", variant="b"))
    assert summary["total"]["flaky"] == []
    assert summary["total"]["scenarios"] == 2
    assert {name: group["passed"] for name, group in summary["variants"].items()} == {"a": 1, "b": 0}


def test_there_is_a_group_for_each_suite_tag_dialect_manifest_and_variant(outcome: MakeOutcome) -> None:
    summary = _summary(
        outcome(suite="one", tags=["slow", "triage"], dialect="loki", manifest="loki.yaml"),
        outcome(suite="two", tags=["triage"]),
    )
    assert {name: group["runs"] for name, group in summary["suites"].items()} == {"one": 1, "two": 1}
    assert {name: group["runs"] for name, group in summary["tags"].items()} == {"slow": 1, "triage": 2}
    assert {name: group["runs"] for name, group in summary["dialects"].items()} == {"loki": 1, "sherma": 1}
    assert {name: group["runs"] for name, group in summary["manifests"].items()} == {
        "loki.yaml": 1,
        "triage.yaml": 1,
    }
    assert summary["variants"] == {}


def test_failures_are_listed_with_their_failed_checks(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    failed = outcome("failed", checks=[failed_check("path", "expected b, was c")], seed=3)
    error = outcome(
        "error", scenario="no stub", error={"type": "UnscriptedCall", "message": "nothing answers llm"}
    )
    first, second = _summary(outcome(scenario="fine"), failed, error)["failures"]
    assert first["checks"] == [{"name": "path", "message": "expected b, was c"}]
    assert (first["seed"], first["error"]) == (3, None)
    assert second["error"] == "UnscriptedCall: nothing answers llm"


SHAPE = {
    "nodes": ["a", "b", "c"],
    "edges": [["a", "b"], ["a", "c"]],
    "branches": ["a: x", "a: otherwise"],
}


def test_coverage_is_the_union_over_the_runs_of_a_manifest(outcome: MakeOutcome) -> None:
    one = outcome(shape=SHAPE, coverage={"nodes": ["a", "b"], "edges": [["a", "b"]], "branches": ["a: x"]})
    other = outcome(shape=SHAPE, coverage={"nodes": ["a"], "edges": [], "branches": []}, scenario="other")
    assert _summary(one, other)["coverage"] == {
        "triage.yaml": {
            "nodes": {"taken": 2, "all": 3, "missing": ["c"], "where": [None], "dynamic": []},
            "edges": {"taken": 1, "all": 2, "missing": [["a", "c"]], "where": [None], "dynamic": []},
            "branches": {
                "taken": 1,
                "all": 2,
                "missing": ["a: otherwise"],
                "where": [None],
                "dynamic": [],
            },
        }
    }


def test_taken_transition_that_the_shape_lacks_is_part_of_the_graph(outcome: MakeOutcome) -> None:
    run = outcome(shape=SHAPE, coverage={"nodes": [], "edges": [["c", "a"]], "branches": []})
    assert _summary(run)["coverage"]["triage.yaml"]["edges"] == {
        "taken": 1,
        "all": 3,
        "missing": [["a", "b"], ["a", "c"]],
        "where": [None, None],
        "dynamic": [["c", "a"]],
    }


def test_missing_parts_have_their_location_in_the_manifest_or_an_included_file(
    outcome: MakeOutcome,
) -> None:
    lines = {"nodes": [1, 2, "shared.yaml:7"], "edges": [4, None], "branches": [5, 6]}
    run = outcome(
        shape=SHAPE | {"lines": lines}, coverage={"nodes": ["a"], "edges": [], "branches": ["a: x"]}
    )
    coverage = _summary(run)["coverage"]["triage.yaml"]
    assert {
        part: dict(zip(map(str, of["missing"]), of["where"], strict=True)) for part, of in coverage.items()
    } == {
        "nodes": {"b": "triage.yaml:2", "c": "shared.yaml:7"},
        "edges": {"['a', 'b']": "triage.yaml:4", "['a', 'c']": None},
        "branches": {"a: otherwise": "triage.yaml:6"},
    }


def test_agents_of_one_manifest_have_separate_coverage(outcome: MakeOutcome) -> None:
    runs = [outcome(agent=agent, shape=SHAPE, scenario=agent) for agent in ("x", "y")]
    assert list(_summary(*runs)["coverage"]) == ["triage.yaml#x", "triage.yaml#y"]


def test_rejected_manifest_has_no_coverage(outcome: MakeOutcome) -> None:
    assert _summary(outcome(status="invalid"))["coverage"] == {}


def test_the_slowest_scenarios_come_first(outcome: MakeOutcome) -> None:
    runs = [outcome(scenario=str(i), latency={"total": float(i), "nodes": {}}) for i in range(9)]
    assert [entry["latency"] for entry in _summary(*runs)["slowest"]] == [8.0, 7.0, 6.0, 5.0, 4.0]


def test_empty_results_have_a_summary() -> None:
    total = summarise([])["total"]
    assert (total["runs"], total["pass_rate"], total["fitness"]) == (0, None, None)
    assert total["latency"]["p95"] is None


def _outcome(
    suite: Any, scenario: Any, repeat: Any, verdict: Any, variant: Any, tags: Any, score: Any, latency: Any
) -> Any:
    observed = Observation(latency={"total": latency, "nodes": {}})
    observed.usage |= {"input_tokens": repeat * 7, "cost": latency / 3}
    made = Outcome(suite, scenario, "m.yaml", "sherma", "a", observed, verdict, score)
    made.variant, made.tags, made.repeat, made.wall = variant, tags, repeat, latency / 7
    made.coverage = {"nodes": [scenario], "edges": [], "branches": []}
    return made


def test_equal_runs_in_several_results_are_one_distinct_run(
    outcome: MakeOutcome,
) -> None:
    def distinct(*runs: tuple[str, Outcome]) -> tuple[int, float]:
        summary = Summary()
        for name, of_run in runs:
            summary.add(line(of_run), name)
        total = summary.as_json()["total"]
        return total["distinct_runs"], total["pass_rate"]

    monday = [("monday", outcome(repeat=i)) for i in range(3)]
    assert distinct(*monday, ("tuesday", outcome())) == (1, 1.0)
    assert distinct(*monday, ("tuesday", outcome("failed")), ("tuesday", outcome("failed", repeat=1))) == (
        2,
        0.5,
    )
    assert distinct(*monday, ("tuesday", outcome(varies=True))) == (2, 1.0)
    recorded = [
        ("monday", outcome(recording=1)),
        ("tuesday", outcome(recording=1)),
        ("tuesday", outcome(recording=2)),
    ]
    assert distinct(*recorded) == (2, 1.0)


def test_models_without_a_price_are_named_in_each_group(outcome: MakeOutcome) -> None:
    counts = {"llm_calls": 1, "input_tokens": 10, "output_tokens": 5}
    by_model = {"ours": {**counts, "cost": None}, "gpt-4o": {**counts, "cost": 0.25}}
    usage = {"llm_calls": 2, "input_tokens": 20, "output_tokens": 10, "cost": 0.25, "by_model": by_model}
    total = _summary(outcome(usage=usage), outcome(scenario="other"))["total"]
    assert (total["cost"], total["unpriced"]) == (0.25, ["ours"])
    assert total["models"] == by_model


def test_latency_of_nodes_is_by_manifest_and_agent(outcome: MakeOutcome) -> None:
    took = [
        outcome(agent=agent, scenario=agent, shape=SHAPE, latency={"total": s, "nodes": {"a": s}})
        for agent, s in (("x", 1.0), ("y", 3.0))
    ]
    never = outcome(
        "error", agent="x", scenario="z", shape=SHAPE, latency={"total": 9.0, "nodes": {"a": 9.0}}
    )
    assert _summary(*took, never)["latency_by_node"] == {
        f"triage.yaml#{agent}": {"a": {"runs": 1, **dict.fromkeys(("p50", "p90", "p95", "p99", "max"), s)}}
        for agent, s in (("x", 1.0), ("y", 3.0))
    }


def test_latency_by_scenario_lists_scenarios_with_different_latencies(outcome: MakeOutcome) -> None:
    runs = [outcome(repeat=i, latency={"total": float(i), "nodes": {}}) for i in range(3)]
    steady = [outcome(scenario="steady", repeat=i) for i in range(3)]
    [entry] = _summary(*runs, *steady)["latency_by_scenario"]
    assert (entry["id"], entry["runs"], entry["p50"], entry["max"]) == (runs[0].id, 3, 1.0, 2.0)


@pytest.mark.parametrize("most", [1, 3, 100])
def test_bounded_entries_keep_the_first_repeats_in_any_order(most: int) -> None:
    entries = [
        {"id": name, "variant": None, "repeat": repeat} for name in ("a", "b", "c") for repeat in range(5)
    ]
    first = sorted(entries, key=lambda entry: (entry["repeat"], entry["id"]))[:most]
    for seed in range(5):
        kept, shuffled = Entries(most), list(entries)
        random.Random(seed).shuffle(shuffled)
        for entry in shuffled:
            kept.add(entry)
        assert kept.ordered() == sorted(first, key=lambda entry: (entry["id"], entry["repeat"]))
        assert kept.left_out == len(entries) - len(first)


@settings(max_examples=50)
@given(st.lists(st.sampled_from("abcdefgh"), max_size=40), st.randoms(use_true_random=False))
def test_bounded_warnings_keep_the_same_texts_in_any_order(texts: list[str], chance: random.Random) -> None:
    def counted(raised: list[str]) -> tuple[Any, int]:
        warnings = Warnings(3)
        for text in raised:
            warnings.add(text, f"of {text}")
        return {found["text"]: found["times"] for found in warnings.ordered()}, warnings.left_out

    shuffled = list(texts)
    chance.shuffle(shuffled)
    kept = sorted(set(texts))[:3]
    by_hand = {text: texts.count(text) for text in kept}
    assert counted(texts) == counted(shuffled) == (by_hand, len(texts) - sum(by_hand.values()))


@given(st.lists(st.floats(-1e15, 1e15)))
def test_sums_are_exact(values: list[float]) -> None:
    summed = ExactSum()
    for value in values:
        summed.add(value)
    assert total([summed]) == math.fsum(values)


shares = st.floats(0, 1)
outcomes = st.lists(
    st.builds(
        _outcome,
        suite=st.sampled_from(["one", "two"]),
        scenario=st.sampled_from(["a", "b", "c"]),
        repeat=st.integers(0, 3),
        verdict=st.sampled_from(["passed", "failed", "error", "skipped"]),
        variant=st.sampled_from([None, "v1", "v2"]),
        tags=st.lists(st.sampled_from(["t1", "t2"]), max_size=2),
        score=shares,
        latency=shares,
    ),
    max_size=12,
)


@settings(max_examples=50)
@given(outcomes, st.randoms(use_true_random=False))
def test_order_of_the_lines_does_not_matter(made: Any, chance: random.Random) -> None:
    shuffled = list(made)
    chance.shuffle(shuffled)
    assert json.dumps(_summary(*shuffled)) == json.dumps(_summary(*made))


@settings(max_examples=50)
@given(outcomes)
def test_suites_add_up_to_the_total(made: Any) -> None:
    summary = _summary(*made)
    for figure in ("runs", "scenarios", "passed", "failed", "errors", "skipped", "llm_calls"):
        assert sum(group[figure] for group in summary["suites"].values()) == summary["total"][figure]
    for figure in ("wall", "cost"):
        total = sum(group[figure] for group in summary["suites"].values())
        assert total == pytest.approx(summary["total"][figure])


@settings(max_examples=50)
@given(outcomes)
def test_groups_count_each_run_once_with_figures_in_range(made: Any) -> None:
    summary = _summary(*made)
    groups = [summary["total"]]
    for by in ("suites", "tags", "dialects", "variants"):
        groups += summary[by].values()
    for group in groups:
        assert group["runs"] == sum(group[name] for name in ("passed", "failed", "errors", "skipped"))
        low, high = group["pass_rate_interval"]
        assert 0 <= low <= (group["pass_rate"] or 0) <= high <= 1 or group["pass_rate"] is None
        assert group["fitness"] is None or 0 <= group["fitness"] <= 1 + 1e-9
