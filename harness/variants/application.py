"""Application of variants to scenarios.

    variant ──▶ matched with the prompts, models and document of each manifest, before anything runs
            ──▶ `Variation` of a scenario: locations of prompts, a patch, models, params; `env` and `manifest`
                replace the scenario's own keys

A variant applies to a manifest that has at least one of the things that the variant changes. A change that
applies to no manifest is an error of the variants file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Final

from harness.dialects.dialect import Dialect
from harness.dialects.load import load_prompts
from harness.dialects.request import Changes, LoadRequest, TextReplacement
from harness.errors import FormatError, ManifestError, Problem, SourceError
from harness.graph.names import names_of
from harness.graph.native import NativeGraph
from harness.scenario.app_process import graph_outside_runs, is_app
from harness.scenario.model import Scenario, Variation, load_request
from harness.scenario.words import AgentWords
from harness.settings import Projects
from harness.source.display import did_you_mean
from harness.source.document import Document, read, real_path, shown_path
from harness.source.models import in_file_order
from harness.variants.document import Variant
from harness.world.providers.access import KNOWN_PARAMETERS


def apply_variants(
    scenarios: Sequence[Scenario], variants: Sequence[Variant], projects: Projects
) -> list[Scenario]:
    """Return each scenario with each variant that applies to its manifest, grouped by variant.

    Raises:
        FormatError: lists prompts, models and patches that apply to no manifest.
    """
    applications = [Application(variant, projects) for variant in variants]
    found = [
        each for application in applications for scenario in scenarios for each in application.apply(scenario)
    ]
    check_applied(applications)
    return found


def check_applied(applications: Sequence[Application]) -> None:
    """Check that each change of each variant applied to some manifest, after `apply` was called for all scenarios.

    Raises:
        FormatError: lists the changes that apply to no manifest.
    """
    problems = [problem for application in applications for problem in application.problems()]
    if problems:
        raise FormatError(in_file_order(dict.fromkeys(problems)))


@dataclass
class Application:
    """A variant, and the parts of it that applied to manifests so far.

    matched     True if a manifest matches the variant's `only`
    manifests   the manifests of the scenarios so far
    used        the changes that applied, such as "prompts.ID" and "edit"
    prompts     the ids of prompts in the manifests, for suggestions
    models      the models in the manifests, for suggestions
    refused     problems of the patch
    unreadable  problems of manifests that cannot be read, which may have what the variant changes
    """

    variant: Variant
    projects: Projects
    matched: bool = False
    manifests: dict[Path, None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    prompts: dict[str, None] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    refused: list[Problem] = field(default_factory=list)
    unreadable: list[Problem] = field(default_factory=list)
    _found: dict[object, tuple[Changes, bool]] = field(default_factory=dict)

    def apply(self, scenario: Scenario) -> Iterator[Scenario]:
        """Yield the scenario with this variant, if it applies."""
        variant = self.variant
        self.manifests[scenario.manifests[0]] = None
        if not matches_only(variant, scenario.manifests[0]):
            return
        self.matched = True
        if variant.is_baseline:
            yield replace(scenario, variation=Variation(variant.name, is_baseline=True))
            return
        before = scenario
        if variant.manifest is not None:
            manifests = (variant.manifest, *scenario.manifests[1:])
            scenario = replace(scenario, manifests=manifests, manifest_span=variant.spans["manifest"])
        scenario = replace(scenario, env={**scenario.env, **variant.env})
        changes, differ = self._changes(scenario)
        models = self._models(scenario)
        graph = bool(changes.patch or variant.manifest or variant.env)
        if graph or changes.texts or models or variant.params:
            same = not (differ or variant.params) and self._is_same(before, scenario, models)
            variation = Variation(
                variant.name, changes, models, variant.params, changes_graph=graph, is_same=same
            )
            yield replace(scenario, variation=variation)

    def problems(self) -> Iterator[Problem]:
        """Yield the changes that apply to no manifest, and then the problems of manifests that cannot be read."""
        missing = [*self._missing()]
        yield from [*missing, *self.unreadable] if missing else ()

    def _missing(self) -> Iterator[Problem]:
        variant = self.variant
        if variant.only and not self.matched:
            yield self._unmatched()
        for code, has, part, names, known in (
            ("unknown-prompt", "has a prompt", "prompts", variant.prompts, self.prompts),
            ("unknown-model", "uses a model", "models", variant.models, self.models),
        ):
            for name in names:
                if (key := f"{part}.{name}") not in self.used:
                    text = f"no manifest that the scenarios run {has} '{name}'"
                    yield Problem(code, text, variant.spans[key], did_you_mean(name, known))
        if variant.edit and "edit" not in self.used:
            text = "no manifest of the scenarios is the one that this patch changes"
            yield from self.refused[:1] or [Problem("bad-patch", text, variant.spans["edit"])]

    def _unmatched(self) -> Problem:
        variant = self.variant
        globs = [glob for each in variant.only for glob in each]
        wanted = " and ".join(" or ".join(f"'{glob}'" for glob in each) for each in variant.only)
        text = f"no manifest that the scenarios run matches `only` of '{variant.name}': {wanted}"
        names = [path.name for path in self.manifests]
        near = (did_you_mean(PurePath(glob).name, names, listing=False) for glob in globs)
        hint = next(filter(None, near), "") or did_you_mean(globs[0], [*map(shown_path, self.manifests)])
        return Problem("unmatched-only", text, variant.spans.get("only", variant.span), hint)

    def _is_same(self, before: Scenario, after: Scenario, models: Mapping[str, str]) -> bool:
        settings = self.projects.of(before.file)
        return (
            all(name == new for name, new in models.items())
            and real_path(before.manifests[0]) == real_path(after.manifests[0])
            and load_request(before, settings).env == load_request(after, settings).env
        )

    def _changes(self, scenario: Scenario) -> tuple[Changes, bool]:
        """Return the changes to the prompts and the document of a manifest, and True if they change anything."""
        request = load_request(scenario, self.projects.of(scenario.file))
        env = tuple(sorted(request.env.items()))
        components = tuple(sorted(request.components.items()))
        key = (request.paths, request.agent, components, request.folders, env, scenario.dialect)
        if key not in self._found:
            changes = self._patch(scenario, request) if self.variant.edit else Changes()
            texts = [*self._texts(scenario, request)]
            differ = any(new.text != old for new, old in texts) or _differs(changes, scenario.dialect)
            self._found[key] = replace(changes, texts=tuple(new for new, _ in texts)), differ
        return self._found[key]

    def _patch(self, scenario: Scenario, request: LoadRequest) -> Changes:
        variant, patched = self.variant, main_manifest(request.paths[0], scenario.dialect)
        changes = Changes(patch=variant.edit, patch_at=variant.spans.get("edit"), patched=patched)
        try:
            load_prompts(replace(request, changes=changes), scenario.dialect)
            self.used.add("edit")
        except SourceError as error:
            refused = [problem for problem in error.problems if problem.code == "bad-patch"]
            self.refused += refused
            if refused:
                return Changes()
            if _patched(changes, patched, scenario.dialect):
                self.used.add("edit")
            else:
                self.unreadable += error.problems
        return changes

    def _texts(self, scenario: Scenario, request: LoadRequest) -> Iterator[tuple[TextReplacement, str]]:
        """Yield each prompt text that the variant replaces, with the old text."""
        if not self.variant.prompts:
            return
        try:
            prompts = load_prompts(request, scenario.dialect)
        except ManifestError as error:
            self.unreadable += error.problems
            return
        for prompt in prompts:
            self.prompts[prompt.id] = None
            if prompt.id in self.variant.prompts:
                self.used.add(f"prompts.{prompt.id}")
                file = real_path(Path(prompt.where.file))
                new = self.variant.prompts[prompt.id].text
                yield TextReplacement(file, prompt.where.line, prompt.where.column, new), prompt.text

    def _models(self, scenario: Scenario) -> Mapping[str, str]:
        if not self.variant.models:
            return {}
        try:
            graph = graph_outside_runs(scenario, self.projects.of(scenario.file))
        except ManifestError as error:
            self.unreadable += error.problems
            return {}
        names = names_of(graph)
        known = names.names.get("llm", {}) if names is not None else {}
        self.models |= known
        is_open = names is None or "llm" in names.open
        applicable = {name: new for name, new in self.variant.models.items() if name in known or is_open}
        self.used |= {f"models.{name}" for name in applicable}
        return applicable


def main_manifest(path: Path, named: str | None) -> Path:
    """Return the absolute path of the manifest, if `path` is the folder that contains it, or else of `path`.

    `named` is the dialect that the scenario names, if any.
    """
    try:
        return real_path(next(iter(_dialect(path, named).locate(path)), path))
    except ManifestError:
        return real_path(path)


def _dialect(path: Path, named: str | None) -> Dialect:
    from harness.dialects.registry import dialect_named, dialect_of

    return dialect_named(named) if named else dialect_of(path)


def _differs(changes: Changes, named: str | None) -> bool:
    """True if a patch changes the document, or if that cannot be determined."""
    if changes.patched is None:
        return False
    found = _patched(changes, changes.patched, named)
    return found is None or repr(found[0].value) != repr(found[1].value)  # `repr` tells 1 from True


def _patched(changes: Changes, file: Path, named: str | None) -> tuple[Document, Document] | None:
    """Return the document before and after the patch; None if it cannot be read or the patch does not apply."""
    try:
        document = read(file, yaml=_dialect(file, named).yaml)
        return document, changes.apply(document, file)
    except SourceError:
        return None


def matches_only(variant: Variant, manifest: Path) -> bool:
    """True if a manifest matches a glob in each list of the variant's `only`, by its path or its file name."""
    return all(is_named(manifest, globs) for globs in variant.only)


