"""The words of an agent: those in its files, in the code beside it, and in the world of a scenario.

A key of the state or a variable that is not among them cannot be written or read by anything. The opposite is
not concluded: which words are keys depends on the dialect and on code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from harness import dialects
from harness.graph.model import Graph
from harness.graph.names import inner_graphs, names_of
from harness.scenario.model import Scenario, import_folders
from harness.settings import Settings
from harness.world.scripts import INHERITED, LOCALE
from harness.world.spec import WorldSpec

_WORD: Final = re.compile(r"\w+")
_CODE: Final = (".py", ".sh", ".js", ".ts")
_PROVIDER_SUFFIXES: Final = ("_API_KEY", "_BASE_URL", "_API_BASE", "_ENDPOINT")
"""Name suffixes of environment variables that clients of providers read."""
_OF_PROGRAMS: Final = frozenset({*INHERITED, *LOCALE, "TZ"})
"""Environment variables that any program may read."""
_MOST_FILES: Final = 300
_MOST_BYTES: Final = 2 * 1024 * 1024
_FRONT_ENDS: Final = Path(dialects.__file__).parent
"""The code of front ends contains names that a dialect itself gives to values (`upstream_yields`)."""


class AgentWords:
    """The words of a scenario's agent."""

    def __init__(self, scenario: Scenario, graph: Graph, settings: Settings) -> None:
        files = [
            *graph.sources,
            *(file for inner in inner_graphs(graph) if isinstance(inner, Graph) for file in inner.sources),
            *_code_in((*import_folders(scenario, settings), *graph.import_folders)),
        ]
        of_files = [_file_words(file) for file in dict.fromkeys(files[:_MOST_FILES])]
        self._is_whole = len(files) <= _MOST_FILES and None not in of_files
        names = names_of(graph)
        self._runs_programs = names is not None and bool(names.names.get("script"))
        said = [*_world_answers(scenario.world)]
        for turn in scenario.turns:
            said += [turn.input, turn.resume, turn.rerun, *_world_answers(turn.world)]
        self._found: list[frozenset[str]] = [
            frozenset(channel.name for channel in graph.channels),
            frozenset(node.name for node in graph.nodes),
            frozenset(_WORD.findall(repr(said))),
            *(words for words in of_files if words is not None),
            *_front_end_words(graph.dialect),
        ]

    def may_have(self, name: str) -> bool:
        """False if the name cannot exist, since one of its words occurs nowhere."""
        return not self._is_whole or all(
            any(word in words for words in self._found) for word in _WORD.findall(name)
        )

    def may_ask_for(self, variable: str) -> bool:
        """False if nothing can read this environment variable."""
        if variable.endswith(_PROVIDER_SUFFIXES) or (self._runs_programs and variable in _OF_PROGRAMS):
            return True
        return self.may_have(variable)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(frozenset().union(*self._found)))


@cache
def _front_end_words(dialect: str) -> tuple[frozenset[str], ...]:
    """Return the words in the code of a dialect's front end, which does not change."""
    files = _code_in((_FRONT_ENDS / dialect, _FRONT_ENDS / "kit"))
    return tuple(words for words in map(_file_words, files) if words is not None)


def _world_answers(world: WorldSpec) -> Iterator[Any]:
    """Yield the answers of a world and the schemas of its tools. Matchers are left out: they only compare."""
    yield from (tool.input_schema for server in world.mcp.values() for tool in server.tools)
    yield from (stub.answer for stub in world.stubs())


def _code_in(folders: tuple[Path, ...]) -> Iterator[Path]:
    for folder in dict.fromkeys(folders):
        try:
            found = (Path(entry.path) for entry in os.scandir(folder) if entry.name.endswith(_CODE))
            yield from islice(found, _MOST_FILES + 1)
        except OSError:
            continue


def _file_words(file: Path) -> frozenset[str] | None:
    """Return the words of a file; none if it does not exist, None if it is too large to read."""
    try:
        stat = file.stat()
    except OSError:
        return frozenset()
    return None if stat.st_size > _MOST_BYTES else _read(file, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=512)
def _read(file: Path, _changed: int, _size: int) -> frozenset[str]:
    try:
        return frozenset(_WORD.findall(file.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return frozenset()
