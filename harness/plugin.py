"""The pytest plugin: every scenario is an item, and pytest's own options work on it as usual.

`*.scenario.yaml` and `*.scenario.yml` are collected. Results go to the report folder (docs/results.md),
from xdist workers through the reports they send. This module is loaded by every pytest run where the
package is installed, so everything heavy is imported where it is used.
"""

from __future__ import annotations

import io
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from harness.recording.human import Ask
    from harness.report.results import ResultsWriter
    from harness.scenario.model import Scenario
    from harness.scenario.outcome import Outcome
    from harness.settings import RecordMode, Settings

# As in harness.scenario.load, which every pytest run would pay for.
SUFFIXES: Final = (".scenario.yaml", ".scenario.yml")
LINES: Final = "harness_lines"
REFUSAL: Final = "harness_refusal"

OPTIONS: Final = {
    "report": "folder the results are written to (default: reports/latest)",
    "cassettes": "folder of the recordings (default: cassettes, in the project)",
    "pythonpath": f"folders Python modules are imported from, separated by {os.pathsep!r}",
    "allow_paths": f"folders outside the project manifests may read, separated by {os.pathsep!r}",
}

settings_key = pytest.StashKey["Settings"]()
reporter_key = pytest.StashKey["Reporter"]()


RECORD_MODES: Final = ("none", "once", "new_episodes", "all", "rewrite")
PYTEST_RECORDING: Final = "pytest_recording.plugin"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Options, each with the same key as ini setting (`harness_report`) and variable (`HARNESS_REPORT`).

    `--record-mode` and `--disable-recording` are pytest-recording's where that is active, with the same meaning.
    """
    group = parser.getgroup("harness", "scenarios of declarative agents (harness)")
    for key, text in OPTIONS.items():
        group.addoption(
            f"--harness-{key.replace('_', '-')}", dest=f"harness_{key}", metavar="PATH", help=text
        )
        parser.addini(f"harness_{key}", text)
    if not _has_pytest_recording(pluginmanager):
        group.addoption(
            "--record-mode",
            choices=RECORD_MODES,
            help="what becomes of calls no stub answers, in scenarios with a cassette (default: none, replay only)",
        )
        group.addoption(
            "--disable-recording",
            action="store_true",
            default=False,
            help="ask the real thing where no stub answers; cassettes are neither read nor written",
        )


def _has_pytest_recording(pluginmanager: pytest.PytestPluginManager) -> bool:
    """Whether it adds its options, before or after us."""
    if pluginmanager.has_plugin("recording") or pluginmanager.has_plugin(PYTEST_RECORDING):
        return True
    if pluginmanager.is_blocked("recording") or os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        return False
    from importlib.metadata import entry_points

    return any(found.value == PYTEST_RECORDING for found in entry_points(group="pytest11", name="recording"))


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
            settings = load_settings(config.rootpath, ini=ini, chosen=chosen)
            config.stash[settings_key] = replace(settings, record_mode=_record_mode(config))
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[settings_key]


def _record_mode(config: pytest.Config) -> RecordMode:
    from harness.settings import RecordMode

    if config.getoption("disable_recording", False):
        return RecordMode.LIVE
    return RecordMode(config.getoption("record_mode", None) or "none")


@pytest.hookimpl(trylast=True)  # when -k and -m have left some out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Two scenarios, in workers of their own perhaps, must not write the same cassette."""
    scenarios = [item.scenario for item in items if isinstance(item, ScenarioItem)]
    if not scenarios or _record_mode(config) == "none":
        return
    from harness.errors import HarnessError
    from harness.scenario.recording import check_cassettes

    try:
        check_cassettes(scenarios, settings_of(config))
    except HarnessError as error:
        if not hasattr(config, "workeroutput"):
            raise pytest.UsageError(str(error)) from None
        # What a worker raises here is lost: it runs nothing, and the controller says why.
        config.workeroutput[REFUSAL] = str(error)
        items.clear()


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
        from harness.draw.escaping import printable
        from harness.errors import SourceError
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

        ask = _at_terminal(self.config)
        run_scenario(self.scenario, settings_of(self.config), self.outcomes.append, ask=ask)
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


def _at_terminal(config: pytest.Config) -> Ask | None:
    """Asks a person past pytest's capture.

    None in a worker, where standard input is no terminal, and where nobody is ever asked: in replays.
    """
    if hasattr(config, "workerinput") or _record_mode(config) == "none":
        return None
    with _uncaptured(config):
        if not os.isatty(0):
            return None

    def ask(node: str, args: Mapping[str, Any]) -> str:
        from harness.report.asking import prompt

        with _uncaptured(config):
            return prompt(node, args)

    return ask


@contextmanager
def _uncaptured(config: pytest.Config) -> Iterator[None]:
    """Leave standard input and output to the terminal."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is None:  # -p no:capture
        yield
        return
    capture.suspend(in_=True)
    try:
        yield
    finally:
        capture.resume()


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
        self._refusal = ""

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
