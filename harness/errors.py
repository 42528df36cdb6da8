"""The errors people see, and where they point.

    HarnessError                 everything this package raises on purpose
    ├── SourceError              files that cannot be used: one or many located problems
    │   ├── FormatError          … a scenario file or a setting
    │   └── ManifestError        … an agent's manifest, or something it names
    ├── ExpressionError          an expression that cannot be parsed or evaluated
    ├── CannotEvaluate           a check that can neither hold nor fail
    ├── WorldError               the simulated world cannot answer
    │   ├── UnscriptedCall       … because no stub was written for this call
    │   ├── CassetteError        … because of its recording: missing, broken, or of another request
    │   └── ProviderError        … because the real thing cannot be asked
    ├── RunError                 a run that broke (recursion limit, deadlock)
    └── WorkerDied               the process that ran a scenario ended in the middle of it

Fields come first (`code`, `span`, `hint`); text is made from them at the rim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from signal import Signals
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a file. Lines and columns count from 1; `length` is in characters (0: unknown)."""

    file: str
    line: int
    column: int
    length: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def __reduce__(self) -> tuple[type[Span], tuple[str, int, int, int]]:
        """What it is pickled as: a scenario has dozens, and dataclasses are pickled slowly by themselves."""
        return Span, (self.file, self.line, self.column, self.length)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a file.

    `code` is stable and documented in docs/troubleshooting.md (kebab-case, such as `unknown-key`).
    """

    code: str
    message: str
    span: Span | None = None
    hint: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        hint = f"\n    {self.hint}" if self.hint else ""
        return f"{place}{self.message}{hint}"

    @property
    def one_line(self) -> str:
        """The same on one line, as warnings of a run are written."""
        place = f"{self.span}: " if self.span else ""
        return f"{place}{self.message}" + (f" ({self.hint})" if self.hint else "")


class HarnessError(Exception):
    """Base of every error raised on purpose. `code` is stable; `str()` is for people."""

    code = "harness-error"


class SourceError(HarnessError):
    """A file that cannot be used. All its problems are collected and raised once."""

    code = "source-error"

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        if self.problems:
            self.code = self.problems[0].code
        super().__init__("\n".join(str(p) for p in self.problems))


class FormatError(SourceError):
    """A scenario file, or a setting, that says something the format does not know."""


class ManifestError(SourceError):
    """A manifest that is refused."""


class ExpressionError(HarnessError):
    """An expression that cannot be parsed or evaluated.

    `source` is the whole expression; `column` (from 1, 0 when unknown) points into it. `span` is its place in a file,
    where whoever evaluates it knows that.
    """

    code = "expression"
    span: Span | None = None

    def __init__(self, message: str, *, source: str, line: int = 1, column: int = 0) -> None:
        self.source, self.line, self.column = source, line, column
        super().__init__(message)


class CannotEvaluate(HarnessError):
    """A check, or a matcher in it, that says nothing about the value it was given: neither that it holds nor not."""

    code = "cannot-evaluate"


class WorldError(HarnessError):
    """The simulated world cannot answer. No retry, fallback or tolerant node may absorb it.

    `span` is the place in a file that is to blame, where it is known; None: the node that asked.
    """

    code = "world"

    def __init__(self, message: str, span: Span | None = None) -> None:
        self.span = span
        super().__init__(message)


@dataclass
class Nearest:
    """The stub that came closest to a call, and why it did not answer it."""

    description: str
    span: Span | None
    reasons: Sequence[str] = field(default_factory=tuple)


class UnscriptedCall(WorldError):
    """A call for which no stub was written. Shows the request and the nearest stub.

    `example` is the shortest stub that answers it, as it is written. Results show it, the trace does not.
    """

    code = "unscripted-call"

    def __init__(self, request: str, nearest: Nearest | None, hint: str = "", example: str = "") -> None:
        self.request, self.nearest, self.example = request, nearest, example
        lines = [f"nothing answers {request}"]
        if nearest is not None:
            where = f" ({nearest.span})" if nearest.span else ""
            lines.append(f"  nearest stub: {nearest.description}{where}")
            lines += [f"    - {reason}" for reason in nearest.reasons]
        if hint:
            lines.append(f"  {hint}")
        super().__init__("\n".join(lines))


class CassetteError(WorldError):
    """A recording that cannot answer."""

    code = "cassette"


class CassetteMissing(CassetteError):
    """Nothing was recorded."""

    code = "cassette-missing"


class CassetteBroken(CassetteError):
    """A recording that cannot be read. `span` is the place in its file."""

    code = "cassette-broken"

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(f"{span}: {message}" if span else message, span)


class BudgetSpent(CassetteError):
    """A model that is not asked: what may be spent is spent."""

    code = "budget"


class CassetteTooOld(CassetteError):
    """A recording that is older than `max_age_days`, where that is an error."""

    code = "cassette-too-old"


class CassetteMismatch(CassetteError):
    """A request that is not the recorded one. The text shows the nearest that was recorded, and the difference."""

    code = "cassette-mismatch"


class ProviderError(WorldError):
    """The real thing cannot be asked."""

    code = "provider"


class ExtraMissing(ProviderError):
    """A package that is not installed. The text names the extra that brings it."""

    code = "extra-missing"


class KeyMissing(ProviderError):
    """No key for the provider. The text names the variable it is read from."""

    code = "key-missing"


class ProviderDown(ProviderError):
    """The provider cannot be reached."""

    code = "provider-down"


class RunError(HarnessError):
    """A run that broke for a reason of its own."""

    code = "run-error"


class WorkerDied(HarnessError):
    """The worker process that ran a scenario ended in the middle of it.

    A negative exit code is a signal's number; None: it is not known. `doing` is what the run was doing, if that is.
    """

    code = "worker-died"

    def __init__(self, exit_code: int | None, doing: str = "") -> None:
        self.exit_code, self.doing = exit_code, doing
        how = "ended in the middle of it" if exit_code is None else _how_it_ended(exit_code)
        where = f" in {doing}" if doing else ""
        super().__init__(f"the process that ran this scenario {how}{where}")


class WorkerNotStarted(HarnessError):
    """A worker process ended before it could run anything, and none has started before it."""

    code = "worker-not-started"

    def __init__(self, exit_code: int | None) -> None:
        self.exit_code = exit_code
        how = "ended" if exit_code is None else _how_it_ended(exit_code)
        super().__init__(
            f"no worker process can start: the first {how} before it ran a scenario, and wrote why, if it knew"
            " (a script that calls the harness needs `if __name__ == '__main__':` around the call)"
        )


def _how_it_ended(exit_code: int) -> str:
    return f"was ended by {_signal_name(-exit_code)}" if exit_code < 0 else f"left with {exit_code}"


def _signal_name(number: int) -> str:
    try:
        name = Signals(number).name
    except ValueError:
        return f"signal {number}"
    return f"{name} (as when memory runs out)" if name == "SIGKILL" else name
