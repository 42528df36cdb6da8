"""docs/troubleshooting.md lists exactly the error codes of the code."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import harness

ROOT = Path(harness.__file__).parent
DOCUMENT = (ROOT.parent / "docs/troubleshooting.md").read_text(encoding="utf-8")
CODE = re.compile(r"[a-z]+(-[a-z]+)*")
TAKE_A_CODE = {
    "Problem",
    "Flaw",
    "one_flaw",
    "known_name",
    "error",
    "warning",
    "_warning",
    "warn",
    "refuse",
    "_refuse",
    "refusing",
}
"""Functions and classes whose first argument is a code."""
GIVES_A_CODE = "_code_message_hint"
"""`harness.source.models._code_message_hint` returns one, with a message and a hint."""


def codes_in(tree: ast.AST) -> Iterator[ast.expr | None]:
    """Yield the expressions that are codes: in error classes, problems, keyword arguments and mappings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield node.value if [ast.unparse(target) for target in targets] == ["code"] else None
        elif isinstance(node, ast.Call):
            called, *args = node.func, *node.args
            if isinstance(called, ast.Name) and called.id == "partial":
                called, *args = args
            yield from args[:1] if ast.unparse(called).rpartition(".")[2] in TAKE_A_CODE else ()
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "code")
        elif isinstance(node, ast.Dict):
            yield from (value for key, value in zip(node.keys, node.values, strict=True) if _is_code(key))
        elif isinstance(node, ast.FunctionDef) and node.name == GIVES_A_CODE:
            returned = [r.value for r in ast.walk(node) if isinstance(r, ast.Return)]
            yield from (value.elts[0] for value in returned if isinstance(value, ast.Tuple))


def _is_code(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == "code"


@cache
def all_codes() -> frozenset[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))]
    constants = [code for tree in trees for code in codes_in(tree) if isinstance(code, ast.Constant)]
    return frozenset(c.value for c in constants if isinstance(c.value, str) and CODE.fullmatch(c.value))


def documented_codes() -> list[str]:
    return re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT, flags=re.M)


def test_every_code_is_documented() -> None:
    assert all_codes() - set(documented_codes()) == set()


def test_every_documented_code_exists() -> None:
    assert set(documented_codes()) - all_codes() == set()


def test_no_code_is_documented_twice() -> None:
    assert len(documented_codes()) == len(set(documented_codes()))
