"""Find runs that differ from another run of the same scenario although nothing made them differ.

A run is compared with its first repeat, if nothing in either was drawn from the seed, and with the same run in the
previous session of its report folder, if none of its inputs has changed since. The file `session.json` has what
the next session needs to know of this one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from harness.engine.standstill import THREAD
from harness.errors import FormatError, Problem
from harness.report.encoding import encode, replace
from harness.report.reading import RESULTS
from harness.report.traces import LAST_WHOLE, move_traces, remove_traces
from harness.time.real import real

SESSION: Final = "session.json"
_FORMAT: Final = "harness-session/1"
_BEFORE: Final = ".before"
"""The folder with the traces of the previous session while this one runs, unless they are in `last-whole`."""
_OF_EACH_COMMAND: Final = ("PYTEST_", "_", "OLDPWD", "COLUMNS", "LINES")
"""Variables, or their beginnings, that a shell, a terminal and pytest set anew for each command."""
_THREAD_ID: Final = re.compile(f"{THREAD}-[0-9a-f]{{16}}")
_HINT: Final = "its code reads what no run can hold, such as a process or the order of a set"

Unchanged = Callable[[str, datetime, datetime], bool]
"""Tells whether a scenario (by id) has the same inputs as in a session that began and ended at these instants."""


class _Run(Struct):
    """The fields of a results line that identify a run, and tell whether it is comparable."""

    id: str
    variant: str | None
    repeat: int
    seed: int
    digest: str
    now: str = ""
    varies: bool = True
    recording: int | None = None
    trace: str | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """The run is compared with a run of the same key."""
        return self.id, self.variant, self.repeat, self.seed, self.now, self.recording

    @property
    def is_comparable(self) -> bool:
        return bool(self.digest) and not self.varies


class _Known(NamedTuple):
    digest: str
    trace: Path | None


class Repeatability:
    """Compares the runs of a session with each other and with those of the previous session.

    Args:
        report: the report folder.
        find_unchanged: returns what tells whether a scenario has the same inputs; called if digests differ.
        given: values of variables that the command line gave.
        began: the real instant at which the session began; now by default.
    """

    def __init__(
        self,
        report: Path,
        find_unchanged: Callable[[], Unchanged],
        given: Mapping[str, str],
        began: datetime | None = None,
    ) -> None:
        self._report = Path.cwd() / report
        self._unchanged = cache(find_unchanged)
        self._environment = _environment_digest(given)
        self._began = began or real.now()
        self._first: dict[tuple[str, str | None], _Known] = {}
        self._previous: dict[tuple[Any, ...], _Known] = {}
        self._session: tuple[datetime, datetime] | None = None

    def start(self) -> None:
        """Read the previous session, and keep its traces. Called before its files are removed or moved."""
        shutil.rmtree(self._report / _BEFORE, ignore_errors=True)
        try:
            session = json.loads((self._report / SESSION).read_bytes())
            began, ended = (datetime.fromisoformat(session[name]) for name in ("began", "ended"))
            (self._report / SESSION).unlink()
            if session["format"] != _FORMAT or session["environment"] != self._environment:
                return
            folder = self._report / (LAST_WHOLE if session["complete"] else _BEFORE)
            if not session["complete"]:
                folder.mkdir()
                move_traces(self._report, folder)
            decoder = Decoder(_Run)
            with (self._report / RESULTS).open("rb") as lines:
                for line in lines:
                    run = decoder.decode(line)
                    if run.is_comparable:
                        trace = folder / run.trace if run.trace else None
                        self._previous[run.key] = _Known(run.digest, trace)
            self._session = began, ended
        except (OSError, ValueError, TypeError, KeyError, DecodeError):
            self._previous.clear()  # no session that ended, or not one of ours

    def warning(self, line: Mapping[str, Any], trace: str | None) -> str | None:
        """Return a warning if a run differs from another one although it should not; None otherwise.

        Args:
            line: its line of results.
            trace: the path of its trace in the report folder.
        """
        if not line["digest"] or line["varies"]:
            return None
        this = _Known(line["digest"], self._report / trace if trace else None)
        for other, why in self._others(line, this):
            if other.digest != this.digest and (found := _first_difference(other, this)):
                place = f"{line['where']}: " if line["where"] else ""
                text = f"{place}not repeatable: {found}, {why}"
                return Problem("not-repeatable", text, hint=_HINT).one_line
        return None

    def _others(self, line: Mapping[str, Any], this: _Known) -> Iterator[tuple[_Known, str]]:
        """Yield the runs that a run must be equal to, each with the reason."""
        name = line["id"], line["variant"]
        if not line["seeded"]:
            first = self._first.setdefault(name, this)
            yield first, "unlike another repeat; neither drew an id or a random number"
        known = self._previous.get((*name, *(line[key] for key in ("repeat", "seed", "now", "recording"))))
        if known is None or known.digest == this.digest or self._session is None:
            return
        if self._unchanged()(line["id"], *self._session):
            yield known, "unlike the run before; no input has changed since"

    def finish(self, *, complete: bool) -> None:
        """Write session.json, and remove what was kept of the previous session.

        Raises:
            FormatError: it cannot be written (code `report-folder`).
        """
        with suppress(OSError):
            remove_traces(self._report / _BEFORE)
            (self._report / _BEFORE).rmdir()
        session = {
            "format": _FORMAT,
            "began": self._began.isoformat(),
            "ended": real.now().isoformat(),
            "complete": complete,
            "environment": self._environment,
        }
        replace(self._report / SESSION, encode(session, indented=True).encode() + b"\n")


def _environment_digest(given: Mapping[str, str]) -> str:
    """Return a few digits of a digest of the environment: too few to confirm a guess at the secrets in it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(_OF_EACH_COMMAND)}
    return blake2b(encode([sorted(own.items()), sorted(given.items())]).encode(), digest_size=4).hexdigest()


def _first_difference(before: _Known, after: _Known) -> str:
    """Return the first event that differs, in words; "" if only ids of threads do, as in repeats."""
    if before.trace is None or after.trace is None:
        return "its digest is another (traces, which would show more, were not kept)"
    from harness.report.compare.first_difference import first_difference
    from harness.report.traces import read_trace

    try:
        texts = [encode(read_trace(each.trace).events) for each in (before, after) if each.trace]
    except FormatError as error:
        return f"its digest is another ({error.problems[0].message})"
    found = first_difference(*(json.loads(_THREAD_ID.sub(THREAD, text)) for text in texts))
    if found is None:
        return "" if texts[0] != texts[1] else "a value is another that its trace does not show"
    parts = "; ".join(" ".join(filter(None, (part.place, *part.lines))) for part in found.parts)
    return f"{found.what} is another ({parts})" if parts else f"{found.what} is another"
