"""The fixture `agent_run`: `harness.run` inside of a test, whose runs stand in the report like those of scenarios."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

import pytest

from harness.plugin.item import RECORDS
from harness.plugin.options import settings_of

if TYPE_CHECKING:
    from harness.api.keys import RunKeys
    from harness.api.moment import Moment
    from harness.api.run import Run
    from harness.report.results import Record

OF_TEST: Final = "harness_of_test"
"""The attribute of a report whose records are of a plain test."""
_RUNS: Final = pytest.StashKey["AgentRun"]()
_PASSED: Final = pytest.StashKey[bool]()


class AgentRun:
    """Runs agents for one test. Each conversation is a line of the results, with the name of the test.

    The scenario's file is that of the test, so that ids are the same in each run of it. With `--record-mode`, or
    once it has been recorded, a run has the cassette `TEST` (`TEST-2` for the second).
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._conversations: list[Moment] = []

    def __call__(self, manifest: Any, input: Any = None, /, **given: Unpack[RunKeys]) -> Run:
        """Run an agent, see `harness.run`."""
        __tracebackhide__ = True  # pytest shows the line of the test
        from harness.api.conversation import beginning_of
        from harness.api.run import run_from
        from harness.errors import FormatError

        number = len(self._conversations)
        suffix = f" ({number + 1})" if number else ""
        settings = settings_of(self._item.config, self._item.path)
        cassette = re.sub(r"[^\w.-]+", "-", f"{self._item.name}{suffix}").strip("-.")
        is_recorded = (settings.project / settings.cassettes / cassette).is_dir()
        if "cassette" not in given and (is_recorded or settings.record_mode.value not in ("none", "live")):
            given["cassette"] = cassette
        name = f"{self._item.nodeid.partition('::')[2]}{suffix}"
        file = Path(self._item.nodeid.partition("::")[0])

        def keep(moment: Moment) -> None:
            self._conversations[number] = moment

        try:
            began = beginning_of(manifest, input, given, file, name, settings)
            self._conversations.append(None)  # type: ignore[arg-type]  # kept at once by the listener
            return run_from(began, keep)
        except FormatError as wrong:
            raise wrong.with_traceback(None) from None

    def records(self, failure: str) -> Iterator[Record]:
        """Yield the record of each conversation. `failure` is why the test failed; "" if it passed."""
        from harness.report.results import record

        moments = [moment for moment in self._conversations if moment is not None]
        judged = any(moment.verdict != "passed" for moment in moments)
        for moment in moments:
            blamed = failure if moment is moments[-1] and not judged else ""
            yield record(moment.judged(blamed))

    def left_over(self) -> list[str]:
        """Return a text for each stub that was not used."""
        return [text for moment in self._conversations if moment is not None for text in moment.left_over()]


@pytest.fixture
def agent_run(request: pytest.FixtureRequest) -> Generator[AgentRun]:
    """Run agents offline, in virtual time: `harness.run`, with a line in the report for each conversation."""
    runs = request.node.stash[_RUNS] = AgentRun(request.node)
    yield runs
    if request.node.stash.get(_PASSED, False) and (left := _left_over(runs)):
        pytest.fail(left, pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Add the results of a test's runs to its report."""
    made = yield
    if call.when != "call" or _RUNS not in item.stash:
        return
    report: pytest.TestReport = made.get_result()
    runs = item.stash[_RUNS]
    item.stash[_PASSED] = report.passed
    if report.skipped:  # also of a failure that is expected (`xfail`): neither tells anything about the agent
        return
    if report.passed:
        failure = _left_over(runs)
    else:
        failure = str(report.longrepr) if call.excinfo is None else call.excinfo.exconly()
    setattr(report, RECORDS, [tuple(each) for each in runs.records(failure)])
    setattr(report, OF_TEST, True)


def _left_over(runs: AgentRun) -> str:
    listed = "".join(f"\n  {text}" for text in runs.left_over())
    return f"stubs are left over (allow_unused=True allows that):{listed}" if listed else ""
