"""Messages for YAML syntax errors, at the location that a person would correct."""

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from harness.source import yaml
from harness.source.location import Lines, Unreadable

JARGON = (
    "block",
    "flow",
    "scalar",
    "token",
    "node",
    "indicator",
    "context",
    "<",
    "expected",
    "simple key",
    "parsing",
)


def told(text: str) -> str:
    """Return `line:column message (hint)`, or "" if the text is valid."""
    try:
        yaml.load(text)
    except Unreadable as error:
        flaw = error.flaws[0]
        span = Lines(text).span("f.yaml", flaw.start, flaw.end)
        return f"{span.line}:{span.column} {flaw.message.removeprefix('not valid YAML: ')} ({flaw.hint})"
    return ""


@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", "2:4 this '[' is never closed (close it with ']')"),
        ("a: {x: 1\n", "1:4 this '{' is never closed (close it with '}')"),
        ("a: [1, 2}\nb: 1\n", "1:4 this '[' is never closed (close it with ']')"),
        ('a: {x: 1 y: 2}\nb: 1\n', "1:11 a ',' or '}' is missing here (separate items by ', '"),
        ("a: ]\n", "1:4 this ']' is out of place (quote it if it is text)"),
        ('a: "x\nb: 1\n', '1:4 this " is never closed (end the text with ")'),
        ('a: "x\nb: "y"\nc: 1\n', '1:4 this " is not closed in its line (end the text with ")'),
        ('a: "x" y\nb: 1\n', "1:8 there is text after the closing quote (quote the whole text in '…')"),
        ("a: 'it's'\nb: 1\n", "1:8 there is text after the closing quote (quote the whole text, the quotes"),
        ('a: "\\d+"\n', "1:5 '\\d' is not an escape sequence in double quotes (write '\\\\' for a backslash"),
        ("a:\n  b: 1\n\tc: 2\n", "3:1 the indentation contains a tab (indent with spaces"),
        ("a: 1\nname:x\nb: 2\n", "2:5 a space is missing after this ':' (write `key: value`)"),
        ("s:\n  - name:x\n    b: 2\n", "2:9 a space is missing after this ':' (write `key: value`)"),
        ("a: b: c\n", "1:5 the value of a key contains a second ':' (quote a text that contains ': ')"),
        ("a: 1\n   b: 2\n", "2:4 this key is a part of the value in line 1 or above (wrong indentation, or"),
        ("a: 1\nfoo bar\nb: 2\n", "2:1 'foo bar' is not a key with a value: it has no ': ' (write `key: value`"),
        ("a:\n    b: 1\n  c: 2\n", "3:3 this line is indented by 2, the lines above that it may belong to by 0 or 4"),
        ("s:\n  - a\n - b\n", "3:2 this line is indented by 1, the lines above that it may belong to by 0"),
        ("a:\n  b: 1\n  - c\n", "3:3 a list item is among the keys of a mapping (wrong indentation, or"),
        ("a:\n  - b\n  c: 1\n", "3:3 this line is among the items of a list, but is not an item (wrong indentation"),
        ("a: - b\n", "1:4 a list cannot begin in the line of its key (begin the list in the line below"),
        ("a: @x\n", "1:4 a text cannot begin with '@' (quote a text that starts with '@')"),
        ("a: *.com\n", "1:4 a text cannot begin with '*' (quote a text that starts with '*')"),
        ("a: | text\n", "1:6 only a comment may follow in the line of '|' or '>' (begin the text"),
        ("a: {{ name }}\n", "1:5 a key must be text, not a list or mapping (quote a text that begins with '{{')"),
    ],
)  # fmt: skip
def test_syntax_errors_have_plain_messages(
    text: str, expected: str, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml, "_LOADER", getattr(pyyaml, loader))
    assert told(text).startswith(expected)


@given(st.text(alphabet="ab:-[]{}\"'#|>&*!%@,? \n\t\\", max_size=40))
def test_messages_contain_no_words_of_the_parser(text: str) -> None:
    assert not [word for word in JARGON if word in told(text)]
