"""Collecting scenario files: an item for each scenario, or every fault of a file that has some."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

from harness.plugin.item import SCENARIOS_ONLY, ScenarioItem
from harness.plugin.options import projects_of, record_mode, settings_of
from harness.plugin.part import may_have_scenarios, part_of
from harness.plugin.reporter import PART, REFUSAL
from harness.plugin.selection import select
from harness.plugin.variants import check_all_apply, items_of
from harness.scenario import SUFFIXES
from harness.workers.garbage import collect_nothing_at_exit, collected_rarely


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage rarely while there is hardly any: what is read, stays."""
    with collected_rarely():
        return (yield)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioCollector | None:
    """Collect scenario files, by suffix, and manifests with scenarios of their own that are named one by one."""
    if file_path.name.endswith(SUFFIXES) or _has_scenarios(file_path, parent):
        collector: ScenarioCollector = ScenarioCollector.from_parent(parent, path=file_path)
        return collector
    return None


def _has_scenarios(path: Path, parent: pytest.Collector) -> bool:
    if not may_have_scenarios(parent.config, path):
        return False
    from harness.errors import ManifestError
    from harness.scenario.manifest_scenarios import scenarios_of_manifest

    try:
        return scenarios_of_manifest(path) is not None
    except ManifestError:  # the collector tells why
        return True


class ScenarioCollector(pytest.File):
    """A scenario file, or a manifest with scenarios of its own."""

    def collect(self) -> Iterable[ScenarioItem]:
        """Its scenarios, in order.

        Raises:
            CollectError: the file has faults; the text lists all of them, each with its line.
        """
        from harness.errors import SourceError
        from harness.scenario.load import load_file
        from harness.source.display import printable
        from harness.source.excerpt import render

        try:
            settings_of(self.config, self.path)
            scenarios = load_file(self.path).scenarios
            found = list(items_of(self.config, scenarios))
        except pytest.UsageError as error:
            raise self.CollectError(str(error)) from None
        except SourceError as error:
            problems = "\n\n".join(
                printable(render(problem), keep_newlines=True) for problem in error.problems
            )
            part_of(self.config).faulty.append(self.path.name)
            raise self.CollectError(problems) from None
        collect_nothing_at_exit()
        part_of(self.config).found += len(found)
        for name, scenario in found:
            yield ScenarioItem.from_parent(self, name=name, scenario=scenario)


@pytest.hookimpl(trylast=True)  # when -k and -m have left some out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this plugin's options do, and count what is left.

    Two scenarios that would write the same cassette, perhaps in two workers, are refused.
    """
    from harness.errors import HarnessError

    part = part_of(config)
    try:
        if not (part.faulty or part.skips):  # what was not read may have what a variant changes
            check_all_apply(config, [item for item in items if isinstance(item, ScenarioItem)])
        select(config, items)
        scenarios = [item for item in items if isinstance(item, ScenarioItem)]
        if scenarios and record_mode(config) != "none":
            from harness.scenario.cassette import check_cassettes

            check_cassettes((item.scenario for item in scenarios), projects_of(config))
    except HarnessError as error:
        if not hasattr(config, "workeroutput"):
            raise pytest.UsageError(str(error)) from None
        # xdist drops what a worker raises here: it runs nothing instead, and the controller reports why.
        config.workeroutput[REFUSAL] = str(error)
        items.clear()
    part.kept = sum(isinstance(item, ScenarioItem) for item in items)
    config.stash[SCENARIOS_ONLY] = part.kept == len(items)
    if hasattr(config, "workeroutput"):
        config.workeroutput[PART] = part.as_data()
