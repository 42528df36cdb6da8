"""report.html of an evolution, written from the files of a search."""

import html
import re
from pathlib import Path
from typing import Any

import pytest

from harness.report.html import evolution as module
from harness.report.html.evolution import write_evolution
from tests.report.html.conftest import HOSTILE

PROMPT = "Answer the customer's question in one sentence."


def genome(name: str, generation: int, parents: list[str], fitness: float, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "generation": generation,
        "parents": parents,
        "origin": "mutation" if parents else "baseline",
        "changes": [f"answer.prompt: changed in {name}"] if parents else [],
        "fitness": fitness,
        "prompts": {},
        "temperatures": {},
        "tools": {},
        "scores": {"a": fitness, "b": 0.5},
        "failures": [],
        "calls": 2,
        "cost": 0.0,
        **more,
    }


GENOMES = [
    genome("g0", 0, [], 0.4),
    genome("g1", 0, ["g0"], 0.5),
    genome("g2", 0, ["g0"], 0.3),
    genome(
        "g3", 1, ["g1", "g0"], 0.8, origin="crossover",
        prompts={"answer.prompt": "Answer the customer's question kindly in one sentence."},
        temperatures={"answer": 0.4}, tools={"answer": ["look_up"]},
    ),
]  # fmt: skip
CONFIRMED = {
    "scenarios": 12,
    "baseline": 0.4,
    "winner": 0.7,
    "difference": {"fitness": 0.3, "low": 0.1, "high": 0.5, "p": 0.01, "verdict": "better"},
    "verdict": "better",
    "note": None,
}
SEARCH: dict[str, Any] = {
    "format": "harness-evolution/1",
    "manifest": "agents/triage.yaml",
    "seed": 7,
    "config": {},
    "training": ["a", "b"],
    "holdout": ["c"],
    "generations": [
        {
            "number": 0, "population": ["g0", "g1", "g2"], "best": "g1",
            "fitness": {"best": 0.5, "mean": 0.4, "worst": 0.3},
        },
        {
            "number": 1, "population": ["g1", "g3"], "best": "g3",
            "fitness": {"best": 0.8, "mean": 0.65, "worst": 0.5},
        },
    ],
    "stopped": "generations",
    "spent": {"calls": 8, "cost": 0.02},
    "winner": "g3",
    "confirmation": CONFIRMED,
    "prompts": {"answer.prompt": PROMPT},
    "temperatures": {"answer": 0.7},
    "tools": {},
    "mutator": None,
}  # fmt: skip


def evolution(folder: Path, genomes: list[dict[str, Any]] | None = None, **more: Any) -> Path:
    """Write the page of these genomes."""
    return write_evolution(folder, {**SEARCH, **more}, GENOMES if genomes is None else genomes)


def headline(page: Path) -> str:
    [found] = re.findall(r"<h1[^>]*>(.*?)</h1>", page.read_text(), re.S)
    return html.unescape(found)


