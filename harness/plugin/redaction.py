"""Secrets in what pytest itself shows and writes: captured output, tracebacks, warnings.

On what scenarios printed and raised, the runner of GitHub Actions does not act.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.plugin.failure_text import FAILURE, FailureText
from harness.plugin.options import projects_of

if TYPE_CHECKING:
    import warnings

_UNPROTECTED: Final = "harness_unprotected"
"""The key of a worker's output with the variables whose values it cannot keep secret."""


class Redaction:
    """Takes secrets out of the reports and warnings of a session that has scenarios, and of uncaptured output."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._scrub: Callable[[str], str] | None = None
        self._unprotected: Collection[str] = ()
        self._output = ExitStack()
        self._scenarios: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begin, if there are scenarios."""
        from harness.plugin.item import ScenarioItem

        scenarios = [item for item in session.items if isinstance(item, ScenarioItem)]
        if not scenarios:
            return
        files = {item.path for item in scenarios}
        self._scenarios = {item.nodeid for item in scenarios}
        from harness.scenario.redaction import secrets_of_process
        from harness.secrets.output import redacted_process

        secrets = secrets_of_process(projects_of(self._config).common(files))
        self._scrub, self._unprotected = secrets.text, secrets.unprotected
        if self._config.getoption("capture") == "no":
            self._output.enter_context(redacted_process(self._scrub))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Captured output and a traceback, of whatever made them."""
        if self._scrub is None or not (report.sections or report.longrepr):
            return
        report.sections = [(title, self._shown(text, report.nodeid)) for title, text in report.sections]
        text = str(report.longrepr or "")
        if isinstance(report.longrepr, tuple):
            return
        if isinstance(report.longrepr, FailureText) and self._scrub(text) == text:
            return  # it is made inert when it is printed
        if (shown := self._shown(text, report.nodeid)) != text:
            report.longrepr = shown
            report.__dict__.pop(FAILURE, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, nodeid: str) -> None:
        """The text of a warning, which may be the traceback of a thread."""
        text = str(warning_message.message)
        if (shown := self._shown(text, nodeid)) != text:
            warning_message.message = shown

    def _shown(self, text: str, nodeid: str) -> str:
        """What is shown of a text that an item printed or raised."""
        from harness.source.workflow_commands import inert

        if self._scrub is None:
            return text
        return inert(self._scrub(text)) if nodeid in self._scenarios else self._scrub(text)

    def pytest_sessionfinish(self) -> None:
        """Have the controller of xdist say what a worker cannot keep secret."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[_UNPROTECTED] = [*self._unprotected]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended: all have the same settings and variables."""
        self._unprotected = getattr(node, "workeroutput", {}).get(_UNPROTECTED) or self._unprotected

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what cannot be kept secret."""
        for name in self._unprotected:
            terminalreporter.write_line(
                f"warning: the value of {name} is too short, or too common a word, to be kept secret"
            )

    def pytest_unconfigure(self) -> None:
        """Leave the output as it was."""
        self._output.close()
