"""Selection of a scenario's cassette: its name, the effective record mode, and the command that records it."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from harness.errors import FormatError, Problem, Span
from harness.recording.matching import Matcher
from harness.recording.names import name_error
from harness.scenario.model import Scenario
from harness.settings import Projects, RecordMode, Settings, is_ci_machine
from harness.source.document import relative_path

WRITING: Final = (RecordMode.ONCE, RecordMode.NEW_EPISODES, RecordMode.ALL, RecordMode.REWRITE)
ONLY_MISSING: Final = (RecordMode.ONCE, RecordMode.NEW_EPISODES)
_CASES: Final = "/cases/"
_VARIANTS: Final = "/variants/"


def effective_record_mode(settings: Settings) -> RecordMode:
    """Return the effective record mode. On a CI machine only `harness record` records what is missing."""
    mode = settings.record_mode
    held_back = mode in ONLY_MISSING and not settings.record_in_ci and is_ci_machine()
    return RecordMode.NONE if held_back else mode


def cassette_name(scenario: Scenario, settings: Settings) -> str | None:
    """Return the name of a scenario's cassette, or None if it has none.

    Every scenario in a manifest has one, since its world can only come from a cassette. A variant has its own,
    below that of the scenario, because its requests differ from the baseline's.
    """
    name = _own_cassette(scenario, settings)
    variant = scenario.variation
    return f"{name}{_VARIANTS}{variant.name}" if name and variant and not variant.is_baseline else name


def baseline_cassette(name: str) -> str:
    """Return the name of the baseline's cassette, given that of a variant; any other name is returned unchanged."""
    before, found, _ = name.rpartition(_VARIANTS)
    return before if found else name


def cassette_of_case(cassette: str, case: str) -> str:
    """Return the name of the cassette of a row, given that of its scenario: each row makes calls of its own."""
    return f"{cassette}{_CASES}{_slug(case)}"


def _own_cassette(scenario: Scenario, settings: Settings) -> str | None:
    if scenario.cassette is not None or not (settings.record or scenario.in_manifest):
        return scenario.cassette
    path = relative_path(scenario.file.resolve(), settings.project.resolve())
    suite = re.sub(r"(\.scenario)?\.ya?ml$", "", path)
    parts = [part for part in suite.split("/") if part != ".."]
    return "/".join(_slug(part) for part in [*parts, scenario.name])


def _slug(text: str) -> str:
    short = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]
    # Names that a folder name cannot distinguish get different hashes, and so different folders.
    is_plain = short == text and not name_error(short)
    return short if is_plain else f"{short or 'x'}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def command_to_record(scenario: Scenario, *options: str) -> str:
    """Return the shell command that records a scenario again, as text for people.

    A variant is recorded by the command that ran it, with another `--record-mode`.
    """
    if scenario.variation is not None:
        mode = RecordMode.REWRITE if "--rewrite" in options else RecordMode.NEW_EPISODES
        where = ", where CI is not set" if mode in ONLY_MISSING and is_ci_machine() else ""
        return f"the same command with --record-mode {mode.value}{where}"
    return shlex.join(["harness", "record", *options, scenario.id])


def check_cassettes(scenarios: Iterable[Scenario], projects: Projects) -> None:
    """Check the cassette settings and, in modes that write, that no two scenarios would write the same cassette.

    Raises:
        FormatError: with all problems that were found.
    """
    writing = []
    for scenario in scenarios:
        settings = projects.of(scenario.file)
        request_matcher(settings)
        if effective_record_mode(settings) in WRITING:
            writing.append(scenario)
    if problems := shared_cassettes(writing, projects):
        raise FormatError(problems)


def shared_cassettes(scenarios: Iterable[Scenario], projects: Projects) -> list[Problem]:
    """Return a problem for each cassette that several scenarios name, in the order of the scenarios.

    Two tables of `cases` that have several rows in common give one problem, and so do the rows of one table.
    """
    users: dict[Path, list[Scenario]] = {}
    for scenario in scenarios:
        settings = projects.of(scenario.file)
        name = cassette_name(scenario, settings)
        if name is not None and scenario.skip is None:
            users.setdefault(settings.cassettes / name, []).append(scenario)
    found: dict[tuple[Span, ...], Problem] = {}
    for using in users.values():
        if len(using) > 1:
            written = tuple(dict.fromkeys(each.span for each in using))
            found.setdefault(written, _shared(using, projects))
    return list(found.values())


def _shared(using: Sequence[Scenario], projects: Projects) -> Problem:
    first, second, *more = using
    name = cassette_name(first, projects.of(first.file))
    who = f"scenarios '{first.name}' and '{second.name}' cannot both"
    if more:
        who = f"scenarios '{first.name}', '{second.name}' and {len(more)} more cannot all"
    text = f"{who} record cassette '{name}': each needs one of its own"
    if first.span == second.span:
        hint = "write `cassette: NAME` without `${case.…}`: each row is then recorded by itself"
    else:
        hint = f"write another `cassette: NAME` in one of them; the other is at {first.span}"
    return Problem("shared-cassette", text, second.span, hint)


def request_matcher(settings: Settings) -> Matcher:
    """Return the request matcher that the settings define.

    Raises:
        FormatError: the setting `cassette_ignore` is invalid.
    """
    try:
        return Matcher(settings.cassette_ignore)
    except ValueError as error:
        raise FormatError(Problem("bad-settings", f"setting 'cassette_ignore': {error}")) from None
