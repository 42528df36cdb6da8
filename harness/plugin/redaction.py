"""Secrets in what pytest itself shows and writes: captured output, tracebacks, warnings."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from harness.plugin.options import projects_of

if TYPE_CHECKING:
    import warnings


class Redaction:
    """Takes secrets out of the reports and warnings of a session that has scenarios, and of uncaptured output."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._scrub: Callable[[str], str] | None = None
        self._unprotected: Collection[str] = ()
        self._output = ExitStack()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begin, if there are scenarios."""
        from harness.plugin.item import ScenarioItem

        files = {item.path for item in session.items if isinstance(item, ScenarioItem)}
        if not files:
            return
        from harness.scenario.redaction import secrets_of_process
        from harness.secrets.output import redacted_process

        secrets = secrets_of_process(projects_of(self._config).common(files))
        self._scrub, self._unprotected = secrets.text, secrets.unprotected
        if self._config.getoption("capture") == "no":
            self._output.enter_context(redacted_process(self._scrub))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Captured output and a traceback, of whatever made them."""
        if self._scrub is None:
            return
        report.sections = [(title, self._scrub(text)) for title, text in report.sections]
        text = str(report.longrepr or "")
        if not isinstance(report.longrepr, tuple) and (scrubbed := self._scrub(text)) != text:
            report.longrepr = scrubbed

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """The text of a warning, which may be the traceback of a thread."""
        text = str(warning_message.message)
        if self._scrub is not None and (scrubbed := self._scrub(text)) != text:
            warning_message.message = scrubbed

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what cannot be kept secret."""
        for name in self._unprotected:
            terminalreporter.write_line(
                f"warning: the value of {name} is too short, or too common a word, to be kept secret"
            )

    def pytest_unconfigure(self) -> None:
        """Leave the output as it was."""
        self._output.close()
