"""Reads the code of a user for what it compares values with, and what it looks up in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

JSON: Final = "json"
"""The name of text that is parsed as JSON, in shapes."""
WHOLE: Final = ("state", "calling_agent_response", "input_data")
"""Names of the whole data of a run, which shapes leave out."""
_PARSERS: Final = ("loads", "model_validate_json")
_TESTS: Final = frozenset(
    ["startswith", "endswith", "startsWith", "endsWith", "contains", "count", "find", "index", "split"]
)
_OF_TEXTS: Final = frozenset(dir(str)).difference(dir(list), dir(dict))
"""The methods that only texts have."""
_PATTERNS: Final = ("match", "search", "fullmatch", "findall", "compile")


@dataclass
class Found:
    """Findings, in order of appearance.

    Attributes:
        words: texts that something is compared with.
        numbers: numbers that something is compared with.
        reads: names, each with a mapping of what is read below it.
        compared: the values that what is at a path of `reads` is compared with; "" if it is used as a text.
        keys: keys of mappings in code.
    """

    words: dict[str, None] = field(default_factory=dict)
    numbers: dict[float, None] = field(default_factory=dict)
    reads: dict[str, Any] = field(default_factory=dict)
    compared: dict[tuple[str, ...], list[Any]] = field(default_factory=dict)
    keys: dict[str, None] = field(default_factory=dict)

    def read(self, path: tuple[str, ...], *values: Any) -> None:
        """Add a path that is read, and values that what is there is compared with."""
        if len(path) > 1 and path[0] in WHOLE:
            path = path[1:]
        below = self.reads
        for step in path:
            below = below.setdefault(step, {})
        known = self.compared.setdefault(path, []) if values else []
        known += [value for value in values if value not in known]

    def compare(self, value: Any) -> None:
        """Add a value that something is compared with."""
        if isinstance(value, str):
            self.words[value] = None
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.numbers[value] = None


def read_python(path: Path, found: Found) -> None:
    """Add what the code in a file compares and looks up. A file that cannot be parsed adds nothing."""
    try:
        _Reader(found).visit(ast.parse(path.read_bytes()))
    except (SyntaxError, ValueError, RecursionError):
        return


class _Reader(ast.NodeVisitor):
    """Visits code in its order. `names` are variables that stand for what is at a path."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.names: dict[str, tuple[str, ...]] = {}
        self.modules: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        self.modules.update((each.asname or each.name).partition(".")[0] for each in node.names)

    def path(self, node: ast.expr) -> tuple[str, ...] | None:
        """Return the path of the value that an expression looks up; None if it is no such expression."""
        match node:
            case ast.Name(name):
                return self.names.get(name, (name,))
            case ast.Await(value):
                return self.path(value)
            case ast.Subscript(value, ast.Constant(str() | int() as key)):
                return self._below(value, str(key))
            case ast.Attribute(value, name):
                return self._below(value, name)
            case ast.Call(ast.Attribute(value, "get"), [ast.Constant(str(key)), *_]):
                return self._below(value, key)
            case ast.Call(ast.Attribute(_, name) | ast.Name(name)) if name in _PARSERS:
                return (JSON,)
            case ast.Call(func):  # what a function or the method of a tool returns
                while isinstance(func, ast.Attribute):
                    func = func.value
                return (func.id,) if isinstance(func, ast.Name) else None
        return None

    def _below(self, value: ast.expr, step: str) -> tuple[str, ...] | None:
        path = self.path(value)
        return None if path is None else (*path, step)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer, self.names = self.names, dict(self.names)
        self.generic_visit(node)
        self.names = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        self._name(node.targets[0], node.value)

    def visit_For(self, node: ast.For | ast.comprehension) -> None:
        self._name(node.target, node.iter, "*")
        self.generic_visit(node)

    visit_comprehension = visit_For

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        for each in node.generators:
            self.visit(each)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def _name(self, target: ast.expr, value: ast.expr, *steps: str) -> None:
        path = self.path(value)
        if isinstance(target, ast.Name) and path is not None and (steps or not isinstance(value, ast.Name)):
            self.names[target.id] = (*path, *steps)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for one, other in (
            pair for left, right in pairwise(sides) for pair in ((left, right), (right, left))
        ):
            values = list(_constants(other))
            for value in values:
                self.found.compare(value)
            is_call = isinstance(one, ast.Call) and getattr(one.func, "attr", "") != "get"
            if not is_call and (path := self.path(one)) is not None:
                self.found.read(path, *values)
        self.generic_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        for value in _constants(node.value):
            self.found.compare(value)

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        tested = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        if isinstance(tested, ast.Subscript) and (path := self.path(tested)) is not None:
            self.found.read(path, True)
        self.generic_visit(node)

    visit_IfExp = visit_If

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_number = isinstance(node.op, ast.Sub | ast.Mult | ast.Div | ast.FloorDiv | ast.Mod)
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, ast.Subscript) and (path := self.path(one)) is not None:
                values = [value for value in _constants(other) if not isinstance(value, str)]
                is_text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
                self.found.read(path, *(values or ([1] if is_number and not is_text else [])))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        first = node.args[0] if node.args else None
        if name == "len" and isinstance(first, ast.Subscript) and (path := self.path(first)) is not None:
            self.found.read(path, [])
        if isinstance(node.func, ast.Attribute) and name in _OF_TEXTS:
            path = self.path(node.func.value)
            if path is not None and path[0] not in self.modules:
                self.found.read(path, "")  # some text
        if name in _TESTS and first is not None:
            for value in _constants(first):
                self.found.compare(value)
        if name in _PATTERNS and isinstance(first, ast.Constant) and isinstance(first.value, str):
            self.found.words.update(
                dict.fromkeys(re.findall(r"[A-Za-z_]{3,}", re.sub(r"\\.", " ", first.value)))
            )
        if name == "get":
            self._read(node)
        if isinstance(node.func, ast.Attribute):
            self.visit(node.func.value)
        for part in (*node.args, *node.keywords):
            self.visit(part)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._read(node)
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            for value in _constants(node.slice):
                self.found.compare(value)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._read(node)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key in node.keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self.found.keys[key.value] = None
        self.generic_visit(node)

    def _read(self, node: ast.expr) -> None:
        path = self.path(node)
        is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if path is not None and is_read and path[0] not in self.modules:
            self.found.read(path)


def _constants(node: ast.expr) -> Iterator[Any]:
    """Yield the literals that an expression is, or that are its items."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        yield node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from (-value for value in _constants(node.operand) if not isinstance(value, str))
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for item in node.elts:
            yield from _constants(item)
