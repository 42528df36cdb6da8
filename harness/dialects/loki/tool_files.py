"""Reading tools from files, without running them. spec: "global_tools", custom tools.

A global tool is the `main` function of its `.sh` file, or `run` of its `.py` or `.ts` file. An agent's own tools are
the `# @cmd` functions of its `tools.sh`, the public functions of its `tools.py`, the exported ones of its `tools.ts`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import ManifestError, Problem, Span
from harness.graph.effects import ToolSpec
from harness.source.document import shown_path


@dataclass(frozen=True)
class Parameter:
    """A parameter of a tool. `type` is the JSON Schema of its values."""

    name: str
    type: Mapping[str, Any]
    description: str = ""
    required: bool = False


def object_schema(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return the JSON Schema of the arguments of a tool with these parameters."""
    listed = list(parameters)
    properties = {}
    for parameter in listed:
        description = {"description": parameter.description} if parameter.description else {}
        properties[parameter.name] = {**parameter.type, **description}
    needed = {parameter.name for parameter in listed if parameter.required}
    required = [name for name in properties if name in needed]
    return {"type": "object", "properties": properties, "required": required}


def enum_schema(values: Iterable[Any]) -> dict[str, Any]:
    """Return the JSON Schema of an enumeration."""
    listed = list(values)
    are_texts = all(isinstance(value, str) for value in listed)
    return {**({"type": "string"} if are_texts else {}), "enum": listed}


_TAG: Final = re.compile(r"#\s*@([\w-]+)\s*(.*)")
_FUNCTION: Final = re.compile(r"(?:function\s+([\w:.-]+)|([\w:.-]+)\s*\(\s*\))")
_PARAMETER: Final = re.compile(
    r"""
    (?: (?P<short>[-+]\w) (?=\s|[!+*=\[]|$) \s* )?       # -s
    (?: -{1,2} (?P<name>\w[\w.-]*) )?                     # --long
    (?P<mark> [!+*]? ) (?: [,:;|@] (?=\s|\[|=|$) )?        # required, repeated; what separates repeated values
    (?: \[ (?P<choices> [^\]]* ) \] )?                    # [a|b], [=a|b] or [`function`]
    (?: = (?: `[^`]*` | "[^"]*" | '[^']*' | \S* ) )?       # =default
    (?: \s+ \${1,2} \w* (?=\s|$) )?                       # $$ or $NAME: also read from the environment
    (?P<values> (?: \s* <[^>]*> )* )                      # <NAME>, <INT>, <NUM>
    \s* (?P<description> .* )
    """,
    re.VERBOSE,
)
_NOTATIONS: Final = {"<INT>": "integer", "<NUM>": "number"}


def tools_in_bash(text: str, entry: str) -> Iterator[ToolSpec]:
    """Yield the functions that follow an `@cmd` tag, and the function named `entry`, in order."""
    file_description, description, is_command = [""], [""], False
    parameters: list[tuple[str, list[str]]] = []
    tagged: list[str] | None = None  # the lines of the tag that the next comment line continues
    for line in map(str.strip, text.splitlines()):
        if tag := _TAG.match(line):
            word, tagged = tag[1], [tag[2].strip()]
            if word == "describe":
                file_description = tagged
            elif word == "cmd":  # parameters before the first command belong to the file
                description, is_command, parameters = tagged, True, []
            elif word in ("option", "flag"):
                parameters.append((word, tagged))
            continue
        if tagged is not None and line.startswith("#"):
            tagged.append(line[1:].strip())
            continue
        tagged = None
        if function := _FUNCTION.match(line):
            name = function[1] or function[2]
            if is_command or name == entry:
                if not name.startswith("_"):
                    listed = [found for word, lines in parameters for found in _parameter(word, *lines)]
                    yield ToolSpec(
                        _underscored(name),
                        _join_lines(description) or _join_lines(file_description),
                        object_schema(listed),
                    )
                description, is_command, parameters = [""], False, []


def _parameter(word: str, written: str, *more: str) -> Iterator[Parameter]:
    """Yield the parameter of an `@option` or `@flag` tag, if it has a name. `more` are further description lines."""
    found = _PARAMETER.match(written)
    name = found and (found["name"] or (found["short"] or "")[1:])
    if not found or not name:
        return
    description, mark = _join_lines([found["description"], *more]), found["mark"]
    if word == "flag":
        yield Parameter(_underscored(name), {"type": "boolean"}, description)
        return
    value: dict[str, Any] = {"type": _NOTATIONS.get(found["values"].strip().split(" ")[0], "string")}
    if found["choices"] and not found["choices"].startswith(("`", "=`")):
        value = enum_schema(choice.strip() for choice in found["choices"].removeprefix("=").split("|"))
    if mark in ("+", "*"):
        value = {"type": "array", "items": value}
    yield Parameter(_underscored(name), value, description, required=mark in ("!", "+"))


def _underscored(name: str) -> str:
    return name.replace("-", "_")


