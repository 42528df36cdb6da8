"""Escaping of workflow commands of GitHub Actions."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.source.display import (
    CommandEscaper,
    allow_command,
    escape_commands,
    escape_json_commands,
)

PIECES = st.lists(st.text("::#[ \tab\n\r\u00a0\x85"))


def acts(text: str) -> bool:
    """True if the runner would execute a command: V2 at the beginning of a line, V1 anywhere."""
    lines = re.split(r"\r\n|\r|\n", text)
    return any(line.lstrip().startswith("::") or "##[" in line for line in lines)


@given(PIECES)
def test_commands_are_escaped_however_the_text_is_split(pieces: list[str]) -> None:
    make = CommandEscaper(True)
    shown = "".join([make(piece) for piece in pieces])
    assert not acts(shown)
    assert shown.replace("\\", "") == "".join(pieces)


@given(PIECES)
def test_outside_of_actions_nothing_is_changed(pieces: list[str]) -> None:
    make = CommandEscaper(False)
    assert [make(piece) for piece in pieces] == pieces


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::set-output name=a::b", ":\\:set-output name=a::b"),
        ("ok\n \t::stop-commands::x\n", "ok\n \t:\\:stop-commands::x\n"),
        ("a ##[add-mask]e", "a ##\\[add-mask]e"),
        ("a.scenario.yaml::a name", "a.scenario.yaml::a name"),
    ],
)
def test_a_backslash_breaks_a_command(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert escape_commands(text) == shown
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert escape_commands(text) == text


def test_an_allowed_command_passes_as_a_whole_line() -> None:
    line = allow_command("::error file=a.yaml::it failed")
    assert CommandEscaper(True)(f"{line}\n") == f"{line}\n"
    assert not acts(CommandEscaper(True)(f" {line}\n"))


@given(st.recursive(st.text('#[]\\"'), lambda inner: st.lists(inner) | st.dictionaries(st.text("#["), inner)))
def test_json_stays_the_same(value: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_ACTIONS", "true")
        text = escape_json_commands(json.dumps(value))
    assert not acts(text)
    assert json.loads(text) == value
