"""The errors that users see, with their locations.

    HarnessError                 everything this package raises on purpose
    ├── SourceError              files that cannot be used: one or many located problems
    │   ├── FormatError          … a scenario file or a setting
    │   └── ManifestError        … an agent's manifest, or something it names
    ├── ExpressionError          an expression that cannot be parsed or evaluated
    ├── CannotEvaluate           a check that neither holds nor fails
    ├── WorldError               the simulated world cannot answer
    │   ├── UnscriptedCall       … because no stub was written for this call
    │   ├── CassetteError        … because its recording is missing, broken, or of another request
    │   └── ProviderError        … because the live backend cannot be asked
    ├── RunError                 a run that failed by itself (recursion limit, deadlock)
    ├── ClusterError             the command cannot go on: a cluster that cannot be used, or is gone
    ├── WorkerDied               the process that ran a scenario ended while running it
    ├── WorkerLost               a worker of a cluster, several times, with the scenario it ran
    └── WorkerNotStarted         no worker process can start

Errors carry fields (`code`, `span`, `hint`). They are formatted as text where they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from signal import Signals
from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Span:
    """A location in a file. Lines and columns count from 1; `length` is in characters (0: unknown)."""

    file: str
    line: int
    column: int
    length: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def __reduce__(self) -> tuple[type[Span], tuple[str, int, int, int]]:
        """Pickle faster than dataclasses do by default: a scenario has dozens of spans."""
        return Span, (self.file, self.line, self.column, self.length)


class Unless(NamedTuple):
    """A thing that a scenario may provide: a handler in place of a built-in one, or a key of the state."""

    kind: Literal["handler", "key"]
    name: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file.

    `code` is stable and documented in docs/troubleshooting.md (in kebab-case, such as `unknown-key`). A warning of a
    manifest with `unless` does not apply in scenarios that provide what it names.
    """

    code: str
    message: str
    span: Span | None = None
    hint: str = ""
    severity: Severity = "error"
    unless: Unless | None = None

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        hint = f"\n    {self.hint}" if self.hint else ""
        return f"{place}{self.message}{hint}"

    @property
    def one_line(self) -> str:
        """The problem on one line, as in the warnings of a run."""
        place = f"{self.span}: " if self.span else ""
        return f"{place}{self.message}" + (f" ({self.hint})" if self.hint else "")


class HarnessError(Exception):
    """Base class of all errors that the harness raises on purpose. `code` is stable, the message is not."""

    code = "harness-error"


class SourceError(HarnessError):
    """A file that cannot be used, with all of its problems."""

    code = "source-error"

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        if self.problems:
            self.code = self.problems[0].code
        super().__init__("\n".join(str(p) for p in self.problems))

    def __reduce__(self) -> tuple[type[SourceError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)  # another process may raise it again


class FormatError(SourceError):
    """A scenario file, a setting or an argument that is not valid."""


class ManifestError(SourceError):
    """A manifest that cannot be run."""


class ExpressionError(HarnessError):
    """An expression that cannot be parsed or evaluated.

    `source` is the whole expression; `line` and `column` (from 1; 0: unknown) point into it. `span` is its
    location in a file, if known.
    """

    code = "expression"
    span: Span | None = None

    def __init__(self, message: str, *, source: str, line: int = 1, column: int = 0) -> None:
        self.source, self.line, self.column = source, line, column
        super().__init__(message)


class CannotEvaluate(HarnessError):
    """A check, or a matcher in it, that neither holds nor fails, because it does not apply to the value."""

    code = "cannot-evaluate"


class WorldError(HarnessError):
    """The simulated world cannot answer an effect. Retries, fallbacks and tolerant nodes must not handle it.

    `span` is the location in a file that causes it. None stands for the node that performed the effect.
    """

    code = "world"

    def __init__(self, message: str, span: Span | None = None) -> None:
        self.span = span
        super().__init__(message)


@dataclass
class Nearest:
    """The stub that is most similar to a call, and the reasons why it did not answer."""

    description: str
    span: Span | None
    reasons: Sequence[str] = field(default_factory=tuple)


class UnscriptedCall(WorldError):
    """A call that no stub answers. The message has the request and the nearest stub.

    `example` is the shortest stub that would answer it, in YAML. It is part of results, but not of the trace.
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
    """A recording that cannot answer, or cannot be written."""

    code = "cassette"


class CassetteMissing(CassetteError):
    """A cassette that was not recorded."""

    code = "cassette-missing"


class CassetteBroken(CassetteError):
    """A recording that cannot be parsed. `span` is the location in its file."""

    code = "cassette-broken"

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(f"{span}: {message}" if span else message, span)


class BudgetSpent(CassetteError):
    """A model call that is not made because the budget is spent."""

    code = "budget"


class OwnerEnded(HarnessError):
    """A call that is not made, because the command that began the recording has ended."""

    code = "command-ended"

    def __init__(self) -> None:
        super().__init__("the command that began this recording has ended, so no more calls are made")


class CassetteTooOld(CassetteError):
    """A recording that is older than `max_age_days`, if the settings make that an error."""

    code = "cassette-too-old"


class CassetteMismatch(CassetteError):
    """A request that was not recorded. The message has the nearest recorded request, and the difference."""

    code = "cassette-mismatch"


class ProviderError(WorldError):
    """A live backend that cannot be asked."""

    code = "provider"


class ExtraMissing(ProviderError):
    """An optional package that is not installed. The message names the extra that installs it."""

    code = "extra-missing"


class KeyMissing(ProviderError):
    """A provider without an API key. The message names the variable that the key is read from."""

    code = "key-missing"


class ProviderDown(ProviderError):
    """A provider that cannot be reached."""

    code = "provider-down"


class RunError(HarnessError):
    """A run that failed by itself, and not because of an answer of the world."""

    code = "run-error"


class WorkerDied(HarnessError):
    """A worker process that ended while it ran a scenario.

    A negative exit code is the number of a signal, negated; None: unknown. `doing` describes the activity of the run;
    "": unknown.
    """

    code = "worker-died"

    def __init__(self, exit_code: int | None, doing: str = "") -> None:
        self.exit_code, self.doing = exit_code, doing
        how = "ended in the middle of it" if exit_code is None else _how_it_ended(exit_code)
        where = f" in {doing}" if doing else ""
        super().__init__(f"the process that ran this scenario {how}{where}")


class WorkerLost(HarnessError):
    """A scenario whose worker of a cluster was lost so often that it is not run again. `why`: the last time."""

    code = "worker-lost"

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"the workers that ran this scenario were lost, again and again; last {why}")


class ClusterError(HarnessError):
    """A cluster that cannot run the scenarios, or a worker of it."""

    code = "cluster-worker"


class ClusterUnreachable(ClusterError):
    """A scheduler that does not answer when a command begins."""

    code = "cluster-unreachable"


class ClusterGone(ClusterError):
    """A scheduler that does not answer any more."""

    code = "cluster-gone"


class WorkerNotStarted(HarnessError):
    """A worker process that ended before it could run anything, when none had started before."""

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
