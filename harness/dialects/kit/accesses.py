"""The keys of a state that the functions of an app read and write, from their source.

A function that returns what its source does not show may write any key that it does not read.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import CodeType
from typing import Any, Final

from harness.time.rebinding import USER, origin

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_MAX_DEPTH: Final = 4
"""The most functions that are followed when one passes its state to the next."""


@dataclass
class Access:
    """The keys that functions access, in order.

    Attributes:
        needs: those that they read and that must be there; None stands for any key.
        asks: those that they read if they are there.
        grows: those that they add to, or subtract from.
        writes: those that they write; None stands for any key.
        sends: those of the states that they send to nodes.
        catches: they catch exceptions.
    """

    needs: dict[str | None, None] = field(default_factory=dict)
    asks: dict[str, None] = field(default_factory=dict)
    grows: dict[str, None] = field(default_factory=dict)
    writes: dict[str | None, None] = field(default_factory=dict)
    sends: dict[str, None] = field(default_factory=dict)
    catches: bool = False

    def add(self, other: Access, *, returned: bool) -> None:
        """Add the access of a function that is called with the state; it is `returned` if what it returns is."""
        self.needs.update(other.needs)
        self.asks.update(other.asks)
        self.grows.update(other.grows)
        self.sends.update(other.sends)
        self.catches |= other.catches
        if returned:
            self.writes.update(other.writes)

    def read(self, keys: Collection[str]) -> list[str]:
        """Return those of the keys that are read."""
        return [key for key in keys if key in self.asks or key in self.needs or None in self.needs]

    def set(self, keys: Collection[str]) -> list[str]:
        """Return those of the keys that are written, but for those that are only changed, such as a text."""
        changed = [key for key in self.read(keys) if key not in self.grows]
        return [key for key in keys if (key in self.writes or None in self.writes) and key not in changed]


def functions_in(runnable: Any) -> Iterator[Callable[..., Any]]:
    """Yield the functions of the user that a runnable, or a function, runs."""
    if isinstance(runnable, partial):
        for each in functions_in(runnable.func):
            yield partial(each, *runnable.args) if runnable.args else each
    elif steps := getattr(runnable, "steps", None):
        for step in steps:
            yield from functions_in(step)
    elif (bound := getattr(runnable, "bound", None)) is not None:
        yield from functions_in(bound)
    elif inspect.isroutine(runnable):
        code = getattr(inspect.unwrap(getattr(runnable, "__func__", runnable)), "__code__", None)
        if code is not None and origin(code.co_filename) is USER:
            yield runnable
    elif (inner := getattr(runnable, "func", None) or getattr(runnable, "afunc", None)) is not None:
        yield from functions_in(inner)
    elif callable(runnable):
        yield from functions_in(runnable.__call__)


def code_of(function: Any) -> CodeType:
    """Return the code of a function that `functions_in` yields."""
    inner = function.func if isinstance(function, partial) else function
    code: CodeType = inspect.unwrap(getattr(inner, "__func__", inner)).__code__
    return code


def access_of(function: Callable[..., Any], at: int | None = 0, depth: int = 0) -> Access:
    """Return the keys that a function accesses in the mapping or object that its argument at `at` is.

    With None, none of its arguments is.
    """
    if isinstance(function, partial):
        return access_of(function.func, None if at is None else at + len(function.args), depth)
    code = code_of(function)
    found = Access()
    for definition in definitions(code.co_filename).get(code.co_firstlineno, ()):
        if getattr(definition, "name", "<lambda>") == code.co_name:
            names = [each.arg for each in (*definition.args.posonlyargs, *definition.args.args)]
            given = names[1:] if hasattr(function, "__self__") else names
            state = given[at] if at is not None and at < len(given) else ""
            _Reader(function, state, found, depth).read(definition)
    return found


@lru_cache(256)
def definitions(file: str) -> dict[int, list[Definition]]:
    """Return the functions in a file, by the line that their code begins in."""
    found: dict[int, list[Definition]] = {}
    try:
        with open(file, encoding="utf-8") as opened:
            tree = ast.parse(opened.read())
    except (OSError, SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            decorators = [each.lineno for each in getattr(node, "decorator_list", ())]
            found.setdefault(min([node.lineno, *decorators]), []).append(node)
    return found


_RUNS: Final = ("invoke", "ainvoke", "stream", "astream", "format", "format_map", "format_messages")
"""Methods that may read any key of the state that is passed to them."""


class _Reader:
    """Reads the body of one function, of which the parameter `state` is the state."""

    def __init__(self, function: Any, state: str, found: Access, depth: int) -> None:
        self.function, self.state, self.found, self.depth = function, state, found, depth
        self.assigned: dict[str, list[ast.expr]] = {}
        self.results = {state}
        self.followed: list[ast.AST] = []
        self.methods: list[ast.AST] = []

    def read(self, definition: Definition) -> None:
        """Add what a function accesses."""
        body = [definition.body] if isinstance(definition, ast.Lambda) else definition.body
        nodes = [node for part in body for node in ast.walk(part)]
        for node in nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self.assigned.setdefault(target.id, []).append(node.value)
        if isinstance(definition, ast.Lambda):
            self.returned(definition.body)
        for own in (node for part in body for node in _own(part)):
            if isinstance(own, ast.Return) and own.value is not None:
                self.returned(own.value)
        self.methods = [node.func for node in nodes if isinstance(node, ast.Call)]
        for node in nodes:
            self.node(node)

    def node(self, node: ast.AST) -> None:
        """Add what one node of the tree reads or writes."""
        match node:
            case ast.Subscript(ast.Name(self.state), ast.Constant(str(key)), ast.Load()):
                self.found.needs[key] = None
            case ast.Subscript(ast.Name(name), ast.Constant(str(key)), ast.Store()) if name in self.results:
                self.found.writes[key] = None
            case ast.Call(ast.Attribute(ast.Name(self.state), "get" | "pop"), [ast.Constant(str(key)), *_]):
                self.found.asks[key] = None
            case ast.Compare(ast.Constant(str(key)), [ast.In() | ast.NotIn()], [ast.Name(self.state)]):
                self.found.asks[key] = None
            case ast.Attribute(ast.Name(self.state), str(key), ast.Load()) if node not in self.methods:
                self.found.needs[key] = None
            case ast.Call(ast.Name("Send"), [_, ast.Dict(keys=keys)]):
                sent = (
                    key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
                )
                self.found.sends.update(dict.fromkeys(sent))
            case ast.Try(handlers=[_, *_]):
                self.found.catches = True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            self.found.grows.update(dict.fromkeys(filter(None, map(self.key_read, (node.left, node.right)))))
        if isinstance(node, ast.Call) and node not in self.followed:
            self.call(node, returned=False)

    def key_read(self, node: ast.expr) -> str:
        """Return the key of the state that an expression is the value of; "" for any other."""
        match node:
            case ast.Subscript(ast.Name(self.state), ast.Constant(str(key))):
                return key
            case ast.Call(ast.Attribute(ast.Name(self.state), "get"), [ast.Constant(str(key)), *_]):
                return key
            case ast.Attribute(ast.Name(self.state), key):
                return key
        return ""

    def call(self, call: ast.Call, *, returned: bool) -> None:
        """Add what a function reads that the state is passed to, and what it writes if its result is `returned`."""
        self.followed.append(call)
        values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg is None)]
        passed = [at for at, arg in enumerate(values) if isinstance(arg, ast.Name) and arg.id == self.state]
        callee = self.callee(call.func)
        if callee is not None and self.depth < _MAX_DEPTH and (passed or returned):
            self.found.add(access_of(callee, next(iter(passed), None), self.depth + 1), returned=returned)
        elif passed and isinstance(call.func, ast.Attribute) and call.func.attr in _RUNS:
            self.found.needs[None] = None
        if returned and callee is None:
            self.found.writes[None] = None

    def callee(self, func: ast.expr) -> Any:
        """Return the user's function that a call names; None for any other."""
        match func:
            case ast.Name(name):
                known = inspect.getclosurevars(
                    inspect.unwrap(getattr(self.function, "__func__", self.function))
                )
                named = {**known.globals, **known.nonlocals}.get(name)
            case ast.Attribute(ast.Name("self"), name):
                named = getattr(getattr(self.function, "__self__", None), name, None)
            case _:
                return None
        return next(functions_in(named), None) if inspect.isroutine(named) else None

    def returned(self, value: ast.expr, names: tuple[str, ...] = ()) -> None:
        """Add what a returned value writes. `names` are those of the variables that led to it."""
        match value:
            case ast.Dict():
                for key, item in zip(value.keys, value.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        self.found.writes[key.value] = None
                    elif not (isinstance(item, ast.Name) and item.id == self.state):
                        self.found.writes[None] = None
            case ast.Name():
                self.variable(value.id, names)
            case ast.Call():
                self.result(value, names)
            case ast.Await() | ast.IfExp() | ast.BoolOp():
                parts = [getattr(value, name, None) for name in ("value", "body", "orelse")]
                for part in filter(None, [*parts, *getattr(value, "values", ())]):
                    self.returned(part, names)
            case ast.Attribute() | ast.Subscript() | ast.DictComp() | ast.BinOp():
                self.found.writes[None] = None

    def variable(self, name: str, names: tuple[str, ...]) -> None:
        """Add what a variable that is returned writes."""
        if name in self.assigned and name not in names:
            self.results.add(name)
            for value in self.assigned[name]:
                self.returned(value, (*names, name))
        elif name not in names and name != self.state:
            self.found.writes[None] = None

    def result(self, call: ast.Call, names: tuple[str, ...]) -> None:
        """Add what the result of a call that is returned writes."""
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in ("Command", "Send"):
            for keyword in call.keywords:
                if keyword.arg == "update":
                    self.returned(keyword.value, names)
        elif call.keywords and not call.args and self.callee(call.func) is None:  # such as `State(total=1)`
            self.found.writes.update(dict.fromkeys(keyword.arg for keyword in call.keywords))
        else:
            self.call(call, returned=True)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those inside, but for the bodies of functions that it defines."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _own(child)
