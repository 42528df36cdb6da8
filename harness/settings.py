"""Settings: `[tool.harness]` in pyproject.toml, then `HARNESS_*` in the environment, then the command line."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem
from harness.source.suggest import did_you_mean


class RecordMode(StrEnum):
    """What becomes of effects that no stub answers, in scenarios that have a cassette.

    The words are vcrpy's and pytest-recording's. LIVE is for all scenarios: the real thing answers, cassettes are
    neither read nor written.
    """

    NONE = "none"  # played from the cassette; what is not in it is an error
    ONCE = "once"  # recorded where there is no cassette yet, else as NONE
    NEW_EPISODES = "new_episodes"  # played where recorded, else added
    ALL = "all"  # everything anew, in place of what it matches; the rest is kept
    REWRITE = "rewrite"  # everything anew, in place of the whole cassette
    LIVE = "live"


@dataclass(frozen=True)
class Settings:
    """What a project sets once, and how this run is to treat cassettes.

    report           the folder results are written to
    pythonpath       folders Python modules are imported from, beside those of the scenario and the manifest
    allow_paths      folders outside the project from which manifests may read files
    cassettes        the folder of the cassettes
    record           whether scenarios that name no cassette have one all the same, named after file and scenario
    cassette_ignore  what recorded requests may differ in: `host`, `query.NAME`, `body.PATH`
    secrets          names of variables, as globs, whose values are secret, beside those that look it
    project          the folder of pyproject.toml, else the current one; not to be set
    record_mode      how this run treats cassettes; said on the command line only
    """

    report: Path = Path("reports/latest")
    pythonpath: tuple[Path, ...] = ()
    allow_paths: tuple[Path, ...] = ()
    cassettes: Path = Path("cassettes")
    record: bool = False
    cassette_ignore: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    project: Path = Path()
    record_mode: RecordMode = RecordMode.NONE


def _paths(value: Any, base: Path) -> tuple[Path, ...]:
    values = value.split(os.pathsep) if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise ValueError("expected a list of folders")
    return tuple((base / item).resolve() for item in values if item)


def _path(value: Any, base: Path) -> Path:
    if not isinstance(value, str):
        raise ValueError("expected a folder")
    return base / value


def _flag(value: Any, _base: Path) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    found = words.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError("expected true or false")
    return found


def _texts(value: Any, _base: Path) -> tuple[str, ...]:
    values = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise ValueError("expected a list of texts")
    return tuple(values)


_READERS: Final[Mapping[str, Callable[[Any, Path], Any]]] = {
    "report": _path,
    "pythonpath": _paths,
    "allow_paths": _paths,
    "cassettes": _path,
    "record": _flag,
    "cassette_ignore": _texts,
    "secrets": _texts,
}


def load_settings(
    folder: Path | None = None,
    *,
    ini: Mapping[str, Any] | None = None,
    chosen: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of the project around a folder (default: the current one).

    Args:
        folder: where the search for pyproject.toml begins, upwards.
        ini: pytest's ini settings, relative to `folder`.
        chosen: what the command line says, relative to the current folder.
        environment: variables (default: the process's).

    Raises:
        FormatError: one of them says something that is not known.
    """
    folder = (folder or Path.cwd()).resolve()
    project = _project_file(folder)
    root = project.parent if project is not None else Path.cwd()
    settings = Settings(cassettes=root / "cassettes", project=root)
    if project is not None:
        settings = _updated(settings, _table(project), project.parent, f"[tool.harness] in {project.name}")
    settings = _updated(settings, ini or {}, folder, "pytest's ini file")
    environment = os.environ if environment is None else environment
    given = {key: environment[_variable(key)] for key in _READERS if environment.get(_variable(key))}
    settings = _updated(settings, given, Path.cwd(), "the environment")
    return _updated(settings, chosen or {}, Path.cwd(), "the command line")


def _variable(key: str) -> str:
    return f"HARNESS_{key.upper()}"


def _project_file(folder: Path) -> Path | None:
    return next((path for at in (folder, *folder.parents) if (path := at / "pyproject.toml").is_file()), None)


def _table(project: Path) -> Mapping[str, Any]:
    try:
        document = tomllib.loads(project.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise FormatError(Problem("bad-settings", f"{project.name} cannot be read: {error}")) from None
    tool = document.get("tool", {})
    table = tool.get("harness", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise FormatError(Problem("bad-settings", f"[tool.harness] in {project.name} must be a table"))
    return table


def _updated(settings: Settings, given: Mapping[str, Any], base: Path, where: str) -> Settings:
    for key, value in given.items():
        if key not in _READERS:
            hint = did_you_mean(key, _READERS)
            raise FormatError(Problem("unknown-key", f"unknown setting '{key}' in {where}", None, hint))
        try:
            settings = replace(settings, **{key: _READERS[key](value, base)})
        except ValueError as error:
            raise FormatError(Problem("bad-settings", f"setting '{key}' in {where}: {error}")) from None
    return settings
