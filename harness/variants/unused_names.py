"""Warnings about names in `params` and `env` of variants that no agent uses, and that are probably misspelt.

A parameter is known if a provider documents it, or if a file of the manifest has a key of that name. A variable
is known if its name occurs in the agent's files or the code beside it: see `AgentWords`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from harness.dialects.load import load_graph
from harness.errors import ManifestError, Problem
from harness.scenario.model import Scenario, load_request
from harness.scenario.words import AgentWords
from harness.settings import Projects
from harness.source.display import did_you_mean
from harness.variants.document import Variant
from harness.world.providers.parameters import KNOWN_PARAMETERS

_KEY: Final = re.compile(r"[\w-]+(?=[\"']?\s*[:=])")


def unused_names(
    variants: Iterable[Variant], scenarios: Sequence[Scenario], projects: Projects
) -> dict[Problem, list[str]]:
    """Return a warning for each such name, with the variants that have it. `scenarios` run with these variants."""
    found: dict[Problem, list[str]] = {}
    for variant in variants:
        if variant.params or variant.env:
            own = [scenario for scenario in scenarios if scenario.variant == variant.name]
            for problem in _unused(variant, _Agents(own, projects)):
                found.setdefault(problem, []).append(variant.name)
    return found


def _unused(variant: Variant, agents: _Agents) -> Iterator[Problem]:
    for name in variant.params:
        if name not in KNOWN_PARAMETERS and not agents.may_set_parameter(name):
            text = (
                f"no manifest that the scenarios run sets a parameter '{name}', and no provider documents it"
            )
            hint = did_you_mean(name, sorted(KNOWN_PARAMETERS), listing=False)
            span = variant.spans[f"params.{name}"]
            yield Problem("unknown-parameter", text, span, hint, severity="warning")
    for name in variant.env:
        if not agents.may_read_variable(name):
            text = f"no manifest that the scenarios run uses the variable '{name}'"
            hint = did_you_mean(name, agents.words(), listing=False)
            yield Problem("unknown-variable", text, variant.spans[f"env.{name}"], hint, severity="warning")


class _Agents:
    """The names that the agents of scenarios use. Each manifest is read once."""

    def __init__(self, scenarios: Sequence[Scenario], projects: Projects) -> None:
        self._sources: set[Path] = set()
        self._words: list[AgentWords] = []
        self._is_whole = bool(scenarios)
        seen: set[object] = set()
        for scenario in scenarios:
            settings = projects.of(scenario.file)
            request = load_request(scenario, settings)
            components = frozenset(request.components.items())
            key = (request.paths, request.agent, components, request.folders)
            if key in seen:
                continue
            seen.add(key)
            try:
                graph = load_graph(request, scenario.dialect)
            except ManifestError:  # the run reports the problem; the manifest may use any name
                self._is_whole = False
                continue
            self._sources.update(graph.sources)
            self._words.append(AgentWords(scenario, graph, settings))

    def may_set_parameter(self, name: str) -> bool:
        """False if no file of a manifest has this key."""
        return not self._is_whole or name in self._keys

    @cached_property
    def _keys(self) -> frozenset[str]:
        texts = (file.read_text("utf-8", errors="replace") for file in self._sources if file.is_file())
        return frozenset(key for text in texts for key in _KEY.findall(text))

    def may_read_variable(self, variable: str) -> bool:
        """False if the name of the variable occurs nowhere."""
        return not self._is_whole or any(words.may_ask_for(variable) for words in self._words)

    def words(self) -> list[str]:
        """Return all words in the agents' files, sorted."""
        return sorted({word for words in self._words for word in words})
