"""Compiles the parse tree of an expression into a Python function.

cel-python's own evaluator walks the tree at every evaluation, through the ten grammar levels between an expression
and a name, and converts all bindings beforehand. Here the tree is walked once: each node becomes a closure over the
closures of its children (`Code`), which works on lazy views of the bindings. Values, operators and functions are
cel-python's; the tests compare both evaluators.

A closure has one argument, the frame: a list of the bindings, one slot for each macro variable of the expression,
and the remaining budget of the evaluation (`harness.expressions.functions`). Every evaluation has a frame of its own,
so programs can be shared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from celpy.evaluation import CELEvalError
from lark import Token

from harness.errors import ExpressionError
from harness.expressions import operators
from harness.expressions.functions import FUNCTIONS, Budget, Function, TooLarge
from harness.expressions.macros import MACROS, default, has, reduction
from harness.expressions.operators import Code, Frame
from harness.expressions.syntax import DEEPEST, SYMBOLS, Node, child, core, operands, parse, token
from harness.expressions.values import LITERALS, TYPES, Failure, Fragment, Null, to_python, type_of


@dataclass
class Program:
    """A compiled expression with the names that it uses.

    Attributes:
        slots: the number of macro variables.
        names: the free identifiers, each with its first occurrence.
        reads: the (name, field) pairs whose field is a literal.
        reference: the names and string keys, if the expression is a path and nothing else.
        unknown: one failure for each call of a function that does not exist.
    """

    source: str
    code: Code
    slots: int
    names: Mapping[str, Fragment]
    reads: frozenset[tuple[str, str]]
    reference: tuple[str, ...] | None
    unknown: tuple[Failure, ...]

    def run(self, bindings: Mapping[str, Any]) -> Any:
        """Return the Python value of the expression.

        Raises:
            ExpressionError: it has no value.
        """
        try:
            return to_python(self.code([bindings, *(None,) * self.slots, Budget()]))
        except Failure as failure:
            raise failure.error() from None
        except TooLarge as error:
            raise ExpressionError(str(error), source=self.source) from None
        except RecursionError:
            raise ExpressionError("the value is nested too deeply", source=self.source) from None

    def undefined(self, variables: Collection[str]) -> list[Failure]:
        """Return, in source order, the calls of unknown functions and the names that are not in `variables`."""
        names = [
            Failure(f"undeclared name {name!r}", fragment, name, (*variables, *LITERALS))
            for name, fragment in self.names.items()
            if name not in variables
        ]
        return sorted([*self.unknown, *names], key=lambda failure: failure.fragment.start)


def lower(source: str, null: Null) -> Program:
    """Compile an expression. `null` is the value of nulls that are stored in the bindings.

    Raises:
        ExpressionError: `source` is not a valid expression.
    """
    tree = parse(source)
    work = _Lowering(source, null)
    code = work.lower(tree)
    return Program(
        source, code, work.slots, work.names, frozenset(work.reads), work.path(tree), tuple(work.unknown)
    )


def written_keys(source: str) -> frozenset[str]:
    """Return the literal keys of an expression that is a map, or a `?:` between maps."""
    return frozenset(_Lowering(source, None).keys(parse(source)))


@dataclass
class _Lowering:
    """The state of one compilation: the source, the macro variables in scope, and the names found so far."""

    source: str
    null: Null
    slots: int = 0
    depth: int = 0
    scope: dict[str, int] = field(default_factory=dict)
    names: dict[str, Fragment] = field(default_factory=dict)
    unknown: list[Failure] = field(default_factory=list)
    reads: set[tuple[str, str]] = field(default_factory=set)

    def lower(self, node: Node) -> Code:
        node = core(node)
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refusal(node, "the expression is nested too deeply")
        try:
            return _RULES[node.data](self, node)
        finally:
            self.depth -= 1

    def fragment(self, node: Node) -> Fragment:
        meta = node.meta
        if meta.empty:
            return Fragment(self.source, 1, 1, 0, len(self.source))
        return Fragment(self.source, meta.line, meta.column, meta.start_pos, meta.end_pos)

    def refusal(self, node: Node, message: str) -> ExpressionError:
        fragment = self.fragment(node)
        return ExpressionError(message, source=self.source, line=fragment.line, column=fragment.column)

    def path(self, node: Node) -> tuple[str, ...] | None:
        """Return the names and string keys of a path, or None if the node is not a path."""
        steps: list[str] = []
        node = core(node)
        while node.data in ("member_dot", "member_index"):
            step = token(node, 1) if node.data == "member_dot" else self.string(child(node, 1))
            if step is None:
                return None
            steps.append(step)
            node = core(child(node, 0))
        if node.data not in ("ident", "dot_ident"):
            return None
        return (token(node, 0), *reversed(steps))

    def string(self, node: Node) -> str | None:
        """Return the text of a string literal, or None if the node is not one."""
        node = core(node)
        if node.data != "literal":
            return None
        value = self.constant(node)
        return value if isinstance(value, str) else None

    def keys(self, node: Node) -> Iterator[str]:
        """Yield the literal string keys of a map, or of the maps in both branches of a `?:`."""
        node = core(node)
        if node.data == "expr":
            yield from self.keys(child(node, 1))
            yield from self.keys(child(node, 2))
        elif node.data == "map_lit":
            for key in operands(node, 0)[0::2]:
                if (text := self.string(key)) is not None:
                    yield text

    # Operators

    def ternary(self, node: Node) -> Code:
        condition, first, second = (self.lower(child(node, i)) for i in range(3))
        return operators.choice(condition, first, second, self.fragment(node))

    def logic(self, node: Node) -> Code:
        rule, fragment = node.data, self.fragment(node)
        right_to_left: list[Node] = []
        while node.data == rule:
            right_to_left.append(child(node, 1))
            node = core(child(node, 0))
        symbol = "||" if rule == "conditionalor" else "&&"
        return operators.logic(
            symbol, [self.lower(each) for each in (node, *reversed(right_to_left))], fragment
        )

    def binary(self, node: Node) -> Code:
        # A long sum is left-associative: compiling and evaluating it in a loop avoids deep recursion.
        pending: list[tuple[str, Node, Fragment]] = []
        while node.data in ("relation", "addition", "multiplication"):
            sign = child(node, 0)
            pending.append((SYMBOLS[sign.data], child(node, 1), self.fragment(node)))
            node = core(child(sign, 0))
        code = self.lower(node)
        steps = [(symbol, self.lower(right), fragment) for symbol, right, fragment in reversed(pending)]
        return operators.chain(code, steps, self.null)

    def unary(self, node: Node) -> Code:
        return operators.unary(SYMBOLS[child(node, 0).data], self.lower(child(node, 1)), self.fragment(node))

    # Names, fields, elements

    def variable(self, node: Node) -> Code:
        name = token(node, 0)
        slot = self.scope.get(name) if node.data == "ident" else None
        if slot is not None:
            return operators.variable(slot)
        if name not in TYPES:
            self.names.setdefault(name, self.fragment(node))
        return operators.name(name, self.fragment(node), self.null)

    def field(self, node: Node) -> Code:
        self.note_read(node)
        return operators.field(self.lower(child(node, 0)), token(node, 1), self.fragment(node))

    def element(self, node: Node) -> Code:
        self.note_read(node)
        key = self.string(child(node, 1))
        container, fragment = self.lower(child(node, 0)), self.fragment(node)
        if key is not None:
            return operators.element(container, operators.always(key), fragment)
        return operators.element(container, self.lower(child(node, 1)), fragment)

    def note_read(self, node: Node) -> None:
        base = core(child(node, 0))
        path = self.path(node) if base.data in ("ident", "dot_ident") else None
        if path and path[0] not in self.scope:
            self.reads.add((path[0], path[1]))

    # Literals

    def literal(self, node: Node) -> Code:
        return operators.always(self.constant(node))

    def constant(self, node: Node) -> Any:
        token = node.children[0]
        assert isinstance(token, Token)
        try:
            return operators.constant(token)
        except (ValueError, TypeError, OverflowError) as error:
            raise self.refusal(node, f"not a literal: {token[:40]} ({error})") from None

    def list_literal(self, node: Node) -> Code:
        return operators.list_of([self.lower(item) for item in operands(node, 0)])

    def map_literal(self, node: Node) -> Code:
        parts = [self.lower(part) for part in operands(node, 0)]
        return operators.map_of(list(zip(parts[0::2], parts[1::2], strict=True)), self.fragment(node))

    def message(self, node: Node) -> Code:
        raise self.refusal(node, 'message types cannot be constructed; a map is written {"key": value}')

    # Calls

    def call(self, node: Node) -> Code:
        name, arguments = token(node, 0), operands(node, 1)
        if name == "has":
            self.check_count(node, "has", arguments, 1)
            return has(self.lower(arguments[0]))
        if name == "dyn":
            self.check_count(node, "dyn", arguments, 1)
            return self.lower(arguments[0])
        return self.function(node, name, arguments)

    def method(self, node: Node) -> Code:
        name, subject, arguments = token(node, 1), child(node, 0), operands(node, 2)
        if name in MACROS:
            self.check_count(node, name, arguments, 2)
            items, (slot,), (body,) = self.scoped(name, subject, arguments, variables=1)
            return MACROS[name](items, slot, body, self.fragment(node))
        if name == "reduce":
            self.check_count(node, name, arguments, 4)
            start = self.lower(arguments[2])
            items, (total, item), (body,) = self.scoped(
                name, subject, [*arguments[:2], arguments[3]], variables=2
            )
            return reduction(items, (total, item), start, body, self.fragment(node))
        return self.function(node, name, [subject, *arguments])

    def scoped(
        self, name: str, subject: Node, arguments: list[Node], variables: int
    ) -> tuple[Code, list[int], list[Code]]:
        """Compile a macro's arguments; return its list, its variables' slots, and its bodies, in their scope."""
        items, outside, slots = self.lower(subject), self.scope, []
        for variable in map(core, arguments[:variables]):
            if variable.data != "ident":
                raise self.refusal(variable, f"{name}() starts with a variable name: {name}(x, …)")
            self.slots += 1
            slots.append(self.slots)
            self.scope = {**self.scope, token(variable, 0): self.slots}
        try:
            return items, slots, [self.lower(body) for body in arguments[variables:]]
        finally:
            self.scope = outside

    def check_count(self, node: Node, name: str, arguments: list[Node], count: int) -> None:
        if len(arguments) != count:
            wanted = "1 argument" if count == 1 else f"{count} arguments"
            raise self.refusal(node, f"{name}() takes {wanted}, not {len(arguments)}")

    def function(self, node: Node, name: str, arguments: list[Node]) -> Code:
        if name == "default":
            self.check_count(node, name, arguments, 2)
            return default(self.lower(arguments[0]), self.lower(arguments[1]))
        codes = [self.lower(argument) for argument in arguments]
        function = FUNCTIONS.get(name)
        if function is not None:
            return _call(name, function, codes, self.fragment(node))
        if name in MACROS:
            missing = Failure(f"no function {name!r}; it is a method: list.{name}(x, …)", self.fragment(node))
        else:
            known = (*FUNCTIONS, *MACROS, "default", "has", "reduce")
            missing = Failure(f"no function {name!r}", self.fragment(node), name, known)
        self.unknown.append(missing)
        return _failing(missing)


def _failing(failure: Failure) -> Code:
    """Return code that raises this failure."""

    def fail(_frame: Frame) -> Any:
        raise Failure(failure.message, failure.fragment, failure.missing, failure.known)

    return fail


def _call(name: str, function: Function, arguments: list[Code], fragment: Fragment) -> Code:
    def run(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        try:
            result = function(*values)
        except (TypeError, AttributeError, AssertionError):
            raise Failure(f"no such overload: {name}({', '.join(map(type_of, values))})", fragment) from None
        except (ValueError, ArithmeticError, LookupError) as error:
            raise Failure(f"{name}(): {error}", fragment) from None
        if isinstance(result, CELEvalError):
            raise Failure(f"{name}(): {result.args[0]}", fragment)
        return result

    return run


_RULES: dict[str, Callable[[_Lowering, Node], Code]] = {
    "expr": _Lowering.ternary,
    "conditionalor": _Lowering.logic,
    "conditionaland": _Lowering.logic,
    "relation": _Lowering.binary,
    "addition": _Lowering.binary,
    "multiplication": _Lowering.binary,
    "unary": _Lowering.unary,
    "ident": _Lowering.variable,
    "dot_ident": _Lowering.variable,
    "member_dot": _Lowering.field,
    "member_index": _Lowering.element,
    "member_object": _Lowering.message,
    "literal": _Lowering.literal,
    "list_lit": _Lowering.list_literal,
    "map_lit": _Lowering.map_literal,
    "ident_arg": _Lowering.call,
    "dot_ident_arg": _Lowering.call,
    "member_dot_arg": _Lowering.method,
}
