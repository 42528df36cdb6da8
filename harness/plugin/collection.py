"""Collection of scenario files: an item for each scenario, or an error with all faults of a file."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import HarnessError, ManifestError, Problem, SourceError
from harness.plugin.item import SCENARIOS_ONLY, ScenarioItem
from harness.plugin.options import projects_of, record_mode, settings_of
from harness.plugin.reporter import COUNTS, REFUSAL
from harness.plugin.selection import counts_of, may_have_scenarios, scenario_items, select
from harness.scenario import SUFFIXES
from harness.source.display import printable, render
from harness.workers.garbage import reduced_gc, skip_gc_at_exit

if TYPE_CHECKING:
    from harness.explore.findings import Finding
    from harness.scenario.model import Scenario
    from harness.variants.application import Application
    from harness.variants.document import Variant


_applications_key = pytest.StashKey["Sequence[Application]"]()


def variant_items(config: pytest.Config, scenarios: Sequence[Scenario]) -> Iterator[tuple[str, Scenario]]:
    """Yield the name and the scenario of each item: one for each variant that applies.

    Raises:
        FormatError: the variants file is invalid, or a row of a table does not fit its scenario.
    """
    applications = _applications(config)
    if not applications:
        yield from ((scenario.name, scenario) for scenario in scenarios)
        return
    for scenario in scenarios:
        for application in applications:
            for varied in application.apply(scenario.whole()):
                name = f"{scenario.name}[{application.variant.name}]"
                yield name, _with_warning(varied, application.variant)


def _with_warning(varied: Scenario, variant: Variant) -> Scenario:
    """Return the scenario, with a warning if this variant of it equals the baseline."""
    if varied.variation is None or not varied.variation.is_same:
        return varied
    from harness.variants.independence import SAME_AS_BASELINE

    text = f"'{variant.name}' is the same as the baseline: {SAME_AS_BASELINE}"
    problem = Problem("same-variant", text, variant.span, severity="warning")
    return replace(varied, warnings=(*varied.warnings, problem))


def check_all_apply(config: pytest.Config, items: Sequence[ScenarioItem]) -> None:
    """Check, when all files are collected, that each variant changes something in some manifest.

    Names in variants that no agent uses become warnings of the scenarios that run as these variants.

    Raises:
        FormatError: a variant changes a prompt, a model or a value that no manifest has.
    """
    applications = config.stash.get(_applications_key, [])
    if not applications:
        return
    from harness.variants.application import check_applied, unused_names

    check_applied(applications)
    variants = [application.variant for application in applications]
    scenarios = [item.scenario for item in items]
    for problem, names in unused_names(variants, scenarios, projects_of(config)).items():
        for item in items:
            if item.scenario.variant in names:
                item.scenario = replace(item.scenario, warnings=(*item.scenario.warnings, problem))


def _applications(config: pytest.Config) -> Sequence[Application]:
    if _applications_key not in config.stash:
        file = config.getoption("harness_variants", None)
        config.stash[_applications_key] = (
            _read(config, Path(config.invocation_params.dir, file)) if file else ()
        )
    return config.stash[_applications_key]


def _read(config: pytest.Config, file: Path) -> Sequence[Application]:
    from harness.variants.application import Application
    from harness.variants.document import read_variants

    return [Application(each, projects_of(config)) for each in read_variants(file)]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect garbage rarely during collection, which makes hardly any."""
    with reduced_gc():
        return (yield)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioCollector | None:
    """Collect scenario files, by suffix, and manifests with scenarios that the command line names."""
    if file_path.name.endswith(SUFFIXES) or _has_scenarios(file_path, parent):
        collector: ScenarioCollector = ScenarioCollector.from_parent(parent, path=file_path)
        return collector
    return None


def _has_scenarios(path: Path, parent: pytest.Collector) -> bool:
    if not may_have_scenarios(parent.config, path):
        return False
    from harness.scenario.load import scenarios_of_manifest

    try:
        return scenarios_of_manifest(path, settings_of(parent.config, path)) is not None
    except (ManifestError, pytest.UsageError):  # the collector reports it
        return True


