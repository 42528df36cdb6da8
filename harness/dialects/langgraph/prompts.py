"""The prompts of an app: texts in its own modules that reach a model, or look like they do. Nothing is imported.

An id is `module:NAME` for a constant (`module:Class.NAME` in a class, `module:function.name` in a function), and
`module:owner.role` for a text that is written where it is used: `owner` is the function, class or variable around it,
`role` the keyword, the message's role or the class that it is given to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from harness.dialects.dialect import Prompt
from harness.dialects.langgraph.dialect import agents, app_of, is_object, module_name
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Span
from harness.source.document import real_path, shown_path
from harness.source.modules import ModuleSearch
from harness.source.project import marked_root
from harness.source.python_texts import place_of, text_of

_NAMES: Final = re.compile(r"(?i)prompt|instruction|system|persona|backstory|guideline|template")
_ROLES: Final = frozenset({"system", "developer", "user", "human"})
_GIVEN_TO: Final = re.compile(r"(?:System|Human|Chat)Message$|Prompt|[Tt]emplate$|from_messages$")
_ADDRESSES: Final = re.compile(r"(?i)\byou(?:r|'re)?\b")
_FEWEST_WORDS, _FEWEST_OF_PROSE = 3, 8
_DEFAULTS: Final = ("default", "template")

Named = tuple[str, str, ast.expr]


def prompts(request: LoadRequest) -> Sequence[Prompt]:
    """Return the prompts of an app, in the order of its modules and of their lines.

    Raises:
        ManifestError: the manifest names no app.
    """
    modules = [(name, file, _Module.read(file)) for name, file in _modules_of(request)]
    used = {name for _, _, module in modules for name in module.used}
    return [
        Prompt(f"{name}:{id_}", kind, text, Span(shown_path(file), *place_of(node, module.lines)))
        for name, file, module in modules
        for id_, kind, node in module.found
        if (text := text_of(node)) is not None and _is_prompt(id_, kind, text, used)
    ]


def _modules_of(request: LoadRequest) -> list[tuple[str, Path]]:
    """Return the modules that an app imports from its own folders, with their names; without `agent`, of all graphs.

    Raises:
        ManifestError: the manifest names no app.
    """
    names: list[str | None] = [request.agent]
    if request.agent is None and not is_object(request.path):
        names = [*agents(request.read(request.path, yaml="1.2", named_at=request.named_at))] or names
    found: dict[Path, str] = {}
    for name in names:
        try:
            app = app_of(replace(request, agent=name))
        except ManifestError:
            if len(names) == 1:
                raise
            continue  # a graph in another language, beside those that can run
        folders = tuple(map(Path, app.folders))
        first = [app.target.file] if app.target.file is not None else []
        project = marked_root(app.target.base) or app.target.base
        modules = ModuleSearch(folders, project).modules([app.target.module], first)
        own = [real_path(each) for each in modules.files if each.is_file()]
        found |= {file: module_name(file, app.folders) or file.stem for file in own if file not in found}
    return [(name, file) for file, name in found.items()]


def _is_prompt(id_: str, kind: str, text: str, used: set[str]) -> bool:
    name, words = id_.rpartition(".")[2], len(text.split())
    if words < _FEWEST_WORDS:
        return False
    if kind == "inline" or name in used or _NAMES.search(name):
        return True
    return words >= _FEWEST_OF_PROSE and _ADDRESSES.search(text) is not None


@dataclass
class _Module:
    """The texts of a module that have a name or are given to a model, and the names that are given to one."""

    lines: list[str]
    found: list[Named] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, file: Path) -> _Module:
        """Read a module; what cannot be parsed has none."""
        try:
            source = file.read_text(encoding="utf-8-sig")
            tree = ast.parse(source)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return cls([])
        made = cls(source.split("\n"))
        made._visit(tree, "")
        made.found = list(_numbered(made.found))
        return made

    def _visit(self, node: ast.AST, scope: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope = _inside(scope, node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                scope = _inside(scope, target.id)
                self._named(scope, node.value)
        elif isinstance(node, ast.Call):
            self._arguments(node, scope)
        elif isinstance(node, ast.Dict):
            keys = [text_of(key) for key in node.keys]
            values = dict(zip(keys, node.values, strict=True))
            if "content" in values and (role := text_of(values.get("role"))) in _ROLES:
                self._given(scope, str(role), values["content"])
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and text_of(node.elts[0]) in _ROLES:
            self._given(scope, str(text_of(node.elts[0])), node.elts[1])
        for child in ast.iter_child_nodes(node):
            self._visit(child, scope)

    def _named(self, name: str, value: ast.expr | None) -> None:
        """Note a constant: a text, or one that a call is given, such as `dedent("…")` or `field(default="…")`."""
        if isinstance(value, ast.Call) and _NAMES.search(name.rpartition(".")[2]):
            defaults = [each.value for each in value.keywords if each.arg in _DEFAULTS]
            value = next(iter([*value.args[:1], *defaults]), None)
        if value is not None and text_of(value) is not None:
            self.found.append((name, "constant", value))

    def _arguments(self, call: ast.Call, scope: str) -> None:
        callee = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        takes = _GIVEN_TO.search(callee) is not None
        for each in call.keywords:
            if each.arg and (_NAMES.search(each.arg) or (takes and each.arg == "content")):
                self._given(scope, callee if each.arg == "content" else each.arg, each.value)
        if takes and call.args:
            self._given(scope, callee, call.args[0])

    def _given(self, scope: str, role: str, value: ast.expr) -> None:
        """Note what is given to a model: a text, or the names in an expression."""
        known = any(node is value for _, _, node in self.found)
        if text_of(value) is not None and not known:
            self.found.append((_inside(scope, role), "inline", value))
        for node in ast.walk(value):
            if isinstance(node, ast.Name | ast.Attribute):
                self.used.add(node.id if isinstance(node, ast.Name) else node.attr)


def _inside(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _numbered(found: Sequence[Named]) -> Iterator[Named]:
    """Yield texts in the order of their lines. A name that was there before gets a number."""
    taken: dict[str, int] = {}
    for id_, kind, node in sorted(found, key=lambda each: (each[2].lineno, each[2].col_offset)):
        taken[id_] = taken.get(id_, 0) + 1
        yield (id_ if taken[id_] == 1 else f"{id_}-{taken[id_]}"), kind, node
