"""The report folder keeps the last complete run during incomplete ones."""

from pathlib import Path

from harness.report.reading import read_lines
from harness.report.results import ResultsWriter
from harness.report.traces import last_whole_run
from tests.report.fixtures import MakeOutcome


def run(folder: Path, outcome: MakeOutcome, seed: int, incomplete: str = "") -> None:
    with ResultsWriter(folder) as results:
        results.add(outcome(seed=seed))
        results.finish(incomplete)


def seed_of(folder: Path | None) -> int:
    assert folder is not None
    [line] = read_lines(folder)
    seed: int = line["seed"]
    return seed


def test_no_complete_run_before_the_first(tmp_path: Path, outcome: MakeOutcome) -> None:
    assert last_whole_run(tmp_path / "nowhere") is None
    run(tmp_path, outcome, 1, "interrupted")
    assert last_whole_run(tmp_path) is None


def test_complete_run_is_the_last_complete_run(tmp_path: Path, outcome: MakeOutcome) -> None:
    for seed in (1, 2):
        run(tmp_path, outcome, seed)
        assert last_whole_run(tmp_path) == tmp_path
        assert seed_of(tmp_path) == seed


def test_incomplete_runs_keep_the_last_complete_run(tmp_path: Path, outcome: MakeOutcome) -> None:
    run(tmp_path, outcome, 1)
    for seed in (2, 3):
        run(tmp_path, outcome, seed, "interrupted")
        assert (seed_of(tmp_path), seed_of(last_whole_run(tmp_path))) == (seed, 1)


def test_run_in_progress_keeps_the_last_complete_run(tmp_path: Path, outcome: MakeOutcome) -> None:
    run(tmp_path, outcome, 1)
    with ResultsWriter(tmp_path) as under_way:
        under_way.add(outcome(seed=2))
        assert seed_of(last_whole_run(tmp_path)) == 1


def test_unrelated_files_are_kept(tmp_path: Path, outcome: MakeOutcome) -> None:
    run(tmp_path, outcome, 1)
    run(tmp_path, outcome, 2, "interrupted")
    (tmp_path / "last-whole/notes.txt").write_text("mine")
    run(tmp_path, outcome, 3)
    assert seed_of(last_whole_run(tmp_path)) == 3
    assert [path.name for path in (tmp_path / "last-whole").iterdir()] == ["notes.txt"]


def test_unreadable_summary_is_not_a_complete_run(tmp_path: Path, outcome: MakeOutcome) -> None:
    run(tmp_path, outcome, 1)
    (tmp_path / "summary.json").write_text("{")
    assert last_whole_run(tmp_path) is None
    run(tmp_path, outcome, 2)
    assert seed_of(last_whole_run(tmp_path)) == 2
