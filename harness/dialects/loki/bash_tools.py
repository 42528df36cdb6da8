"""Reading tools from Bash files, which are described by argc comment tags.

`@describe` and `@cmd` describe a tool, `@option` and `@flag` its parameters. Loki passes `--name value`, so `@arg` is
not a parameter. Other tags (`@env`, `@meta`, `@alias`, …) do not concern parameters. The text of a tag continues in
the comment lines right below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from harness.dialects.loki.parameters import Parameter, enum_schema, object_schema
from harness.graph.effects import ToolSpec

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
_TYPES: Final = {"<INT>": "integer", "<NUM>": "number"}


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
    value: dict[str, Any] = {"type": _TYPES.get(found["values"].strip().split(" ")[0], "string")}
    if found["choices"] and not found["choices"].startswith(("`", "=`")):
        value = enum_schema(choice.strip() for choice in found["choices"].removeprefix("=").split("|"))
    if mark in ("+", "*"):
        value = {"type": "array", "items": value}
    yield Parameter(_underscored(name), value, description, required=mark in ("!", "+"))


def _underscored(name: str) -> str:
    return name.replace("-", "_")


def _join_lines(lines: list[str]) -> str:
    return "\n".join(lines).strip()
