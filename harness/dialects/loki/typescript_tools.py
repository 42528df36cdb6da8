"""Reading tools from TypeScript files: the exported functions.

Parameter types come from annotations, parameter descriptions from the `@param` tags of the doc comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from harness.dialects.loki.parameters import Parameter, enum_schema, object_schema
from harness.graph.effects import ToolSpec

_FUNCTION: Final = re.compile(r"export\s+(?:default\s+)?(?:async\s+)?function\s+(\w+)\s*(?=[<(])")
_PARAMETER: Final = re.compile(r"(\w+)\s*(\?)?\s*(?::(.*))?$", re.DOTALL)
_ARGUMENT: Final = re.compile(r"@param\s+(?:\{[^{}]*\}\s*)?\[?(\w+)(?:=[^\]\n]*)?\]?\??\s*-?\s*(.*)")
# An unclosed string ends with its line, an unclosed comment with the text, so that matching takes linear time.
_TOKEN: Final = re.compile(
    r"""=>|[()\[\]{}<>,|=]|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|/\*.*?(?:\*/|\Z)|//[^\n]*""", re.DOTALL
)
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_LITERAL: Final = re.compile(r"""["']([^"']*)["']""")
_TYPES: Final = {"number": "number", "boolean": "boolean", "object": "object"}
_NOTHING: Final = ("null", "undefined")
_MAX_TYPE_DEPTH: Final = 20  # nested brackets in a type; deeper types are read as strings


def tools_in_typescript(text: str) -> Iterator[ToolSpec]:
    """Yield the exported functions of a module, in order. The text read for each ends where the next one begins."""
    functions = list(_FUNCTION.finditer(text))
    ends = [*(function.start() for function in functions), len(text)][1:]
    before = 0
    for function, end in zip(functions, ends, strict=True):
        lines = (line.strip().lstrip("*").strip() for line in _doc_comment(text[before : function.start()]))
        comment = "\n".join(lines)
        descriptions = dict(_ARGUMENT.findall(comment))
        start = before = function.end()
        if text[start] == "<":
            start = text.find("(", _split(text, ",", start + 1, end)[1], end)
        if start >= 0:
            written, _ = _split(text, ",", start + 1, end)
            summary = re.split(r"^@", comment, maxsplit=1, flags=re.MULTILINE)[0].strip()
            yield ToolSpec(function[1], summary, object_schema(_parameters(written, descriptions)))


def _doc_comment(before: str) -> list[str]:
    """Return the lines of the `/** … */` comment at the end of a text; none if there is no such comment."""
    before = before.rstrip()
    if not before.endswith("*/"):
        return []
    return before[:-2].rpartition("*/")[2].partition("/**")[2].splitlines()


def _parameters(written: list[str], descriptions: dict[str, str]) -> Iterator[Parameter]:
    for parameter in written:
        declared, *default = _parts(_COMMENT.sub("", parameter), "=")
        found = _PARAMETER.match(declared.strip())
        if found is not None:
            type_, optional = _type(found[3] or "")
            required = not (found[2] or default or optional)
            yield Parameter(found[1], type_, descriptions.get(found[1], "").strip(), required)


def _type(written: str, depth: int = 0) -> tuple[dict[str, Any], bool]:
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
        return _type(name[1:-1], depth + 1)[0], optional
    if name.endswith("[]"):
        return {"type": "array", "items": _type(name[:-2], depth + 1)[0]}, optional
    if found := re.fullmatch(r"(?:Readonly)?Array\s*<(.*)>", name, re.DOTALL):
        return {"type": "array", "items": _type(found[1], depth + 1)[0]}, optional
    if name.startswith(("{", "Record<")):
        return {"type": "object"}, optional
    return {"type": _TYPES.get(name, "string")}, optional


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
