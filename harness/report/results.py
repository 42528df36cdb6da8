"""Write results.jsonl, one line for each run of a scenario (docs/results.md), and the files made from it.

`ResultsWriter` receives outcomes (or records that another process made of them), writes each line at once, and adds
it to a `Summary`. At the end it writes summary.json, summary.md, junit.xml and report.html.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, Self

from msgspec.json import decode

from harness.errors import FormatError, Problem
from harness.interception.descriptors import keep_open, let_go
from harness.report.cause import fault
from harness.report.encoding import encode, fits, replace, replace_in_chunks, unwritable
from harness.report.failure import failed_checks
from harness.report.folder_check import refuse_foreign
from harness.report.group import PARTS
from harness.report.input_files import InputFiles, changed_files
from harness.report.junit import JUNIT, junit
from harness.report.markdown import markdown, since_last_whole
from harness.report.reading import FORMAT, RESULTS, SCORE, read_lines
from harness.report.repeats import NOT_PASSED
from harness.report.summary import Summary
from harness.report.traces import (
    TraceFolder,
    keep_last_whole,
    last_whole_summary,
    pack_trace,
    remove_last_whole,
    remove_traces,
)
from harness.scenario.checks.finding import LONGEST_TEXT, trim
from harness.scenario.outcome import JSON, CheckResult, Outcome
from harness.source.display import clip, truncated

if TYPE_CHECKING:
    from harness.report.history.file import HistoryWriter
    from harness.report.repeatability import Repeatability
    from harness.settings import Settings

_FILES: Final = (RESULTS, "summary.json", "summary.md", "report.html", JUNIT, SCORE)
_NO_TRACE: Final = '"trace":null}'


class Record(NamedTuple):
    """The written form of an outcome: its line of results.jsonl, still without a trace path, and its trace."""

    line: str
    trace: bytes = b""


def record(outcome: Outcome) -> Record:
    """Return the written form of an outcome. This removes the outcome's events, to free their memory."""
    made = Record(encode(line(outcome)), pack_trace(outcome))
    outcome.events = []
    return made


