import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FormatError
from harness.gate.judge import judge
from harness.gate.policy import Policy, Rules
from harness.report.baseline_file import baseline_of, baseline_text, read_baseline
from harness.report.scenario_runs import read_run
from tests.gate.runs import RunSpec, write_run

RUN = {
    "x": RunSpec(["passed", "failed"], repeats=2, latency=[1.0, 2.5], failed={"path": "was b"}, varies=True),
    "y": RunSpec(cost=None, tags=["billing"], weight=2.0),
    "z": RunSpec("error", variant="terse"),
    "s": RunSpec("skipped"),
}


def test_a_baseline_says_what_the_run_says(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", RUN))
    (tmp_path / "base.json").write_text(baseline_text(run), encoding="utf-8")

    read = read_baseline(tmp_path / "base.json")

    assert read.coverage == run.coverage
    assert read.scenarios.keys() == run.scenarios.keys()
    for key, scenario in read.scenarios.items():
        assert scenario.repeats == run.scenarios[key].repeats
        for field in ("id", "variant", "suite", "manifest", "tags", "weight", "varies", "strictness"):
            assert getattr(scenario, field) == getattr(run.scenarios[key], field)
        assert list(scenario.failed) == list(run.scenarios[key].failed)


def test_it_has_a_scenario_a_line_and_does_not_depend_on_their_order(tmp_path: Path) -> None:
    text = baseline_text(read_run(write_run(tmp_path / "run", RUN)))

    assert text == baseline_text(read_run(write_run(tmp_path / "other", RUN, backwards=True)))
    assert str(tmp_path) not in text
    assert [line.strip()[:27] for line in text.splitlines()[2:5]] == [
        '"scenarios": [',
        '{"id":"a.scenario.yaml::s",',
        '{"id":"a.scenario.yaml::x",',
    ]


def test_a_run_with_files_that_could_not_be_read_makes_none(tmp_path: Path) -> None:
    run = read_run(
        write_run(tmp_path / "run", {"x": RunSpec(), "(file)": RunSpec("error", suite="b.scenario.yaml")})
    )

    with pytest.raises(FormatError, match=r"the scenarios of b\.scenario\.yaml could not be read"):
        baseline_text(run)


def test_a_run_of_results_is_a_baseline_too(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", RUN)

    assert read_baseline(folder).scenarios == read_run(folder).scenarios


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format": "harness-baseline/9"},
            "expected the format harness-baseline/1, found 'harness-baseline/9'",
        ),
        ({"scenarios": []}, "it has no scenarios"),
        ({"scenarios": None}, "is not a baseline, or is damaged"),
        ({"coverage": {"triage.yaml": {"nodes": [1, 2]}}}, "no 'edges'"),
        ({"scenarios": [{"id": "a::b"}]}, "scenario 1: no 'verdict'"),
        ({"score": 3}, "score cannot be 3"),
        ({"score": float("nan")}, "score cannot be nan"),
        ({"verdict": "fine"}, "verdict 'fine'"),
        ({"latency": -1}, "latency cannot be -1"),
        ({"checks": {"path": "much"}}, "checks cannot have 'much'"),
        ({"bounds": {"latency.nodes.a": True}}, "bounds cannot have True"),
        ({"tokens": "many"}, "tokens cannot be 'many'"),
        ({"colour": "red"}, "1 field of 'a.scenario.yaml::s' cannot be: colour"),
    ],
)
def test_a_damaged_baseline_is_told(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    document = json.loads(baseline_text(read_run(write_run(tmp_path / "run", RUN))))
    of_scenario = not change.keys() & document.keys()
    (document["scenarios"][0] if of_scenario else document).update(change)
    (tmp_path / "base.json").write_text(json.dumps(document), encoding="utf-8")

    with pytest.raises(FormatError) as refused:
        read_baseline(tmp_path / "base.json")

    assert refused.value.code == "baseline-damaged"
    assert message in str(refused.value)


def test_figures_that_do_not_fit_their_runs_are_told(tmp_path: Path) -> None:
    text = baseline_text(read_run(write_run(tmp_path / "run", RUN)))
    (tmp_path / "base.json").write_text(text.replace('"latency":1.75', '"latency":9.0'), encoding="utf-8")

    with pytest.raises(FormatError, match="cannot be: latency"):
        read_baseline(tmp_path / "base.json")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[1]", b"[" * 100_000, b"harness: 1\n"])
def test_a_file_of_something_else_is_no_baseline(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "base.json").write_bytes(content)

    with pytest.raises(FormatError, match="is not a baseline, or is damaged"):
        read_baseline(tmp_path / "base.json")


def test_a_baseline_that_is_missing_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "baseline.json").touch()

    with pytest.raises(FormatError, match=r"did you mean '.*/baseline.json'") as refused:
        read_baseline(tmp_path / "basline.json")

    assert refused.value.code == "baseline-missing"


def test_a_baseline_of_several_runs_has_the_repeats_of_all_of_what_varies(tmp_path: Path) -> None:
    runs = [
        read_run(
            write_run(
                tmp_path / f"run {score}",
                {
                    "x": RunSpec(["passed", "failed"], score=[score, 0.0], repeats=2, varies=True),
                    "y": RunSpec(),
                },
            )
        )
        for score in (1.0, 0.4)
    ]
    (tmp_path / "base.json").write_text(baseline_text(baseline_of(runs)), encoding="utf-8")

    read = {
        key[0].partition("::")[2]: each
        for key, each in read_baseline(tmp_path / "base.json").scenarios.items()
    }

    assert [repeat.score for repeat in read["x"].repeats.values()] == [1.0, 0.0, 0.4, 0.0]
    assert read["x"].score == pytest.approx(0.35)
    assert len(read["y"].repeats) == 1


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"x": RunSpec()}, "1 scenario only in one of them: a.scenario.yaml::y"),
        ({"x": RunSpec(), "y": RunSpec("failed")}, "1 scenario changed between them: a.scenario.yaml::y"),
    ],
)
def test_runs_of_different_agents_make_no_baseline(
    tmp_path: Path, other: dict[str, RunSpec], message: str
) -> None:
    runs = [
        read_run(write_run(tmp_path / name, specs))
        for name, specs in (("one", {"x": RunSpec(), "y": RunSpec()}), ("other", other))
    ]
    with pytest.raises(FormatError, match=message):
        baseline_of(runs)


def test_what_varies_is_compared_with_the_mean_of_the_runs_of_the_baseline(tmp_path: Path) -> None:
    def specs(score: float) -> dict[str, RunSpec]:
        return {f"s{n}": RunSpec(score=score, varies=True) for n in range(8)}

    runs = [read_run(write_run(tmp_path / str(score), specs(score))) for score in (1.0, 0.5)]
    (tmp_path / "base.json").write_text(baseline_text(baseline_of(runs)), encoding="utf-8")

    now = write_run(tmp_path / "now", specs(0.75))
    [ruling] = judge(now, Policy(Rules(max_fitness_drop=0.0)), tmp_path / "base.json").rulings

    assert (ruling.actual, ruling.note) == (0.0, "")
