"""The figures of summary.json, recomputed from results.jsonl by other, simple code."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
from collections.abc import Callable, Iterable
from itertools import combinations, groupby
from pathlib import Path
from statistics import NormalDist, fmean, quantiles, variance
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.report.reading import read_lines
from harness.report.summary import Summary
from harness.statistics.ratio_interval import student_quantile

Line = dict[str, Any]
TUTORIAL = Path(__file__).parents[2] / "scenarios" / "tutorial"
REPEATS = 4
MORE = """\
harness: 1
manifest: agents/triage.yaml
env: {TRIAGE_MODEL: our-model}
defaults: {tags: [more, slow]}
scenarios:
  - name: it goes elsewhere
    input: I was charged twice
    llm: {classify: ['{"intent": "billing"}']}
    expect: {path: [classify, answer], state: {intent: billing}}
  - name: it often waits, and is too late then
    input: When do you open?
    llm:
      classify: [{reply: '{"intent": "question"}', usage: {input_tokens: 3, output_tokens: 2}}]
      answer: [We open at nine.]
    faults: [{effect: llm, latency: 5, rate: 0.4}]
    expect: {latency: {total: 4}}
  - name: it asks what nothing answers
    input: When do you open?
    expect: {output: anything}
  - name: it is not ready
    skip: the second volume is not out
    input: go
    expect: {output: anything}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three dialects: repeats, failures, errors, skipped scenarios, random faults, tags, prices."""
    project = tmp_path_factory.mktemp("project")
    shutil.copytree(TUTORIAL / "agents", project / "agents")
    for name in ("triage", "returns", "parcels"):
        shutil.copy(TUTORIAL / f"{name}.scenario.yaml", project)
    shutil.copy(TUTORIAL / "support_tools.py", project)
    (project / "more.scenario.yaml").write_text(MORE, encoding="utf-8")
    (project / "pyproject.toml").write_text(
        '[tool.harness.prices]\n"gpt-4o" = {input = 0.7, output = 1.3}\n', encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        result = CliRunner().invoke(cli, ["run", ".", "-q", "--repeat", str(REPEATS), "--report", "run"])
    assert result.exit_code in (1, 3), result.output
    return project / "run"


@pytest.fixture(scope="module")
def lines(run: Path) -> list[Line]:
    """The lines of the run."""
    return [json.loads(line) for line in (run / "results.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def with_variants(lines: list[Line], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the run, with odd repeats as runs of a variant, in another order."""
    varied = [{**line, "variant": "brief" if line["repeat"] % 2 else None} for line in lines]
    random.Random(0).shuffle(varied)
    file = tmp_path_factory.mktemp("varied") / "results.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in varied), encoding="utf-8")
    return file


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _key(line: Line) -> tuple[str, str]:
    return line["id"], line["variant"] or ""


def _grouped(lines: Iterable[Line], key: Callable[[Line], Any]) -> dict[Any, list[Line]]:
    return {found: [*group] for found, group in groupby(sorted(lines, key=key), key)}


def _distinct(runs: list[Line]) -> list[bool]:
    """Return, for each distinct run of a scenario, True if it passed."""
    found = []
    for alike in _grouped(runs, lambda line: line["recording"] or 0).values():
        passed = [line["passed"] for line in alike]
        did = {
            json.dumps(
                [line[name] for name in ("verdict", "score", "status", "path", "output", "latency", "usage")]
            )
            for line in alike
        }
        found += passed if any(line["varies"] for line in alike) or len(did) > 1 else passed[:1]
    return found


def _wilson(passed: float, runs: float) -> list[float]:
    """Return the rates p for which (passed ÷ runs - p)² = z² p (1 - p) ÷ runs."""
    if not runs:
        return [0.0, 1.0]
    z2, rate = NormalDist().inv_cdf(0.975) ** 2, passed / runs
    a, b, c = 1 + z2 / runs, -(2 * rate + z2 / runs), rate**2
    root = math.sqrt(max(b * b - 4 * a * c, 0.0))
    return [(-b - root) / (2 * a), (-b + root) / (2 * a)]


