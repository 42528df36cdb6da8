"""A variant that is better by ten points, among five, is found with as many scenarios as the score asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from tests.manifests import HELPER

MANIFEST = f"""\
manifest_version: 1
prompts: [{{id: answer, version: "1.0.0", instructions: As the baseline.}}]
{HELPER}"""
NAMES = ("baseline", "planted", "b", "c", "d", "e")
WORDS = ("north", "east", "south", "west")
SCENARIOS = """\
harness: 1
manifest: agent.yaml
scenarios:
  - name: ask
    cases: cases.jsonl
    input: Which way?
    llm:
      answer: [STUBS]
    allow_unused: true
    expect:
      checks: [CHECKS]
""".replace("CHECKS", ", ".join(f"{{that: 'output.contains(\"{word}\")'}}" for word in WORDS)).replace(
    "STUBS",
    ", ".join(
        f'{{when: \'request.messages[0].content == "As the {name}."\', reply: "${{case.{name}}}"}}'
        for name in NAMES
    ),
)
VARIANTS = "harness: 1\nvariants:\n" + "".join(
    f"  - {{name: {name}, prompts: {{answer: As the {name}.}}}}\n" for name in NAMES[1:]
)


def rows(draw: np.random.Generator, count: int, first: int = 0) -> list[str]:
    """Return cases in which the baseline says 60 % of the words, the planted variant 70 %, and the others 60 %.

    A variant says another word than the baseline in a fifth of the places.
    """
    found = []
    for number in range(count):
        said = draw.random(len(WORDS)) < 0.6
        row = {"name": f"{first + number}"}
        for name in NAMES:
            gained, lost = {"baseline": (0.0, 0.0), "planted": (0.375, 1 / 12)}.get(name, (0.25, 1 / 6))
            moved = draw.random(len(WORDS))
            now = np.where(said, moved >= lost, moved < gained)
            row[name] = " ".join(word for word, is_said in zip(WORDS, now, strict=True) if is_said) or "?"
        found.append(json.dumps(row))
    return found


def scored(cases: list[str]) -> dict[str, Any]:
    Path("cases.jsonl").write_text("\n".join(cases) + "\n", encoding="utf-8")
    done = CliRunner().invoke(
        cli, ["score", "ask.scenario.yaml", "--variants", "variants.yaml", "--json", "-"]
    )
    assert done.exit_code == 0, done.output
    read: dict[str, Any] = json.loads(done.stdout)
    return {each["name"]: each["difference"] for each in read["variants"]}


def test_a_planted_variant_is_found_with_as_many_scenarios_as_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tests/statistics/test_sample_size.py tests the law with many samples; this tests the command with one."""
    monkeypatch.chdir(tmp_path)
    Path("agent.yaml").write_text(MANIFEST, encoding="utf-8")
    Path("ask.scenario.yaml").write_text(SCENARIOS, encoding="utf-8")
    Path("variants.yaml").write_text(VARIANTS, encoding="utf-8")
    draw = np.random.default_rng(21)

    pilot = rows(draw, 20)
    before = scored(pilot)
    assert {each["verdict"] for each in before.values() if each} == {"no evidence"}
    asked = before["planted"]["needed"]
    assert 5 <= asked <= 80

    after = scored(pilot + rows(draw, asked, len(pilot)))
    assert after["planted"]["verdict"] == "better"
    assert {after[name]["verdict"] for name in "bcde"} == {"no evidence"}
