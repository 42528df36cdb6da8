"""A scenario as a pytest item: its execution, the display of failures, and the results on its report."""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.plugin.options import projects_of, record_mode, settings_of
from harness.report.junit import measured, properties
from harness.source.display import CommandEscaper, in_actions
from harness.workers.garbage import reduce_gc, reduced_gc

if TYPE_CHECKING:
    from harness.recording.human import Ask
    from harness.report.failure import Detail
    from harness.report.results import Record
    from harness.scenario.model import Scenario
    from harness.scenario.outcome import Outcome
    from harness.workers.pool import WorkerPool


def ask_past_capture(config: pytest.Config) -> Ask | None:
    """Return a function that asks a person at the terminal, bypassing pytest's capture.

    None in a worker of xdist, if standard input is no terminal, and in replays, which ask nobody.
    """
    if hasattr(config, "workerinput") or record_mode(config) == "none":
        return None
    with _uncaptured(config):
        if not os.isatty(0):
            return None

    def ask(node: str, args: Mapping[str, Any]) -> str:
        from harness.report.console import prompt

        with _uncaptured(config):
            return prompt(node, args)

    return ask


@contextmanager
def _uncaptured(config: pytest.Config) -> Iterator[None]:
    """Connect standard input and output to the terminal inside."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is None:  # -p no:capture
        yield
        return
    capture.suspend(in_=True)
    try:
        yield
    finally:
        capture.resume()


@lru_cache(1)
def _begin_guarded(config: pytest.Config) -> None:
    """Let another process write the report, if a run ends or holds this one."""
    from harness.workers.guardian import start_guardian

    reporter = config.pluginmanager.get_plugin("harness-reporter")
    with _uncaptured(config):
        start_guardian(projects_of(config), reporter.open_report() if reporter is not None else None)


FAILURE: Final = "harness_failure"
"""The attribute of a report that holds a `FailureText` as JSON."""


@dataclass(frozen=True)
class Crash:
    """The failure in one line, for pytest's short summary, `--tb=line`, and the message in JUnit files."""

    message: str
    path: str
    lineno: int

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


@dataclass(frozen=True)
class FailureText:
    """A failure as pytest prints it.

    Attributes:
        text: the full text.
        reprcrash: the failure in one line.
        fault: identifies the reason, so that failures with the same one can be merged; "" for none.
        trace: the command that shows the trace; "" if no trace is kept.
        hidden: the text is not printed (`--tb=line`).
    """

    text: str
    reprcrash: Crash
    fault: str = ""
    trace: str = ""
    hidden: bool = False

    def toterminal(self, out: Any) -> None:
        """Write the text to pytest's terminal."""
        if self.hidden:
            return
        from harness.report.failure import emphasised

        isatty = getattr(getattr(out, "_file", None), "isatty", None)
        width = out.fullwidth if isatty is not None and isatty() else None
        escaped = CommandEscaper(in_actions())
        for parts in emphasised(self.text, width):
            for part, style in (*parts, ("\n", "")):
                out.write(escaped(part), **dict.fromkeys(style.split(), True))

    def __str__(self) -> str:
        return self.text


def restore(report: Any) -> None:
    """Restore the representation of a failure on a report that a worker sent."""
    sent = getattr(report, FAILURE, None)
    if sent is not None and isinstance(report.longrepr, str):
        report.longrepr = FailureText(**{**sent, "reprcrash": Crash(**sent["reprcrash"])})


def merge_same_faults(reports: Sequence[Any], trace_command: Callable[[str, str], str]) -> list[Any]:
    """Return the reports of failures, but of those with the same fault only the first, which lists the others.

    `trace_command` returns the command to show, given a node id and the command in `FailureText.trace`.
    """
    kept: list[Any] = []
    by_fault: dict[str, list[Any]] = {}
    for report in reports:
        text = report.longrepr
        reason = text.fault if isinstance(text, FailureText) else ""
        same_fault = by_fault.setdefault(reason, []) if reason else []
        same_fault.append(report)
        if len(same_fault) == 1:
            kept.append(report)
            if isinstance(text, FailureText) and text.trace:
                line = f"  trace  {trace_command(report.nodeid, text.trace)}"
                report.longrepr = replace(text, text=f"{text.text}\n{line}")
    for first, *others in by_fault.values():
        if others:
            from harness.report.failure import with_same

            text = with_same(first.longrepr.text, [report.nodeid for report in others])
            first.longrepr = replace(first.longrepr, text=text)
    return kept


RECORDS: Final = "harness_records"
"""The attribute of the reports of a scenario that holds the records of its runs: text and bytes."""
SCENARIOS_ONLY: Final = pytest.StashKey[bool]()
"""In the stash of the config: True if the session runs only scenarios, until the first of them has run."""
_POOL: Final = pytest.StashKey["WorkerPool"]()
_TAGS: Final = pytest.StashKey[set[str]]()
"""In the stash of the config: the tags that are registered as markers."""
DETAILS: Final[Mapping[str, Detail]] = {"short": "short", "long": "full", "native": "full"}
"""The detail of failures by the value of `--tb`. Others mean "normal"."""


