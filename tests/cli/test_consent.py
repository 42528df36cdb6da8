"""Models are called after a question at a terminal, or with `--yes`. Source: docs/variants.md."""

from __future__ import annotations

import io

import pytest

from harness.cli.options import may_call_models
from harness.errors import FormatError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def use(monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO, stderr: io.StringIO, ci: str = "") -> None:
    """Set the streams of this process; pytest sets them anew before each test."""
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("CI", ci)


@pytest.mark.parametrize(("answer", "agreed"), [("y", True), ("n", False), ("", False)])
def test_at_a_terminal_it_asks(monkeypatch: pytest.MonkeyPatch, answer: str, agreed: bool) -> None:
    shown = Terminal()
    use(monkeypatch, Terminal(f"{answer}\n"), shown)
    assert may_call_models(yes=False) is agreed
    assert "go on? [y/N]" in shown.getvalue()


def test_with_yes_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    use(monkeypatch, Terminal(), shown)
    assert may_call_models(yes=True)
    assert shown.getvalue() == ""


@pytest.mark.parametrize(
    ("stdin", "stderr", "ci"),
    [(io.StringIO, Terminal, ""), (Terminal, io.StringIO, ""), (Terminal, Terminal, "true")],
    ids=["no input", "no output", "a CI machine"],
)
def test_without_a_terminal_it_needs_yes(
    monkeypatch: pytest.MonkeyPatch, stdin: type[io.StringIO], stderr: type[io.StringIO], ci: str
) -> None:
    use(monkeypatch, stdin("y\n"), stderr(), ci)
    with pytest.raises(FormatError, match="--yes goes on without a question"):
        may_call_models(yes=False)
    assert may_call_models(yes=True)
