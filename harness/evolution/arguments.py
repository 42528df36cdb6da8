"""The arguments of a search, recorded so that it is continued only with the same ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import FormatError, Problem
from harness.evolution.lineage import EVOLUTION, FORMAT
from harness.scenario.model import Scenario
from harness.selection.changes import Changes
from harness.selection.inputs import InputFinder
from harness.settings import Projects
from harness.source.document import real_path, relative_path, shown_path

_ANEW = "start anew with --fresh, or in another folder (--out DIR)"


def fingerprints(
    scenarios: Sequence[Scenario], projects: Projects, further: Sequence[Path]
) -> dict[str, str]:
    """Return the SHA-256 of each file that the scenarios are known to depend on, by its path in the project.

    `further` are other files to include.
    """
    finder = InputFinder(projects, Changes("", frozenset()))
    files: set[Path] = {real_path(path) for path in further}
    for scenario in scenarios:
        inputs = finder.inputs(scenario)
        files |= {real_path(path) for path in (*inputs.files, *inputs.modules.files)}
    root = real_path(projects.common(each.file for each in scenarios).project)
    found = {
        relative_path(file, root): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(files)
        if file.is_file()
    }
    return found


def read_earlier_search(folder: Path) -> dict[str, Any] | None:
    """Read the evolution.json in a folder; return None if there is none.

    Raises:
        FormatError: it cannot be read, or has another format.
    """
    path = folder / EVOLUTION
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        text = f"{shown_path(path)} cannot be read: {error}"
        raise FormatError(Problem("evolution-damaged", text, hint=_ANEW)) from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        text = f"{shown_path(path)} is not from a search of this version ({FORMAT})"
        raise FormatError(Problem("evolution-damaged", text, hint=_ANEW))
    return found


def check_same(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Check that a search is continued with the arguments it was started with.

    Raises:
        FormatError: they differ (`other-search`).
    """
    differences = list(_differences(before.get("arguments") or {}, now))
    if differences:
        shown = "; ".join(differences[:5]) + (" …" if len(differences) > 5 else "")
        text = f"the search in {shown_path(folder)} was started with other arguments: {shown}"
        raise FormatError(Problem("other-search", text, hint=_ANEW))


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*before, *now)):
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict) and key == "files":
            changed = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
            yield from (f"{name} changed" for name in changed)
        elif isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new)
        elif isinstance(old, list) or isinstance(new, list):
            yield f"other {key}"
        else:
            yield f"{key} was {_shown(old)}, and is {_shown(new)}"


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)
