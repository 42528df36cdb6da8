"""The folder of a search: the files of an earlier search in it, and those that this one writes.

The winner is written as a variants file, and as a patch of the manifest's files for `git apply` and `patch -p1`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from harness.dialects.dialect import Prompt
from harness.errors import FormatError, Problem
from harness.evolution.genome import Genome, Space
from harness.evolution.lineage import ANEW, EVOLUTION, FORMAT, GENOMES, MUTATIONS, damaged
from harness.report.encoding import replace, unwritable
from harness.scenario.document import FORMAT_VERSION
from harness.scenario.model import Scenario
from harness.selection.changes import Changes
from harness.selection.inputs import InputFinder
from harness.settings import Projects
from harness.source.document import real_path, relative_path, shown_path
from harness.source.edited_files import EditedDocuments
from harness.source.yaml import Version


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
    return {
        relative_path(file, root): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(files)
        if file.is_file()
    }


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
        raise damaged(f"{shown_path(path)} cannot be read: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise damaged(f"{shown_path(path)} is not from a search of this version ({FORMAT})")
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
        raise FormatError(Problem("other-search", text, hint=ANEW))


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


VARIANTS: Final = "winner.yaml"
NAME: Final = "evolved"


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes texts so that YAML 1.1 and 1.2 read them as texts."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else '"')


_Dumper.add_representer(str, _text)


def variants_file(genome: Genome, space: Space) -> str:
    """Return a variants file with the genome as its only variant."""
    variant = genome.variant(space, NAME)
    written: dict[str, Any] = {"name": NAME}
    if variant.prompts:
        written["prompts"] = {id_: prompt.text for id_, prompt in variant.prompts.items()}
    if variant.edit:
        written["edit"] = [dict(operation) for operation in variant.edit]
    document = {"harness": FORMAT_VERSION, "variants": [written]}
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


PATCH: Final = "winner.patch"


@dataclass
class Patch:
    """A unified diff of files, relative to `root`. `left_out` lists the changes that it could not include."""

    text: str = ""
    left_out: list[str] = field(default_factory=list)


def patch_of(
    genome: Genome, space: Space, prompts: Sequence[Prompt], manifest: Path, yaml: Version, root: Path
) -> Patch:
    """Return the patch that changes the manifest to the genome.

    Args:
        genome: the differences from the manifest.
        space: the genes of the manifest.
        prompts: the prompts of the manifest, with their locations.
        manifest: its main document.
        yaml: the version of YAML that it is written in.
        root: the folder that paths in the patch are relative to.
    """
    made = Patch()
    files = EditedDocuments(yaml)
    places = [prompt for prompt in prompts if prompt.id in genome.prompts]
    for prompt in sorted(set(places), key=lambda each: (each.where.line, each.where.column), reverse=True):
        if not files.write_text(prompt.where, prompt.text, genome.prompts[prompt.id]):
            made.left_out.append(f"the prompt '{prompt.id}' ({prompt.where})")
    for kind, path, value in genome.values(space):
        if not files.write_value(real_path(manifest), tuple(path), value):
            made.left_out.append(f"{kind} at {'/'.join(map(str, path))}")
    made.text = files.files.patch(root)
    return made


CONFIRMATION: Final = "confirmation"
"""Name of the subfolder with the results that confirm the winner."""
_FILES: Final = (GENOMES, EVOLUTION, MUTATIONS, VARIANTS, PATCH, "report.html")


class SearchFolder:
    """The folder in which a search starts or continues. It is created if it does not exist.

    Args:
        path: the folder.
        arguments: the arguments of the search.
        fresh: True to delete the files of an earlier search.

    Raises:
        FormatError: it has another search (`other-search`), or one that cannot be read (`evolution-damaged`), or it
            cannot be written (`report-folder`).
    """

    def __init__(self, path: Path, arguments: Mapping[str, Any], *, fresh: bool) -> None:
        self.path = path
        if fresh:
            for name in _FILES:
                (path / name).unlink(missing_ok=True)
        self.earlier: Mapping[str, Any] = self._read_earlier(arguments)
        """evolution.json of the search to continue; empty for a new search."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path, error, "name a folder that can be written: --out DIR") from error

    def _read_earlier(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        earlier = read_earlier_search(self.path)
        if not any(_has_content(self.path / name) for name in (GENOMES, MUTATIONS)):
            return {}
        if earlier is None:
            raise damaged(
                f"{shown_path(self.path)} has a {GENOMES} but no {EVOLUTION}: its search is unknown"
            )
        check_same(self.path, earlier, arguments)
        return earlier

    def write(self, document: Mapping[str, Any], *, variants: str = "", patch: str = "") -> None:
        """Write evolution.json, and the winner as a variants file and as a patch, if there is one."""
        written = f"{json.dumps(document, indent=2, ensure_ascii=False)}\n"
        for name, text in ((EVOLUTION, written), (VARIANTS, variants), (PATCH, patch)):
            if text:
                replace(self.path / name, text.encode())
            else:
                (self.path / name).unlink(missing_ok=True)

    def written_files(self) -> list[str]:
        """Return the names of the files in the folder."""
        return [name for name in _FILES if (self.path / name).exists()]


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
