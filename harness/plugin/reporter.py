"""The report of a session: results as they arrive, and summaries and the verdict of the gate at the end."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.errors import FormatError, HarnessError, Problem, SourceError, WorkerDied
from harness.plugin import agent_run
from harness.plugin.agent_run import OF_TEST
from harness.plugin.item import RECORDS, failure, merge_same_faults, restore
from harness.plugin.options import projects_of, settings_of
from harness.plugin.redaction import Redaction
from harness.plugin.selection import (
    CollectionCounts,
    counts_of,
    may_have_scenarios,
    scenario_files,
    why_incomplete,
)
from harness.source.display import escape_commands, printable, render
from harness.time.real import real
from harness.workers.garbage import reduce_gc, restore_gc, skip_gc_at_exit

if TYPE_CHECKING:
    from harness.report.repeatability import Unchanged
    from harness.report.results import Record, ResultsWriter
    from harness.scenario.model import Scenario
    from harness.settings import Settings


_PASSED: Final = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class Gate:
    """Judges a session when its report is written. A session without a verdict fails."""

    def __init__(self, config: pytest.Config, reporter: Reporter) -> None:
        self._config, self._reporter = config, reporter
        self._lines: list[str] = []

    def pytest_sessionstart(self) -> None:
        """Refuse an invalid policy before anything runs."""
        from harness.gate.policy import read_policy

        try:
            read_policy(None, projects_of(self._config).around(self._config.invocation_params.dir).project)
        except FormatError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Judge the run. If a rule fails, the session fails; without a verdict, it ends with a usage error."""
        if self._config.option.collectonly or session.exitstatus == pytest.ExitCode.USAGE_ERROR:
            return
        from harness.gate.judge import judge
        from harness.gate.policy import read_policy
        from harness.gate.text import lines
        from harness.secrets import hidden

        try:
            folder = self._reporter.finish()
            if folder is None:
                raise FormatError(Problem("no-runs", "no scenario ran, so there is nothing to judge"))
            settings = self._reporter.settings
            verdict = judge(folder, read_policy(None, settings.project), history=settings.history)
        except FormatError as error:
            refused = [printable(render(problem, hidden), keep_newlines=True) for problem in error.problems]
            self._lines = [*refused, "gate failed: it could not be judged"]
            if session.exitstatus in _PASSED:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
            return
        self._lines = [*lines(verdict)]
        if not verdict.passed and session.exitstatus in _PASSED:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the verdict after the figures of the run."""
        if self._lines:
            terminalreporter.section("gate")
            for line in self._lines:
                terminalreporter.write_line(escape_commands(line))


CRASHED: Final = "???"
"""The phase (`when`) of a report that xdist makes itself because the worker that ran the item has died."""
REFUSAL: Final = "harness_refusal"
"""The key of a worker's output for the reason why it ran nothing."""
COUNTS: Final = "harness_counts"
"""The key of a worker's output for the counts of what it collected. All workers collect the same."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the redaction in all processes, and the reporter and the gate in all but workers of xdist."""
    # The clean-up that is added first is run last: after pytest's own, which collects garbage.
    config.add_cleanup(partial(restore_gc, gc.get_threshold()))
    config.pluginmanager.register(Redaction(config), "harness-redaction")
    config.pluginmanager.register(agent_run, "harness-agent-run")
    if not hasattr(config, "workerinput"):
        reporter = Reporter(config)
        config.pluginmanager.register(reporter, "harness-reporter")
        if config.getoption("harness_gate"):
            config.pluginmanager.register(Gate(config, reporter), "harness-gate")


