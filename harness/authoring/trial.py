"""The trial of a scenario that is not written yet: it is loaded from its text, and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.authoring.writer import file_text
from harness.errors import FormatError
from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.settings import Settings, Traces
from harness.source.document import parse, shown_path

if TYPE_CHECKING:
    from harness.recording.human import Ask

Place = tuple[Path, str]
"""A file and the name of a scenario in it. Ids and chance of a run depend on them."""


def unwritten(
    file: Path, head: Mapping[str, Any], scenario: Mapping[str, Any], settings: Settings
) -> Scenario:
    """Return a scenario as if the file had it.

    Raises:
        SourceError: the scenario is not valid.
    """
    text = file_text(head, [scenario])
    document = parse(text, file=shown_path(file), yaml="1.2", error=FormatError)
    [found] = load_file(file, settings, document=document).scenarios
    return found


def run_trial(
    file: Path,
    head: Mapping[str, Any],
    scenario: Mapping[str, Any],
    settings: Settings,
    *,
    repeat: int = 1,
    place: Place | None = None,
    ask: Ask | None = None,
) -> list[Outcome]:
    """Run a scenario as if the file had it, and return the outcomes of its repeats, with their traces.

    Args:
        file: the file that it will be written to.
        head: the other keys of the file.
        scenario: the scenario, as written.
        settings: those of its project.
        repeat: the number of runs. The seed grows by one with each.
        place: where it runs, in place of the file.
        ask: asks a person, in a run with real systems.

    Raises:
        SourceError: the scenario is not valid.
    """
    found = unwritten(file, head, scenario, settings)
    if place is not None:
        found = replace(found, file=place[0], name=place[1])
    return run_scenario(replace(found, repeat=repeat), replace(settings, traces=Traces.ALL), ask=ask)
