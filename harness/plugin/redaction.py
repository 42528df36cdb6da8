"""Redaction of secrets in the output of pytest itself: captured output, tracebacks, warnings.

Workflow commands of GitHub Actions are escaped in the output and the exceptions of scenarios.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.plugin.item import FAILURE, FailureText, ScenarioItem
from harness.plugin.options import projects_of
from harness.source.display import escape_commands

if TYPE_CHECKING:
    import warnings

_UNPROTECTED: Final = "harness_unprotected"
"""The key of a worker's output for the variables whose values it cannot redact."""


class Redaction:
    """Redacts secrets in reports, warnings and uncaptured output of a session that has scenarios."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._scrub: Callable[[str], str] | None = None
        self._unprotected: Collection[str] = ()
        self._output = ExitStack()
        self._scenarios: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Start redaction if there are scenarios."""
        scenarios = [item for item in session.items if isinstance(item, ScenarioItem)]
        if not scenarios:
            return
        files = {item.path for item in scenarios}
        self._scenarios = {item.nodeid for item in scenarios}
        from harness.scenario.app_process import close_apps
        from harness.scenario.redaction import secrets_of_process
        from harness.secrets.output import redacted_process

        secrets = secrets_of_process(projects_of(self._config).common(files))
        self._scrub, self._unprotected = secrets.text, secrets.unprotected
        if self._config.getoption("capture") == "no":
            self._output.enter_context(redacted_process(self._scrub))
        self._output.callback(close_apps)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Redact captured output and tracebacks of all tests."""
        if self._scrub is None or not (report.sections or report.longrepr):
            return
        report.sections = [(title, self._shown(text, report.nodeid)) for title, text in report.sections]
        text = str(report.longrepr or "")
        if isinstance(report.longrepr, tuple):
            return
        if isinstance(report.longrepr, FailureText) and self._scrub(text) == text:
            return  # its commands are escaped when it is printed
        if (shown := self._shown(text, report.nodeid)) != text:
            report.longrepr = shown
            report.__dict__.pop(FAILURE, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, nodeid: str) -> None:
        """Redact the text of a warning, which may contain the traceback of a thread."""
        text = str(warning_message.message)
        if (shown := self._shown(text, nodeid)) != text:
            warning_message.message = shown

    def _shown(self, text: str, nodeid: str) -> str:
        """Return a text that an item printed or raised, redacted, and escaped if the item is a scenario."""
        if self._scrub is None:
            return text
        return escape_commands(self._scrub(text)) if nodeid in self._scenarios else self._scrub(text)

    def pytest_sessionfinish(self) -> None:
        """Send the controller of xdist the variables that a worker cannot redact."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[_UNPROTECTED] = [*self._unprotected]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Keep the variables that a worker could not redact. All workers have the same."""
        self._unprotected = getattr(node, "workeroutput", {}).get(_UNPROTECTED) or self._unprotected

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Warn of variables that cannot be redacted."""
        for name in self._unprotected:
            terminalreporter.write_line(
                f"warning: the value of {name} is too short, or too common a word, to be kept secret"
            )

    def pytest_unconfigure(self) -> None:
        """Restore the output."""
        self._output.close()
