"""The folder of a search: the files of an earlier search in it, and those that this one writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem
from harness.evolution.arguments import check_same, read_earlier_search
from harness.evolution.lineage import EVOLUTION, GENOMES, MUTATIONS, write_json
from harness.evolution.patch import PATCH
from harness.evolution.winner import VARIANTS
from harness.report.atomic_write import replace, unwritable
from harness.source.document import shown_path

CONFIRMATION: Final = "confirmation"
"""Name of the subfolder with the results that confirm the winner."""
_FILES: Final = (GENOMES, EVOLUTION, MUTATIONS, VARIANTS, PATCH, "report.html")


class SearchFolder:
    """The folder in which a search starts or continues. It is created if it does not exist.

    Args:
        path: the folder.
        arguments: the arguments of the search.
        fresh: True to delete the files of an earlier search.

    Raises:
        FormatError: it has another search (`other-search`), or one that cannot be read (`evolution-damaged`), or it
            cannot be written (`report-folder`).
    """

    def __init__(self, path: Path, arguments: Mapping[str, Any], *, fresh: bool) -> None:
        self.path = path
        if fresh:
            for name in _FILES:
                (path / name).unlink(missing_ok=True)
        self.earlier: Mapping[str, Any] = self._read_earlier(arguments)
        """evolution.json of the search to continue; empty for a new search."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path, error, "name a folder that can be written: --out DIR") from error

    def _read_earlier(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        earlier = read_earlier_search(self.path)
        if not any(_has_content(self.path / name) for name in (GENOMES, MUTATIONS)):
            return {}
        if earlier is None:
            text = f"{shown_path(self.path)} has a {GENOMES} but no {EVOLUTION}: its search is unknown"
            hint = "start anew with --fresh, or in another folder (--out DIR)"
            raise FormatError(Problem("evolution-damaged", text, hint=hint))
        check_same(self.path, earlier, arguments)
        return earlier

    def write(self, document: Mapping[str, Any], *, variants: str = "", patch: str = "") -> None:
        """Write evolution.json, and the winner as a variants file and as a patch, if there is one."""
        write_json(self.path / EVOLUTION, document)
        for name, text in ((VARIANTS, variants), (PATCH, patch)):
            if text:
                replace(self.path / name, text.encode())
            else:
                (self.path / name).unlink(missing_ok=True)

    def written_files(self) -> list[str]:
        """Return the names of the files in the folder."""
        return [name for name in _FILES if (self.path / name).exists()]


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
