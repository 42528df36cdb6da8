"""Tools in files: their names and parameters, read without running anything. spec: "global_tools", custom tools.

A global tool is the `main` function of its `.sh` file, or `run` of its `.py` or `.ts` file. An agent's own tools are
the `# @cmd` functions of its `tools.sh`, the public functions of its `tools.py`, the exported ones of its `tools.ts`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness.errors import ManifestError, Problem, Span
from harness.graph.effects import ToolSpec
from harness.source.document import shown_path

SUFFIXES: Final = (".sh", ".py", ".ts")

_ENTRY: Final = {".sh": "main", ".py": "run", ".ts": "run"}
"""The function that a global tool's file is called by."""


def global_tool(name: str, path: Path) -> ToolSpec:
    """The tool in a file of `functions/tools`. Its name is that of the file, without its extension.

    Raises:
        ManifestError: the file cannot be read.
    """
    entry = _ENTRY[path.suffix]
    found = next((tool for tool in tools_in(path, entry) if tool.name == entry), None)
    return ToolSpec(name, found.description, found.schema) if found else ToolSpec(name, "", _schema({}))


def tools_in(path: Path, entry: str = "") -> list[ToolSpec]:
    """The tools in a file, by the names of their functions. The function `entry` is one without being marked as such.

    Raises:
        ManifestError: the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return list(_of_bash(text, entry) if path.suffix == ".sh" else _READERS[path.suffix](text))
    except (OSError, ValueError, SyntaxError, RecursionError) as error:
        line = error.lineno or 1 if isinstance(error, SyntaxError) else 1
        why = getattr(error, "msg", None) or getattr(error, "strerror", None) or str(error)
        text = f"the tools of this file cannot be read: {why}"
        raise ManifestError(Problem("bad-tool-file", text, Span(shown_path(path), line, 1))) from None


def _schema(properties: Mapping[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": required or []}


# ------------------------------------------------------------------ Bash

_TAG: Final = re.compile(r"#\s*@(\w+)\s*(.*)")
_FUNCTION: Final = re.compile(r"(?:function\s+)?([\w:.-]+)\s*\(\s*\)")
_PARAMETER: Final = re.compile(
    r"(?:-\w\s+)?--(?P<name>[\w-]+)(?P<mark>[!+*]?)(?:\[(?P<choices>[^\]]*)\])?\s*(?:<[^>]*>\s*)*(?P<about>.*)"
)


def _of_bash(text: str, entry: str) -> Iterator[ToolSpec]:
    """Comments in the style of argc: `@describe`, `@cmd`, `@option --name! About`, `@flag --name About`."""
    about_file, about, is_command = "", "", False
    properties: dict[str, Any] = {}
    required: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if tag := _TAG.match(line):
            word, rest = tag[1], tag[2].strip()
            if word == "describe":
                about_file = rest
            elif word == "cmd":
                about, is_command = rest, True
            elif word in ("option", "flag") and (found := _PARAMETER.match(rest)):
                properties[found["name"]] = _bash_parameter(word, found)
                if found["mark"] in ("!", "+"):
                    required.append(found["name"])
        elif (function := _FUNCTION.match(line)) and (is_command or function[1] == entry):
            yield ToolSpec(function[1], about or about_file, _schema(properties, required))
            about, is_command, properties, required = "", False, {}, []


def _bash_parameter(word: str, found: re.Match[str]) -> dict[str, Any]:
    if word == "flag":
        return {"type": "boolean", "description": found["about"]}
    value: dict[str, Any] = {"type": "string"}
    if found["choices"] and not found["choices"].startswith("`"):
        value["enum"] = [choice.lstrip("=") for choice in found["choices"].split("|")]
    if found["mark"] in ("+", "*"):
        return {"type": "array", "items": value, "description": found["about"]}
    return {**value, "description": found["about"]}


# ------------------------------------------------------------------ Python

_PYTHON_TYPES: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_ARGUMENT: Final = re.compile(r"^\s*(\w+)\s*(?:\([^)]*\))?:\s*(.+)$", re.MULTILINE)


def _of_python(text: str) -> Iterator[ToolSpec]:
    """Public functions: annotations give the types, "Args:" in the docstring what parameters are."""
    for function in ast.parse(text).body:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and not function.name.startswith("_"):
            yield _python_tool(function)


def _python_tool(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ToolSpec:
    summary, _, arguments = (ast.get_docstring(function) or "").partition("Args:")
    about = dict(_ARGUMENT.findall(arguments))
    parameters = function.args
    names = [*parameters.posonlyargs, *parameters.args]
    defaults = [None] * (len(names) - len(parameters.defaults)) + list(parameters.defaults)
    pairs = [*zip(names, defaults, strict=True)]
    pairs += zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    properties, required = {}, []
    for parameter, default in pairs:
        type_, optional = _python_type(parameter.annotation)
        described = {"description": about[parameter.arg]} if parameter.arg in about else {}
        properties[parameter.arg] = {**type_, **described}
        if default is None and not optional:
            required.append(parameter.arg)
    return ToolSpec(function.name, summary.strip(), _schema(properties, required))


def _python_type(annotation: ast.expr | None) -> tuple[dict[str, Any], bool]:
    """The JSON Schema of an annotation, and True if it is optional."""
    match annotation:
        case ast.Name(id=name):
            return {"type": _PYTHON_TYPES.get(name, "array" if name == "list" else "string")}, False
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _python_type(inner)[0], True
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return _python_type(left)[0], True
        case ast.Subscript(value=ast.Name(id="list" | "List"), slice=inner):
            return {"type": "array", "items": _python_type(inner)[0]}, False
        case ast.Subscript(value=ast.Name(id="Literal"), slice=inner):
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return {
                "type": "string",
                "enum": [item.value for item in items if isinstance(item, ast.Constant)],
            }, False
    return {"type": "string"}, False


# ------------------------------------------------------------------ TypeScript

_TS_FUNCTION: Final = re.compile(
    r"(?:/\*\*(?P<about>(?:(?!\*/).)*)\*/\s*)?export\s+(?:async\s+)?function\s+(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)",
    re.DOTALL,
)
_TS_PARAMETER: Final = re.compile(r"(\w+)(\?)?\s*(?::\s*([^=]+?))?\s*(=.*)?$", re.DOTALL)
_TS_ARGUMENT: Final = re.compile(r"@param\s+(?:\{[^}]*\}\s*)?(\w+)\s*-?\s*(.*)")
_TS_TYPES: Final = {"number": "number", "boolean": "boolean"}


def _of_typescript(text: str) -> Iterator[ToolSpec]:
    """Exported functions: annotations give the types, `@param` in the comment what parameters are."""
    for function in _TS_FUNCTION.finditer(text):
        comment = "\n".join(
            line.strip().lstrip("*").strip() for line in (function["about"] or "").splitlines()
        )
        about = dict(_TS_ARGUMENT.findall(comment))
        properties: dict[str, Any] = {}
        required = []
        for written in filter(str.strip, function["parameters"].split(",")):
            found = _TS_PARAMETER.match(written.strip())
            if found is None:
                continue
            properties[found[1]] = {**_ts_type(found[3] or ""), **_described(about.get(found[1]))}
            if not found[2] and not found[4]:
                required.append(found[1])
        yield ToolSpec(function["name"], comment.partition("@")[0].strip(), _schema(properties, required))


def _ts_type(written: str) -> dict[str, Any]:
    written = written.strip()
    if written.endswith("[]"):
        return {"type": "array", "items": _ts_type(written[:-2])}
    return {"type": _TS_TYPES.get(written, "string")}


def _described(about: str | None) -> dict[str, str]:
    return {"description": about.strip()} if about else {}


_READERS: Final = {".py": _of_python, ".ts": _of_typescript}
