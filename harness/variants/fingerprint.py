"""Fingerprints of scenario runs: a hash that changes if any input of the run changes.

The inputs are the files of the scenario, its manifest, prompts, scripts, imported modules and cassette
(`harness.selection.inputs`); the variant, the number of repeats, the settings, the environment variables it
gets, and the version of this package.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from harness import __version__
from harness.report.repeats import label
from harness.scenario.cassette import WRITING, cassette_name, effective_record_mode
from harness.scenario.model import Scenario
from harness.selection.changes import Changes
from harness.selection.inputs import InputFinder
from harness.settings import Projects
from harness.source.document import real_path


def fingerprints(scenarios: Sequence[Scenario], projects: Projects) -> list[str]:
    """Return the SHA-256 of the inputs of each scenario.

    While cassettes are being written, they are left out, since the run changes them.
    """
    finder, hashed = InputFinder(projects, Changes("", frozenset())), cache(_hashed)
    return [_fingerprint(scenario, projects, finder, hashed) for scenario in scenarios]


def input_digests(scenarios: Iterable[Scenario], projects: Projects) -> dict[str, str]:
    """Return a digest of the files that each scenario depends on, by its name in results; settings do not count."""
    finder, hashed = InputFinder(projects, Changes("", frozenset())), cache(_hashed)
    return {
        label(scenario.id, scenario.variant): hashlib.sha256(
            "\0".join(_input_files(scenario, projects, finder, hashed)).encode()
        ).hexdigest()
        for scenario in scenarios
    }


def _input_files(
    scenario: Scenario, projects: Projects, finder: InputFinder, hashed: Callable[[Path, Path], str]
) -> list[str]:
    """Return the files that a scenario depends on, relative to the project, each with its hash."""
    settings = projects.of(scenario.file)
    name = cassette_name(scenario, settings)
    own = (
        real_path(settings.cassettes / name) if name and effective_record_mode(settings) in WRITING else None
    )
    inputs = finder.inputs(scenario)
    folders = inputs.folders - {own} if own else inputs.folders
    files = {*inputs.files, *inputs.modules.files, *(file for folder in folders for file in _below(folder))}
    project = real_path(settings.project)
    return [hashed(file, project) for file in sorted(files)]


def _fingerprint(
    scenario: Scenario, projects: Projects, finder: InputFinder, hashed: Callable[[Path, Path], str]
) -> str:
    settings = projects.of(scenario.file)
    parts = [
        __version__,
        str(scenario.name),
        str(scenario.repeat),
        str(scenario.seed),
        str(scenario.components),
        str(scenario.env),
        str(scenario.variation),
        str(settings),
        *(f"{key}={os.environ.get(key)}" for key in scenario.env_passthrough),
        *_input_files(scenario, projects, finder, hashed),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _below(folder: Path) -> Iterator[Path]:
    for at, _, names in os.walk(folder):
        yield from (Path(at, name) for name in names)


def _hashed(file: Path, project: Path) -> str:
    """Return the path of a file from a project, with the hash of its content."""
    try:
        content = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
    except OSError:
        content = ""
    return f"{os.path.relpath(file, project)} {content}"
