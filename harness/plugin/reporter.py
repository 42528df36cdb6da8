"""The report of a session: results as they come, the summaries at the end."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.plugin.failure_text import one_for_each_fault, restore
from harness.plugin.gate import OPTION, Gate
from harness.plugin.item import RECORDS
from harness.plugin.options import projects_of
from harness.plugin.part import Part, may_have_scenarios, part_of, scenario_files, why_incomplete
from harness.plugin.redaction import Redaction
from harness.workers.garbage import collect_as_before, collect_nothing_at_exit, collect_rarely

if TYPE_CHECKING:
    from harness.report.results import Record, ResultsWriter
    from harness.settings import Settings

CRASHED: Final = "???"
"""What xdist says of a report it makes itself, since the worker that ran the item has died: it has no phase."""
REFUSAL: Final = "harness_refusal"
"""The key of a worker's output with the reason why it ran nothing."""
PART: Final = "harness_part"
"""The key of a worker's output with what it collected: all workers collect the same."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the reporter in the controller, or in the only process; in all of them what takes secrets out.

    The first clean-up that is added is the last to be made: pytest's own looks for garbage.
    """
    config.add_cleanup(partial(collect_as_before, gc.get_threshold()))
    config.pluginmanager.register(Redaction(config), "harness-redaction")
    if not hasattr(config, "workerinput"):
        reporter = Reporter(config)
        config.pluginmanager.register(reporter, "harness-reporter")
        if config.getoption(OPTION):
            config.pluginmanager.register(Gate(config, reporter), "harness-gate")


class Reporter:
    """Writes results as they come, and the summaries at the end. Without scenarios it writes nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._writer: ResultsWriter | None = None
        self._refusal = ""
        self._places: dict[str, int] = {}
        self._files: list[Path] = []
        self._ran: set[str] = set()
        self._part = part_of(config)
        self._failed: list[Any] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Keep the order of the items, which every worker collects: results are sorted by it."""
        if not self._places:
            self._places = {nodeid: place for place, nodeid in enumerate(ids)}
            self._files = scenario_files(self._config, ids)
            self._part.kept = len(self._files)
            if len(self._files) == len(ids):
                collect_rarely()
            elif self._files:
                collect_nothing_at_exit()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the order of the items, and their files; a controller of xdist has none."""
        ids = [item.nodeid for item in session.items]
        self._files = scenario_files(self._config, ids)
        self._places = {nodeid: place for place, nodeid in enumerate(ids)}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended: what it collected, and why it ran nothing, if it did not."""
        output = getattr(node, "workeroutput", {})
        self._refusal = output.get(REFUSAL, "") or self._refusal
        if PART in output:
            self._part = Part(**output[PART])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """What workers refuse is a usage error of the whole session."""
        if self._refusal:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl(tryfirst=True)  # before the terminal and JUnit
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append the lines of a scenario that has ended, or whose worker has."""
        restore(report)
        records = report.__dict__.pop(RECORDS, ())
        if str(report.when) == CRASHED:
            records = _died(self._config, report)
        for line, trace in records:
            with _exit_if_unwritable():
                self._write(line, trace, self._places.get(report.nodeid, 0))
            self._ran.add(report.nodeid)

    def _write(self, line: str, trace: bytes, place: int) -> None:
        from harness.report.results import Record

        self._opened().add_record(Record(line, trace), place)

    def _opened(self) -> ResultsWriter:
        if self._writer is None:
            from harness.report.history.file import writer_of
            from harness.report.results import ResultsWriter

            settings = self.settings
            self._writer = ResultsWriter(
                settings.report, traces_limit=settings.traces_limit, history=writer_of(settings)
            ).__enter__()
        return self._writer

    @property
    def settings(self) -> Settings:
        """The settings of the project around all scenarios."""
        return projects_of(self._config).common(set(self._files))

    def finish(self) -> Path | None:
        """Write the report to its end, and give its folder; None where no scenario ran."""
        if self._writer is None:
            return None
        with _exit_if_unwritable():
            self._finish(self._writer)
        return self._writer.path.parent

    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_terminal_summary")
    def pytest_show_each_fault_once(self, terminalreporter: Any) -> Generator[None]:
        """Let pytest print one failure for each fault; its counts and its short summary have all of them."""
        self._failed = terminalreporter.stats.get("failed", [])
        if self._failed:
            terminalreporter.stats["failed"] = one_for_each_fault(self._failed, self._trace_command)
        return (yield)

    def _trace_command(self, nodeid: str, command: str) -> str:
        """The command that shows what happened, with the folder of this report where it is not the usual one."""
        from harness.report.commands import report_argument

        file = self._config.rootpath / nodeid.partition("::")[0]
        return command + (report_argument(file, self._writer.folder) if self._writer is not None else "")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write summary.json and summary.md, and show the figures."""
        if self._failed:
            terminalreporter.stats["failed"] = self._failed
        if self._refusal:
            terminalreporter.write_line(f"ERROR: {self._refusal}", red=True)
        if self._writer is None:
            if self._part.found or self._part.faulty or self._refusal:
                _warn_of_misspelt_variables(terminalreporter)
            return
        from harness.report.github import tell_github
        from harness.report.suite_table import suite_table
        from harness.report.summary_text import counts, figures, notes, report_paths
        from harness.source.workflow_commands import inert

        with _exit_if_unwritable():
            summary = self._finish(self._writer)
        width = terminalreporter._tw.fullwidth if terminalreporter.isatty else None
        found, of = counts(summary["total"])
        verbose = self._config.option.verbose > 0
        terminalreporter.section("scenarios")
        for line in [
            *notes(summary, width),
            *suite_table(summary["suites"], width),
            f"{' · '.join(count for count, _ in found)}   {of}",
            *figures(summary, width, coverage=verbose),
            *report_paths(self._writer.folder),
        ]:
            terminalreporter.write_line(inert(line))
        _warn_of_misspelt_variables(terminalreporter)
        tell_github(self._writer.path.parent, terminalreporter.write_line)

    def _finish(self, writer: ResultsWriter) -> dict[str, Any]:
        return writer.finish(why_incomplete(self._config, self._part, len(self._ran)))

    def pytest_unconfigure(self) -> None:
        """Close the report of a session that ended without a terminal summary."""
        if self._writer is not None:
            self._finish(self._writer)


def _warn_of_misspelt_variables(terminalreporter: Any) -> None:
    from harness.settings import misspelt_variables

    for text in misspelt_variables(os.environ):
        terminalreporter.write_line(f"warning: {text}", yellow=True)


@contextmanager
def _exit_if_unwritable() -> Iterator[None]:
    """End the session with the reason why results cannot be written, instead of a traceback."""
    from harness.errors import HarnessError

    try:
        yield
    except HarnessError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


def _died(config: pytest.Config, report: Any) -> list[Record]:
    """What is written of a scenario whose worker ended in the middle of it; the report says so, too."""
    file, _, name = report.nodeid.partition("::")
    if not may_have_scenarios(config, config.rootpath / file):
        return []
    from harness.errors import SourceError, WorkerDied
    from harness.report.results import record
    from harness.scenario.evaluation import dead_worker_outcomes
    from harness.scenario.load import load_file

    try:
        found = [each for each in load_file(config.rootpath / file).scenarios if each.name == name]
    except SourceError:
        return []
    outcomes = [outcome for scenario in found for outcome in dead_worker_outcomes(scenario, WorkerDied(None))]
    if outcomes:
        from harness.plugin.item import failure

        report.longrepr = failure(outcomes, "auto")
    return [*map(record, outcomes)]
