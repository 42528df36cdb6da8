"""The files that a scenario depends on, and the changes that therefore affect it.

    the scenario file, pyproject.toml, conftest.py, the cassette
    files that the front end of its dialect reads: manifests, prompts, scripts, skills, documents
    the Python modules that these name, and the modules that those import (`harness.source.modules`)

In doubt, a change affects a scenario. A changed Python file without known users affects all scenarios whose code
imports modules by computed names; any other file without known users (perhaps data) affects all scenarios that run
code of the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from harness.dialects.load import FilesRead, files_read
from harness.errors import FormatError
from harness.graph.to_json import texts_in
from harness.scenario import SUFFIXES
from harness.scenario.cassette import cassette_name
from harness.scenario.model import Scenario, load_request
from harness.selection.changes import Changes
from harness.settings import Projects, Settings
from harness.source.document import read, real_path, shown_path
from harness.source.modules import Modules, ModuleSearch, while_unchanged
from harness.source.project import PYPROJECT

_WORD: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_DOCUMENTS: Final = (".yaml", ".yml", ".json")
_SCRIPTS: Final = (".py", ".sh", ".bash", ".ts", ".js", ".mjs")
_SETTINGS: Final = (PYPROJECT, "pytest.ini", "tox.ini", "setup.cfg")
_CONFTEST: Final = "conftest.py"
_ABOUT_THE_PROJECT: Final = (".md", ".rst", ".adoc", "")
"""Suffixes of files at the root of a project that only describe it, such as README.md and LICENSE."""
_LONGEST_PATH: Final = 300
_LARGEST: Final = 2_000_000
"""The size in bytes of the largest document that is searched for names of modules."""


@dataclass(frozen=True)
class Inputs:
    """The files and modules that a scenario depends on.

    Attributes:
        files: the files that are read or looked for. The paths contain no links.
        folders: folders of which every file is read: the cassette, prompts of judges, and those that the manifest
            lists.
        modules: the Python modules of its code.
        runs: True if the scenario runs code of the project, which may read any file.
        refused: the reason why `files` may be incomplete (its manifest cannot be loaded); or "".
    """

    files: frozenset[Path]
    folders: frozenset[Path]
    modules: Modules
    runs: bool
    refused: str = ""

    def with_folder(self, folder: Path) -> Inputs:
        """Return these inputs and a folder."""
        return replace(self, folders=self.folders | {folder})

    def reason(self, changes: Changes) -> str:
        """Return the reason why one of the changes affects the scenario; "" if none is known to."""
        read = [*sorted(self.files & changes.files)]
        read += [changes.below[folder] for folder in sorted(self.folders & changes.below.keys())]
        read += [path for path in changes.submodules if any(file.is_relative_to(path) for file in self.files)]
        if read:
            return f"{shown_path(read[0])} changed"
        for path in sorted(self.modules.files.keys() & changes.files):
            by = self.modules.files[path]
            return f"{shown_path(path)} changed" + (f", which {shown_path(by)} imports" if by else "")
        return ""

    def contains(self, path: Path) -> bool:
        """True if the scenario is known to depend on this file."""
        return path in self.files or path in self.modules.files or not self.folders.isdisjoint(path.parents)

    def possible_reason(self, unrelated: Iterable[Path]) -> str:
        """Return the reason why one of these files without known users may affect the scenario; "" if none can."""
        for path in unrelated:
            if path.suffix == ".py":
                if self.modules.dynamic:
                    may = f"{shown_path(self.modules.dynamic[0])} may import it, which is only known at run time"
                    return f"{shown_path(path)} changed, and {may}"
            elif self.runs:
                return f"{shown_path(path)} changed, and code of this scenario may read it"
            if self.refused:
                return f"{shown_path(path)} changed, and its manifest cannot be loaded: {self.refused}"
        return ""


@dataclass
class InputFinder:
    """Finds the inputs of scenarios, and the scenarios that changes affect.

    Attributes:
        projects: the settings of the scenarios.
        changes: the changes.
        meanwhile: changes that were made while scenarios ran. They count only if a scenario is known to depend on the
            file, as runs may have written the others.
    """

    projects: Projects
    changes: Changes
    meanwhile: frozenset[Path] = frozenset()
    _read: dict[object, FilesRead] = field(default_factory=dict)
    _inputs: dict[object, Inputs] = field(default_factory=dict)

    def reasons(self, scenarios: Iterable[Scenario]) -> list[str]:
        """Return for each scenario the reason why a change affects it; "" if none does."""
        found = [(scenario, self.inputs(scenario)) for scenario in scenarios] if self.changes.files else []
        unrelated = [
            path
            for path in sorted(self.changes.files - self.meanwhile)
            if not any(inputs.contains(path) for _, inputs in found)
        ]
        reasons = []
        for scenario, inputs in found:
            settings = self.projects.of(scenario.file)
            perhaps = [path for path in unrelated if _may_matter(path, settings)]
            reasons.append(inputs.reason(self.changes) or inputs.possible_reason(perhaps))
        return reasons or ["" for _ in scenarios]

    def inputs(self, scenario: Scenario) -> Inputs:
        """Return the inputs of a scenario. The rows of a table have the same, except for their cassettes."""
        env = frozenset(scenario.env.items()), frozenset(scenario.components.items())
        hooks, real = tuple(scenario.world.hooks), _has_real_servers(scenario)
        key = (scenario.file, scenario.manifests, scenario.dialect, scenario.agent, env, hooks, real)
        if key not in self._inputs:
            self._inputs[key] = self._find(scenario)
        found, settings = self._inputs[key], self.projects.of(scenario.file)
        name = cassette_name(scenario, settings)
        return found.with_folder(real_path(settings.cassettes / name)) if name else found

    def _find(self, scenario: Scenario) -> Inputs:
        """Find the inputs of a scenario, without its cassette."""
        settings = self.projects.of(scenario.file)
        project = real_path(settings.project)
        file = real_path(scenario.file)
        read = self._files_read(scenario, settings)
        files = {real_path(path) for path in read.files} | set(read.files)
        code = [path for path in files if path.suffix == ".py"]
        folders = [path.parent for path in read.files if path.name.endswith(_DOCUMENTS)]
        request = load_request(scenario, settings)
        searched = tuple(dict.fromkeys((*request.folders, *folders, *read.folders)))
        search = ModuleSearch(searched, project, self._changed_names(project))
        documents = [file, *(path for path in files if path.name.endswith(_DOCUMENTS))]
        words = {word for path in documents for word in _words_in(path)}
        modules = search.modules(words, code)
        above = [at for at in (file.parent, *file.parent.parents) if at.is_relative_to(project)]
        own = {
            file,
            *_named_in(file),
            *(project / name for name in _SETTINGS),
            *(at / _CONFTEST for at in above),
        }
        prompts = {real_path(settings.judge_prompts)} if settings.judge_prompts else set[Path]()
        scripts = any(path.suffix in _SCRIPTS for path in files)
        return Inputs(
            frozenset(files | own),
            frozenset(prompts | set(read.folders)),
            modules,
            runs=scripts or not modules.is_empty or _has_real_servers(scenario),
            refused=read.refused,
        )

    def _files_read(self, scenario: Scenario, settings: Settings) -> FilesRead:
        request = load_request(scenario, settings)
        given = frozenset(request.components.items()), frozenset(request.env.items())
        key = (request.paths, request.agent, given, request.folders, scenario.dialect)
        if key not in self._read:
            self._read[key] = files_read(replace(request, imports=False), scenario.dialect)
        return self._read[key]

    def _changed_names(self, project: Path) -> frozenset[str]:
        """Return the names by which changed Python files may be imported, from any folder of the project."""
        below = [path for path in self.changes.files if path.suffix == ".py" and path.is_relative_to(project)]
        parts = {part for path in below for part in path.relative_to(project).parts}
        return frozenset(part.removesuffix(".py") for part in parts)


def _may_matter(path: Path, settings: Settings) -> bool:
    """True if a file without known users may affect scenarios of a project.

    False for files with a purpose of their own: other scenario files, recordings, reports, a README, hidden files.
    """
    project = real_path(settings.project)
    if not path.is_relative_to(project) or path.name.endswith(SUFFIXES):
        return False
    if path.parent == project and path.suffix in _ABOUT_THE_PROJECT and not path.name.startswith(".env"):
        return False
    if any(path.is_relative_to(real_path(folder)) for folder in (settings.cassettes, settings.report)):
        return False
    hidden = [part for part in path.relative_to(project).parts if part.startswith(".")]
    return not hidden or (hidden == [path.name] and path.name.startswith(".env"))


@while_unchanged(tuple[Path, ...]())
def _named_in(file: Path) -> tuple[Path, ...]:
    """Return the files that a scenario file may name, such as a table of `cases`: all texts that could be a path."""
    try:
        texts = [text for _, text in texts_in(read(file, yaml="1.2", error=FormatError).value)]
        names = [text for text in texts if len(text) <= _LONGEST_PATH and "\n" not in text]
        return tuple({real_path(file.parent / name) for name in names if Path(name).suffix})
    except (FormatError, RecursionError, ValueError):
        return ()


def _has_real_servers(scenario: Scenario) -> bool:
    return any(server.real for world in scenario.worlds for server in world.mcp.values())


@while_unchanged(frozenset[str]())
def _words_in(file: Path) -> frozenset[str]:
    """Return the words of a document, any of which may name a module."""
    small = file.stat().st_size <= _LARGEST
    return frozenset(_WORD.findall(file.read_text(encoding="utf-8", errors="replace")) if small else ())
