"""Which scenarios a command line asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import FormatError, Problem
from harness.report.figures import plural
from harness.scenario.load import SUFFIXES, discover, load_file
from harness.scenario.model import Scenario
from harness.source.document import shown_path
from harness.source.suggest import did_you_mean, nearest


@dataclass(frozen=True)
class Selection:
    """The scenarios to run, in the order of their files, and the files that cannot be used."""

    scenarios: tuple[Scenario, ...]
    refused: Mapping[Path, FormatError]

    @property
    def runs(self) -> int:
        """How many outcomes are to come."""
        return sum(1 if scenario.skip is not None else scenario.repeat for scenario in self.scenarios)

    def repeated(self, times: int) -> Selection:
        """The same scenarios, each run that often."""
        return replace(self, scenarios=tuple(replace(each, repeat=times) for each in self.scenarios))


def select(paths: Sequence[str], substring: str = "", tags: Sequence[str] = ()) -> Selection:
    """The scenarios of these files and folders; `FILE::NAME` is one scenario of a file, as results name it.

    `substring` is looked for in `FILE::NAME`, whatever its case; of `tags` a scenario has at least one.

    Raises:
        FormatError: a path does not exist (`missing-file`), a NAME neither (`unknown-scenario`), or nothing is
            left to run while no file is to blame (`no-scenarios`).
    """
    loaded, refused = _loaded(paths)
    kept = _named(loaded, paths)
    kept = [each for each in kept if substring.lower() in _id(each).lower()]
    kept = [each for each in kept if not tags or set(tags) & set(each.tags)]
    if not kept and not refused:
        raise FormatError(_nothing(loaded, substring, tags))
    return Selection(tuple(kept), refused)


def _loaded(paths: Sequence[str]) -> tuple[list[Scenario], dict[Path, FormatError]]:
    files = discover([_file(path) for path in paths])
    if not files:
        searched = ", ".join(dict.fromkeys(shown_path(path) for path in paths))
        message = f"no scenario files (*{SUFFIXES[0]}) in {searched}"
        raise FormatError(Problem("no-scenarios", message, hint="`harness init` writes an example"))
    scenarios: list[Scenario] = []
    refused: dict[Path, FormatError] = {}
    for file in files:
        try:
            scenarios += load_file(file).scenarios
        except FormatError as error:
            refused[file] = error if file.name.endswith(SUFFIXES) else _misnamed(file, error)
    return scenarios, refused


def _misnamed(file: Path, error: FormatError) -> FormatError:
    """The first problem of a file that is none of ours by its name, perhaps a manifest."""
    hint = f"scenario files end in {SUFFIXES[0]}; `harness validate` checks a manifest"
    first = error.problems[0]
    name = shown_path(file)
    return FormatError(Problem(first.code, f"{name} is no scenario file: {first.message}", first.span, hint))


def _file(written: str) -> Path:
    return Path(written.partition("::")[0])


def _id(scenario: Scenario) -> str:
    return f"{shown_path(scenario.file)}::{scenario.name}"


def _named(scenarios: Sequence[Scenario], paths: Sequence[str]) -> list[Scenario]:
    """Without what a `FILE::NAME` leaves out of its file."""
    wanted: dict[Path, set[str]] = {}
    for path in paths:
        _, asked, name = path.partition("::")
        if asked:
            wanted.setdefault(_file(path), set()).add(name)
    for file, names in wanted.items():
        known = [scenario.name for scenario in scenarios if scenario.file == file]
        for name in sorted(names - set(known)) if known else ():
            message = f"no scenario '{name}' in {shown_path(file)}"
            raise FormatError(Problem("unknown-scenario", message, hint=did_you_mean(name, known)))
    whole = {_file(path) for path in paths if "::" not in path}
    return [
        each
        for each in scenarios
        if each.file in whole or each.file not in wanted or each.name in wanted[each.file]
    ]


def _nothing(scenarios: Sequence[Scenario], substring: str, tags: Sequence[str]) -> Problem:
    asked = [f"-k '{substring}'"] if substring else []
    asked += [f"--tag {tag}" for tag in tags]
    known = sorted({tag for scenario in scenarios for tag in scenario.tags})
    hints = [did_you_mean(tag, known) for tag in tags if tag not in known]
    near = nearest(substring, (scenario.name for scenario in scenarios)) if substring else None
    hints += [f"did you mean '{near}'?"] if near else []
    message = f"none of {plural(len(scenarios), 'scenario')} fits {' and '.join(asked)}"
    return Problem("no-scenarios", message, hint="; ".join(hint for hint in hints if hint))
