"""Which cassette a scenario has, and whether it is written: its name, the record mode that holds, the command."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from harness.errors import FormatError, Problem
from harness.recording.matching import Matcher
from harness.scenario.model import Scenario
from harness.settings import Projects, RecordMode, Settings, is_ci_machine
from harness.source.document import relative_path

WRITING: Final = (RecordMode.ONCE, RecordMode.NEW_EPISODES, RecordMode.ALL, RecordMode.REWRITE)
ONLY_MISSING: Final = (RecordMode.ONCE, RecordMode.NEW_EPISODES)
_VARIANTS: Final = "/variants/"


def mode_of(settings: Settings) -> RecordMode:
    """The record mode that holds. On a CI machine nothing that is missing is recorded, unless by `harness record`."""
    mode = settings.record_mode
    held_back = mode in ONLY_MISSING and not settings.record_in_ci and is_ci_machine()
    return RecordMode.NONE if held_back else mode


def cassette_name(scenario: Scenario, settings: Settings) -> str | None:
    """The cassette of a scenario; None when it has none. One that stands in a manifest has no other world.

    A variant has one of its own, below that of the scenario: what it asks is other than what the baseline asks.
    """
    name = _own_cassette(scenario, settings)
    variant = scenario.variation
    return f"{name}{_VARIANTS}{variant.name}" if name and variant and not variant.is_baseline else name


def base_of(name: str) -> str:
    """The cassette of the baseline, of one that a variant has; the same of another one."""
    return name.partition(_VARIANTS)[0]


def _own_cassette(scenario: Scenario, settings: Settings) -> str | None:
    if scenario.cassette is not None or not (settings.record or scenario.in_manifest):
        return scenario.cassette
    path = relative_path(scenario.file.resolve(), settings.project.resolve())
    suite = re.sub(r"(\.scenario)?\.ya?ml$", "", path)
    parts = [part for part in suite.split("/") if part != ".."]
    return "/".join(_slug(part) for part in [*parts, scenario.name])


def _slug(text: str) -> str:
    short = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]
    # Names that differ in what a folder cannot show have different folders all the same.
    return short if short == text else f"{short or 'x'}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def command_to_record(scenario: Scenario, *options: str) -> str:
    """What to type to record a scenario anew; as a variant, by the command that runs variants."""
    if scenario.variation is not None:
        return (
            f"the same command with --record-mode {'rewrite' if '--rewrite' in options else 'new_episodes'}"
        )
    return shlex.join(["harness", "record", *options, scenario.id])


def check_cassettes(scenarios: Iterable[Scenario], projects: Projects) -> None:
    """See that the settings are sound, and in modes that write that no two scenarios would write one cassette.

    Raises:
        FormatError: they are not, or there are such scenarios.
    """
    first: dict[Path, Scenario] = {}
    problems = []
    for scenario in scenarios:
        settings = projects.of(scenario.file)
        matcher_of(settings)
        name = cassette_name(scenario, settings)
        if name is None or scenario.skip is not None or mode_of(settings) not in WRITING:
            continue
        other = first.setdefault(settings.cassettes / name, scenario)
        if other is not scenario:
            text = (
                f"scenarios '{other.name}' and '{scenario.name}' cannot both record cassette '{name}': "
                "each needs one of its own"
            )
            problems.append(Problem("shared-cassette", text, scenario.span, f"the other is at {other.span}"))
    if problems:
        raise FormatError(problems)


def matcher_of(settings: Settings) -> Matcher:
    """What requests are compared by.

    Raises:
        FormatError: the setting cannot be used.
    """
    try:
        return Matcher(settings.cassette_ignore)
    except ValueError as error:
        raise FormatError(Problem("bad-settings", f"setting 'cassette_ignore': {error}")) from None
