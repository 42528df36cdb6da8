"""Text literals of Python source: their places, other texts in them, and the import of modules with other texts.

A text is a string literal, or several that are added; an f-string is none. It is known by its file and the line and
column (from 1) where it begins.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, Final

from harness.source.document import real_path

Place = tuple[int, int]
"""Line and column, from 1."""

_in_effect: Final[dict[Path, dict[Place, str]]] = {}
"""The other texts of modules, by their files."""


def text_of(node: ast.AST | None) -> str | None:
    """Return the text of a literal, or of several that are added; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None or right is None else left + right
    return None


def place_of(node: ast.expr, lines: Sequence[str]) -> Place:
    """Return the place of an expression in source that is split at its line feeds. The parser counts bytes."""
    before = lines[node.lineno - 1].encode()[: node.col_offset]
    return node.lineno, len(before.decode(errors="replace")) + 1


def with_text(source: str, line: int, column: int, new: str) -> str | None:
    """Return source with another text at a place; None if there is none. Several lines stay several lines."""
    lines = source.split("\n")
    found = next(
        (each for each in _texts(ast.parse(source)) if place_of(each, lines) == (line, column)), None
    )
    if found is None or found.end_lineno is None or found.end_col_offset is None:
        return None
    encoded = [each.encode() for each in lines]
    first, last = encoded[found.lineno - 1], encoded[found.end_lineno - 1]
    literal = _literal(new, chr(first[found.col_offset]))
    changed = first[: found.col_offset] + literal.encode() + last[found.end_col_offset :]
    return b"\n".join([*encoded[: found.lineno - 1], changed, *encoded[found.end_lineno :]]).decode()


def _literal(text: str, quote: str) -> str:
    block = '"""' + text.replace("\\", "\\\\").replace('"', '\\"') + '"""'
    plain = f'"""{text}"""'
    for each in (plain, block) if "\n" in text else ():
        try:
            if ast.literal_eval(each) == text:
                return each
        except (SyntaxError, ValueError):
            continue
    written = repr(text)
    return f'"{written[1:-1]}"' if quote == '"' and "\\'" not in written and '"' not in text else written


def _texts(node: ast.AST) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and text_of(child) is not None:
            yield child
        elif not isinstance(child, ast.JoinedStr):
            yield from _texts(child)


# ---------------------------------------------------------------- modules with other texts


def import_with(texts: Mapping[Path, Mapping[Place, str]]) -> list[Path]:
    """Let modules that are imported from now on have these texts, by the absolute files of the modules.

    Returns:
        The files of modules that are imported already, with other texts than these.
    """
    wanted = {file: dict(of_file) for file, of_file in texts.items()}
    changed = [file for file in {*wanted, *_in_effect} if wanted.get(file) != _in_effect.get(file)]
    _in_effect.clear()
    _in_effect.update(wanted)
    if wanted:
        _wrap_loader()
    files = [*map(_file, list(sys.modules.values()))] if changed else []
    return sorted({real_path(Path(file)) for file in files if file is not None}.intersection(changed))


def _file(module: Any) -> str | None:
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else None


@cache
def _wrap_loader() -> None:
    original: Callable[[SourceFileLoader, str], Any] = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> Any:
        texts = _in_effect.get(real_path(Path(self.path)))
        if texts is None:
            return original(self, fullname)
        source = self.get_source(fullname)  # not the compiled file, which has the old texts
        assert source is not None
        tree = ast.parse(source, self.path)
        return compile(_OtherTexts(source, texts).visit(tree), self.path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment,method-assign]


class _OtherTexts(ast.NodeTransformer):
    """Replaces texts. Every line keeps its number."""

    def __init__(self, source: str, texts: Mapping[Place, str]) -> None:
        self._lines, self._texts = source.split("\n"), texts

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.JoinedStr):
            return node
        if isinstance(node, ast.expr) and text_of(node) is not None:
            new = self._texts.get(place_of(node, self._lines))
            return node if new is None else ast.copy_location(ast.Constant(new), node)
        return self.generic_visit(node)
