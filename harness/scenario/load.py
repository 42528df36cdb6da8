"""Reads scenarios: `load_file` reads a file of them, `discover` finds the files.

Each scenario is merged from three layers: the file's own keys, the defaults over them, and the scenario's keys
over both. The models of `harness.scenario.document` validate the result and build a
`harness.scenario.model.Scenario`. Scenarios may also be written in a manifest:

    harness run config.yaml              ─▶ scenarios_of_manifest: all of them, answered from a cassette
    `test_scenario: NAME` in a scenario  ─▶ that one, in the world of the scenario
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, Tag, field_validator

from harness.dialects.load import load_scenarios
from harness.dialects.registry import dialect_of
from harness.dialects.request import LoadRequest
from harness.errors import FormatError, ManifestError, Problem, SourceError, Span
from harness.graph.effects import EFFECTS
from harness.scenario import SUFFIXES
from harness.scenario.case_table import load_cases
from harness.scenario.cases import CASES, expand_cases, stray_references
from harness.scenario.document import EXCLUDED, NO_DEFAULT, FileKeys, ScenarioKeys, input_shape
from harness.scenario.model import Scenario, ScenarioFile, load_request
from harness.settings import Settings
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath, hint_for_missing, read, shown_path
from harness.source.frames import located_defects
from harness.source.models import Mistake, in_file_order, mistaken, validate
from harness.units import LARGEST_FIGURE
from harness.world.field_types import LEFT_OUT, by_shape

_SHARED_KEYS: Final = ("manifest", "dialect", "agent", "entry_point", "components", "env")
"""Keys of a file that apply to all its scenarios."""
_BY_NAME: Final = frozenset(effect.key for effect in EFFECTS.values())


class Head(FileKeys):
    """A scenario file without its scenarios, which are validated one by one, merged with the defaults."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "tests": "did you mean 'scenarios'?",
        **{
            key: f"'{key}' belongs in an item of 'scenarios', or under 'defaults'"
            for key in ScenarioKeys.model_fields
        },
    }

    defaults: dict[str, Any] = LEFT_OUT  # without a description: the JSON Schema is derived from File
    scenarios: Annotated[list[dict[str, Any]], Field(min_length=1)] = Field(
        examples=["scenarios: [{name: …, input: …}]"]
    )

    @field_validator("defaults")
    @classmethod
    def _of_one(cls, defaults: dict[str, Any]) -> dict[str, Any]:
        found = [
            Mistake(f"a {key} cannot have a default", (key,), True) for key in NO_DEFAULT if key in defaults
        ]
        if found:
            raise mistaken(*found)
        return defaults


def load_file(
    path: Path, settings: Settings | None = None, *, document: Document | None = None
) -> ScenarioFile:
    """Return the scenarios of a scenario file, or of a manifest that contains some.

    Args:
        path: the file.
        settings: those of its project, which may have values for variables.
        document: its content, if it is not written yet.

    Raises:
        FormatError: with all problems of the file, in file order.
        ManifestError: with all problems of the manifest, or it has no scenarios (`no-scenarios`).
    """
    with located_defects(path, error=FormatError):
        return _loaded(path, settings or Settings(), document)


def _loaded(path: Path, settings: Settings, document: Document | None) -> ScenarioFile:
    if (
        document is None
        and not path.name.endswith(SUFFIXES)
        and (own := scenarios_of_manifest(path, settings)) is not None
    ):
        if not own:
            message = f"{shown_path(path)} has no scenarios of its own"
            hint = f"write them into it, or into a scenario file: `harness new {shown_path(path)}` writes one"
            raise ManifestError(Problem("no-scenarios", message, hint=hint))
        return ScenarioFile(path, own)
    if document is None:
        document = read(path, yaml="1.2", error=FormatError)
    problems: list[Problem] = []
    names: Sequence[str] = ()
    try:
        names = validate(Head, document, error=FormatError).env_passthrough or ()
    except FormatError as error:
        problems += error.problems
    passthrough = {name: document.span(("env_passthrough", at)) for at, name in enumerate(names)}
    merged = merged_scenarios(document)
    scenarios = []
    build = partial(_scenario, path=path, passthrough=passthrough, settings=settings)
    for part in merged:  # one at a time: the models of thousands of scenarios would take much memory
        try:
            if part.value.get(CASES) is None:
                scenarios.append(build(part))
            else:
                scenarios += expand_cases(part, build, path.parent)
        except SourceError as error:
            problems += error.problems
    if "${case." in document.text:
        problems += [flaw for part in merged if CASES not in part.value for flaw in stray_references(part)]
    problems = _conflicting_keys(document) + _repeated_names(merged) + problems
    if problems:
        raise FormatError(in_file_order(problems))
    single = {part.value["name"]: part for part in merged if CASES not in part.value}
    return ScenarioFile(path, tuple(_with_twins(scenarios, single)))