def is_named(manifest: Path, globs: Iterable[str]) -> bool:
    """True if a manifest matches one of the globs, by its path or its file name."""
    names = (shown_path(manifest), manifest.as_posix(), manifest.name)
    return any(fnmatchcase(name, glob) for glob in globs for name in names)


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
                graph = graph_outside_runs(scenario, settings)
            except ManifestError:  # the run reports the problem; the manifest may use any name
                self._is_whole = False
                continue
            if isinstance(graph, NativeGraph):  # what an app reads is known only when it runs
                self._is_whole = False
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


def uncalled_models(
    variants: Iterable[Variant], scenarios: Sequence[Scenario], lines: Iterable[Mapping[str, Any]]
) -> list[Problem]:
    """Return a warning for each such model.

    Args:
        variants: all that were scored, the baseline included.
        scenarios: those that ran, with each variant that applies.
        lines: the lines of their results.
    """
    varied = [each for each in variants if each.models and _is_of_apps(each, scenarios)]
    if not varied:
        return []
    called: dict[str, dict[str, None]] = {}
    for line in lines:
        names = called.setdefault(line["variant"], {})
        names |= {call["name"]: None for call in line["calls"] if call["kind"] == "llm"}
    baseline = next(each.name for each in variants if each.is_baseline)
    known = called.get(baseline, {})
    found = []
    for variant in varied:
        # With another manifest or other variables, the app may call other models than the baseline does.
        other = called.get(variant.name, {}) if variant.manifest or variant.env else {}
        for name, new in variant.models.items():
            if known and name not in known and new not in other:
                text = (
                    f"no run of '{baseline}' called a model '{name}', so '{variant.name}' does not replace it"
                )
                hint, span = did_you_mean(name, known), variant.spans[f"models.{name}"]
                found.append(Problem("unknown-model", text, span, hint, severity="warning"))
    return found


def _is_of_apps(variant: Variant, scenarios: Iterable[Scenario]) -> bool:
    """True if all scenarios that ran with a variant run apps."""
    own = [each for each in scenarios if each.variant == variant.name]
    return bool(own) and all(is_app(each.manifests[0], each.dialect) for each in own)