def _join_lines(lines: list[str]) -> str:
    return "\n".join(lines).strip()


Function = ast.FunctionDef | ast.AsyncFunctionDef

_PYTHON_TYPES: Final = {
    **{"str": "string", "int": "integer", "float": "number", "bool": "boolean"},
    **{"list": "array", "List": "array", "dict": "object", "Dict": "object"},
}
_ARGUMENT: Final = re.compile(r"^\s*(\w+)\s*(?:\([^)]*\))?:\s*(.+)$", re.MULTILINE)


def tools_in_python(text: str) -> Iterator[ToolSpec]:
    """Yield the public functions of a module, in order.

    Raises:
        SyntaxError: the text is not valid Python.
    """
    for function in ast.parse(text).body:
        if isinstance(function, Function) and not function.name.startswith("_"):
            summary, _, arguments = (ast.get_docstring(function) or "").partition("Args:")
            descriptions = dict(_ARGUMENT.findall(arguments))
            yield ToolSpec(function.name, summary.strip(), object_schema(_parameters(function, descriptions)))


def _parameters(function: Function, descriptions: dict[str, str]) -> Iterator[Parameter]:
    written = function.args
    names = [*written.posonlyargs, *written.args]
    defaults = [None] * (len(names) - len(written.defaults)) + list(written.defaults)
    pairs = [*zip(names, defaults, strict=True), *zip(written.kwonlyargs, written.kw_defaults, strict=True)]
    for parameter, default in pairs:
        type_, optional = _type(parameter.annotation)
        required = default is None and not optional
        yield Parameter(parameter.arg, type_, descriptions.get(parameter.arg, "").strip(), required)


def _type(annotation: ast.expr | None) -> tuple[dict[str, Any], bool]:
    """Return the JSON Schema of an annotation, and True if it may be None. Unknown types are strings."""
    match annotation:
        case ast.Constant(value=str() as quoted):  # a forward reference
            try:
                return _type(ast.parse(quoted, mode="eval").body)
            except SyntaxError:
                return {"type": "string"}, False
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {"type": _PYTHON_TYPES.get(name, "string")}, False
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _union([left, right])
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            return _generic(name, inner.elts if isinstance(inner, ast.Tuple) else [inner])
    return {"type": "string"}, False


def _generic(name: str, inner: list[ast.expr]) -> tuple[dict[str, Any], bool]:
    if not inner:  # `list[()]`
        return {"type": _PYTHON_TYPES.get(name, "string")}, False
    if name == "Optional":
        return _type(inner[0])[0], True
    if name == "Union":
        return _union(inner)
    if name == "Literal":
        values = (literal.value for literal in inner if isinstance(literal, ast.Constant))
        return enum_schema(value for value in values if isinstance(value, str | int | float | None)), False
    if _PYTHON_TYPES.get(name) == "array":
        return {"type": "array", "items": _type(inner[0])[0]}, False
    return {"type": _PYTHON_TYPES.get(name, "string")}, False


def _union(members: list[ast.expr]) -> tuple[dict[str, Any], bool]:
    """Return the schema of a union: that of its first member other than None."""
    given = [member for member in members if not (isinstance(member, ast.Constant) and member.value is None)]
    type_, optional = _type(given[0] if given else None)
    return type_, optional or len(given) < len(members)


_EXPORTED: Final = re.compile(r"export\s+(?:default\s+)?(?:async\s+)?function\s+(\w+)\s*(?=[<(])")
_DECLARED: Final = re.compile(r"(\w+)\s*(\?)?\s*(?::(.*))?$", re.DOTALL)
_PARAM_TAG: Final = re.compile(r"@param\s+(?:\{[^{}]*\}\s*)?\[?(\w+)(?:=[^\]\n]*)?\]?\??\s*-?\s*(.*)")
# An unclosed string ends with its line, an unclosed comment with the text, so that matching takes linear time.
_TOKEN: Final = re.compile(
    r"""=>|[()\[\]{}<>,|=]|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|/\*.*?(?:\*/|\Z)|//[^\n]*""", re.DOTALL
)
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_LITERAL: Final = re.compile(r"""["']([^"']*)["']""")
_TYPESCRIPT_TYPES: Final = {"number": "number", "boolean": "boolean", "object": "object"}
_NOTHING: Final = ("null", "undefined")
_MAX_TYPE_DEPTH: Final = 20  # nested brackets in a type; deeper types are read as strings


def tools_in_typescript(text: str) -> Iterator[ToolSpec]:
    """Yield the exported functions of a module, in order. The text read for each ends where the next one begins."""
    functions = list(_EXPORTED.finditer(text))
    ends = [*(function.start() for function in functions), len(text)][1:]
    before = 0
    for function, end in zip(functions, ends, strict=True):
        lines = (line.strip().lstrip("*").strip() for line in _doc_comment(text[before : function.start()]))
        comment = "\n".join(lines)
        descriptions = dict(_PARAM_TAG.findall(comment))
        start = before = function.end()
        if text[start] == "<":
            start = text.find("(", _split(text, ",", start + 1, end)[1], end)
        if start >= 0:
            written, _ = _split(text, ",", start + 1, end)
            summary = re.split(r"^@", comment, maxsplit=1, flags=re.MULTILINE)[0].strip()
            yield ToolSpec(function[1], summary, object_schema(_declared_parameters(written, descriptions)))


