"""Docstrings state what a caller gets: "The …", "Return …", "True if …", and not "What …" or "Whether …"."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import harness

QUESTION_WORDS = ("What", "Who", "Whom", "Whose", "Where", "When", "How", "Whether", "Which")


def test_no_docstring_begins_as_a_question() -> None:
    root = Path(harness.__file__).parent
    found = [
        f"{path.relative_to(root)}:{line}: {text.splitlines()[0]}"
        for path in sorted(root.rglob("*.py"))
        for line, text in docstrings(ast.parse(path.read_text("utf-8")))
        if text.split(maxsplit=1)[0].rstrip(",:") in QUESTION_WORDS
    ]
    assert found == []


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring, those of attributes included."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str() as text)) if text.strip():
                    yield statement.lineno, text.strip()