def _scenario(at: Document, path: Path, passthrough: Mapping[str, Span], settings: Settings) -> Scenario:
    message = "missing key 'manifest': neither the file nor the scenario names one"
    missing = [] if "manifest" in at.value else [Problem("missing-key", message, at.span(("name",)))]
    try:
        keys = validate(ScenarioKeys, at, error=FormatError)
    except FormatError as error:
        raise FormatError([*error.problems, *missing]) from None
    if missing:
        raise FormatError(missing)
    scenario = keys.spec(at, path, passthrough)
    scenario = replace(scenario, env=settings.variables(scenario.env))
    if keys.test_scenario is None:
        return scenario
    return _completed_by_manifest(scenario, keys.test_scenario, at.span(("test_scenario",)))


def names_in(path: Path) -> list[str]:
    """Return the names of the scenarios in a file that has problems; "" for those that cannot be told."""
    found: list[str] = []
    try:
        with located_defects(path, error=FormatError):
            merged = merged_scenarios(read(path, yaml="1.2", error=FormatError))
    except SourceError:
        return found
    for part in merged:
        name = part.value.get("name")
        name = name if isinstance(name, str) and name not in found else ""
        try:
            rows = (
                load_cases(part.value[CASES], part.at((CASES,)), path.parent) if CASES in part.value else []
            )
        except SourceError:
            rows = []
        found += [f"{name}[{row.name}]" for row in rows] if name and rows else [name]
    return found


def discover(paths: Iterable[Path]) -> list[Path]:
    """Return the files among `paths`, and the scenario files in the folders among them, in order.

    Hidden folders are skipped. Each file is listed once, with a path relative to the current folder if it is
    below it, and without `..`.

    Raises:
        FormatError: a path does not exist.
    """
    found: dict[Path, None] = {}
    problems = []
    for path in paths:
        if path.is_dir():
            found.update(dict.fromkeys(_files_below(_normalised(path))))
        elif _exists(path):
            found[_normalised(path)] = None
        else:
            text = f"{shown_path(path)}: no such file or folder"
            problems.append(Problem("missing-file", text, hint=hint_for_missing(path)))
    if problems:
        raise FormatError(problems)
    return list(found)


def _normalised(path: Path) -> Path:
    """Return the normalised path of a file, by which results name it.

    The path is left as it is if normalising it leads to another file, as `..` after a link may.
    """
    tidy = os.path.normpath(path)
    same = os.path.exists(tidy) and os.path.samefile(path, tidy)
    return Path(shown_path(tidy)) if same else path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long
        return False


def _files_below(folder: Path) -> list[Path]:
    files = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(root, name) for name in names if name.endswith(SUFFIXES)]
    return sorted(files)


# ---------------------------------------------------------------- checking


def _mapping_indexes(value: Any) -> list[int]:
    """Return the indexes of the scenarios that are mappings, whatever else is wrong with the file."""
    scenarios = value.get("scenarios") if isinstance(value, dict) else None
    items = scenarios if isinstance(scenarios, list) else []
    return [at for at, item in enumerate(items) if isinstance(item, dict)]


