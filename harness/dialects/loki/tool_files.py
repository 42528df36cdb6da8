"""Reading tools from files, without running them. spec: "global_tools", custom tools.

A global tool is the `main` function of its `.sh` file, or `run` of its `.py` or `.ts` file. An agent's own tools are
the `# @cmd` functions of its `tools.sh`, the public functions of its `tools.py`, the exported ones of its `tools.ts`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.dialects.loki.bash_tools import tools_in_bash
from harness.dialects.loki.parameters import object_schema
from harness.dialects.loki.python_tools import tools_in_python
from harness.dialects.loki.typescript_tools import tools_in_typescript
from harness.errors import ManifestError, Problem, Span
from harness.graph.effects import ToolSpec
from harness.source.document import shown_path

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
