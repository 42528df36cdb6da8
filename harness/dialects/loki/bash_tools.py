"""Tools in Bash files, which argc's comments describe.

`@describe` and `@cmd` say what a tool does; `@option` and `@flag` are its parameters. Loki calls it with
`--name value`, so `@arg` is no parameter; `@env`, `@meta`, `@alias` and others say nothing of parameters. What a tag
says goes on in the comments right below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from harness.dialects.loki.parameters import Parameter, one_of, schema
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
    \s* (?P<about> .* )
    """,
    re.VERBOSE,
)
_TYPES: Final = {"<INT>": "integer", "<NUM>": "number"}


def tools_in_bash(text: str, entry: str) -> Iterator[ToolSpec]:
    """The functions after an `@cmd`, and the one called `entry`, in their order."""
    about_file, about, is_command = [""], [""], False
    parameters: list[tuple[str, list[str]]] = []
    tagged: list[str] | None = None  # the lines of the tag that the comments below it go on with
    for line in map(str.strip, text.splitlines()):
        if tag := _TAG.match(line):
            word, tagged = tag[1], [tag[2].strip()]
            if word == "describe":
                about_file = tagged
            elif word == "cmd":  # what stands before the first is of the file, not of a command
                about, is_command, parameters = tagged, True, []
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
                    yield ToolSpec(_underscored(name), _joined(about) or _joined(about_file), schema(listed))
                about, is_command, parameters = [""], False, []


def _parameter(word: str, written: str, *more: str) -> Iterator[Parameter]:
    """The parameter of a tag, whose description goes on in more lines."""
    found = _PARAMETER.match(written)
    name = found and (found["name"] or (found["short"] or "")[1:])
    if not found or not name:
        return
    about, mark = _joined([found["about"], *more]), found["mark"]
    if word == "flag":
        yield Parameter(_underscored(name), {"type": "boolean"}, about)
        return
    value: dict[str, Any] = {"type": _TYPES.get(found["values"].strip().split(" ")[0], "string")}
    if found["choices"] and not found["choices"].startswith(("`", "=`")):
        value = one_of(choice.strip() for choice in found["choices"].removeprefix("=").split("|"))
    if mark in ("+", "*"):
        value = {"type": "array", "items": value}
    yield Parameter(_underscored(name), value, about, required=mark in ("!", "+"))


def _underscored(name: str) -> str:
    return name.replace("-", "_")


def _joined(lines: list[str]) -> str:
    return "\n".join(lines).strip()
