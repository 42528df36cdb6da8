"""The report of a session: results as they come, the summaries at the end."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.plugin.item import LINES
from harness.plugin.options import settings_of

if TYPE_CHECKING:
    from harness.report.results import ResultsWriter

REFUSAL: Final = "harness_refusal"
"""The key of a worker's output with the reason why it ran nothing."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the reporter in the controller, or in the only process."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(config), "harness-reporter")


class Reporter:
    """Writes results as they come, and the summaries at the end. Without scenarios it writes nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._writer: ResultsWriter | None = None
        self._refusal = ""
        self._places: dict[str, int] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Keep the order of the items, which every worker collects: results are sorted by it."""
        if not self._places:
            self._places = {nodeid: place for place, nodeid in enumerate(ids)}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended: why it ran nothing, if it did not."""
        self._refusal = getattr(node, "workeroutput", {}).get(REFUSAL, "") or self._refusal

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """What workers refuse is a usage error of the whole session."""
        if self._refusal:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append the lines of a scenario that has ended."""
        for line in report.__dict__.pop(LINES, ()):
            self._opened().add_line(line, self._places.get(report.nodeid, 0))

    def _opened(self) -> ResultsWriter:
        if self._writer is None:
            from harness.errors import HarnessError
            from harness.report.results import ResultsWriter

            try:
                self._writer = ResultsWriter(settings_of(self._config).report).__enter__()
            except HarnessError as error:
                pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        return self._writer

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write summary.json and summary.md, and show the figures."""
        if self._refusal:
            terminalreporter.write_line(f"ERROR: {self._refusal}", red=True)
        if self._writer is None:
            return
        from rich.console import Console

        from harness.report.console import print_summary

        summary = self._writer.finish()
        text = io.StringIO()
        width = terminalreporter._tw.fullwidth
        print_summary(summary, Console(file=text, width=width, markup=False, highlight=False, emoji=False))
        terminalreporter.section("scenarios")
        for line in text.getvalue().strip().splitlines():
            terminalreporter.write_line(line.rstrip())
        terminalreporter.write_line(f"results in {self._writer.folder}")

    def pytest_unconfigure(self) -> None:
        """Close the report of a session that ended without a terminal summary."""
        if self._writer is not None:
            self._writer.finish()