def _doc_comment(before: str) -> list[str]:
    """Return the lines of the `/** … */` comment at the end of a text; none if there is no such comment."""
    before = before.rstrip()
    if not before.endswith("*/"):
        return []
    return before[:-2].rpartition("*/")[2].partition("/**")[2].splitlines()


def _declared_parameters(written: list[str], descriptions: dict[str, str]) -> Iterator[Parameter]:
    for parameter in written:
        declared, *default = _parts(_COMMENT.sub("", parameter), "=")
        found = _DECLARED.match(declared.strip())
        if found is not None:
            type_, optional = _declared_type(found[3] or "")
            required = not (found[2] or default or optional)
            yield Parameter(found[1], type_, descriptions.get(found[1], "").strip(), required)


def _declared_type(written: str, depth: int = 0) -> tuple[dict[str, Any], bool]:
    """Return the JSON Schema of a type, and True if it may be null. Unknown types are strings."""
    if depth > _MAX_TYPE_DEPTH:
        return {"type": "string"}, False
    members = [member.strip() for member in _parts(written, "|")]
    given = [member for member in members if member not in ("", *_NOTHING)]
    optional = any(member in _NOTHING for member in members)
    literals = [_LITERAL.fullmatch(member) for member in given]
    if given and all(literals):
        return enum_schema(found[1] for found in literals if found), optional
    name = given[0] if given else ""
    if name.startswith("(") and name.endswith(")"):
        return _declared_type(name[1:-1], depth + 1)[0], optional
    if name.endswith("[]"):
        return {"type": "array", "items": _declared_type(name[:-2], depth + 1)[0]}, optional
    if found := re.fullmatch(r"(?:Readonly)?Array\s*<(.*)>", name, re.DOTALL):
        return {"type": "array", "items": _declared_type(found[1], depth + 1)[0]}, optional
    if name.startswith(("{", "Record<")):
        return {"type": "object"}, optional
    return {"type": _TYPESCRIPT_TYPES.get(name, "string")}, optional


def _split(text: str, separator: str, start: int, end: int) -> tuple[list[str], int]:
    """Split text at separators, from `start` to the first unmatched closing bracket, or else to `end`.

    Separators inside brackets do not count. Returns the parts, and the offset after the bracket.
    """
    parts: list[str] = []
    depth, begin = 0, start
    for token in _TOKEN.finditer(text, start, end):
        if token[0] in ("(", "[", "{", "<"):
            depth += 1
        elif token[0] in (")", "]", "}", ">"):
            if not depth:
                return [*parts, text[begin : token.start()]], token.end()
            depth -= 1
        elif token[0] == separator and not depth:
            parts.append(text[begin : token.start()])
            begin = token.end()
    return [*parts, text[begin:end]], end


def _parts(text: str, separator: str) -> list[str]:
    return _split(text, separator, 0, len(text))[0]


SUFFIXES: Final = (".sh", ".py", ".ts")

_ENTRY: Final = {".sh": "main", ".py": "run", ".ts": "run"}
"""The function of a global tool, by the extension of its file."""

_READERS: Final = {".py": tools_in_python, ".ts": tools_in_typescript}


def global_tool(name: str, path: Path) -> ToolSpec:
    """Read the global tool `name` from its file in `functions/tools`.

    If the file lacks the function of a global tool, the tool has no parameters.

    Raises:
        ManifestError: the file cannot be read.
    """
    entry = _ENTRY[path.suffix]
    found = next((tool for tool in tools_in(path, entry) if tool.name == entry), None)
    return ToolSpec(name, found.description, found.schema) if found else ToolSpec(name, "", object_schema([]))


def tools_in(path: Path, entry: str = "") -> list[ToolSpec]:
    """Read the tools from a file, named like their functions. In Bash, the function `entry` needs no `@cmd` tag.

    Raises:
        ManifestError: the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        return list(tools_in_bash(text, entry) if path.suffix == ".sh" else _READERS[path.suffix](text))
    except UnicodeDecodeError:
        line, column, why = 1, 1, "it is not UTF-8 text"
    except (OSError, ValueError, SyntaxError, RecursionError) as error:
        line, column = (error.lineno or 1, error.offset or 1) if isinstance(error, SyntaxError) else (1, 1)
        why = getattr(error, "msg", None) or getattr(error, "strerror", None) or str(error)
    text = f"the tools of this file cannot be read: {why}"
    raise ManifestError(Problem("bad-tool-file", text, Span(shown_path(path), line, column)))
