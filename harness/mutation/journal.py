"""The results of mutants on disk, in `.harness/mutate/`: only what changed is run again, and a killed run goes on.

Each result is added as soon as it is known. It holds as long as the mutant, and the inputs of all scenarios that
reach it, are the same (`harness.variants.fingerprint`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from harness.mutation.mutant import Mutant
from harness.mutation.result import FORMAT, Result
from harness.report.encoding import replace

FOLDER: Final = Path(".harness", "mutate")
_FILE: Final = "results.jsonl"


class Journal:
    """The results of a project.

    Args:
        project: the root of the project.
        inputs: the fingerprints of its scenarios, by number.
        fresh: earlier results do not count.

    Raises:
        FormatError: it cannot be written.
    """

    def __init__(self, project: Path, inputs: Mapping[int, str], *, fresh: bool = False) -> None:
        self._file, self._inputs = project / FOLDER / _FILE, inputs
        self._known: dict[str, Mapping[str, Any]] = {} if fresh else _read(self._file)
        ignored = project / FOLDER.parent / ".gitignore"
        if not ignored.exists():
            replace(ignored, b"*\n")
        self._rewrite()
        self._stream: IO[bytes] = self._file.open("ab")

    def result(self, mutant: Mutant) -> Result | None:
        """Return the result of a mutant, if it is known and nothing has changed."""
        known = self._known.get(mutant.id)
        if known is None or known["fingerprint"] != self._fingerprint(mutant):
            return None
        return Result.of_json({**known, "where": mutant.place, "diff": mutant.diff})

    def add(self, mutant: Mutant, result: Result) -> None:
        """Keep the result of a mutant."""
        line = {"format": FORMAT, "fingerprint": self._fingerprint(mutant), **result.as_json()}
        self._known[mutant.id] = line
        self._stream.write(_encoded(line))
        self._stream.flush()

    def close(self) -> None:
        """Write the file anew, each result once."""
        self._stream.close()
        self._rewrite()

    def _fingerprint(self, mutant: Mutant) -> str:
        inputs = [self._inputs[number] for number in mutant.users if number in self._inputs]
        text = "\0".join([mutant.id, str(mutant.changes), *inputs])
        return hashlib.sha256(text.encode()).hexdigest()

    def _rewrite(self) -> None:
        replace(self._file, b"".join(map(_encoded, self._known.values())))


def stored_results(project: Path) -> dict[str, Result]:
    """Return the last result of each mutant of a project, by id."""
    return {id_: Result.of_json(line) for id_, line in _read(project / FOLDER / _FILE).items()}


def _encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _read(file: Path) -> dict[str, Mapping[str, Any]]:
    """Return the lines by mutant. A damaged one, such as the last one of a killed run, counts as missing."""
    found: dict[str, Mapping[str, Any]] = {}
    lines: list[bytes] = []
    with suppress(OSError):
        lines = file.read_bytes().splitlines()
    for text in lines:
        with suppress(ValueError, RecursionError, KeyError, TypeError):
            line = json.loads(text)
            if line["format"] == FORMAT and "fingerprint" in line:
                found[Result.of_json(line).id] = line
    return found
