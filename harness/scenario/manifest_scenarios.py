"""Scenarios that are written in a manifest, and scenario files that give them a world.

    harness run config.yaml              ─▶ scenarios_of_manifest: all of them, answered from a cassette
    `test_scenario: NAME` in a scenario  ─▶ completed_by_manifest: this one, in the world of the scenario

Only the output is judged: the gates `status` and `unused` have weight 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from harness.dialects.load import load_scenarios
from harness.dialects.registry import dialect_of
from harness.dialects.request import LoadRequest
from harness.errors import FormatError, ManifestError, Problem, Span
from harness.scenario.document import Input, ScenarioKeys
from harness.scenario.model import Scenario, load_request
from harness.settings import Settings
from harness.source.display import did_you_mean
from harness.source.document import Document, shown_path
from harness.source.models import in_file_order, validate
from harness.units import LARGEST_FIGURE
from harness.world.field_types import LEFT_OUT

_NOT_JUDGED: Final = {"status": 0.0, "unused": 0.0}


class _OwnKeys(ScenarioKeys):
    """One scenario of a manifest. Its weight may be 0: such a scenario runs, but does not count."""

    weight: Annotated[float, Field(ge=0, le=LARGEST_FIGURE)] = 1.0
    input: Input = Field(LEFT_OUT, description="The input; its form depends on the dialect.")


def scenarios_of_manifest(path: Path, settings: Settings) -> tuple[Scenario, ...] | None:
    """Return the scenarios in a manifest. `settings`, those of its project, have the values of its variables.

    Return None if the file is not a manifest, or if its dialect has no scenarios.

    Raises:
        ManifestError: the manifest or one of its scenarios is invalid.
    """
    try:
        dialect = dialect_of(path).name
    except ManifestError:  # the caller reads it as a scenario file, and reports its problems
        return None
    env = settings.variables({})
    found = load_scenarios(LoadRequest((path,), env=env), dialect)
    return build_scenarios(found, path, dialect, env) if found is not None else None


def completed_by_manifest(scenario: Scenario, name: str, span: Span) -> Scenario:
    """Return a scenario of a file, completed with the test scenario `name` of its manifest.

    `span` is the location of the name.

    Raises:
        FormatError: there is no such test scenario (`unknown-scenario`).
        ManifestError: the manifest or one of its scenarios is invalid.
    """
    manifest = scenario.manifests[0]
    request = load_request(scenario, Settings())
    found = load_scenarios(request, scenario.dialect)
    known = {own.name: own for own in build_scenarios(found or (), manifest, scenario.dialect, scenario.env)}
    if name not in known:
        text = f"no test scenario '{name}' in {shown_path(manifest)}"
        hint = did_you_mean(name, known) if known else "it has none of its own"
        raise FormatError(Problem("unknown-scenario", text, span, hint))
    own = known[name]
    return replace(
        scenario,
        agent=own.agent,
        agent_span=own.agent_span,
        weight=own.weight,
        timeout_s=own.timeout_s,
        turns=own.turns,
        expect=own.expect,
        mentions=(*scenario.mentions, *own.mentions),
    )


def build_scenarios(
    documents: Iterable[Document], path: Path, dialect: str | None, env: Mapping[str, str] | None = None
) -> tuple[Scenario, ...]:
    """Return the scenarios of these documents, which are parts of the manifest at `path` with the variables `env`.

    Raises:
        ManifestError: with all problems of the scenarios.
    """
    scenarios: dict[str, Scenario] = {}
    problems: list[Problem] = []
    for at in documents:
        part = at.with_value({**at.value, "manifest": path.name})
        try:
            keys = validate(_OwnKeys, part)
        except ManifestError as error:
            problems += error.problems
            continue
        own = keys.spec(part, path)
        own = replace(own, dialect=dialect, env=env or {}, expect=replace(own.expect, weights=_NOT_JUDGED))
        first = scenarios.setdefault(own.name, own)
        if first is not own:
            text = f"a second scenario '{own.name}' (first in line {first.span.line})"
            problems.append(Problem("duplicate-name", text, own.span))
    if problems:
        raise ManifestError(in_file_order(problems))
    return tuple(scenarios.values())
