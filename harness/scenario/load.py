"""Scenario files as data: `load_file` reads one, `discover` finds them.

A file is checked against `harness.scenario.document`; its defaults are put under each scenario, the file's
own keys under those; and what stands there becomes `harness.scenario.model` and `harness.world.spec`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem, Span
from harness.scenario import SUFFIXES
from harness.scenario import document as written
from harness.scenario.field_types import env_text
from harness.scenario.load_world import world
from harness.scenario.model import MISSING, Expectations, Scenario, ScenarioFile, Turn
from harness.source.document import Document, DocumentPath, read, shown_path, similar_path
from harness.source.models import in_file_order, validate

_BY_NAME: Final = ("tools", "handlers", "agents", "scripts", "retrieval", "mcp", "llm", "human")


def load_file(path: Path) -> ScenarioFile:
    """The scenarios of a file.

    Raises:
        FormatError: with everything that is wrong with the file, in its order.
    """
    document = read(path, yaml="1.2", error=FormatError)
    problems: list[Problem] = []
    _check(written.Head, document, problems)
    merged = [_with_defaults(document, at) for at in _mappings(document.value)]
    for scenario in merged:
        _check(written.Scenario, scenario, problems)
    problems += _excluded(document) + _repeated_names(merged) + _without_manifest(merged)
    if problems:
        raise FormatError(in_file_order(problems))
    passthrough = tuple(document.value.get("env_passthrough", ()))
    return ScenarioFile(path, tuple(_scenario(path, scenario, passthrough) for scenario in merged))


def discover(paths: Iterable[Path]) -> list[Path]:
    """The scenario files under these folders, in order, and the files among `paths` themselves.

    Hidden folders are left out. Each file is listed once.

    Raises:
        FormatError: a path does not exist.
    """
    found: dict[Path, None] = {}
    problems = []
    for path in paths:
        if path.is_dir():
            found.update(dict.fromkeys(_below(path)))
        elif path.exists():
            found[path] = None
        else:
            near = similar_path(path)
            hint = f"did you mean '{shown_path(near)}'?" if near else ""
            problems.append(Problem("missing-file", f"{shown_path(path)}: no such file or folder", hint=hint))
    if problems:
        raise FormatError(problems)
    return list(found)


def _below(folder: Path) -> list[Path]:
    files = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(root, name) for name in names if name.endswith(SUFFIXES)]
    return sorted(files)


# ---------------------------------------------------------------- checking


def _check(model: type[written.Head | written.Scenario], document: Document, problems: list[Problem]) -> None:
    try:
        validate(model, document, error=FormatError)
    except FormatError as error:
        problems += error.problems


def _mappings(value: Any) -> list[int]:
    """The places of the scenarios that can be looked at, whatever else is wrong with the file."""
    scenarios = value.get("scenarios") if isinstance(value, dict) else None
    items = scenarios if isinstance(scenarios, list) else []
    return [at for at, item in enumerate(items) if isinstance(item, dict)]


def _with_defaults(document: Document, at: int) -> Document:
    """One scenario with the defaults under it, and under those what the file says for all."""
    scenario = document.at(("scenarios", at))
    if isinstance(document.value.get("defaults"), dict):
        scenario = _under(document.at(("defaults",)).without("name"), scenario)
    general = [
        key for key in document.value if key not in ("manifest", "dialect", "agent", "entry_point", "env")
    ]
    return _under(document.without(*general), scenario)


def _under(base: Document, scenario: Document) -> Document:
    """Merged; what a scenario says excludes what cannot stand beside it in the defaults."""
    excluded = [key for given in scenario.value for key in written.EXCLUDED.get(given, ())]
    return base.without(*excluded).under(scenario, _is_whole)


def _is_whole(path: DocumentPath, value: Any) -> bool:
    """Who answers for one name, and a matcher, are replaced and never mixed with the default's."""
    return (len(path) == 2 and path[0] in _BY_NAME) or any(str(key).startswith("$") for key in value)