def line(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as a mapping with the fields of a line, in the order of docs/results.md.

    Additional fields: `reason` (why the run was skipped or could not be judged, else ""), `cause` (why it did not
    pass, on one line, else ""), `causes` (why nodes ran again or went another way, only if some did), `fault` (a key
    that is equal for runs that failed for the same reason, else ""), `where` (the location of the scenario) and
    `shape` (all parts of the graph). Only `wall` differs between reruns. Values are shared with the outcome; long
    arguments and expected values are cut.
    """
    observed = outcome.observed
    causes = observed.causes[-_MOST_CAUSES:]
    return {
        "format": FORMAT,
        **outcome.identity,
        "tags": outcome.tags,
        "repeat": outcome.repeat,
        "seed": outcome.seed,
        "status": observed.status,
        "verdict": outcome.verdict,
        "passed": outcome.passed,
        "score": outcome.score,
        "weight": outcome.weight,
        "latency_penalty": outcome.latency_penalty,
        "checks": [_check(check) for check in outcome.checks],
        "path": observed.path,
        "state": observed.state,
        "output": observed.output,
        "error": None if observed.error is None else _ERROR | observed.error,
        "interrupts": observed.interrupts,
        "warnings": observed.warnings,
        "latency": observed.latency,
        "wall": outcome.wall,
        "usage": observed.usage,
        "calls": [_call(call) for call in observed.calls],
        "coverage": {part: sorted(outcome.coverage.get(part, ()), key=repr) for part in PARTS},
        "digest": outcome.digest,
        "reason": outcome.reason,
        "cause": failed_checks(outcome) if outcome.verdict in NOT_PASSED else "",
        **({"causes": [clip(text, LONGEST_TEXT) for text in causes]} if causes else {}),
        "fault": fault(outcome),
        "recording": outcome.recording,
        "varies": outcome.varies,
        "seeded": outcome.seeded,
        "now": outcome.now,
        "expectations": outcome.expectations,
        "where": None if outcome.span is None else str(outcome.span),
        "shape": outcome.shape,
        "trace": None,
    }


# Keys that are always present, in the order of docs/results.md.
_CHECK: Final = ("name", "passed", "score", "weight", "expected", "actual", "message")
_ERROR: Final = dict.fromkeys(("type", "code", "message", "node", "where")) | {"traceback": []}
_CALL: Final = dict.fromkeys(("kind", "name", "node", "args", "ok", "latency"))
_MOST_CAUSES: Final = 20
_LONG: Final = frozenset({"args", "prompt", "reply", "tool_calls"})
"""Fields of a call that are cut if they are long."""


_MAX_LENGTH: Final = 5_000
"""Maximum length, as JSON, of the arguments of a call or an expected value; larger ones are cut to a text."""


def _check(check: CheckResult) -> dict[str, Any]:
    written = {name: getattr(check, name) for name in _CHECK}
    where = None if check.span is None else str(check.span)
    return {**written, "expected": bounded(check.expected), "where": where}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    written = {**_CALL, **call}
    if "reason" in written:
        written["reason"] = written["reason"][:LONGEST_TEXT]
    written.pop("request", None)  # it is in the trace
    return {key: bounded(value) if key in _LONG else value for key, value in written.items()}


def bounded(value: JSON) -> JSON:
    """Return the value with long texts and lists cut; if it is still too long, the beginning of its JSON text."""
    short = trim(value)
    if not isinstance(short, dict | list) or fits(short, _MAX_LENGTH):
        return short
    text = encode(truncated(short, _MAX_LENGTH))
    if len(text) <= _MAX_LENGTH:
        return short
    cut = clip(text, LONGEST_TEXT)
    return {"…": cut} if isinstance(value, Mapping) else cut


def history_writer(settings: Settings, inputs: Callable[[], Mapping[str, str]]) -> HistoryWriter | None:
    """Return the writer for the history named in the settings; None if there is none."""
    if settings.history is None:
        return None
    from harness.report.history.file import HistoryWriter

    return HistoryWriter(settings.history, settings.project, inputs)


class ResultsWriter:
    """Writes a results folder: a line as soon as a scenario run has ended, and the summaries at the end.

    Use as a context manager. On entry it removes the files of an earlier run, except that the last complete run is
    kept (`harness.report.traces`). Each line is flushed at once, so that killing the process loses no run that
    has ended. If an exception leaves the block, the summaries cover the runs so far. At the end the run is appended
    to `history`.

    Raises:
        FormatError: the folder cannot be created or written, or has other files (code `report-folder`).
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        traces_limit: float = math.inf,
        history: HistoryWriter | None = None,
        repeatability: Repeatability | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._home = Path.cwd()  # made absolute now: a tool may change the working directory
        self._file: BinaryIO | None = None
        self._sums = Summary()
        self._inputs = InputFiles(self._home)
        self._places: Counter[int] = Counter()
        self._order: list[int] = []
        self._traces = TraceFolder(self._home / self.folder, traces_limit * 1e6)
        self._history = history
        self._repeatability = repeatability
        self._summary: dict[str, Any] | None = None

    @property
    def path(self) -> Path:
        """The path of results.jsonl."""
        return self._home / self.folder / RESULTS

    def __enter__(self) -> Self:
        if self._history is not None:
            self._history.check()
        refuse_foreign(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = open_locked(self.path)
            if self._repeatability is not None:
                self._repeatability.start()
            keep_last_whole(self.folder, _FILES)
            remove_traces(self.folder)
            self._file.truncate(0)
            for name in _FILES:
                if name != RESULTS:
                    (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(self.folder, error) from error
        keep_open(self._file.fileno())
        return self

    def take_over(self) -> None:
        """Go on with the results of a process that cannot, instead of entering the context."""
        self._file = self.path.open("ab")
        for line in read_lines(self.path):
            self._order.append(0)
            self._places[0] += 1
            self._sums.add(line)
            self._inputs.add(line)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish("" if error is None else f"the run was ended by {type(error).__name__}")

    def add(self, outcome: Outcome) -> str:
        """Write the line of an outcome, and return it."""
        return self.add_record(record(outcome))

    def add_record(self, record: Record, place: int = 0) -> str:
        """Write a record, possibly made by another process: first its trace, then its line, which is returned.

        `finish` sorts the lines by `place`; lines with the same place keep the order of arrival. Traces are named
        after it.

        Raises:
            FormatError: the record cannot be written, as on a full disk (code `report-folder`).
        """
        if self._file is None:
            raise ValueError("results are added between `with ResultsWriter(…)` and `finish()`")
        self._places[place] += 1
        text, trace = record.line, None
        if record.trace:
            nth = self._places[place]
            trace = self._traces.add(f"{place + 1}-{nth}" if nth > 1 else str(place + 1), record.trace)
            text = text.removesuffix(_NO_TRACE) + _NO_TRACE.replace("null", encode(trace))
        line = decode(text)
        if self._repeatability is not None and (warning := self._repeatability.warning(line, trace)):
            line["warnings"].append(warning)
            text = encode(line)
        try:
            self._file.write(text.encode() + b"\n")
            self._file.flush()
        except OSError as error:
            self._abort()
            raise unwritable(self.path, error) from error
        self._order.append(place)
        self._sums.add(line)
        self._inputs.add(line)
        if self._history is not None:
            self._history.add(line)
        return text

    def finish(self, incomplete: str = "", *, with_page: bool = True) -> dict[str, Any]:
        """Close results.jsonl, write summary.json, summary.md, junit.xml and report.html, and return the summary.

        Args:
            incomplete: why this is not a complete run; "" if it is.
            with_page: False leaves writing report.html to the caller, who has more to show.

        A second call returns the same summary and writes nothing.
        """
        if self._summary is not None:
            return self._summary
        if self._file is not None:
            self._sort()
            _close_unlocked(self._file)
            self._file = None
        before = last_whole_summary(self.path.parent)
        files = self._inputs.as_json()
        for file in changed_files(files, self._home):
            self._sums.warn(f"{file} changed while the scenarios ran: some ran another version", file)
        more = {"traces": self._traces.as_json(), "files": files}
        self._summary = self._sums.as_json(incomplete) | more
        replace(self.path.with_name("summary.json"), encode(self._summary, indented=True).encode() + b"\n")
        changes = since_last_whole(self._summary, before)
        replace(self.path.with_name("summary.md"), markdown(self._summary, changes).encode())
        from harness.report.html.page import PAGE, Contents, page

        contents = Contents(self.path.parent)
        lines: Iterator[Mapping[str, Any]] = read_lines(self.path)
        if with_page:
            lines = contents.collecting(lines)  # junit and the page share one pass over the lines
        replace_in_chunks(self.path.with_name(JUNIT), junit(lines, incomplete))
        unwritten = None
        if self._history is not None:
            try:
                self._history.append(self._summary)
            except FormatError as error:  # told at the end, when the other files are written
                unwritten = error
        if with_page:
            history = None if self._history is None else self._history.file
            text = page(self.path, self._summary, history=history, contents=contents)
            replace(self.path.with_name(PAGE), text.encode())
        if not incomplete:
            remove_last_whole(self.path.parent, _FILES)
        if self._repeatability is not None:
            self._repeatability.finish(complete=not incomplete)
        if unwritten is not None:
            raise unwritten
        return self._summary

    def _abort(self) -> None:
        """Close the file after a failed write. No summaries are written then."""
        if self._file is not None:
            with suppress(OSError):
                _close_unlocked(self._file)
            self._file = None
        self._summary = self._sums.as_json("the results could not be written")

    def _sort(self) -> None:
        order = sorted(range(len(self._order)), key=self._order.__getitem__)
        if order == list(range(len(order))):
            return
        with self.path.open("rb") as file:  # line by line: a million runs are gigabytes
            starts = array("Q", accumulate(map(len, file), initial=0))

            def line(at: int) -> bytes:
                file.seek(starts[at])
                return file.read(starts[at + 1] - starts[at])

            replace_in_chunks(self.path, map(line, order))


def open_locked(path: Path) -> BinaryIO:
    """Open a file for appending, and lock it against other runs until it is closed or the process ends."""
    file = path.open("ab")
    try:
        import fcntl
    except ImportError:  # not a POSIX system: locks are not available
        pass
    else:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            text = f"another run is writing to the report folder {path.parent}"
            raise FormatError(
                Problem("report-folder", text, None, "give one of them another folder")
            ) from None
    return file


def _close_unlocked(file: BinaryIO) -> None:
    """Close a file of `open_locked`. Processes of apps may still have it open, which would keep it locked."""
    let_go(file.fileno())
    with suppress(ImportError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)
    file.close()
