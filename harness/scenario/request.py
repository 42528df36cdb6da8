"""Builds the `LoadRequest` with which a dialect's front end loads the graph of a scenario."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from harness.dialects.request import Changes, LoadRequest
from harness.errors import Problem
from harness.scenario.model import Scenario
from harness.settings import Settings
from harness.source.display import did_you_mean
from harness.source.document import real_path

_NEAR: Final = 0.8
"""Minimum similarity at which an environment variable is suggested; a process has dozens of them."""


def load_request(
    scenario: Scenario, settings: Settings, recorded: Mapping[str, str] | None = None
) -> LoadRequest:
    """Return the request for the graph of a scenario.

    `recorded` are values for variables that the process lacks.
    """
    known: Mapping[str, str] = ChainMap(os.environ, dict(recorded or {}))
    environment = {name: known[name] for name in scenario.env_passthrough if name in known}
    return LoadRequest(
        paths=scenario.manifests,
        agent=scenario.agent,
        components=scenario.components,
        env={**environment, **scenario.env},
        folders=import_folders(scenario, settings),
        hooks=scenario.world.hooks,
        allowed=settings.allow_paths,
        named_at=scenario.manifest_span,
        agent_at=scenario.agent_span,
        components_at=scenario.components_at,
        hooks_at={each.name: each.span for each in scenario.mentions if each.role == "hook"},
        changes=scenario.variation.changes if scenario.variation else Changes(),
    )


def absent_variables(
    scenario: Scenario, recorded: Mapping[str, str], sources: Iterable[Path] = ()
) -> Iterator[Problem]:
    """Yield a warning for each name in `env_passthrough` that is in neither the process, nor `env`, nor `recorded`.

    A name that has a default in one of the files `sources` gives no warning.
    """
    for name, span in scenario.env_passthrough.items():
        if not (
            name in os.environ or name in scenario.env or name in recorded or _has_default(name, sources)
        ):
            text = f"'env_passthrough' names {name}, which is not set in the environment"
            hint = did_you_mean(name, sorted(os.environ), cutoff=_NEAR, listing=False)
            yield Problem("missing-variable", text, span, hint, severity="warning")


def _has_default(name: str, sources: Iterable[Path]) -> bool:
    """True if one of these files contains `${NAME:-default}` or, as in LeafMesh, `${NAME:default}`."""
    written = f"${{{name}:".encode()
    return any(path.is_file() and written in path.read_bytes() for path in sources)


def import_folders(scenario: Scenario, settings: Settings) -> tuple[Path, ...]:
    """Return the folders from which Python modules are imported: those of the scenario, manifests and settings."""
    return _resolved((scenario.file, *scenario.manifests), tuple(settings.pythonpath), os.getcwd())


@lru_cache(maxsize=1024)
def _resolved(files: tuple[Path, ...], folders: tuple[Path, ...], _current: str) -> tuple[Path, ...]:
    """Resolve these folders and those of the files.

    `_current`, on which relative paths depend, is part of the cache key.
    """
    return tuple(dict.fromkeys(map(real_path, (*(file.parent for file in files), *folders))))
