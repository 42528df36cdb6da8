"""Searches for many plain texts at once, in a time that does not depend on their number."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from harness.secrets.encodings import utf8

_FEW: Final = 16
_MEMORY: Final = 256 << 20


class Probes:
    """A set of plain ASCII texts to search for. The last added are searched for one by one until they are many."""

    def __init__(self) -> None:
        self._compiled: list[str] = []
        self._added: list[str] = []
        self._set: Any = None

    def add(self, probe: str) -> None:
        """Add a text to search for."""
        self._added.append(probe)

    def found_in(self, text: str) -> Collection[str]:
        """Return the probes that occur in a text."""
        if len(self._added) > _FEW + len(self._compiled) // 4:
            self._compile()
        found = [probe for probe in self._added if probe in text]
        if self._set is not None:
            found += [self._compiled[number] for number in self._set.Match(utf8(text)) or ()]
        return found

    def _compile(self) -> None:
        import re2  # type: ignore[import-untyped]

        options = re2.Options()
        options.literal, options.max_mem = True, _MEMORY
        options.encoding = re2.Options.Encoding.LATIN1  # compare bytes
        automaton = re2.Set.SearchSet(options)
        compiled = self._compiled + self._added
        for probe in compiled:
            automaton.Add(probe)
        automaton.Compile()
        self._compiled, self._added, self._set = compiled, [], automaton
