"""`pytest --harness-gate`: checks the rules of the project's gate at the end of a session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest

from harness.plugin.options import projects_of

if TYPE_CHECKING:
    from harness.settings import Settings

OPTION: Final = "harness_gate"
_PASSED: Final = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class Report(Protocol):
    """The report of a session, as the gate uses it."""

    @property
    def settings(self) -> Settings:
        """The settings of the project of its scenarios."""
        ...

    def finish(self) -> Path | None:
        """Finish the report and return its folder; None if no scenario ran."""
        ...


class Gate:
    """Judges a session when its report is written. A session without a verdict fails."""

    def __init__(self, config: pytest.Config, report: Report) -> None:
        self._config, self._report = config, report
        self._lines: Sequence[str] = ()

    def pytest_sessionstart(self) -> None:
        """Refuse an invalid policy before anything runs."""
        from harness.errors import FormatError
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
        from harness.errors import FormatError, Problem
        from harness.gate.judge import judge
        from harness.gate.policy import read_policy
        from harness.gate.text import lines
        from harness.source.display import printable, render

        try:
            folder = self._report.finish()
            if folder is None:
                raise FormatError(Problem("no-runs", "no scenario ran, so there is nothing to judge"))
            settings = self._report.settings
            verdict = judge(folder, read_policy(None, settings.project), history=settings.history)
        except FormatError as error:
            refused = [printable(render(problem), keep_newlines=True) for problem in error.problems]
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
            from harness.source.display import escape_commands

            terminalreporter.section("gate")
            for line in self._lines:
                terminalreporter.write_line(escape_commands(line))
