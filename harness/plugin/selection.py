"""Selection of scenarios by the plugin's own options, and counts of what was collected, selected and left out.

The options select the scenarios that a change affects, and one shard of all.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from harness.plugin.item import ScenarioItem
from harness.plugin.options import projects_of
from harness.scenario import SUFFIXES, YAML

if TYPE_CHECKING:
    from harness.selection.keywords import Shard


_reasons_key = pytest.StashKey[list[str]]()


@pytest.hookimpl(specname="pytest_addoption")
def pytest_add_selection_options(parser: pytest.Parser) -> None:
    """Add the options that select scenarios. They have no ini settings and no variables."""
    group = parser.getgroup("harness")
    group.addoption(
        "--harness-changed",
        nargs="?",
        const="HEAD",
        metavar="REF",
        help="run the scenarios that a change touches only: since REF was left, or what is not committed",
    )
    group.addoption(
        "--harness-shard",
        type=_shard,
        metavar="I/N",
        help="run the I-th of N parts of the scenarios only: for N machines, which run all of them together",
    )


def selected_by(config: pytest.Config) -> list[str]:
    """Describe the selection options that are used, as a reason why a run is incomplete."""
    ref, shard = config.getoption("harness_changed", None), config.getoption("harness_shard", None)
    return [*([f"changed since {ref}"] if ref else []), *([f"shard {shard}"] if shard else [])]


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect scenarios according to the options. Other tests stay.

    Raises:
        FormatError: git cannot list the changes.
    """
    ref, shard = config.getoption("harness_changed", None), config.getoption("harness_shard", None)
    if ref is not None:
        _keep(config, items, _touched(config, scenario_items(items), ref))
    if shard is not None:
        found = scenario_items(items)
        members = _parsed(shard).members([item.nodeid for item in found])
        _keep(config, items, [found[index] for index in members])


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Show the number of scenarios that a change affects; with `-v`, the reason for each."""
    reasons = config.stash.get(_reasons_key, None)
    if reasons is None:
        return []
    from harness.report.formatting import plural

    count = plural(len(reasons), "scenario") if reasons else "no scenario"
    touched = f"{count} touched by what has {selected_by(config)[0]}"
    return [touched, *(reasons if config.option.verbose > 0 else ())]


def _touched(config: pytest.Config, items: list[ScenarioItem], ref: str) -> list[ScenarioItem]:
    from harness.selection.changes import changes
    from harness.selection.inputs import InputFinder

    projects = projects_of(config)
    found = changes((projects.of(item.path).project for item in items), ref)
    why = InputFinder(projects, found).reasons([item.scenario for item in items])
    kept = [(item, reason) for item, reason in zip(items, why, strict=True) if reason]
    config.stash[_reasons_key] = [f"{item.nodeid}: {reason}" for item, reason in kept]
    return [item for item, _ in kept]


def scenario_items(items: Iterable[pytest.Item]) -> list[ScenarioItem]:
    """Return the items that are scenarios."""
    return [item for item in items if isinstance(item, ScenarioItem)]


def _keep(config: pytest.Config, items: list[pytest.Item], kept: Collection[ScenarioItem]) -> None:
    """Deselect the scenarios that are not in `kept`."""
    chosen = set(kept)
    others = [item for item in scenario_items(items) if item not in chosen]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if not isinstance(item, ScenarioItem) or item in chosen]


def _shard(text: str) -> str:
    """Check the text of a shard before any worker of xdist starts. Workers receive the option as text."""
    try:
        return str(_parsed(text))
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _parsed(text: str) -> Shard:
    from harness.selection.keywords import Shard

    return Shard.parse(text)


_SELECTING: Final = {
    "keyword": "-k",
    "markexpr": "-m",
    "lf": "--lf",
    "stepwise": "--sw",
    "deselect": "--deselect",
}
_counts_key = pytest.StashKey["CollectionCounts"]()


@dataclass
class CollectionCounts:
    """The numbers of scenarios that were found and selected.

    Attributes:
        found: the number of scenarios in files that could be read.
        kept: the number of selected scenarios.
        faulty: the names of files that could not be read.
        unread: the records of their scenarios, each as text and bytes.
        skips: True if whole files were left out before they were read (`--lf`).
    """

    found: int = 0
    kept: int = 0
    faulty: list[str] = field(default_factory=list)
    unread: list[tuple[str, bytes]] = field(default_factory=list)
    skips: bool = False


def counts_of(config: pytest.Config) -> CollectionCounts:
    """Return the counts of the session so far."""
    if _counts_key not in config.stash:
        cache = getattr(config, "cache", None)  # read now, as its content changes before the session ends
        failed = cache.get("cache/lastfailed", {}) if cache is not None else {}
        config.stash[_counts_key] = CollectionCounts(skips=bool(config.getoption("lf", False) and failed))
    return config.stash[_counts_key]


def why_incomplete(config: pytest.Config, counts: CollectionCounts, ran: int) -> str:
    """Return the reason why some scenarios did not run; "" if all did. `ran` is the number that ran."""
    from harness.report.formatting import plural

    reasons = [f"{name} could not be read" for name in counts.faulty]
    if counts.kept < counts.found or counts.skips:
        scenarios = plural(counts.kept if counts.skips else counts.found, "scenario")
        of = "" if counts.skips else f"{counts.kept} of "
        reasons.append(f"{of}{scenarios} selected ({_selecting_options(config)})")
    if ran < counts.kept:
        why = "stopped by -x" if config.getoption("maxfail", 0) else "interrupted"
        reasons.append(f"{why} after {ran} of {plural(counts.kept, 'scenario')}")
    return "; ".join(reasons)


def _selecting_options(config: pytest.Config) -> str:
    """Return the options that left scenarios out: pytest's own, and those of this plugin."""
    given = {option: config.getoption(name, None) for name, option in _SELECTING.items()}
    own = [option if value is True else f"{option} {value!r}" for option, value in given.items() if value]
    named = [argument for argument in config.args if "::" in argument]
    return ", ".join([*own, *(["FILE::NAME"] if named else []), *selected_by(config)]) or "by a plugin"


def scenario_files(config: pytest.Config, ids: list[str]) -> list[Path]:
    """Return the file of each node id that belongs to a scenario."""
    names = [nodeid.partition("::")[0] for nodeid in ids]
    paths = {name: config.rootpath / name for name in dict.fromkeys(names)}
    found = {name: path for name, path in paths.items() if may_have_scenarios(config, path)}
    return [found[name] for name in names if name in found]


def may_have_scenarios(config: pytest.Config, path: Path) -> bool:
    """True for scenario files, and for YAML files that the command line names, as manifests may contain scenarios."""
    if path.name.endswith(SUFFIXES):
        return True
    folder = config.invocation_params.dir
    named = (folder / argument.partition("::")[0] for argument in config.args)
    return path.name.endswith(YAML) and any(path.name == file.name and path.samefile(file) for file in named)
