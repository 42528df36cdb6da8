"""Whether a session of pytest ran all scenarios of the files it was given, and why not.

Left out before anything runs: by `FILE::NAME`, `-k`, `-m`, `--lf`, `--sw`, `--deselect`, `--harness-changed`,
`--harness-shard`, or in a file with faults.
Left out while it runs: after the first failure (`-x`), or by Ctrl-C.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from harness.plugin.selection import selected_by
from harness.scenario import SUFFIXES, YAML

_OPTIONS: Final = {
    "keyword": "-k",
    "markexpr": "-m",
    "lf": "--lf",
    "stepwise": "--sw",
    "deselect": "--deselect",
}
_part_key = pytest.StashKey["Part"]()


@dataclass
class Part:
    """The scenarios that were found, and those of them that were selected.

    found    how many, in the files that could be read
    kept     how many were selected
    faulty   the files that could not be read
    skips    whether whole files were left out before they were read (`--lf`)
    """

    found: int = 0
    kept: int = 0
    faulty: list[str] = field(default_factory=list)
    skips: bool = False

    def as_data(self) -> dict[str, Any]:
        """It as a worker of xdist sends it."""
        return asdict(self)


def part_of(config: pytest.Config) -> Part:
    """What the session has collected so far."""
    if _part_key not in config.stash:
        cache = getattr(config, "cache", None)  # it changes before the session ends
        failed = cache.get("cache/lastfailed", {}) if cache is not None else {}
        config.stash[_part_key] = Part(skips=bool(config.getoption("lf", False) and failed))
    return config.stash[_part_key]


def why_incomplete(config: pytest.Config, part: Part, ran: int) -> str:
    """Why fewer scenarios ran than there are; "" when all did."""
    reasons = [f"{name} could not be read" for name in part.faulty]
    if part.kept < part.found or part.skips:
        of = "" if part.skips else f" of {part.found}"
        reasons.append(
            f"{part.kept}{of} {_scenarios(part.kept if part.skips else part.found)} selected ({_said(config)})"
        )
    if ran < part.kept:
        why = "stopped by -x" if config.getoption("maxfail", 0) else "interrupted"
        reasons.append(f"{why} after {ran} of {part.kept} {_scenarios(part.kept)}")
    return "; ".join(reasons)


def _scenarios(number: int) -> str:
    return "scenario" if number == 1 else "scenarios"


def _said(config: pytest.Config) -> str:
    """The options that left something out, as far as pytest itself has them."""
    given = {option: config.getoption(name, None) for name, option in _OPTIONS.items()}
    said = [option if value is True else f"{option} {value!r}" for option, value in given.items() if value]
    named = [argument for argument in config.args if "::" in argument]
    return ", ".join([*said, *(["FILE::NAME"] if named else []), *selected_by(config)]) or "by a plugin"


def scenario_files(config: pytest.Config, ids: list[str]) -> list[Path]:
    """The files of these node ids that have scenarios, one for each id of a scenario."""
    names = [nodeid.partition("::")[0] for nodeid in ids]
    paths = {name: config.rootpath / name for name in dict.fromkeys(names)}
    found = {name: path for name, path in paths.items() if may_have_scenarios(config, path)}
    return [found[name] for name in names if name in found]


def may_have_scenarios(config: pytest.Config, path: Path) -> bool:
    """True for scenario files, and for YAML files that are named one by one: manifests may have scenarios too."""
    if path.name.endswith(SUFFIXES):
        return True
    folder = config.invocation_params.dir
    named = (folder / argument.partition("::")[0] for argument in config.args)
    return path.name.endswith(YAML) and any(path.name == each.name and path.samefile(each) for each in named)
