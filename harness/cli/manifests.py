"""Manifests given to commands: their dialects and agents, and the manifests in a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.dialects.dialect import Dialect
from harness.dialects.registry import detect_dialect, dialect_named, dialect_of, manifest_at, names
from harness.errors import FormatError, ManifestError, Problem, Span
from harness.scenario import SUFFIXES
from harness.scenario.manifest_scenarios import scenarios_of_manifest
from harness.scenario.model import Scenario
from harness.settings import Projects
from harness.source.document import read, shown_path
from harness.source.frames import located_defects

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_BEGINNING: Final = 4096
"""Number of characters searched for the keys of a scenario file. Recordings may be long."""


def check_not_a_scenario(path: Path) -> None:
    """Refuse a scenario file that was given as a manifest.

    Raises:
        FormatError: it is a scenario file (code `not-a-manifest`).
    """
    if path.name.endswith(SUFFIXES):
        message = f"{shown_path(path)} is a scenario file"
        raise FormatError(Problem("not-a-manifest", message, hint="give the manifest that it names"))


def agents_of(path: Path, dialect: str | None) -> tuple[Dialect, list[str]]:
    """Return a manifest's dialect and its agents, in order; no agents if its sections are malformed.

    Raises:
        ManifestError: the file cannot be read, or is not a manifest.
    """
    with located_defects(path):
        found = dialect_named(dialect) if dialect else dialect_of(path)
        return found, list(found.agents(read(manifest_at(path, found), yaml=found.yaml)))


def agents_to_load(agents: Sequence[str], agent: str | None) -> list[str | None]:
    """Return the agents to load: the requested one, else all. None stands for the only agent of a manifest."""
    return [agent] if agent else [*agents] or [None]


class FoundManifests(NamedTuple):
    """The manifests in a folder, and the problems of other files that cannot be read."""

    manifests: list[Path]
    unreadable: dict[Path, Problem]


def manifests_below(folder: Path, dialect: str | None) -> FoundManifests:
    """Return the files in a folder, at any depth, that a dialect recognizes, in order. Hidden files are skipped.

    A file that cannot be read is a manifest if a dialect recognizes its readable part.
    """
    dialects = [dialect_named(name) for name in ([dialect] if dialect else names())]
    found = FoundManifests([], {})
    for path in _candidates(folder):
        try:
            detected = detect_dialect(path, dialects)
        except ManifestError:  # a dialect is broken; reading the manifest reports it
            found.manifests.append(path)
            continue
        if detected.dialect is not None:
            found.manifests.append(path)
        elif detected.error is not None and not detected.is_whole:
            found.unreadable[path] = detected.error.problems[0]
    return found


def misnamed(folders: Iterable[Path]) -> list[Problem]:
    """Return a warning for each file in these folders that has the content, but not the name, of a scenario file."""
    found = []
    for path in (path for folder in folders for path in _candidates(folder)):
        begins = _beginning(path)
        if all(re.search(rf"^{key}:", begins, re.MULTILINE) for key in ("harness", "manifest", "scenarios")):
            text = f"{shown_path(path)} is a scenario file, and is left out: its name does not end in {SUFFIXES[0]}"
            hint = f"rename it to {path.stem.removesuffix('.scenario')}{SUFFIXES[0]}"
            found.append(Problem("scenario-file-name", text, Span(shown_path(path), 1, 1), hint, "warning"))
    return found


def _beginning(path: Path) -> str:
    """Return the first characters of a file; "" if it is not a regular file or cannot be read."""
    try:
        if not path.is_file():
            return ""
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_BEGINNING)
    except OSError:
        return ""


def scenarios_below(folder: Path, projects: Projects) -> tuple[list[Scenario], list[Path]]:
    """Return the scenarios inside the manifests in a folder, at any depth, and the manifests that are refused."""
    scenarios: list[Scenario] = []
    refused = []
    for path in manifests_below(folder, None).manifests:
        try:
            scenarios += scenarios_of_manifest(path, projects.of(path)) or ()
        except ManifestError:
            refused.append(path)
    return scenarios, refused


def _candidates(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(_SUFFIXES) and not name.endswith(SUFFIXES):
                yield Path(root, name)