def _clustered(scenarios: list[list[bool]]) -> list[float]:
    """Return Wilson's interval for as many runs as have the variance of the mean over scenarios."""
    n, runs = len(scenarios), sum(map(len, scenarios))
    shares = [fmean(each) for each in scenarios]
    if n < 2 or runs == n or set(shares) in ({0.0}, {1.0}):
        return _wilson(sum(scenarios[0]), runs) if n == 1 else _wilson(sum(shares), n)
    rate, of_mean = fmean(shares), variance(shares) / n
    as_many = (
        rate * (1 - rate) / of_mean * (NormalDist().inv_cdf(0.975) / student_quantile(0.975, n - 1)) ** 2
    )
    counted = min(max(as_many, n), runs)
    return _wilson(rate * counted, counted)


def _percentiles(values: list[float]) -> dict[str, Any]:
    if not values:
        return dict.fromkeys(("p50", "p90", "p95", "p99", "max"))
    cuts = quantiles([*values, *values[:1]] if len(values) == 1 else values, n=100, method="inclusive")
    return {f"p{share}": cuts[share - 1] for share in (50, 90, 95, 99)} | {"max": max(values)}


def _over_subsets(
    scenarios: list[list[bool]], constant: list[bool], k: int, holds: Callable[[Iterable[bool]], bool]
) -> float:
    """Return the mean, over scenarios with k runs, of the share of subsets of k runs for which `holds` is true.

    Scenarios that are constant have as many runs as are needed.
    """
    return fmean(
        fmean(map(holds, combinations(runs * k if same else runs, k)))
        for runs, same in zip(scenarios, constant, strict=True)
        if same or len(runs) >= k
    )


def _latencies(lines: list[Line]) -> list[float]:
    ran = [line for line in lines if line["verdict"] in ("passed", "failed") and line["status"] != "invalid"]
    return [line["latency"]["total"] for line in ran]


def _figures(lines: list[Line]) -> dict[str, Any]:
    """Return the figures of a group of runs."""
    verdicts = [line["verdict"] for line in lines]
    by_scenario = _grouped(lines, _key)
    judged = _grouped([line for line in lines if line["verdict"] != "skipped"], _key)
    distinct = [_distinct(runs) for runs in judged.values()]
    constant = [
        len(found) == 1 and runs[0]["recording"] is None and not runs[0]["varies"]
        for found, runs in zip(distinct, judged.values(), strict=True)
    ]
    count = sum(map(len, distinct))
    weights = [max(line["weight"] for line in runs) for runs in judged.values()]
    scores = [fmean(line["score"] for line in runs) for runs in judged.values()]
    models: dict[str, list[Any]] = {}
    for line in lines:
        for name, usage in line["usage"]["by_model"].items():
            models.setdefault(name, []).append(usage)
    most = max(map(len, distinct), default=0)
    ks = [k for k in (1, 2, 3) if k < most] + [most] * (most > 0)
    counted = ("llm_calls", "input_tokens", "output_tokens")
    total = {name: sum(line["usage"][name] for line in lines) for name in counted}
    by_model: dict[str, Any] = {}
    for name, used in models.items():
        costs = [usage["cost"] for usage in used]
        by_model[name] = {each: sum(usage[each] for usage in used) for each in counted}
        by_model[name]["cost"] = None if None in costs else math.fsum(costs)
    return {
        "runs": len(lines),
        "distinct_runs": count + verdicts.count("skipped"),
        "scenarios": len(by_scenario),
        "passed": verdicts.count("passed"),
        "failed": verdicts.count("failed"),
        "errors": verdicts.count("error"),
        "skipped": verdicts.count("skipped"),
        "pass_rate": fmean(map(fmean, distinct)) if count else None,
        "pass_rate_interval": _clustered(distinct),
        "fitness": sum(w * s for w, s in zip(weights, scores, strict=True)) / sum(weights) if count else None,
        "latency": _percentiles(_latencies(lines)),
        "wall": sum(line["wall"] for line in lines),
        "llm_calls": total["llm_calls"],
        "tokens": {
            "input": total["input_tokens"],
            "output": total["output_tokens"],
            "total": total["input_tokens"] + total["output_tokens"],
        },
        "cost": sum(line["usage"]["cost"] or 0 for line in lines),
        "models": by_model,
        "unpriced": sorted(name for name, model in by_model.items() if model["cost"] is None),
        "warnings": sum(len(line["warnings"]) for line in lines),
        "flaky": [
            {
                "id": key[0],
                "variant": key[1] or None,
                "passed": sum(line["passed"] for line in runs),
                "runs": len(runs),
            }
            for key, runs in judged.items()
            if len({line["verdict"] for line in runs}) > 1
        ],
        "pass_at_k": {str(k): _over_subsets(distinct, constant, k, any) for k in ks},
        "pass_hat_k": {str(k): _over_subsets(distinct, constant, k, all) for k in ks},
    }


