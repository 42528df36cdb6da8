"""The exploration of a scenario as a pytest item (`--harness-explore N`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin.options import projects_of

if TYPE_CHECKING:
    from harness.explore.findings import Finding
    from harness.scenario.model import Scenario

OPTION = "harness_explore"


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
        plan = Plan(self.config.getoption(OPTION), None, self.scenario.seed, KINDS_OF_FAULTS)
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
