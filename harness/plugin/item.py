"""A scenario as a pytest item: running it, showing what failed, and the results on its report."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.plugin.asking import ask_past_capture
from harness.plugin.failure_text import FAILURE, Crash, FailureText
from harness.plugin.options import projects_of, settings_of
from harness.report.properties import measured, properties
from harness.workers.garbage import collect_rarely, collected_rarely

if TYPE_CHECKING:
    from harness.report.failure import Detail
    from harness.report.results import Record
    from harness.scenario.model import Scenario
    from harness.scenario.outcome import Outcome

RECORDS: Final = "harness_records"
"""The attribute of all reports of a scenario with what is written of its runs: text and bytes."""
SCENARIOS_ONLY: Final = pytest.StashKey[bool]()
"""Of the config: whether the session runs nothing but scenarios."""
_TAGS: Final = pytest.StashKey[set[str]]()
"""Of the config: the tags that are registered as markers."""
DETAILS: Final[Mapping[str, Detail]] = {"short": "short", "long": "full", "native": "full"}
"""How much of a failure pytest's `--tb` asks for, where it is not the usual."""


class ScenarioItem(pytest.Item):
    """A scenario. It passes when every repeat of it passes."""

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
        """Run it.

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
            from harness.plugin.isolation import isolated_runs

            yield from isolated_runs(self.scenario, self.config)
            return
        from harness.report.results import record
        from harness.scenario.process_exit import refuse_os_exit
        from harness.scenario.run import outcomes

        with refuse_os_exit():
            for outcome in outcomes(self.scenario, settings, ask=ask_past_capture(self.config)):
                yield outcome, record(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What failed, in the terms of the scenario; a traceback only for what is the harness's own fault."""
        if not isinstance(excinfo.value, ScenarioFailed):
            return super().repr_failure(excinfo, style)
        failed = [outcome for outcome in self.outcomes if not outcome.passed]
        return failure(failed, self.config.option.tbstyle)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The line of the scenario's name."""
        return self.path, self.scenario.span.line - 1, self.name


def failure(failed: Sequence[Outcome], tbstyle: str) -> FailureText:
    """The repeats of a scenario that did not pass, as pytest shows them with this `--tb`."""
    from harness.report.cause import fault
    from harness.report.commands import trace_command
    from harness.report.failure import failed_checks, failure_text, title

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
    """Make a tag a marker that `--strict-markers` knows."""
    known = config.stash.setdefault(_TAGS, set())
    if tag not in known:
        known.add(tag)
        config.addinivalue_line("markers", f"{tag}: a tag of scenarios")


class ScenarioFailed(Exception):
    """A scenario that did not pass. The item knows why."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a scenario without looking through everything that pytest and its tests keep, again and again."""
    if not isinstance(item, ScenarioItem):
        return (yield)
    if not item.config.stash.get(SCENARIOS_ONLY, False):
        with collected_rarely():
            return (yield)
    item.config.stash[SCENARIOS_ONLY] = False
    collect_rarely()
    result = yield
    collect_rarely()  # what runs need is loaded now
    return result


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Put the results of a scenario on its report, as plain data that survives the way from a worker."""
    made = yield
    if not isinstance(item, ScenarioItem):
        return
    report: pytest.TestReport = made.get_result()
    setattr(report, RECORDS, [])
    if call.when == "call":
        setattr(report, RECORDS, [tuple(made) for made in item.records])
        if isinstance(report.longrepr, FailureText):
            setattr(report, FAILURE, report.longrepr.as_json())
        item.outcomes.clear()  # they would stay for the whole session
        item.records.clear()
    elif call.when == "setup" and report.skipped:
        from harness.report.results import record
        from harness.scenario.run import run_scenario

        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped = replace(item.scenario, skip=item.scenario.skip or reason)
        made = map(record, run_scenario(skipped, settings_of(item.config, item.path)))
        setattr(report, RECORDS, [*map(tuple, made)])
