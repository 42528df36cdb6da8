"""Messages that docs/troubleshooting.md quotes occur in the code.

A message is compared by its pairs of adjacent words; quoted text, places, class names and numbers vary and are left
out. Parts may come from Python, the system or a library, so half of the pairs must occur in the code.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import harness

ROOT = Path(harness.__file__).parent
DOCUMENT = (ROOT.parent / "docs/troubleshooting.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<code>[a-z-]+)` \| (?P<means>.*?) \|", re.M)
VARIES = re.compile(
    r"^[\w./-]+:\d+:\d+: |'[^']*'|\"[^\"]*\"|\S*\d\S*|…|[(),;:=>→]|\w+[._/]\w\S*"
    r"|\b[A-Z][a-z]+[A-Z]\w*|\b[A-Z]+\b|\b[b-z]\b|is a required property"  # the last is jsonschema's
)
MIN_SHARE = 0.5
SYSTEM_CODE = "system"
"""The code of errors whose texts come from the operating system."""
Pair = tuple[str, str]


def pairs(text: str) -> Iterator[Pair]:
    for part in VARIES.sub("\0", text).split("\0"):
        yield from pairwise(re.findall(r"[A-Za-z$_]+", part))


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield all strings of a module, with NUL for each replacement field of an f-string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def pairs_in_code() -> frozenset[Pair]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py"))
    return frozenset(pair for tree in trees for text in texts(tree) for pair in pairs(text))


def quoted() -> list[tuple[str, str]]:
    rows = (found.groupdict() for found in ROW.finditer(DOCUMENT))
    found = [(row["code"], quote) for row in rows for quote in re.findall(r"`([^`]+)`", row["means"])]
    return [(code, quote) for code, quote in found if code != SYSTEM_CODE and len(list(pairs(quote))) > 1]


@pytest.mark.parametrize(("code", "message"), quoted())
def test_a_quoted_message_occurs_in_the_code(code: str, message: str) -> None:
    said = list(pairs(message))
    missing = [" ".join(pair) for pair in said if pair not in pairs_in_code()]
    assert len(missing) <= (1 - MIN_SHARE) * len(said), f"[{code}] nothing in the code says: {missing}"


def test_quoted_messages_are_found() -> None:
    assert len(quoted()) > 100
