"""Which mutants run: options, changed parts, samples, and results that are known. Source: docs/mutate.md."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.mutation import trial
from harness.mutation.mutant import Mutant
from harness.scenario.model import Scenario
from tests.mutation.conftest import AGENT, Invoke, Mutate

JOURNAL = Path(".harness/mutate/results.jsonl")


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("--operator", "rout"), 2, "'rout' is not one of 'route', 'node'"),
        (("--manifest", "other.yaml"), 2, "no manifest that the scenarios run matches 'other.yaml'"),
        (("missing.scenario.yaml",), 2, "no such file"),
        (("--sample", "3", "--time", "3"), 2, "mutually exclusive"),
        (("-k", "nothing"), 2, "no-scenarios"),
        (("--operator", "node", "--fail-under", "0.99"), 1, "is below 0.99"),
        (("--operator", "node", "--fail-under", "0.1"), 0, "score"),
    ],
)
def test_exit_codes_and_errors(invoke: Invoke, args: tuple[str, ...], code: int, told: str) -> None:
    done = invoke("mutate", *args)
    assert done.exit_code == code, done.output
    assert told in done.output


def test_a_folder_without_scenarios_is_an_error(invoke: Invoke) -> None:
    Path("desk.scenario.yaml").unlink()
    done = invoke("mutate")
    assert done.exit_code == 2
    assert "no-scenarios" in done.output


def test_a_sample_is_always_the_same_and_tells_what_it_leaves_out(mutate: Mutate) -> None:
    whole, sample = mutate(), mutate("--sample", "5", "--fresh")
    assert len(sample["mutants"]) == 5
    assert sample["left_out"] == len(whole["mutants"]) - 5
    assert [*sample["by_id"]] == [*mutate("--sample", "5")["by_id"]]


def test_time_ends_the_run_between_mutants(mutate: Mutate) -> None:
    assert mutate("--time", "0.000001", "--fresh")["left_out"] > 0


def test_only_what_changed_is_run_again(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    first = mutate()
    assert "results are known" in mutate()["output"]
    ran: list[str] = []
    real = trial.with_mutant

    def noting(scenario: Scenario, mutant: Mutant, seconds: float) -> Scenario:
        ran.append(mutant.id)
        return real(scenario, mutant, seconds)

    monkeypatch.setattr(trial, "with_mutant", noting)
    assert mutate()["mutants"] == first["mutants"]
    assert ran == []
    Path("desk.yaml").write_text(AGENT.replace("A ticket is open.", "The ticket is open."))
    mutate()
    assert ran


def test_a_killed_run_goes_on_where_it_was(mutate: Mutate) -> None:
    whole = mutate()["mutants"]
    lines = JOURNAL.read_bytes().splitlines(keepends=True)
    JOURNAL.write_bytes(b"".join(lines[:7]) + lines[7][: len(lines[7]) // 2])
    again = mutate()
    assert "7 results are known" in again["output"]
    assert again["mutants"] == whole


def test_ids_are_stable_when_lines_move(mutate: Mutate) -> None:
    before = mutate()["by_id"]
    Path("desk.yaml").write_text("# a comment\n" + AGENT.replace("      nodes:\n", "\n      nodes:\n"))
    assert {*mutate()["by_id"]} == {*before}


def test_changed_mutates_only_parts_that_a_diff_touches(mutate: Mutate, invoke: Invoke) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for args in (["init", "-q"], ["add", "-A"], [*settings, "commit", "-qm", "one"]):
        subprocess.run(["git", *args], check=True)
    done = invoke("mutate", "--changed")
    assert done.exit_code == 0
    assert "0 mutants" in done.output
    Path("desk.yaml").write_text(AGENT.replace("A ticket is open.", "The ticket is open."))
    found = mutate("--changed")["by_id"]
    assert found
    assert all("ticket" in id_ for id_ in found)


def test_survivors_in_changed_lines_are_annotated(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for args in (["init", "-q"], ["add", "-A"], [*settings, "commit", "-qm", "one"]):
        subprocess.run(["git", *args], check=True)
    Path("desk.yaml").write_text(AGENT.replace("A ticket is open.", "The ticket is open."))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = invoke("mutate", "--changed")
    assert "::warning file=desk.yaml,line=" in done.output


def test_json_goes_to_standard_output_alone(invoke: Invoke) -> None:
    done = invoke("mutate", "--operator", "node", "--json", "-")
    assert json.loads(done.stdout)["format"] == "harness-mutate/1"
