"""Lists of a summary with a bounded length. The entries that are kept do not depend on the order of insertion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.report.encoding import encode

MAX_LISTED: Final = 5_000
_MAX_NAMES: Final = 5

Entry = Mapping[str, Any]


class Entries:
    """Entries for runs. The lowest repeats of each scenario are kept first."""

    def __init__(self, most: int = MAX_LISTED) -> None:
        self._most = most
        self._kept: list[Entry] = []
        self.left_out = 0

    def add(self, entry: Entry) -> None:
        """Add an entry {id, variant, repeat, …}, which may have the `run` of scenarios it belongs to."""
        self._kept.append(entry)
        if len(self._kept) >= 2 * self._most:
            self._truncate()

    def ordered(self) -> list[Entry]:
        """Return the entries that are kept, by scenario and repeat."""
        self._truncate()
        return sorted(self._kept, key=_by_scenario)

    def _truncate(self) -> None:
        if len(self._kept) > self._most:
            self.left_out += len(self._kept) - self._most
            self._kept = sorted(self._kept, key=_by_repeat)[: self._most]


class Warnings:
    """Texts of warnings with their counts and scenarios. If there are too many, the first by name are kept."""

    def __init__(self, most: int = MAX_LISTED) -> None:
        self._most = most
        self._times: dict[str, int] = {}
        self._ids: dict[str, set[str]] = {}
        self.left_out = 0

    def add(self, text: str, scenario: str) -> None:
        """Count a warning of the scenario with this id."""
        if text not in self._times:
            self._times[text] = 0
            self._ids[text] = set()
        self._times[text] += 1
        self._ids[text].add(scenario)
        if len(self._times) >= 2 * self._most:
            self._truncate()

    def ordered(self) -> list[dict[str, Any]]:
        """Return {text, times, scenarios: their number, names: some of their ids}, the most frequent text first."""
        self._truncate()
        found = []
        for text, times in sorted(self._times.items(), key=lambda item: (-item[1], item[0])):
            ids = sorted(self._ids[text])
            found.append({"text": text, "times": times, "scenarios": len(ids), "names": ids[:_MAX_NAMES]})
        return found

    def _truncate(self) -> None:
        for text in sorted(self._times)[self._most :]:
            self.left_out += self._times.pop(text)
            del self._ids[text]


def _by_scenario(entry: Entry) -> tuple[Any, ...]:
    return entry["id"], entry["variant"] or "", entry.get("run") or "", entry["repeat"], encode(entry)


def _by_repeat(entry: Entry) -> tuple[Any, ...]:
    return entry["repeat"], *_by_scenario(entry)
