"""Which scenarios a command line asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.cli.manifests import scenarios_below
from harness.errors import FormatError, ManifestError, Problem
from harness.report.formatting import plural
from harness.scenario import SUFFIXES
from harness.scenario.load import discover, load_file
from harness.scenario.model import Scenario
from harness.selection.changes import changes
from harness.selection.inputs import InputFinder
from harness.selection.keywords import Expression, keywords_of, parse
from harness.selection.shard import Shard
from harness.settings import Projects
from harness.source.document import relative_path, shown_path
from harness.source.suggest import did_you_mean, nearest, nearest_names


@dataclass(frozen=True)
class Selection:
    """The scenarios to run, in the order of their files.

    refused  the files that cannot be used
    files    all files that were looked through
    part     what was said and leaves scenarios of these files out; "" when none is left out
    reasons  why each scenario runs, where only those run that a change touches
    left_out  the manifests of scenarios that are left out
    """

    scenarios: tuple[Scenario, ...]
    refused: Mapping[Path, FormatError]
    files: tuple[Path, ...] = ()
    part: str = ""
    reasons: tuple[str, ...] = ()
    left_out: tuple[Path, ...] = ()

    @property
    def runs(self) -> int:
        """How many outcomes are to come."""
        return sum(1 if scenario.skip is not None else scenario.repeat for scenario in self.scenarios)

    def repeated(self, times: int) -> Selection:
        """The same scenarios, each run that often."""
        return replace(self, scenarios=tuple(replace(each, repeat=times) for each in self.scenarios))

    def explained(self) -> Iterator[str]:
        """A line for each scenario that runs because of a change."""
        for scenario, reason in zip(self.scenarios, self.reasons, strict=False):
            yield f"{scenario.id}: {reason}"


def select(
    paths: Sequence[str],
    projects: Projects,
    *,
    words: str = "",
    tags: Sequence[str] = (),
    changed: str | None = None,
    shard: Shard | None = None,
) -> Selection:
    """The scenarios of these files and folders; `FILE::NAME` is one scenario of a file, as results name it.

    `words` is an expression over the words of a scenario (`harness.selection.keywords`); of `tags` a scenario has at
    least one; `changed` is a commit, since which something changed that a scenario depends on; `shard` is the part
    to take of what is then left. The last two may leave nothing.

    Raises:
        FormatError: a path does not exist (`missing-file`), a NAME neither (`unknown-scenario`), `words` is no
            expression (`bad-selection`), or nothing is left to run while no file is to blame (`no-scenarios`);
            or git cannot tell what changed.
    """
    expression = parse(words) if words.strip() else None
    asked = _asked(paths)
    loaded, refused = _loaded(asked)
    kept = [each for each in loaded if not asked[each.file] or each.name in asked[each.file]]
    if expression is not None:
        kept = [each for each in kept if expression.holds(keywords_of(each, projects.of(each.file).project))]
    kept = [each for each in kept if not tags or set(tags) & set(each.tags)]
    if not kept and not refused:
        raise FormatError(_nothing(loaded, expression, tags))
    said = [*_said(expression, tags), *(["FILE::NAME"] if any(asked.values()) else [])]
    reasons: dict[int, str] = {}
    if changed is not None:
        found = changes((projects.of(file).project for file in asked), changed)
        why = InputFinder(projects, found).why(kept)
        reasons = {id(each): reason for each, reason in zip(kept, why, strict=True) if reason}
        kept = [each for each in kept if id(each) in reasons]
        said.append(found.said)
    if shard is not None:
        kept = _shard(kept, shard, projects)
        said.append(f"shard {shard}")
    part, left_out = "", dict[Path, None]()
    if len(kept) < len(loaded):
        remaining = {id(each) for each in kept}
        left_out = {each.manifests[0]: None for each in loaded if id(each) not in remaining}
        part = f"{len(kept)} of {plural(len(loaded), 'scenario')} selected ({', '.join(said)})"
    because = tuple(reasons[id(each)] for each in kept) if reasons else ()
    return Selection(tuple(kept), refused, tuple(asked), part, because, tuple(left_out))


def _shard(scenarios: Sequence[Scenario], shard: Shard, projects: Projects) -> list[Scenario]:
    root = projects.common(each.file for each in scenarios).project
    ids = [f"{relative_path(each.file.absolute(), root)}::{each.name}" for each in scenarios]
    return [scenarios[index] for index in shard.members(ids)]


def _asked(paths: Sequence[str]) -> dict[Path, set[str]]:
    """The files, each with the names asked for in it; none for all."""
    names: dict[Path, set[str | None]] = {}
    for path in paths:
        file, asked, name = path.partition("::")
        if asked and not name:
            text = f"'{path}' names no scenario"
            raise FormatError(Problem("unknown-scenario", text, hint=f"{file} runs all of this file"))
        for found in discover([Path(file)]):
            names.setdefault(found, set()).add(name if asked else None)
    if not names:
        searched = ", ".join(dict.fromkeys(shown_path(path) for path in paths))
        message = f"no scenario files (*{SUFFIXES[0]}) in {searched}"
        own = next((found.file for path in paths for found in scenarios_below(Path(path))[0]), None)
        hint = f"name {shown_path(own)} to run its own" if own else "`harness init` writes an example"
        raise FormatError(Problem("no-scenarios", message, hint=hint))
    return {
        file: {name for name in asked if name is not None} if None not in asked else set()
        for file, asked in names.items()
    }


def _loaded(asked: Mapping[Path, set[str]]) -> tuple[list[Scenario], dict[Path, FormatError]]:
    scenarios: list[Scenario] = []
    refused: dict[Path, FormatError] = {}
    for file, names in asked.items():
        try:
            found = load_file(file).scenarios
        except FormatError as error:
            refused[file] = error if file.name.endswith(SUFFIXES) else _misnamed(file, error)
            continue
        except ManifestError as error:
            refused[file] = FormatError(error.problems)
            continue
        known = [scenario.name for scenario in found]
        for name in sorted(names.difference(known)):
            message = f"no scenario '{name}' in {shown_path(file)}"
            raise FormatError(Problem("unknown-scenario", message, hint=nearest_names(name, known)))
        scenarios += found
    return scenarios, refused


def _misnamed(file: Path, error: FormatError) -> FormatError:
    """The first problem of a file that is none of ours by its name, perhaps a manifest."""
    hint = f"scenario files end in {SUFFIXES[0]}; `harness validate` checks a manifest"
    first = error.problems[0]
    name = shown_path(file)
    return FormatError(Problem(first.code, f"{name} is no scenario file: {first.message}", first.span, hint))


def _said(expression: Expression | None, tags: Sequence[str]) -> list[str]:
    """The options that select, as they were given."""
    return [*([f"-k '{expression.text}'"] if expression else []), *(f"--tag {tag}" for tag in tags)]


def _nothing(scenarios: Sequence[Scenario], expression: Expression | None, tags: Sequence[str]) -> Problem:
    known = sorted({tag for scenario in scenarios for tag in scenario.tags})
    hints = [did_you_mean(tag, known) for tag in tags if tag not in known]
    options = [*known, *(each for scenario in scenarios for each in (scenario.name, *scenario.name.split()))]
    near = [nearest(phrase, options) for phrase in (expression.phrases if expression else ())]
    hints += [f"did you mean '{name}'?" for name in near if name]
    said = " and ".join(_said(expression, tags))
    message = (
        f"none of {plural(len(scenarios), 'scenario')} fits {said}" if said else "there are no scenarios"
    )
    return Problem("no-scenarios", message, hint="; ".join(hint for hint in hints if hint))