def merged_scenarios(document: Document) -> list[Document]:
    """Return each scenario merged with the defaults and with the keys that the file sets for all."""
    places = _mapping_indexes(document.value)
    if not places:
        return []
    layers = [document.without(*(key for key in document.value if key not in _SHARED_KEYS))]
    if isinstance(document.value.get("defaults"), dict):
        layers.insert(0, document.at(("defaults",)).without(*NO_DEFAULT))
    merged = []
    for at in places:
        scenario = document.at(("scenarios", at))
        for layer in layers:
            # A key of the scenario removes the defaults that cannot stand beside it.
            excluded = [
                key for given in scenario.value for key in EXCLUDED.get(given, ()) if key in layer.value
            ]
            scenario = (layer.without(*excluded) if excluded else layer).under(scenario, _replaces_default)
        merged.append(scenario)
    return merged


def _replaces_default(path: DocumentPath, value: Any) -> bool:
    """True for entries by name and for matchers: they replace the default's value and are not merged with it."""
    return (len(path) == 2 and path[0] in _BY_NAME) or any(str(key).startswith("$") for key in value)


_TURNS_HINTS: Final = {
    "input": "it is that of the first turn: turns: [{input: …}, …]",
    "human": "each answer is a turn: turns: [{input: …}, {resume: …}]",
}
"""Hints for keys that are written differently in a scenario with `turns`."""


def _conflicting_keys(document: Document) -> list[Problem]:
    """Return a problem for each key that cannot stand beside another, in the file, its defaults and each scenario."""
    parts: list[DocumentPath] = [(), *(("scenarios", at) for at in _mapping_indexes(document.value))]
    if isinstance(document.value, dict) and isinstance(document.value.get("defaults"), dict):
        parts.append(("defaults",))
    problems = []
    for path in parts:
        keys = document.at(path).value
        for key in ("turns", "entry_point", "test_scenario") if isinstance(keys, dict) else ():
            for other in EXCLUDED[key]:
                if key in keys and other in keys:
                    message = f"'{other}' cannot be combined with '{key}'"
                    hint = _TURNS_HINTS.get(other, "") if key == "turns" else ""
                    problems.append(
                        Problem("conflicting-keys", message, document.key_span((*path, other)), hint)
                    )
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


_OF_PEOPLE: Final = ("name", "description", "tags")
"""Keys of a scenario that its run does not read."""


def _with_twins(scenarios: Sequence[Scenario], documents: Mapping[str, Document]) -> Iterator[Scenario]:
    """Yield scenarios, with a warning for each that an earlier one repeats but for its name.

    `documents` are those of the scenarios without `cases`, by name.
    """
    first: dict[str, Scenario] = {}
    for scenario in scenarios:
        if (at := documents.get(scenario.name)) is not None:
            content = repr({key: value for key, value in at.value.items() if key not in _OF_PEOPLE})
            twin = first.setdefault(content, scenario)
            if twin is not scenario:
                text = f"this scenario runs the same as '{twin.name}' ({twin.span})"
                hint = "for several runs of the same, write `repeat`"
                told = Problem("unread", text, scenario.span, hint, severity="warning")
                scenario = replace(scenario, warnings=(*scenario.warnings, told))
        yield scenario


# ---------------------------------------------------------------- scenarios in manifests

_NOT_JUDGED: Final = {"status": 0.0, "unused": 0.0}
"""The weights of the gates: only the output is judged."""
_OF_MANIFEST: Final = ("agent", "agent_span", "weight", "timeout_s", "turns", "expect")
"""The fields that a scenario of a file has from the test scenario that it names."""


_Input = Annotated[
    Annotated[str | dict[str, Any], Tag("value")] | Annotated[None, Tag("null")],
    by_shape("text or a mapping", input_shape),
]


class _OwnKeys(ScenarioKeys):
    """One scenario of a manifest. Its weight may be 0: such a scenario runs, but does not count."""

    weight: Annotated[float, Field(ge=0, le=LARGEST_FIGURE)] = 1.0
    input: _Input = Field(LEFT_OUT, description="The input; its form depends on the dialect.")


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


def _completed_by_manifest(scenario: Scenario, name: str, span: Span) -> Scenario:
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
    taken = {name: getattr(own, name) for name in _OF_MANIFEST}
    return replace(scenario, **taken, mentions=(*scenario.mentions, *own.mentions))


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
