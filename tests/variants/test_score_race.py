"""`harness score --race`, and continuing an interrupted scoring. Source: docs/variants.md."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli
from harness.report.scenario_runs import read_run
from harness.report.summary import Summary
from harness.scenario import run as running
from harness.variants.comparison import compare
from harness.variants.independence import SAME_AS_BASELINE
from harness.variants.race import EarlyStop, Race
from tests.gate.runs import RunSpec, write_lines
from tests.variants.test_score import SCENARIOS, TUTORIAL

VARIANTS = """\
harness: 1
variants:
  - {name: rude, prompts: {answer: Say PLEASE.}}
  - {name: same, prompts: {answer: Say it.}}
"""

Score = Callable[..., Result]


@pytest.fixture
def score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Score:
    """A function that scores a variant that fails where the baseline passes, and an equal one.

    A race is decided after 15 questions; there are 20, and 6 without a race.
    """
    monkeypatch.chdir(tmp_path)
    Path("variants.yaml").write_text(VARIANTS)
    keys = {"manifest": TUTORIAL / "agents/triage.yaml", "polite": "Go away.", "latency": 0}

    def run(*options: str, expected: str = "nine") -> Result:
        cases = ", ".join(f"{{q: q{number}}}" for number in range(20 if "--race" in options else 6))
        Path("a.scenario.yaml").write_text(SCENARIOS.format(cases=cases, expected=expected, **keys))
        arguments = ["score", "a.scenario.yaml", "--variants", "variants.yaml", "--report", "out", *options]
        return CliRunner().invoke(cli, arguments)

    return run


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, type[BaseException]], None]:
    """A function that makes a process end after it has started this many scenarios; later processes run as usual."""
    original = running.outcomes

    def after(scenarios: int, error: type[BaseException]) -> None:
        left = iter(range(scenarios))

        def outcomes(*args: Any, **options: Any) -> Iterator[Any]:
            if next(left, None) is None:
                monkeypatch.setattr(running, "outcomes", original)
                raise error
            return original(*args, **options)

        monkeypatch.setattr(running, "outcomes", outcomes)

    return after


class Killed(Exception):
    """An exception that ends the command, whatever it catches."""


def written() -> tuple[Any, list[Any], set[str]]:
    """Return score.json, the results without real times, and the files beside them."""
    lines = [json.loads(line) for line in Path("out/results.jsonl").read_text().splitlines()]
    files = {path.name for path in Path("out").rglob("*") if path.is_file()}
    return (
        json.loads(Path("out/score.json").read_text()),
        [{**line, "wall": None} for line in lines],
        files,
    )


def of(name: str) -> dict[str, Any]:
    (found,) = [each for each in written()[0]["variants"] if each["name"] == name]
    assert isinstance(found, dict)
    return found


def test_a_variant_that_is_beaten_is_stopped_and_the_others_run_on(score: Score) -> None:
    result = score("--race")
    assert result.exit_code == 0, result.output
    rude = of("rude")
    assert rude["race"]["by"] in ("baseline", "same")
    assert (rude["runs"], rude["race"]["scenarios"]) == (15, 15)
    assert rude["race"]["p"] <= 0.025
    assert rude["difference"]["verdict"] == "worse"
    assert rude["stopped"].startswith("stopped after 15 scenarios: beaten by ")
    assert rude["stopped"] in result.output
    assert (of("same")["runs"], of("same")["race"], of("same")["stopped"]) == (20, None, None)
    assert of("same")["difference"]["verdict"] == "no evidence"
    assert "rude" not in written()[0]["pareto"]
    assert "stopped after 15 scenarios" in Path("out/report.html").read_text()
    assert "(--race): 55 of 60 runs" in json.loads(Path("out/summary.json").read_text())["reason"]


def test_a_variant_that_cannot_differ_keeps_its_note_when_a_race_stops_it(tmp_path: Path) -> None:
    said = {"now": RunSpec(score=1.0, variant="now"), "same": RunSpec(score=0.5, variant="same")}
    folders = [write_lines(tmp_path / name, {"one": each}) for name, each in said.items()]
    (tmp_path / "results.jsonl").write_text("".join((each / "results.jsonl").read_text() for each in folders))
    summary = Summary()
    run = read_run(tmp_path / "results.jsonl", [summary.add])
    race = Race(["now", "same"])
    race.stopped["same"] = EarlyStop(5, "now", 0.01)

    score = compare(
        run, summary.as_json()["variants"], ["now", "same"], {}, {"now": "", "same": SAME_AS_BASELINE}, race
    )

    same = score.variants[1]
    assert (same.verdict, same.stopped) == (None, race.stopped["same"])
    assert same.why == f"differs for other reasons: {SAME_AS_BASELINE}"


def test_the_same_race_comes_out_every_time_and_in_several_processes(score: Score) -> None:
    score("--race")
    first = written()
    score("--race", "-j", "2")
    assert written() == first


def test_without_a_race_all_runs_are_made(score: Score) -> None:
    score()
    assert (of("rude")["runs"], of("rude")["stopped"]) == (6, None)


@pytest.mark.parametrize(
    ("error", "options", "begun"), [(KeyboardInterrupt, (), (5, 8)), (Killed, ("--race",), (17, 21))]
)
def test_an_interrupted_scoring_goes_on_and_ends_as_if_nothing_had_been(
    score: Score,
    interrupted: Callable[[int, type[BaseException]], None],
    error: type[BaseException],
    options: tuple[str, ...],
    begun: tuple[int, int],
) -> None:
    score(*options)
    whole = written()
    for runs in begun:
        interrupted(runs, error)
        score(*options)
    result = score(*options)
    assert f"{sum(begun)} runs taken over from the scoring that was interrupted" in result.output
    assert result.exit_code == 0
    assert written() == whole


def test_what_was_cut_off_is_run_again(
    score: Score, interrupted: Callable[[int, type[BaseException]], None]
) -> None:
    score()
    whole = written()
    interrupted(10, Killed)
    score()
    results = Path("out/results.jsonl")
    results.write_bytes(results.read_bytes()[:-100])
    Path("out/summary.json").unlink()
    assert "9 runs taken over" in score("-j", "2").output
    assert written() == whole


def test_what_has_changed_since_is_run_again(
    score: Score, interrupted: Callable[[int, type[BaseException]], None]
) -> None:
    interrupted(15, KeyboardInterrupt)
    result = score()
    assert result.exit_code == 3
    assert "run the same command again" in result.output
    Path("variants.yaml").write_text(VARIANTS.replace("Say it.", "Say it now."))
    assert "12 runs taken over" in score().output


def test_a_changed_scenario_file_or_another_number_of_repeats_takes_nothing_over(
    score: Score, interrupted: Callable[[int, type[BaseException]], None]
) -> None:
    interrupted(5, KeyboardInterrupt)
    score()
    assert "taken over" not in score("--repeat", "2").output
    interrupted(5, KeyboardInterrupt)
    score()
    assert "taken over" not in score(expected="Nine").output


def test_fresh_starts_anew_and_so_does_what_had_ended(
    score: Score, interrupted: Callable[[int, type[BaseException]], None]
) -> None:
    interrupted(5, KeyboardInterrupt)
    score()
    assert "taken over" not in score("--fresh").output
    assert "taken over" not in score().output


def test_a_folder_that_another_scoring_writes_to_is_left_alone(
    score: Score, interrupted: Callable[[int, type[BaseException]], None]
) -> None:
    interrupted(5, Killed)
    score()
    before = sorted(Path("out").iterdir()), Path("out/scoring.json").read_bytes()
    with Path("out/results.jsonl").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = score()
    assert result.exit_code == 2
    assert "another run is writing" in result.output
    assert (sorted(Path("out").iterdir()), Path("out/scoring.json").read_bytes()) == before


def test_damaged_results_are_no_results_until_it_starts_anew(
    score: Score, interrupted: Callable[[int, type[BaseException]], None]
) -> None:
    interrupted(5, Killed)
    score()
    results = Path("out/results.jsonl")
    results.write_bytes(b"{}\n" + results.read_bytes())
    for _ in range(2):
        result = score()
        assert result.exit_code == 2
        assert "--fresh starts anew" in result.output
    assert score("--fresh").exit_code == 0
    Path("out/scoring.json").write_bytes(b"\xff\x00")
    assert score().exit_code == 0
