"""Detection of incomplete sessions, which did not run all scenarios of the files they were given, and the reasons.

Scenarios may be left out before anything runs (`FILE::NAME`, `-k`, `-m`, `--lf`, `--sw`, `--deselect`,
`--harness-changed`, `--harness-shard`, a file with faults), or during the run (`-x` after the first failure, Ctrl-C).
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
_counts_key = pytest.StashKey["CollectionCounts"]()


@dataclass
class CollectionCounts:
    """The numbers of scenarios that were found and selected.

    Attributes:
        found: the number of scenarios in files that could be read.
        kept: the number of selected scenarios.
        faulty: the names of files that could not be read.
        skips: True if whole files were left out before they were read (`--lf`).
    """

    found: int = 0
    kept: int = 0
    faulty: list[str] = field(default_factory=list)
    skips: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return the fields as data that a worker of xdist can send."""
        return asdict(self)


def counts_of(config: pytest.Config) -> CollectionCounts:
    """Return the counts of the session so far."""
    if _counts_key not in config.stash:
        cache = getattr(config, "cache", None)  # read now, as its content changes before the session ends
        failed = cache.get("cache/lastfailed", {}) if cache is not None else {}
        config.stash[_counts_key] = CollectionCounts(skips=bool(config.getoption("lf", False) and failed))
    return config.stash[_counts_key]


def why_incomplete(config: pytest.Config, counts: CollectionCounts, ran: int) -> str:
    """Return the reason why some scenarios did not run; "" if all did. `ran` is the number that ran."""
    reasons = [f"{name} could not be read" for name in counts.faulty]
    if counts.kept < counts.found or counts.skips:
        of = "" if counts.skips else f" of {counts.found}"
        scenarios = _scenarios(counts.kept if counts.skips else counts.found)
        reasons.append(f"{counts.kept}{of} {scenarios} selected ({_selecting_options(config)})")
    if ran < counts.kept:
        why = "stopped by -x" if config.getoption("maxfail", 0) else "interrupted"
        reasons.append(f"{why} after {ran} of {counts.kept} {_scenarios(counts.kept)}")
    return "; ".join(reasons)


def _scenarios(number: int) -> str:
    return "scenario" if number == 1 else "scenarios"


def _selecting_options(config: pytest.Config) -> str:
    """Return the options that left scenarios out: pytest's own, and those of this plugin."""
    given = {option: config.getoption(name, None) for name, option in _OPTIONS.items()}
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
