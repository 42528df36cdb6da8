"""Comparison of variants with the baseline, from the results of a run. Source: docs/variants.md, "Scoring"."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.report.reading import read_lines
from harness.report.scenario_runs import Run, ScenarioCollector, read_run
from harness.report.summary import Summary
from harness.variants.comparison import Score, VariantScore, compare, uncompared
from harness.variants.table import table
from tests.gate.runs import RunSpec, write_lines


def scored(folder: Path, before: RunSpec, after: RunSpec) -> VariantScore:
    """Return the score of the only variant, from a run of one scenario."""
    folders = [write_lines(folder / str(each.variant), {"one": each}) for each in (before, after)]
    results = folder / "results.jsonl"
    results.write_text("".join((each / "results.jsonl").read_text() for each in folders))
    summary = Summary()
    run = read_run(results, [summary.add])
    return compare(run, summary.as_json()["variants"], ["now", "new"], {}, {"now": "", "new": ""}).variants[1]


@pytest.mark.parametrize(
    ("more", "verdict", "scores"),
    [
        ({}, "no evidence", (0.0, 1.0)),
        ({"varies": True}, "better", (0.0, 1.0)),
        ({}, "better", (0.0, [0.9] * 19 + [1.0])),
    ],
    ids=["scripted", "asked anew", "with seeds that matter"],
)
def test_repeats_that_could_not_differ_count_once(
    tmp_path: Path, more: dict[str, Any], verdict: str, scores: tuple[Any, Any]
) -> None:
    before = RunSpec(variant="now", repeats=20, score=scores[0], **more)
    found = scored(tmp_path, before, RunSpec(variant="new", repeats=20, score=scores[1], **more))
    assert found.verdict == verdict
    assert found.needed is None


def test_a_scenario_that_weighs_nothing_is_evidence_of_nothing(tmp_path: Path) -> None:
    found = scored(
        tmp_path, RunSpec(variant="now", weight=0, score=0.0), RunSpec(variant="new", weight=0, score=1.0)
    )
    assert (found.difference, found.why) == (None, "no scenario was judged for it and for the baseline")


def of_scenarios(folder: Path, before: dict[str, RunSpec], after: dict[str, RunSpec]) -> Score:
    """Return the score of the only variant, over runs of the same scenarios."""
    named = (("now", before), ("new", after))
    folders = [
        write_lines(folder / name, {id_: replace(spec, variant=name) for id_, spec in specs.items()})
        for name, specs in named
    ]
    results = folder / "results.jsonl"
    results.write_text("".join((each / "results.jsonl").read_text() for each in folders))
    run, summary, names = read_run(results), Summary(), ["now", "new"]
    left_out = uncompared(run, names)
    for line in read_lines(results):
        if (line["id"], line["variant"], line["repeat"]) not in left_out:
            summary.add(line)
    return compare(run, summary.as_json()["variants"], names, {}, {"now": "", "new": ""})


FAILS, PASSES, ERROR = RunSpec("failed"), RunSpec(), RunSpec("error")


def test_scenarios_that_only_the_variant_breaks_beyond_judging_count_as_failed(tmp_path: Path) -> None:
    """Six are mended, eight cannot be judged any more: this is no improvement."""
    score = of_scenarios(
        tmp_path,
        {f"s{n}": FAILS if n < 6 else PASSES for n in range(14)},
        {f"s{n}": PASSES if n < 6 else ERROR for n in range(14)},
    )
    before, after = score.variants
    assert after.difference is not None
    assert after.verdict == "no evidence"
    assert (
        after.difference.estimate == pytest.approx(after.fitness - before.fitness) == pytest.approx(-2 / 14)
    )
    assert (after.runs, after.not_judged, after.left_out) == (14, 8, 0)
    assert "14           8" in "\n".join(table(score))


def test_scenarios_that_neither_variant_could_be_judged_in_count_in_no_figure(tmp_path: Path) -> None:
    before = {f"s{n}": FAILS for n in range(10)} | {"down": ERROR}
    score = of_scenarios(tmp_path, before, {f"s{n}": PASSES for n in range(10)} | {"down": ERROR})

    assert (score.variants[0].fitness, score.variants[1].fitness) == (0.0, 1.0)
    assert score.variants[1].verdict == "better"
    assert (score.variants[1].left_out, score.variants[1].not_judged) == (1, 1)


def test_with_too_many_scenarios_left_out_there_is_no_verdict(tmp_path: Path) -> None:
    down = {f"down {n}": ERROR for n in range(3)}
    score = of_scenarios(
        tmp_path, {f"s{n}": FAILS for n in range(10)} | down, {f"s{n}": PASSES for n in range(10)} | down
    )
    found = score.variants[1]
    assert found.verdict is None
    assert found.why == "too many scenarios are left out for a verdict: 3 of 13 scenarios"
    assert any("3 scenarios left out of all figures" in line for line in table(score))


def test_a_variant_of_the_same_mean_and_more_risk_is_named(tmp_path: Path) -> None:
    scores = [0.0, 1.0] * 8
    score = of_scenarios(
        tmp_path,
        {f"s{n}": RunSpec(score=0.5) for n in range(16)},
        {f"s{n}": RunSpec(score=value) for n, value in enumerate(scores)},
    )
    risk = score.variants[1].risk
    assert risk is not None
    assert (risk.before, risk.after) == (0.0, 0.5)
    assert any("riskier, for the same mean" in line for line in table(score))


@pytest.mark.parametrize(("varies", "front"), [(True, ["now"]), (False, ["now", "new"])])
def test_a_latency_within_its_noise_puts_no_variant_on_the_front(
    tmp_path: Path, varies: bool, front: list[str]
) -> None:
    score = of_scenarios(
        tmp_path,
        {f"s{n}": RunSpec(latency=1.0 + n % 3, varies=varies) for n in range(9)},
        {
            f"s{n}": RunSpec(
                "failed" if n == 0 else "passed", latency=(1.0 + n % 3) * (0.9 if n else 1.1), varies=varies
            )
            for n in range(9)
        },
    )
    assert score.pareto == front


def test_runs_that_nothing_answered_are_left_out(tmp_path: Path) -> None:
    """A variant that was never recorded is not worse for that."""
    before = {f"s{n}": PASSES for n in range(10)}
    folders = [
        write_lines(tmp_path / name, {id_: replace(spec, variant=name) for id_, spec in specs.items()})
        for name, specs in (("now", before), ("new", dict.fromkeys(before, ERROR)))
    ]
    texts = [(each / "results.jsonl").read_text() for each in folders]
    unanswered = texts[1].replace(
        '"error":null',
        '"error":{"type":"CassetteMissing","code":"cassette-missing","message":"","node":null,"where":null}',
    )
    assert unanswered != texts[1]
    results = tmp_path / "results.jsonl"
    results.write_text(texts[0] + unanswered)
    collector = ScenarioCollector()
    for line in read_lines(results):
        collector.add(line)
    score = compare(Run("", collector.scenarios), {}, ["now", "new"], {}, {"now": "", "new": ""})

    assert (score.variants[1].verdict, score.variants[1].left_out) == (None, 10)
    assert score.variants[1].why == "no scenario was judged for it and for the baseline"