class Reporter:
    """Writes results as they arrive, and the summaries at the end. Without scenarios it writes nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began = real.now()
        self._writer: ResultsWriter | None = None
        self._refusal = ""
        self._positions: dict[str, int] = {}
        self._files: list[Path] = []
        self._ran: set[str] = set()
        self._counts = counts_of(config)
        self._failed: list[Any] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Keep the order of the items, by which results are sorted. All workers collect the same items."""
        if not self._positions:
            self._positions = {nodeid: position for position, nodeid in enumerate(ids)}
            self._files = scenario_files(self._config, ids)
            self._check_folder()
            self._counts.kept = len(self._files)
            if len(self._files) == len(ids):
                reduce_gc()
            elif self._files:
                skip_gc_at_exit()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the order of the items, and their files. A controller of xdist has no items."""
        ids = [item.nodeid for item in session.items]
        self._files = scenario_files(self._config, ids)
        self._positions = {nodeid: position for position, nodeid in enumerate(ids)}
        if not self._config.option.collectonly:
            self._check_folder()

    def _check_folder(self) -> None:
        """Refuse to run if the results would be written into a folder of other files."""
        if self._files:
            from harness.report.folder_check import refuse_foreign

            with _exit_if_unwritable():
                refuse_foreign(self.settings.report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Keep the counts of a worker that has ended, and the reason if it ran nothing."""
        output = getattr(node, "workeroutput", {})
        self._refusal = output.get(REFUSAL, "") or self._refusal
        if COUNTS in output:
            self._counts = CollectionCounts(**output[COUNTS])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """End the session with a usage error if workers refused to run."""
        if self._refusal:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl(tryfirst=True)  # before the terminal and JUnit reporters
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the results of a scenario that has ended, or whose worker has died."""
        restore(report)
        records, is_test = report.__dict__.pop(RECORDS, ()), report.__dict__.pop(OF_TEST, False)
        if str(report.when) == CRASHED:
            records = _crash_records(self._config, report)
        for made in records:
            from harness.report.results import Record

            with _exit_if_unwritable():
                self._open_writer().add_record(Record(*made), self._positions.get(report.nodeid, 0))
            if not is_test:
                self._ran.add(report.nodeid)

    def open_report(self) -> Path:
        """Begin the report, and return its folder."""
        with _exit_if_unwritable():
            return self._open_writer().path.parent

    def _open_writer(self) -> ResultsWriter:
        if self._writer is None:
            from harness.report.repeatability import Repeatability
            from harness.report.results import ResultsWriter, history_writer

            settings = self.settings
            self._writer = ResultsWriter(
                settings.report,
                traces_limit=settings.traces_limit,
                history=history_writer(settings, self._input_digests),
                repeatability=Repeatability(
                    settings.report, self._unchanged_inputs, projects_of(self._config).given_env, self._began
                ),
            ).__enter__()
        return self._writer

    def _input_digests(self) -> dict[str, str]:
        from harness.variants.fingerprint import input_digests

        return input_digests(self._scenarios(), projects_of(self._config))

    def _unchanged_inputs(self) -> Unchanged:
        from harness.selection.last_run import UnchangedInputs

        return UnchangedInputs(self._scenarios(), projects_of(self._config), self._began)

    def _scenarios(self) -> Iterator[Scenario]:
        from harness.scenario.load import load_file

        for file in self._files:
            with suppress(FormatError):  # the run reports it
                yield from load_file(file).scenarios

    @property
    def settings(self) -> Settings:
        """The settings of the project around all scenarios."""
        return projects_of(self._config).common(set(self._files))

    def finish(self) -> Path | None:
        """Finish the report and return its folder; None if no scenario ran."""
        if self._writer is None:
            return None
        with _exit_if_unwritable():
            self._finish(self._writer)
        return self._writer.path.parent

    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_terminal_summary")
    def pytest_show_each_fault_once(self, terminalreporter: Any) -> Generator[None]:
        """Let pytest print one failure for each fault. Its counts and its short summary include all failures."""
        self._failed = terminalreporter.stats.get("failed", [])
        if self._failed:
            terminalreporter.stats["failed"] = merge_same_faults(self._failed, self._trace_command)
        return (yield)

    def _trace_command(self, nodeid: str, command: str) -> str:
        """Return the command that shows a trace, with the folder of this report if it is not the default one."""
        from harness.report.failure import report_argument

        file = self._config.rootpath / nodeid.partition("::")[0]
        return command + (report_argument(file, self._writer.folder) if self._writer is not None else "")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the summaries, and show the figures."""
        if self._failed:
            terminalreporter.stats["failed"] = self._failed
        if self._refusal:
            terminalreporter.write_line(f"ERROR: {self._refusal}", red=True)
        if self._writer is None:
            if self._counts.found or self._counts.faulty or self._refusal:
                _warn_of_settings(terminalreporter)
            return
        from harness.report.github import report_to_github
        from harness.report.summary_text import counts, figures, notes, report_paths, suite_table

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
            terminalreporter.write_line(escape_commands(line))
        _warn_of_settings(terminalreporter)
        report_to_github(self._writer.path.parent, terminalreporter.write_line)

    def _finish(self, writer: ResultsWriter) -> dict[str, Any]:
        from harness.report.results import Record

        while self._counts.unread:
            writer.add_record(Record(*self._counts.unread.pop(0)), -1)
        summary = writer.finish(why_incomplete(self._config, self._counts, len(self._ran)))
        if "harness.workers.guardian" in sys.modules:
            sys.modules["harness.workers.guardian"].reported()
        return summary

    def pytest_unconfigure(self) -> None:
        """Close the report of a session that ended without a terminal summary."""
        if self._writer is not None:
            self._finish(self._writer)


def _warn_of_settings(terminalreporter: Any) -> None:
    from harness.scenario.idle_settings import warnings_of_project
    from harness.settings import misspelt_variables

    for text in [*misspelt_variables(os.environ), *warnings_of_project(terminalreporter.config.rootpath)]:
        terminalreporter.write_line(f"warning: {text}", yellow=True)


@contextmanager
def _exit_if_unwritable() -> Iterator[None]:
    """End the session with a message, instead of a traceback, if results cannot be written."""
    try:
        yield
    except HarnessError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


def _crash_records(config: pytest.Config, report: Any) -> list[Record]:
    """Return the records of a scenario whose worker died while running it, and put the failure on the report."""
    file, _, name = report.nodeid.partition("::")
    if not may_have_scenarios(config, config.rootpath / file):
        return []
    from harness.report.results import record
    from harness.scenario.evaluation import dead_worker_outcomes
    from harness.scenario.load import load_file

    try:
        path = config.rootpath / file
        scenarios = [one for one in load_file(path, settings_of(config, path)).scenarios if one.name == name]
    except SourceError:
        return []
    outcomes = [each for one in scenarios for each in dead_worker_outcomes(one, WorkerDied(None))]
    if outcomes:
        report.longrepr = failure(outcomes, "auto")
    return [*map(record, outcomes)]


_session_key = pytest.StashKey[pytest.Session]()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the session, as its exit status may still change."""
    session.config.stash[_session_key] = session


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Note the exit code, for where runs have left what keeps the process from leaving."""
    session = config.stash.get(_session_key, None)
    leftovers = sys.modules.get("harness.scenario.leftovers")
    if session is not None and leftovers is not None:
        leftovers.note_exit_code(int(session.exitstatus))