def _coverage(lines: list[Line]) -> dict[str, Any]:
    """Return the coverage of each graph; no manifest of the run has two agents."""
    found: dict[str, Any] = {}
    for manifest, runs in _grouped(
        [line for line in lines if line["shape"]["nodes"]], lambda x: x["manifest"]
    ).items():
        found[manifest] = {}
        for part in ("nodes", "edges", "branches"):
            taken = {str(item) for line in runs for item in line["coverage"][part]}
            places = {
                str(item): (item, f"{manifest}:{place}" if isinstance(place, int) else place)
                for line in runs
                for item, place in zip(line["shape"][part], line["shape"]["lines"][part], strict=True)
            }
            missing = sorted(places.keys() - taken)
            found[manifest][part] = {
                "taken": len(taken),
                "all": len(places.keys() | taken),
                "missing": [places[name][0] for name in missing],
                "where": [places[name][1] for name in missing],
                "dynamic": sorted(taken - places.keys()),
            }
    return found


def _same(found: Any, by_hand: Any, place: str = "summary") -> None:
    if isinstance(by_hand, dict):
        assert found.keys() == by_hand.keys(), place
        for name in by_hand:
            _same(found[name], by_hand[name], f"{place}.{name}")
    elif isinstance(by_hand, float) or (
        isinstance(by_hand, list) and by_hand and isinstance(by_hand[0], float)
    ):
        assert found == pytest.approx(by_hand, rel=1e-12, abs=1e-12), place
    else:
        assert found == by_hand, place


@pytest.mark.parametrize("group", ["total", "suites", "tags", "dialects", "manifests"])
def test_figures_of_every_group_equal_the_recomputed_ones(group: str, run: Path, lines: list[Line]) -> None:
    _check_groups(_read(run / "summary.json"), group, lines)


@pytest.mark.parametrize("group", ["total", "suites", "tags", "dialects", "manifests", "variants"])
def test_figures_of_variants_equal_the_recomputed_ones_in_any_order_of_lines(
    group: str, with_variants: Path
) -> None:
    lines = [json.loads(line) for line in with_variants.read_text(encoding="utf-8").splitlines()]
    result = CliRunner().invoke(cli, ["summary", str(with_variants), "--json", "-"])
    _check_groups(json.loads(result.stdout), group, lines)


NAMES: dict[str, Callable[[Line], list[str]]] = {
    "suites": lambda line: [line["suite"]],
    "tags": lambda line: line["tags"],
    "dialects": lambda line: [line["dialect"]],
    "manifests": lambda line: [line["manifest"]],
    "variants": lambda line: [line["variant"]] if line["variant"] else [],
}


def _check_groups(summary: Any, group: str, lines: list[Line]) -> None:
    if group == "total":
        _same(summary["total"], _figures(lines))
        return
    parts: dict[str, list[Line]] = {}
    for line in lines:
        for name in NAMES[group](line):
            parts.setdefault(name, []).append(line)
    assert parts
    _same(summary[group], {name: _figures(part) for name, part in parts.items()})


def test_the_run_contains_every_kind_of_result(run: Path) -> None:
    summary = _read(run / "summary.json")
    total = summary["total"]
    assert total["passed"] > total["failed"] > 0
    assert (total["errors"], total["skipped"]) == (REPEATS, 1)
    assert total["distinct_runs"] < total["runs"]
    assert total["flaky"]
    assert len(summary["dialects"]) == 3
    assert total["unpriced"] == ["our-model"]
    assert total["cost"] > 0
    assert any(item for graph in summary["coverage"].values() for item in graph["branches"]["missing"])


