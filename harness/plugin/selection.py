"""Selection of scenarios by the plugin's own options: those that a change affects, and one shard of all."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pytest

from harness.plugin.item import ScenarioItem
from harness.plugin.options import projects_of

if TYPE_CHECKING:
    from harness.selection.shard import Shard

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
        _keep(config, items, _touched(config, _scenarios(items), ref))
    if shard is not None:
        found = _scenarios(items)
        members = _parsed(shard).members([item.nodeid for item in found])
        _keep(config, items, [found[index] for index in members])


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Show the number of scenarios that a change affects; with `-v`, the reason for each."""
    reasons = config.stash.get(_reasons_key, None)
    if reasons is None:
        return []
    count = (
        "no scenario" if not reasons else "1 scenario" if len(reasons) == 1 else f"{len(reasons)} scenarios"
    )
    return [
        f"{count} touched by what has {selected_by(config)[0]}",
        *(reasons if config.option.verbose > 0 else ()),
    ]


def _touched(config: pytest.Config, items: list[ScenarioItem], ref: str) -> list[ScenarioItem]:
    from harness.selection.changes import changes
    from harness.selection.inputs import InputFinder

    projects = projects_of(config)
    found = changes((projects.of(item.path).project for item in items), ref)
    why = InputFinder(projects, found).reasons([item.scenario for item in items])
    kept = [(item, reason) for item, reason in zip(items, why, strict=True) if reason]
    config.stash[_reasons_key] = [f"{item.nodeid}: {reason}" for item, reason in kept]
    return [item for item, _ in kept]


def _scenarios(items: list[pytest.Item]) -> list[ScenarioItem]:
    return [item for item in items if isinstance(item, ScenarioItem)]


def _keep(config: pytest.Config, items: list[pytest.Item], kept: Collection[ScenarioItem]) -> None:
    """Deselect the scenarios that are not in `kept`."""
    chosen = set(kept)
    others = [item for item in _scenarios(items) if item not in chosen]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if not isinstance(item, ScenarioItem) or item in chosen]


def _shard(text: str) -> str:
    """Check the text of a shard before any worker of xdist starts. Workers receive the option as text."""
    from argparse import ArgumentTypeError

    try:
        return str(_parsed(text))
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _parsed(text: str) -> Shard:
    from harness.selection.shard import Shard

    return Shard.parse(text)
