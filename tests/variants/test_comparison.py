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


LONG = "the-model-with-the-long-prompt-and-the-low-temperature"


def with_long_names(folder: Path, **group: Any) -> Score:
    """Return a score with all columns, as the variants' runs called models."""
    score = of_scenarios(folder, {f"s{n}": FAILS for n in range(10)}, {f"s{n}": PASSES for n in range(10)})
    variants = [
        replace(
            each, name=f"{LONG}-{number}", answers={"asked": 10}, not_judged=1, group={**each.group, **group}
        )
        for number, each in enumerate(score.variants)
    ]
    return replace(score, variants=variants, changed=[])


@pytest.mark.parametrize("width", [60, 100, 160])
def test_the_table_fits_the_terminal_and_has_all_figures(tmp_path: Path, width: int) -> None:
    score = with_long_names(tmp_path)
    shown = list(table(score, width))
    assert max(map(len, shown)) <= max(width, 57)  # longer is a name that is one word
    figures = shown[: next(at for at, line in enumerate(shown) if line.startswith(f"{LONG}-0:"))]
    assert max(map(len, figures)) <= width
    told = " ".join(figures)
    for text in (
        "runs",
        "not judged",
        "100 %",
        "1.000",
        "p50",
        "tokens",
        "cost",
        "+1.000 (+0.",
        "the baseline",
        "better (p ",
    ):
        assert text in told
    assert [line for line in figures if line.startswith("the-mod") and "ure-0  " in line]


def test_nothing_is_shortened_where_there_is_room(tmp_path: Path) -> None:
    score = with_long_names(tmp_path)
    assert [*table(score, 200)] == [*table(score)]
    rows = [*table(score, 170)][:3]
    assert [row.split("  ")[0] for row in rows[1:]] == [f"{LONG}-0", f"{LONG}-1"]


def test_a_name_that_does_not_fit_loses_its_middle_before_columns_move_to_another_table(
    tmp_path: Path,
) -> None:
    (
        first,
        second,
        *_,
    ) = table(with_long_names(tmp_path), 150)
    assert first.startswith("variant ")
    assert first.endswith("verdict")
    assert second.startswith("the-model-with-")
    assert "…" in second
    assert "temperature-0  " in second


@pytest.mark.parametrize(
    ("answers", "shown"), [({"scripted": 20}, False), ({"scripted": 19, "asked": 1}, True)]
)
def test_figures_of_models_are_left_out_if_they_are_zero_and_stubs_answered(
    tmp_path: Path, answers: dict[str, int], shown: bool
) -> None:
    quick = {"p50": 0.0, "p95": 0.0}
    score = with_long_names(tmp_path, latency=quick, tokens={"total": 0}, cost=0.0)
    score = replace(score, variants=[replace(each, answers=answers) for each in score.variants])
    head = next(iter(table(score))).split()
    assert [name in head for name in ("p50", "p95", "tokens", "cost")] == [shown] * 4
    assert "fitness" in head


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