def test_coverage_and_places_of_uncovered_parts_equal_the_recomputed_ones(
    run: Path, lines: list[Line]
) -> None:
    _same(_read(run / "summary.json")["coverage"], _coverage(lines))


def test_latency_by_node_and_by_scenario_equals_the_recomputed_one(run: Path, lines: list[Line]) -> None:
    summary = _read(run / "summary.json")
    ran = [line for line in lines if line["verdict"] in ("passed", "failed") and line["status"] != "invalid"]
    nodes: dict[str, dict[str, list[float]]] = {}
    for line in ran:
        for node, seconds in line["latency"]["nodes"].items():
            nodes.setdefault(line["manifest"], {}).setdefault(node, []).append(seconds)
    by_hand = {
        manifest: {node: {"runs": len(of), **_percentiles(of)} for node, of in by_node.items()}
        for manifest, by_node in nodes.items()
    }
    _same(summary["latency_by_node"], by_hand)
    [entry] = summary["latency_by_scenario"]  # only random faults change its latency
    of_scenario = _latencies([line for line in lines if line["id"] == entry["id"]])
    assert entry["id"].endswith("::it often waits, and is too late then")
    _same(entry, {"id": entry["id"], "variant": None, "runs": REPEATS, **_percentiles(of_scenario)})


def test_lists_of_the_summary_match_the_lines(run: Path, lines: list[Line]) -> None:
    summary = _read(run / "summary.json")
    bad = sorted((line["id"], line["repeat"]) for line in lines if line["verdict"] in ("failed", "error"))
    assert [(entry["id"], entry["repeat"]) for entry in summary["failures"]] == bad
    below = sorted((line["id"], line["repeat"]) for line in lines if line["passed"] and line["score"] < 1)
    assert [(entry["id"], entry["repeat"]) for entry in summary["losses"]] == below
    for warning in summary["warnings"]:
        ids = [line["id"] for line in lines for text in line["warnings"] if text == warning["text"]]
        assert (warning["times"], warning["scenarios"]) == (len(ids), len(set(ids)))
    assert sum(warning["times"] for warning in summary["warnings"]) == summary["total"]["warnings"]
    longest = {scenario: max(_latencies(runs), default=0) for scenario, runs in _grouped(lines, _key).items()}
    expected = sorted(longest.values(), reverse=True)[:5]
    assert [entry["latency"] for entry in summary["slowest"]] == expected
    assert set(summary["left_out"].values()) == {0}


def test_the_figures_in_report_html_are_those_of_summary_json(run: Path) -> None:
    page = (run / "report.html").read_text(encoding="utf-8")
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    found, written = json.loads(data), _read(run / "summary.json")
    embedded = found["summary"]
    assert embedded == {name: written[name] for name in embedded}
    for graph in found["manifests"]:
        assert graph["coverage"] == written["coverage"][graph["name"]]
        of_nodes = written["latency_by_node"][graph["name"]]
        assert {
            node["node"]: {name: node["all"][name] for name in of_nodes[node["node"]]}
            for node in graph["nodes"]
        } == of_nodes
    assert {"total", "suites", "tags", "dialects", "manifests", "variants", "slowest"} <= embedded.keys()


def test_lines_are_read_back_unchanged(run: Path, lines: list[Line]) -> None:
    assert [*read_lines(run)] == lines


def test_lines_of_several_runs_add_up_in_any_order(lines: list[Line]) -> None:
    chance, summaries = random.Random(1), []
    for _ in range(3):
        parts = [(line, name) for line in lines for name in ("monday", "tuesday")]
        chance.shuffle(parts)
        summary = Summary()
        for line, name in parts:
            summary.add(line, name)
        summaries.append(summary.as_json())
    assert summaries[0] == summaries[1] == summaries[2]
    assert summaries[0]["total"]["runs"] == 2 * len(lines)
