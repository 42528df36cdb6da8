"""The selection of scenarios from a command line, and the manifests that it names."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from harness.cli.output import print_problems
from harness.dialects.registry import detect_dialect, dialect_named, names
from harness.errors import FormatError, ManifestError, Problem, Span
from harness.report.formatting import plural
from harness.scenario import SUFFIXES
from harness.scenario.app_process import is_app
from harness.scenario.load import discover, load_file, scenarios_of_manifest
from harness.scenario.model import Scenario
from harness.selection.changes import changes
from harness.selection.inputs import InputFinder
from harness.selection.keywords import Expression, Shard, keywords_of, parse
from harness.selection.last_run import read_last_run, remarks
from harness.settings import Projects
from harness.source.display import did_you_mean, nearest, nearest_names
from harness.source.document import hint_for_missing, relative_path, shown_path

_DOCUMENTS: Final = (".yaml", ".yml", ".json")
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


def check_exists(manifest: Path) -> None:
    """Refuse a manifest that is neither a file or folder nor an app.

    Raises:
        FormatError: there is none (code `missing-file`).
    """
    if not manifest.exists() and not is_app(manifest, None):
        text = f"{shown_path(manifest)}: no such file or folder"
        raise FormatError(Problem("missing-file", text, hint=hint_for_missing(manifest)))


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
            if name.lower().endswith(_DOCUMENTS) and not name.endswith(SUFFIXES):
                yield Path(root, name)


@dataclass(frozen=True)
class Selection:
    """The scenarios to run, in the order of their files.

    refused   the files that cannot be used, each with its error
    files     all files that were read
    part      the options that left scenarios of these files out, as text; "" if none is left out
    reasons   why each scenario runs, if `--changed` was given
    left_out  the manifests of scenarios that are left out
    names     the scenarios of each file that were asked for; none stands for all
    """

    scenarios: tuple[Scenario, ...]
    refused: Mapping[Path, FormatError]
    files: tuple[Path, ...] = ()
    part: str = ""
    reasons: tuple[str, ...] = ()
    left_out: tuple[Path, ...] = ()
    names: Mapping[Path, Collection[str]] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """The number of runs: a skipped scenario counts as one."""
        return sum(1 if scenario.skip is not None else scenario.repeat for scenario in self.scenarios)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to run, and nothing to report."""
        return not self.scenarios and not self.refused

    def repeated(self, times: int) -> Selection:
        """Return the same scenarios, each with this number of repeats."""
        return replace(self, scenarios=tuple(replace(each, repeat=times) for each in self.scenarios))


def select(
    paths: Sequence[str],
    projects: Projects,
    *,
    words: str = "",
    tags: Sequence[str] = (),
    changed: str | None = None,
    shard: Shard | None = None,
    last_failed: bool = False,
    strict: bool = False,
) -> Selection:
    """Return the scenarios of these files and folders; `FILE::NAME` is one scenario of a file.

    Args:
        paths: files, folders or `FILE::NAME`, as results name scenarios.
        projects: give each file the settings of its project.
        words: an expression over the words of a scenario (`harness.selection.keywords`).
        tags: of which a scenario must have at least one.
        changed: a commit; only scenarios that depend on something changed since are kept.
        shard: the part to take of the scenarios that are then left.
        last_failed: only scenarios that did not pass in the last run are kept.
        strict: a file that cannot be used is an error.

    Raises:
        FormatError: a path does not exist (`missing-file`), or a NAME (`unknown-scenario`); `words` is not an
            expression (`bad-selection`); nothing is left to run and no file is refused (`no-scenarios`), unless
            `changed`, `shard` or `last_failed` left nothing; git cannot list the changes; there is no last run
            (`no-last-run`); or `strict` is given, and a file is refused.
    """
    expression = parse(words) if words.strip() else None
    requested = _requested_names(paths, projects)
    loaded, refused = _load_all(requested, projects)
    if strict and refused:
        raise FormatError([problem for error in refused.values() for problem in error.problems])
    kept = [each for each in loaded if not requested[each.file] or each.name in requested[each.file]]
    if expression is not None:
        kept = [each for each in kept if expression.holds(keywords_of(each, projects.of(each.file).project))]
    kept = [each for each in kept if not tags or set(tags) & set(each.tags)]
    if not kept and not refused:
        raise FormatError(_nothing_selected(loaded, expression, tags))
    selectors = [*_options_given(expression, tags), *(["FILE::NAME"] if any(requested.values()) else [])]
    if last_failed:
        settings = projects.common(requested)
        last = read_last_run(settings.report)
        print_problems(remarks(last, loaded, settings.project))
        kept = [each for each in kept if last.did_not_pass(each, settings.project)]
        selectors.append(last.description)
    reasons: dict[int, str] = {}
    if changed is not None:
        found = changes((projects.of(file).project for file in requested), changed)
        why = InputFinder(projects, found).reasons(kept)
        reasons = {id(each): reason for each, reason in zip(kept, why, strict=True) if reason}
        kept = [each for each in kept if id(each) in reasons]
        selectors.append(found.description)
    if shard is not None:
        kept = _shard(kept, shard, projects)
        selectors.append(f"shard {shard}")
    part, left_out = "", dict[Path, None]()
    if (
        len(kept) < len(loaded) or last_failed
    ):  # other files may have failures, too, which are to be remembered
        remaining = {id(each) for each in kept}
        left_out = {each.manifests[0]: None for each in loaded if id(each) not in remaining}
        part = f"{len(kept)} of {plural(len(loaded), 'scenario')} selected ({', '.join(selectors)})"
    because = tuple(reasons[id(each)] for each in kept) if reasons else ()
    return Selection(tuple(kept), refused, tuple(requested), part, because, tuple(left_out), requested)


