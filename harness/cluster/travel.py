"""Values on their way to another machine, where the project is below another folder.

packed(value, top) ──bytes──▶ unpacked(bytes, other top): paths and locations below `top` lead below the other one
"""

from __future__ import annotations

import copyreg
import io
import pickle
import zlib
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import Span
from harness.report.results import Record, record
from harness.scenario.model import Scenario
from harness.settings import Settings
from harness.workers.executor import ScenarioResult

_PATH: Final = type(Path())
_GZIP: Final = 31
_top: Final[ContextVar[str]] = ContextVar("top")


def packed(value: Any, top: Path) -> bytes:
    """Return a value as bytes for `unpacked`."""
    prefix = _prefix(top)

    def path(each: Path) -> Any:
        text = str(each)
        if text.startswith(prefix) or text + "/" == prefix:
            return _path_there, (text[len(prefix) :],)
        return each.__reduce__()

    def span(each: Span) -> Any:
        if each.file.startswith(prefix):
            return _span_there, (each.file[len(prefix) :], each.line, each.column, each.length)
        return each.__reduce__()

    file = io.BytesIO()
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {**copyreg.dispatch_table, _PATH: path, Span: span}
    pickler.dump(value)
    return file.getvalue()


def unpacked(content: bytes, top: Path) -> Any:
    """Return the value that `packed` made of, with its paths below this folder."""
    token = _top.set(_prefix(top))
    try:
        return pickle.loads(content)
    finally:
        _top.reset(token)


def relocated(made: Record, there: Path, here: Path) -> Record:
    """Return a record with the texts of one folder in place of those of the other."""
    old, new = str(there), str(here)
    if old == new:
        return made
    trace = zlib.decompress(made.trace, _GZIP) if made.trace else b""
    if old.encode() in trace:
        gzip = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        made = made._replace(trace=gzip.compress(trace.replace(old.encode(), new.encode())) + gzip.flush())
    return made._replace(line=made.line.replace(old, new))


@dataclass(frozen=True)
class Runs:
    """The work of a process that runs scenarios of `place` and packs the results, which others only pass on.

    Attributes:
        place: the folder around the project on this machine.
        top: that folder on the machine of the command.
    """

    place: Path
    top: Path

    def __call__(
        self, number: int, scenario: Scenario, settings: Settings, tell: Callable[[bytes], None]
    ) -> None:
        from harness.scenario.run import outcomes

        for outcome in outcomes(scenario, settings):
            tell(self.packed(ScenarioResult(number, outcome, record(outcome))))

    def packed(self, result: ScenarioResult) -> bytes:
        """Return a result for the command."""
        made = relocated(result.record, self.place, self.top)
        return packed((*result[:2], made), self.place)


def _prefix(top: Path) -> str:
    return f"{str(top).rstrip('/')}/"


def _path_there(below: str) -> Path:
    return Path(_top.get() + below)


def _span_there(below: str, line: int, column: int, length: int) -> Span:
    return Span(_top.get() + below, line, column, length)