class ScenarioItem(pytest.Item):
    """A scenario as a test item. It passes if every repeat passes."""

    def __init__(self, *, scenario: Scenario, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scenario = scenario
        self.outcomes: list[Outcome] = []
        self.records: list[Record] = []
        self.extra_keyword_matches.add(self.nodeid)
        for tag in scenario.tags:
            _register(self.config, tag)
            self.add_marker(tag)
        if scenario.skip is not None:
            self.add_marker(pytest.mark.skip(reason=scenario.skip))
        if scenario.xfail is not None:
            self.add_marker(pytest.mark.xfail(reason=scenario.xfail))

    def runtest(self) -> None:
        """Run the scenario.

        Raises:
            ScenarioFailed: a repeat did not pass.
        """
        for outcome, made in self._runs():
            self.outcomes.append(outcome)
            self.records.append(made)
        self.user_properties += properties([measured(outcome) for outcome in self.outcomes])
        if not all(outcome.passed for outcome in self.outcomes):
            raise ScenarioFailed

    def _runs(self) -> Iterator[tuple[Outcome, Record]]:
        settings = settings_of(self.config, self.path)
        if projects_of(self.config).isolates(self.path):
            for ended in _isolating_pool(self.config).run([self.scenario]):
                if ended.outcome is not None:
                    yield ended.outcome, ended.record
            return
        from harness.report.results import record
        from harness.scenario.process_state import refuse_os_exit
        from harness.scenario.run import outcomes
        from harness.workers.guardian import guarded

        _begin_guarded(self.config)
        runs = outcomes(self.scenario, settings, ask=ask_past_capture(self.config))
        with refuse_os_exit():
            for outcome in guarded(runs, self.scenario, settings):
                yield outcome, record(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the failure in terms of the scenario, or a traceback for an error of the harness itself."""
        if not isinstance(excinfo.value, ScenarioFailed):
            return super().repr_failure(excinfo, style)
        failed = [outcome for outcome in self.outcomes if not outcome.passed]
        return failure(failed, self.config.option.tbstyle)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the location of the scenario's name, as a file and a line (from 0), and the name."""
        return self.path, self.scenario.span.line - 1, self.name


def _isolating_pool(config: pytest.Config) -> WorkerPool:
    """Return the worker pool of the session, which gives each scenario a process, and keeps the next one ready."""
    if _POOL not in config.stash:
        from harness.workers.pool import WorkerPool

        pool = config.stash[_POOL] = WorkerPool(1, projects_of(config), one_by_one=True)
        config.add_cleanup(pool.close)
    return config.stash[_POOL]


def failure(failed: Sequence[Outcome], tbstyle: str) -> FailureText:
    """Return the text for the failed repeats of a scenario. `tbstyle` is the value of `--tb`."""
    from harness.report.cause import fault
    from harness.report.failure import failed_checks, failure_text, title, trace_command

    worst = min(failed, key=lambda outcome: outcome.score)
    message = f"score {worst.score:.2f}, {worst.verdict}: {failed_checks(worst)}"
    by_fault: dict[str, list[Outcome]] = {}
    for outcome in failed:
        by_fault.setdefault(fault(outcome) or f"repeat {outcome.repeat}", []).append(outcome)
    text = "\n\n".join(
        failure_text(first, DETAILS.get(tbstyle, "normal"), [title(other) for other in others])
        for first, *others in by_fault.values()
    )
    reason = fault(worst) if len(by_fault) == 1 else ""
    crash = Crash(message, worst.suite, worst.span.line if worst.span else 0)
    shown = next((outcome for outcome in failed if outcome.traced), worst)
    return FailureText(text, crash, reason, trace_command(shown), hidden=tbstyle == "line")


def _register(config: pytest.Config, tag: str) -> None:
    """Register a tag as a marker, for `--strict-markers`."""
    known = config.stash.setdefault(_TAGS, set())
    if tag not in known:
        known.add(tag)
        config.addinivalue_line("markers", f"{tag}: a tag of scenarios")


class ScenarioFailed(Exception):
    """Raised for a scenario that did not pass. The item has the outcomes."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Collect garbage rarely while a scenario runs: each collection scans all objects of pytest and its tests."""
    if not isinstance(item, ScenarioItem):
        return (yield)
    if not item.config.stash.get(SCENARIOS_ONLY, False):
        with reduced_gc():
            return (yield)
    item.config.stash[SCENARIOS_ONLY] = False
    reduce_gc()
    result = yield
    reduce_gc()  # again, as the first run has imported much
    return result


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Add the results of a scenario to its report, as plain data that a worker of xdist can send."""
    made = yield
    if not isinstance(item, ScenarioItem):
        return
    report: pytest.TestReport = made.get_result()
    setattr(report, RECORDS, [])
    if call.when == "call":
        setattr(report, RECORDS, [tuple(made) for made in item.records])
        if isinstance(report.longrepr, FailureText):
            setattr(report, FAILURE, asdict(report.longrepr))
        item.outcomes.clear()  # pytest keeps items for the whole session
        item.records.clear()
    elif call.when == "setup" and report.skipped:
        from harness.report.results import record
        from harness.scenario.run import run_scenario

        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped = replace(item.scenario, skip=item.scenario.skip or reason)
        made = map(record, run_scenario(skipped, settings_of(item.config, item.path)))
        setattr(report, RECORDS, [*map(tuple, made)])


_PACKED: Final = "harness_packed"
_MARSHAL_VERSION: Final = 2
"""A version of marshal's format that all Pythons read: a worker may have another version than its controller."""


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Pack the data of a scenario's report, unless another plugin has added something that marshal cannot handle."""
    data = yield
    if not isinstance(data, dict) or RECORDS not in data:
        return data
    try:
        return {_PACKED: marshal.dumps(data, _MARSHAL_VERSION)}
    except ValueError:
        return data


@pytest.hookimpl(tryfirst=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> None:
    """Unpack the data in place. pytest then makes the report from it."""
    packed = data.pop(_PACKED, None)
    if packed is not None:
        data.update(marshal.loads(packed))