def _shard(scenarios: Sequence[Scenario], shard: Shard, projects: Projects) -> list[Scenario]:
    root = projects.common(each.file for each in scenarios).project
    ids = [f"{relative_path(each.file.absolute(), root)}::{each.name}" for each in scenarios]
    return [scenarios[index] for index in shard.members(ids)]


def _requested_names(paths: Sequence[str], projects: Projects) -> dict[Path, set[str]]:
    """Return the files, each with the names requested in it; an empty set stands for all."""
    names: dict[Path, set[str | None]] = {}
    for path in paths:
        file, separator, name = path.partition("::")
        if separator and not name:
            text = f"'{path}' names no scenario"
            raise FormatError(Problem("unknown-scenario", text, hint=f"{file} runs all of this file"))
        for found in discover([Path(file)]):
            names.setdefault(found, set()).add(name if separator else None)
    if not names:
        searched = ", ".join(dict.fromkeys(shown_path(path) for path in paths))
        message = f"no scenario files (*{SUFFIXES[0]}) in {searched}"
        own = next((found.file for path in paths for found in scenarios_below(Path(path), projects)[0]), None)
        agents = [each for path in paths for each in manifests_below(Path(path), None).manifests]
        example = (
            f"`harness new {shown_path(agents[0])}` writes one"
            if agents
            else "`harness init` writes an example"
        )
        hint = f"name {shown_path(own)} to run its own" if own else example
        raise FormatError(Problem("no-scenarios", message, hint=hint))
    return {file: set() if None in named else set(filter(None, named)) for file, named in names.items()}


def _load_all(
    requested: Mapping[Path, set[str]], projects: Projects
) -> tuple[list[Scenario], dict[Path, FormatError]]:
    scenarios: list[Scenario] = []
    refused: dict[Path, FormatError] = {}
    for file, wanted in requested.items():
        settings = projects.of(file)
        try:
            found = load_file(file, settings).scenarios
        except FormatError as error:
            refused[file] = error if file.name.endswith(SUFFIXES) else _not_a_scenario_file(file, error)
            continue
        except ManifestError as error:
            refused[file] = FormatError(error.problems)
            continue
        known = [scenario.name for scenario in found]
        for name in sorted(wanted.difference(known)):
            message = f"no scenario '{name}' in {shown_path(file)}"
            raise FormatError(Problem("unknown-scenario", message, hint=nearest_names(name, known)))
        scenarios += found
    return scenarios, refused


def _not_a_scenario_file(file: Path, error: FormatError) -> FormatError:
    """Return the error of a file that is not named as a scenario file, perhaps a manifest: its first problem."""
    first = error.problems[0]
    message = f"{shown_path(file)} is not a scenario file: {first.message}"
    name = shown_path(file)
    hint = f"of a manifest, `harness new {name}` writes a scenario, and `harness validate {name}` checks it"
    return FormatError(Problem(first.code, message, first.span, hint))


def _options_given(expression: Expression | None, tags: Sequence[str]) -> list[str]:
    """Return the options that select by words and tags, as they were given."""
    return [*([f"-k '{expression.text}'"] if expression else []), *(f"--tag {tag}" for tag in tags)]


def _nothing_selected(
    scenarios: Sequence[Scenario], expression: Expression | None, tags: Sequence[str]
) -> Problem:
    known = sorted({tag for scenario in scenarios for tag in scenario.tags})
    hints = [did_you_mean(tag, known) for tag in tags if tag not in known]
    options = [*known, *(each for scenario in scenarios for each in (scenario.name, *scenario.name.split()))]
    near = [nearest(phrase, options) for phrase in (expression.phrases if expression else ())]
    hints += [f"did you mean '{name}'?" for name in near if name]
    selectors = " and ".join(_options_given(expression, tags))
    of = f"none of {plural(len(scenarios), 'scenario')} matches {selectors}"
    message = of if selectors else "there are no scenarios"
    return Problem("no-scenarios", message, hint="; ".join(hint for hint in hints if hint))