class ScenarioCollector(pytest.File):
    """A scenario file, or a manifest that contains scenarios."""

    def collect(self) -> Iterable[ScenarioItem | ExploredItem]:
        """Yield the scenarios of the file, in order.

        Raises:
            CollectError: the file has faults. The message lists all of them, each with its line.
        """
        from harness.scenario.load import load_file

        try:
            scenarios = load_file(self.path, settings_of(self.config, self.path)).scenarios
            found = list(variant_items(self.config, scenarios))
        except pytest.UsageError as error:
            raise self.CollectError(str(error)) from None
        except SourceError as error:
            from harness.scenario.redaction import secrets_of_process

            secrets = secrets_of_process(settings_of(self.config, self.path))
            shown = (secrets.text(render(problem, secrets.pieces)) for problem in error.problems)
            problems = [printable(text, keep_newlines=True) for text in shown]
            counts_of(self.config).faulty.append(self.path.name)
            counts_of(self.config).unread += _unread(self.path, error)
            raise self.CollectError("\n\n".join(problems)) from None
        skip_gc_at_exit()
        counts_of(self.config).found += len(found)
        for name, scenario in found:
            yield ScenarioItem.from_parent(self, name=name, scenario=scenario)
        if self.config.getoption(EXPLORE):
            whole = (each.whole() for each in scenarios if each.skip is None)
            yield from (ExploredItem.of(self, each) for each in whole if each.explore is not None)


def _unread(path: Path, error: SourceError) -> list[tuple[str, bytes]]:
    """Return the records of the scenarios of a file that cannot be used, as plain data."""
    from harness.report.results import record
    from harness.report.scenario_runs import unread_outcomes

    return [(made.line, made.trace) for made in map(record, unread_outcomes(path, error))]


@pytest.hookimpl(trylast=True)  # after the selection by -k and -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Apply the selection options of this plugin, and count the remaining scenarios.

    Raises:
        pytest.UsageError: two scenarios would write the same cassette, or a variant or a selection is wrong.
    """
    counts = counts_of(config)
    try:
        if not (counts.faulty or counts.skips):  # files that were not read may have what a variant changes
            check_all_apply(config, scenario_items(items))
        select(config, items)
        scenarios = scenario_items(items)
        if scenarios and record_mode(config) != "none":
            from harness.scenario.cassette import check_cassettes

            check_cassettes((item.scenario for item in scenarios), projects_of(config))
    except HarnessError as error:
        if not hasattr(config, "workeroutput"):
            raise pytest.UsageError(str(error)) from None
        # xdist drops an exception of a worker here, so the worker runs nothing and the controller reports why.
        config.workeroutput[REFUSAL] = str(error)
        items.clear()
    counts.kept = len(scenario_items(items))
    config.stash[SCENARIOS_ONLY] = counts.kept == len(items)
    if hasattr(config, "workeroutput"):
        config.workeroutput[COUNTS] = asdict(counts)


EXPLORE = "harness_explore"


class Broken(Exception):
    """Findings of an exploration, each with its scenario file, and why a part of it did not take place."""


class ExploredItem(pytest.Item):
    """A scenario with `explore:`, whose open answers are drawn in a number of runs."""

    scenario: Scenario

    @classmethod
    def of(cls, parent: pytest.Collector, scenario: Scenario) -> ExploredItem:
        """Return the item of a scenario."""
        item: ExploredItem = cls.from_parent(parent, name=f"{scenario.name}[explore]")
        item.scenario = scenario
        return item

    def runtest(self) -> None:
        """Explore the scenario.

        Raises:
            Broken: something was found, or could not be searched.
            HarnessError: it cannot be explored.
        """
        from harness.explore.attempt import Plan
        from harness.explore.drawn import KINDS_OF_FAULTS
        from harness.explore.exploration import explore
        from harness.explore.subject import of_scenario

        projects = projects_of(self.config)
        settings = projects.of(self.scenario.file)
        plan = Plan(self.config.getoption(EXPLORE), None, self.scenario.seed, KINDS_OF_FAULTS)
        done = explore(
            of_scenario(self.scenario, settings),
            plan,
            projects,
            settings.project,
            out=settings.project / "scenarios" / "found",
            cover=None,
            watch=lambda _subject, _merged: None,
        )
        if done.interrupted:
            raise KeyboardInterrupt
        if done.findings or done.problems:
            raise Broken("\n".join([*map(_told, done.findings), *done.problems]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show findings, and errors of the harness, without a traceback."""
        from harness.errors import HarnessError
        from harness.source.display import printable

        if isinstance(excinfo.value, Broken | HarnessError):
            return printable(str(excinfo.value), keep_newlines=True)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file and line of the scenario."""
        return self.path, self.scenario.span.line - 1, self.name


def _told(finding: Finding) -> str:
    from harness.source.document import shown_path

    broken = finding.breach
    where = f"{broken.where}  " if broken.where else ""
    return f"{broken.type}  {where}{broken.cause}\n  {finding.reason or shown_path(finding.file)}"
