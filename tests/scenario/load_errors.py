"""The problems of a scenario file, in a form for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import FormatError, Problem
from harness.scenario.load import load_file


def problems(file: Path, text: str) -> tuple[Problem, ...]:
    file.write_text(text)
    with pytest.raises(FormatError) as caught:
        load_file(file)
    return caught.value.problems


def told(file: Path, text: str) -> list[str]:
    return [f"{p.span.line}:{p.span.column} {p.message}|{p.hint}" for p in problems(file, text) if p.span]


def in_scenario(file: Path, keys: str) -> list[str]:
    """Return the problems of `keys` of a scenario, which begin at line 5, column 1."""
    return told(file, f"harness: 1\nmanifest: m.yaml\nscenarios: [{{name: x,\n\n{keys}}}]")
