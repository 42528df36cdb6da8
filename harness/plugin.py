"""The pytest plugin: every scenario is an item, and pytest's own options work on it as usual.

`*.scenario.yaml` and `*.scenario.yml` are collected. Results go to the report folder (docs/results.md),
from xdist workers through the reports they send. This module is loaded by every pytest run where the
package is installed, so everything heavy is imported where it is used.
"""

from __future__ import annotations

import io
import os
from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from harness.report.results import ResultsWriter
    from harness.scenario.model import Scenario
    from harness.scenario.outcome import Outcome
    from harness.settings import Settings

# As in harness.scenario.load, which every pytest run would pay for.
SUFFIXES: Final = (".scenario.yaml", ".scenario.yml")
LINES: Final = "harness_lines"

OPTIONS: Final = {
    "report": "folder the results are written to (default: reports/latest)",
    "pythonpath": f"folders Python modules are imported from, separated by {os.pathsep!r}",
    "allow_paths": f"folders outside the project manifests may read, separated by {os.pathsep!r}",
}

settings_key = pytest.StashKey["Settings"]()
reporter_key = pytest.StashKey["Reporter"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options, each with the same key as ini setting (`harness_report`) and variable (`HARNESS_REPORT`)."""
    group = parser.getgroup("harness", "scenarios of declarative agents (harness)")
    for key, text in OPTIONS.items():
        group.addoption(
            f"--harness-{key.replace('_', '-')}", dest=f"harness_{key}", metavar="PATH", help=text
        )
        parser.addini(f"harness_{key}", text)


def pytest_configure(config: pytest.Config) -> None:
    """The controller, or the one process there is, writes the report."""
    if not hasattr(config, "workerinput"):
        reporter = Reporter(config)
        config.stash[reporter_key] = reporter
        config.pluginmanager.register(reporter, "harness-reporter")


def settings_of(config: pytest.Config) -> Settings:
    """`[tool.harness]`, then ini, then the environment, then the command line.

    Raises:
        pytest.UsageError: one of them says something that is not known.
    """
    if settings_key not in config.stash:
        from harness.errors import HarnessError
        from harness.settings import load_settings

        ini = {key: value for key in OPTIONS if (value := config.getini(f"harness_{key}"))}
        chosen = {key: value for key in OPTIONS if (value := config.getoption(f"harness_{key}"))}
        try:
            config.stash[settings_key] = load_settings(config.rootpath, ini=ini, chosen=chosen)
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[settings_key]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioCollector | None:
    """Scenario files, by suffix."""
    if file_path.name.endswith(SUFFIXES):
        collector: ScenarioCollector = ScenarioCollector.from_parent(parent, path=file_path)
        return collector
    return None


class ScenarioCollector(pytest.File):
    """A scenario file."""

    def collect(self) -> Iterable[ScenarioItem]:
        """Its scenarios, in order.

        Raises:
            CollectError: the file has faults; all of them are told, each with its line.
        """
        from harness.errors import SourceError
        from harness.graph.escaping import printable
        from harness.scenario.load import load_file
        from harness.source.excerpt import render

        try:
            settings_of(self.config)
            scenarios = load_file(self.path).scenarios
        except pytest.UsageError as error:
            raise self.CollectError(str(error)) from None
        except SourceError as error:
            problems = "\n\n".join(
                printable(render(problem), keep_newlines=True) for problem in error.problems
            )
            raise self.CollectError(problems) from None
        for scenario in scenarios:
            yield ScenarioItem.from_parent(self, name=scenario.name, scenario=scenario)


class ScenarioItem(pytest.Item):
    """A scenario. It passes when every repeat of it passes."""

    def __init__(self, *, scenario: Scenario, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scenario = scenario
        self.outcomes: list[Outcome] = []
        for tag in scenario.tags:
            self.config.addinivalue_line("markers", f"{tag}: a tag of scenarios")
            self.add_marker(tag)
        if scenario.skip is not None:
            self.add_marker(pytest.mark.skip(reason=scenario.skip))
        if scenario.xfail is not None:
            self.add_marker(pytest.mark.xfail(reason=scenario.xfail))

    def runtest(self) -> None:
        """Run it.

        Raises:
            ScenarioFailed: a repeat did not pass.
        """
        from harness.scenario.run import run_scenario

        run_scenario(self.scenario, settings_of(self.config), self.outcomes.append)
        if not all(outcome.passed for outcome in self.outcomes):
            raise ScenarioFailed

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What failed, in the terms of the scenario; a traceback only for what is the harness's own fault."""
        if not isinstance(excinfo.value, ScenarioFailed):
            return super().repr_failure(excinfo, style)
        from harness.report.failure import failed_checks, failure_text

        failed = [outcome for outcome in self.outcomes if not outcome.passed]
        worst = min(failed, key=lambda outcome: outcome.score)
        message = f"score {worst.score:.2f}, {worst.verdict}: {failed_checks(worst)}".splitlines()[0]
        text = "\n\n".join(failure_text(outcome) for outcome in failed)
        return FailureText(text, Crash(message, str(self.path), self.scenario.span.line))

    def reportinfo(self) -> tuple[Path, int, str]:
        """The line of the scenario's name."""
        return self.path, self.scenario.span.line - 1, self.name


@dataclass(frozen=True)
class Crash:
    """What pytest shows in its short summary, and JUnit as the message."""

    message: str
    path: str
    lineno: int


@dataclass(frozen=True)
class FailureText:
    """A failure as pytest prints it: the text in full, and in one line."""

    text: str
    reprcrash: Crash

    def toterminal(self, out: Any) -> None:
        """Write the text to pytest's terminal."""
        for line in self.text.splitlines():
            out.line(line)

    def __str__(self) -> str:
        return self.text


class ScenarioFailed(Exception):
    """A scenario that did not pass. The item knows why."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Put the results of a scenario on its report, as plain data that survives the way from a worker."""
    made = yield
    if not isinstance(item, ScenarioItem):
        return
    report: pytest.TestReport = made.get_result()
    if call.when == "call":
        setattr(report, LINES, _lines(item.outcomes))
        item.outcomes.clear()  # they would stay for the whole session
    elif call.when == "setup" and report.skipped:
        from harness.scenario.run import run_scenario

        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped = replace(item.scenario, skip=item.scenario.skip or reason)
        setattr(report, LINES, _lines(run_scenario(skipped, settings_of(item.config))))


def _lines(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    from harness.report.results import line

    return [line(outcome) for outcome in outcomes]


class Reporter:
    """Writes results as they come, and the summaries at the end. Without scenarios it writes nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._writer: ResultsWriter | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append the lines of a scenario that has ended."""
        for line in report.__dict__.pop(LINES, ()):
            self._opened().add_line(line)

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