def _excluded(document: Document) -> list[Problem]:
    """Keys that cannot stand beside each other, in the file, its defaults and each scenario."""
    parts: list[DocumentPath] = [(), *(("scenarios", at) for at in _mappings(document.value))]
    if isinstance(document.value, dict) and isinstance(document.value.get("defaults"), dict):
        parts.append(("defaults",))
    problems = []
    for path in parts:
        said = document.at(path).value
        for key in ("turns", "entry_point") if isinstance(said, dict) else ():
            for other in written.EXCLUDED[key]:
                if key in said and other in said:
                    message = f"'{other}' cannot stand beside '{key}'"
                    problems.append(Problem("conflicting-keys", message, document.key_span((*path, other))))
    return problems


def _repeated_names(scenarios: list[Document]) -> list[Problem]:
    first: dict[str, Span] = {}
    problems = []
    for scenario in scenarios:
        name, span = scenario.value.get("name"), scenario.span(("name",))
        if not isinstance(name, str):
            continue
        if name in first:
            message = f"a second scenario '{name}' (first in line {first[name].line})"
            problems.append(Problem("duplicate-name", message, span))
        first.setdefault(name, span)
    return problems


def _without_manifest(scenarios: list[Document]) -> list[Problem]:
    message = "missing key 'manifest': neither the file nor the scenario names one"
    return [
        Problem("missing-key", message, scenario.span(("name",)))
        for scenario in scenarios
        if "manifest" not in scenario.value
    ]


# ---------------------------------------------------------------- building


def _scenario(path: Path, document: Document, env_passthrough: tuple[str, ...]) -> Scenario:
    said: Mapping[str, Any] = document.value
    manifest = said["manifest"]
    return Scenario(
        file=path,
        name=said["name"],
        span=document.span(("name",)),
        manifests=tuple(
            Path(os.path.normpath(path.parent / text))
            for text in (manifest if isinstance(manifest, list) else [manifest])
        ),
        manifest_span=document.span(("manifest",)),
        dialect=said.get("dialect"),
        agent=said.get("agent", said.get("entry_point")),
        env={name: env_text(value) for name, value in said.get("env", {}).items()},
        env_passthrough=env_passthrough,
        description=said.get("description", ""),
        tags=tuple(said.get("tags", ())),
        weight=float(said.get("weight", 1.0)),
        timeout_s=float(said.get("timeout", 30.0)),
        repeat=said.get("repeat", 1),
        pass_score=float(said.get("pass_score", 1.0)),
        skip=said.get("skip"),
        xfail=said.get("xfail"),
        seed=said.get("seed", 0),
        turns=_turns(document),
        conversation="turns" in said,
        world=world(document),
        cassette=said.get("cassette"),
        allow_unused=said.get("allow_unused", False),
        expect=_expectations(document, ("expect",)) or Expectations(),
    )


def _turns(document: Document) -> tuple[Turn, ...]:
    said = document.value
    if "turns" not in said:
        return (Turn(input=said.get("input", MISSING), span=document.span(("input",))),)
    return tuple(
        Turn(
            input=turn.get("input", MISSING),
            resume=turn.get("resume", MISSING),
            world=world(document, ("turns", at)),
            expect=_expectations(document, ("turns", at, "expect")),
            span=document.span(("turns", at)),
        )
        for at, turn in enumerate(said["turns"])
    )


def _expectations(document: Document, path: DocumentPath) -> Expectations | None:
    """What `expect` at this path says, None when it is not there."""
    said = document.value
    for step in path:
        if isinstance(step, str) and step not in said:
            return None
        said = said[step]
    return Expectations(
        values={key: value for key, value in said.items() if key != "weights"},
        weights={key: float(weight) for key, weight in said.get("weights", {}).items()},
        spans={key: document.span((*path, key)) for key in said},
    )
