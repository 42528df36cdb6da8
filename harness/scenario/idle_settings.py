"""Detects settings without effect. Each is a warning of `harness validate`, and at the end of a run."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem, Severity, Span
from harness.scenario.outcome import PriceList
from harness.settings import Settings, load_settings
from harness.source.display import nearest
from harness.source.document import shown_path
from harness.source.project import PYPROJECT
from harness.units import milliseconds_hint

_TABLE: Final = "harness"
_NEAR: Final = 0.85
"""The similarity to the name of the table from which another one counts as a misspelling."""
_CONVERSATIONS: Final = ("messages", "input", "contents", "prompt", "*")
"""Keys of a request to a model that have what it is asked."""
_ALL_OF_THEM: Final = frozenset({"*", "content", "parts", "text"})
"""Steps below such a key that lead to all that is asked; an index leads to one message."""

Finding = tuple[str, str]
"""A message and a suggestion."""


def idle_settings(settings: Settings, environment: Mapping[str, str] | None = None) -> list[Problem]:
    """Return a problem for each setting of a project that does nothing, or more than it says.

    Args:
        settings: those of the project.
        environment: variables that may be secret (default: those of the process).
    """
    environment = os.environ if environment is None else environment
    file = _File(settings)
    found = list(file.misnamed_tables())
    for key, rule in _RULES.items():
        found += [file.problem_at(key, *finding) for finding in rule(settings)]
    # A variable that is missing offline may exist where runs are recorded.
    variables = {*environment, *settings.env}
    for glob in settings.secrets:
        if not any(fnmatchcase(name, glob) for name in variables):
            text = f"'{glob}' in 'secrets' matches no variable of this process"
            found.append(file.problem_at("secrets", text, _other_case(glob, variables), "note"))
    return found


def misspelt_prices(settings: Settings, models: Collection[str]) -> Iterator[Problem]:
    """Yield a warning for each price that is probably meant for one of these models, which has none."""
    own = [price.model for price in settings.prices]
    known = PriceList(settings.prices)
    free = sorted(model for model in models if known.cost(model, 1, 1) is None) if own else []
    for model in own:
        if model not in models and (meant := nearest(model, free, cutoff=_NEAR)):
            text = f"the price of '{model}' is of no model that was checked, and '{meant}' has none"
            yield _File(settings).problem_at(f'"?{re.escape(model)}"?', text, f"did you mean '{meant}'?")


def warnings_of_project(folder: Path) -> list[str]:
    """Return the warnings of the settings of the project around a folder, each on one line."""
    try:
        found = idle_settings(load_settings(folder))
    except FormatError:  # reported where the settings are used
        return []
    return [problem.one_line for problem in found if problem.severity == "warning"]


def _folders(key: str) -> Callable[[Settings], Iterator[Finding]]:
    def missing(settings: Settings) -> Iterator[Finding]:
        found = getattr(settings, key) or ()
        for folder in [found] if isinstance(found, Path) else found:
            if not folder.is_dir():
                yield (
                    f"{shown_path(folder)} in '{key}' is not a folder",
                    "paths are relative to pyproject.toml",
                )

    return missing


def _public(settings: Settings) -> Iterator[Finding]:
    for glob in settings.public_env:
        if set(glob) == {"*"}:
            yield (
                f"'{glob}' in 'public_env' matches every variable, so none is secret",
                "name the public ones",
            )


def _stale(settings: Settings) -> Iterator[Finding]:
    if settings.stale_cassettes == "fail" and settings.max_age_days == math.inf:
        yield "'stale_cassettes' does nothing without 'max_age_days'", "add `max_age_days = 90`"


def _in_milliseconds(settings: Settings) -> Iterator[Finding]:
    if found := milliseconds_hint("real_timeout", settings.real_timeout):
        yield found


def _hidden(settings: Settings) -> Iterator[Finding]:
    for text in settings.cassette_ignore:
        part, *path = text.split(".")
        if part == "body" and (not path or (path[0] in _CONVERSATIONS and _ALL_OF_THEM.issuperset(path[1:]))):
            message = (
                f"'{text}' in 'cassette_ignore' hides what models are asked: any prompt is answered alike"
            )
            yield message, "name the value that differs, such as body.messages.0.content"


_RULES: Final[Mapping[str, Callable[[Settings], Iterator[Finding]]]] = {
    "pythonpath": _folders("pythonpath"),
    "allow_paths": _folders("allow_paths"),
    "judge_prompts": _folders("judge_prompts"),
    "real_timeout": _in_milliseconds,
    "public_env": _public,
    "stale_cassettes": _stale,
    "cassette_ignore": _hidden,
}


def _other_case(glob: str, variables: set[str]) -> str:
    near = nearest(glob, sorted(variables))
    return f"did you mean '{near}'?" if near is not None else ""


class _File:
    """The pyproject.toml of a project, for the locations of its settings."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.project / PYPROJECT
        try:
            self._text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            self._text = ""

    def misnamed_tables(self) -> Iterator[Problem]:
        """Yield a warning of each table that is probably meant to have the settings."""
        document: dict[str, Any] = tomllib.loads(self._text)
        tool = document.get("tool", {})
        for name in tool if isinstance(tool, dict) else ():
            if name != _TABLE and nearest(name, [_TABLE], cutoff=_NEAR):
                yield self._of_table(f"tool.{name}")
        if isinstance(document.get(_TABLE), dict):
            yield self._of_table(_TABLE)

    def _of_table(self, name: str) -> Problem:
        text = f"the settings in [{name}] are not read"
        hint = f"did you mean [tool.{_TABLE}]?"
        return Problem("idle-setting", text, self._span(rf"\[{re.escape(name)}[].]"), hint, "warning")

    def problem_at(self, key: str, text: str, hint: str, severity: Severity = "warning") -> Problem:
        """Return the problem with a setting, at its line if the file has it."""
        return Problem("idle-setting", text, self._span(rf"(?:tool\.harness\.)?{key}\s*="), hint, severity)

    def _span(self, pattern: str) -> Span | None:
        found = re.search(rf"^[ \t]*({pattern})", self._text, re.MULTILINE)
        if found is None:
            return None
        start = found.start(1)
        line = self._text.count("\n", 0, start) + 1
        column = start - (self._text.rfind("\n", 0, start) + 1) + 1
        return Span(shown_path(self._path), line, column)