def section(page: Path, label: str) -> str:
    """Return the text of a section of the page."""
    [found] = re.findall(
        rf'<section class="card" aria-label="{label}">(.*?)</section>', page.read_text(), re.S
    )
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found)).split())


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("better", "g3 is better than the manifest on 12 held-out scenarios."),
        ("worse", "g3 is worse than the manifest on 12 held-out scenarios."),
        ("no evidence", "g3 is not shown to be better than the manifest on 12 held-out scenarios."),
        (None, "g3 is not shown to be better than the manifest on 12 held-out scenarios."),
    ],
)
def test_only_a_winner_confirmed_on_held_out_scenarios_is_called_better(
    tmp_path: Path, verdict: str | None, said: str
) -> None:
    assert headline(evolution(tmp_path, confirmation=CONFIRMED | {"verdict": verdict})) == said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"confirmation": None}, "g3 is the best of 4 genomes, and not confirmed."),
        ({"winner": "g0"}, "Nothing better than the manifest was found."),
        ({"winner": None}, "Nothing better than the manifest was found."),
        ({"stopped": None, "winner": None}, "The search has not ended: 4 genomes so far."),
    ],
)
def test_headline_of_a_search_without_a_confirmed_winner(
    tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    assert headline(evolution(tmp_path, **more)) == said


def test_confirmation_shows_its_figures(tmp_path: Path) -> None:
    said = section(evolution(tmp_path), "Confirmation")
    assert "better than the manifest p 0.010" in said
    assert "manifest 0.400 winner 0.700" in said
    assert "+0.300 (+0.100 to +0.500)" in said
    assert "training 2 scenarios held out 1 scenario" in said


def test_fitness_is_drawn_by_generation_and_listed(tmp_path: Path) -> None:
    page = evolution(tmp_path)
    [said] = re.findall(r'aria-label="(Fitness by generation: .*?)"', page.read_text())
    assert said.startswith("Fitness by generation: best 0.500 at first, 0.800 at last; mean 0.400 at first")
    assert "2 g3 0.800 0.650 0.500 2" in section(page, "Fitness by generation")


def test_prompts_of_the_winner_are_compared_with_the_manifest_word_by_word(tmp_path: Path) -> None:
    page = evolution(tmp_path)
    assert "Answer the customer&#39;s question <ins>kindly </ins>in one sentence." in page.read_text()
    said = section(page, "Changes of the winner")
    assert "temperature of answer 0.7 0.4" in said
    assert "tools of answer as in the manifest look_up" in said


def test_files_beside_the_page_are_listed_if_they_exist(tmp_path: Path) -> None:
    (tmp_path / "winner.yaml").write_text("harness: 1\n")
    said = section(evolution(tmp_path), "Changes of the winner")
    assert "Beside this page: winner.yaml , the winner as a variants file" in said
    assert "winner.patch" not in said


def test_prompt_with_unknown_text_in_the_manifest_is_shown_in_full_with_a_note(tmp_path: Path) -> None:
    said = section(evolution(tmp_path, prompts={}), "Changes of the winner")
    assert "The files of the search do not contain the text of the manifest" in said
    assert "question kindly in one sentence." in said


def test_ancestors_of_the_winner_are_drawn_and_listed_with_their_changes(tmp_path: Path) -> None:
    page = evolution(tmp_path)
    said = section(page, "Ancestors of the winner")
    assert "Ancestors of the winner: 3" in said
    assert "g3 generation 2, crossover of g1 and g0 fitness 0.800 answer.prompt: changed in g3" in said
    drawn = re.findall(r'<text class="name".*?>(.*?)</text>', page.read_text())
    assert sorted(drawn) == ["g0", "g1", "g3"]  # and not g2, which died out


def test_with_many_ancestors_only_the_line_of_first_parents_is_drawn(tmp_path: Path) -> None:
    many = [genome("g0", 0, [], 0.1), genome("h0", 0, [], 0.1)]
    for at in range(1, 40):
        many += [
            genome(f"g{at}", at, [f"g{at - 1}", f"h{at - 1}"], 0.2),
            genome(f"h{at}", at, [f"h{at - 1}", f"g{at - 1}"], 0.2),
        ]
    page = evolution(tmp_path, many, winner="g39")
    drawn = re.findall(r'<text class="name".*?>(.*?)</text>', page.read_text())
    assert len(drawn) == 24
    assert all(name.startswith("g") for name in drawn)
    assert "The picture shows 24 of them" in section(page, "Ancestors of the winner")


def test_genome_table_is_bounded_and_shows_the_number_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(f"{name} " in section(evolution(tmp_path), "Genomes") for name in ("g0", "g1", "g2", "g3"))
    monkeypatch.setattr(module, "MAX_GENOMES", 3)
    said = section(evolution(tmp_path), "Genomes")
    assert "Genomes: 4 1 genome of low fitness is left out" in said
    assert " g2 " not in said


def test_failures_of_a_genome_and_requests_to_the_mutator_are_shown(tmp_path: Path) -> None:
    genomes = [*GENOMES[:-1], GENOMES[-1] | {"failures": [f"output: says no {at}" for at in range(7)]}]
    page = evolution(tmp_path, genomes, mutator={"asked": 9, "refused": 2})
    assert "failures, 7 messages output: says no 0" in section(page, "Genomes")
    assert "and 2 more, in genomes.jsonl" in section(page, "Genomes")
    assert "9 questions to the mutator, 2 of its answers refused" in page.read_text()


def test_training_scenarios_with_another_score_are_listed(tmp_path: Path) -> None:
    said = section(evolution(tmp_path), "Training scenarios that changed")
    assert "with another score: 1" in said
    assert "a 0.400 0.800 ▲ better" in said


def test_cyclic_and_unknown_parents_are_tolerated(tmp_path: Path) -> None:
    ring = [genome("a", 1, ["b"], 0.5), genome("b", 0, ["a", "gone"], 0.5)]
    assert "Ancestors of the winner: 2" in section(
        evolution(tmp_path, ring, winner="a"), "Ancestors of the winner"
    )


def test_text_of_models_is_escaped(page: Any, tmp_path: Path) -> None:
    bad = {
        "changes": [HOSTILE],
        "prompts": {HOSTILE: HOSTILE, "answer.prompt": HOSTILE},
        "tools": {HOSTILE: [HOSTILE]},
        "scores": {HOSTILE: 1.0},
    }
    genomes = [genome("g0", 0, [], 0.4, scores={HOSTILE: 0.0}), genome(HOSTILE, 1, ["g0"], 0.8, **bad)]
    more = {"winner": HOSTILE, "manifest": HOSTILE, "stopped": HOSTILE}
    page.goto(evolution(tmp_path, genomes, confirmation=CONFIRMED | {"note": HOSTILE}, **more).as_uri())
    assert page.locator("script, img").count() == 0
    assert page.title().startswith("</script>")
