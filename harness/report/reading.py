"""Read results.jsonl: the type of its lines, and what is wrong with one that has another form."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    BinaryIO,
    Final,
    Literal,
    NamedTuple,
    NotRequired,
    TypedDict,
    get_args,
)

from msgspec import Meta

from harness.errors import FormatError, Problem, Span
from harness.scenario.outcome import Status, Verdict
from harness.source.display import clip, did_you_mean, printable
from harness.source.document import hint_for_missing, shown_path
from harness.units import LARGEST_FIGURE

if TYPE_CHECKING:
    from msgspec.json import Decoder


_EXCERPT: Final = 60
_KINDS: Final = {
    "array": "a list",
    "object": "a mapping",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}


class DecodingProblem(NamedTuple):
    """The explanation of a decoding error.

    text      the explanation
    hint      a suggestion, such as a similar field name; "" for none
    expected  the kind of document that was expected, if the input is of another kind; "" otherwise
    line, column  the location in the input, from 1 on
    """

    text: str
    hint: str = ""
    expected: str = ""
    line: int = 1
    column: int = 1


def decoding_problem(
    raw: bytes, error: Exception, format_: str | None, choices: Mapping[str, Sequence[str]] | None = None
) -> DecodingProblem:
    """Explain why msgspec could not decode `raw`.

    Args:
        raw: the input.
        error: the exception of msgspec.
        format_: the expected value of the field `format`, if the document has one.
        choices: the values allowed for some fields, for suggestions.
    """
    from msgspec import ValidationError
    from msgspec.json import decode

    try:
        parsed = decode(raw)
    except (ValueError, RecursionError) as broken:
        byte = re.search(r"\(byte (\d+)\)", str(broken))
        at = int(byte[1]) if byte else 0
        before, text = raw[:at].split(b"\n"), raw[at : at + _EXCERPT].decode(errors="replace")
        return DecodingProblem(
            _format_value(text), expected="JSON", line=len(before), column=len(before[-1]) + 1
        )
    found = parsed.get("format") if isinstance(parsed, dict) else parsed
    if format_ is not None and found != format_:
        return DecodingProblem(f"found {_format_value(found)}", expected=f"the format {format_}")
    if not isinstance(error, ValidationError):
        return DecodingProblem(str(error))
    message, _, place = str(error).partition(" - at ")
    return DecodingProblem(
        *_explain_field(message, place.strip("`").removeprefix("$").removeprefix("."), parsed, choices or {})
    )


def _explain_field(
    message: str, field: str, line: dict[str, Any], known_values: Mapping[str, Sequence[str]]
) -> tuple[str, str]:
    """Return the explanation for a field, and a hint."""
    value, name = _value_at(line, field), field.replace("[...]", "[…]")
    if missing := re.fullmatch("Object missing required field `(.*)`", message):
        known = value if isinstance(value, dict) else {}
        name = ".".join(filter(None, (name, missing[1])))
        return f"it has no '{name}'", did_you_mean(missing[1], known, listing=False)
    if choices := known_values.get(field):
        return f"{name} cannot be {_format_value(value)}", did_you_mean(str(value), choices)
    expected = re.match(r"Expected `([^`]*)`, got", message)
    if expected is None:
        return f"{name} cannot be {_format_value(value)}", ""
    kinds = " or ".join(_KINDS.get(kind, kind) for kind in expected[1].split(" | "))
    return f"{name} must be {kinds}, found {_format_value(value)}", ""


def _value_at(line: Any, field: str) -> Any:
    """Return the value of a field such as `checks[0].name`. Stops at `[...]`, where msgspec names no key."""
    for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", field.partition("[...]")[0]):
        line = line[int(index)] if index else line[key]
    return line


def _format_value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return clip(printable(repr(value)), _EXCERPT)


FORMAT: Final = "harness-results/1"
RESULTS: Final = "results.jsonl"
SCORE: Final = "score.json"

_MAX_LINE: Final = 256 * 1024 * 1024
"""The most bytes read as one line; ordinary lines have a few thousand."""
_CHOICES: Final = {"verdict": get_args(Verdict), "status": get_args(Status)}


def results_file(run: Path) -> Path:
    """Return the results.jsonl of a run; `run` is its folder or that file itself."""
    return run / RESULTS if run.is_dir() else run


def read_lines(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a results.jsonl (or of the one in a folder), in the form of `Line`.

    An incomplete last line (the run was killed while writing it) is skipped with a UserWarning.

    Raises:
        FormatError: the file cannot be read (`results-missing`), or a line does not have this format
            (`results-line`).
    """
    path = results_file(Path(path))
    try:
        with path.open("rb") as file:
            yield from _lines(file, path)
    except OSError as error:
        text = f"cannot read the results {shown_path(path)}: {error.strerror or error}"
        near = hint_for_missing(path) if path.parent.is_dir() and not path.exists() else ""
        hint = near or "`harness run` writes them: in reports/latest, or where --report says"
        raise FormatError(Problem("results-missing", text, hint=hint)) from error


def _lines(file: BinaryIO, path: Path) -> Iterator[dict[str, Any]]:
    decode, number = _decoder().decode, 0
    while raw := file.readline(_MAX_LINE):
        number += 1
        if not raw.strip():
            continue
        try:
            line: Any = decode(raw)
        except (ValueError, RecursionError) as error:
            if not raw.endswith(b"\n") and len(raw) < _MAX_LINE:
                warnings.warn(f"{path}:{number}: the last line was cut off and is left out", stacklevel=3)
                return
            raise FormatError(_problem(raw, error, Span(str(path), number, 1))) from error
        yield line


@cache
def _decoder() -> Decoder[Line]:
    from msgspec.json import Decoder

    return Decoder(Line)


def _problem(raw: bytes, error: Exception, span: Span) -> Problem:
    """Describe why a line is not valid."""
    if len(raw) >= _MAX_LINE:
        return Problem(
            "results-line", f"a line of more than {_MAX_LINE // 1024**2} MB is not a line of results", span
        )
    found = decoding_problem(raw, error, FORMAT, _CHOICES)
    text = f"not a line of {found.expected or 'results'}: {found.text}"
    return Problem("results-line", text, Span(span.file, span.line, found.column), found.hint)


JSON = Any
Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST_FIGURE)]
Share = Annotated[float, Meta(ge=0, le=1 + 1e-9)]  # tolerates rounding errors of sums


class Check(TypedDict):
    """The result of an expectation."""

    name: str
    passed: bool
    score: Share
    weight: Amount
    expected: JSON
    actual: JSON
    message: str
    where: NotRequired[str | None]


class Error(TypedDict):
    """The error that ended a run."""

    type: str
    code: NotRequired[str | None]
    message: str
    node: NotRequired[str | None]
    where: NotRequired[str | None]
    traceback: NotRequired[list[dict[str, JSON]]]


class Latency(TypedDict):
    """Latencies in virtual seconds."""

    total: Amount | None
    nodes: dict[str, Amount]
    visits: NotRequired[dict[str, list[Amount]]]


class PartUsage(TypedDict):
    """Usage of one model or of one node."""

    llm_calls: Count
    input_tokens: Count | None
    output_tokens: Count | None
    cost: NotRequired[Amount | None]


class Usage(TypedDict):
    """Usage of all models."""

    llm_calls: Count
    input_tokens: Count | None
    output_tokens: Count | None
    cost: Amount | None
    by_model: dict[str, PartUsage]
    by_node: NotRequired[dict[str, PartUsage]]


class GraphParts(TypedDict):
    """The parts of the graph that a run took."""

    nodes: list[str]
    edges: list[list[str]]
    branches: list[str]


class Places(TypedDict, total=False):
    """The locations of a graph's parts: a line number of the manifest, or `file:line`."""

    nodes: list[int | str | None]
    edges: list[int | str | None]
    branches: list[int | str | None]


class Shape(GraphParts):
    """All parts of a graph. `of` identifies it, if manifests of several forms may name it."""

    of: NotRequired[str]
    kinds: NotRequired[list[str]]
    lines: NotRequired[Places]


class Line(TypedDict):
    """The results of one run of a scenario."""

    format: Literal["harness-results/1"]
    suite: str
    scenario: str
    id: str
    manifest: str
    dialect: str
    agent: str | None
    variant: str | None
    tags: list[str]
    repeat: Count
    seed: int
    status: Status
    verdict: Verdict
    passed: bool
    score: Share | None
    weight: Amount
    latency_penalty: Share
    checks: list[Check]
    path: list[JSON]
    state: JSON
    output: JSON
    error: Error | None
    interrupts: list[JSON]
    warnings: list[str]
    latency: Latency
    wall: Amount | None
    usage: Usage
    calls: list[dict[str, JSON]]
    coverage: GraphParts
    digest: str
    reason: NotRequired[str]
    cause: NotRequired[str]
    causes: NotRequired[list[str]]
    fault: NotRequired[str]
    recording: NotRequired[int | None]
    varies: NotRequired[bool]
    seeded: NotRequired[bool]
    now: NotRequired[str]
    expectations: NotRequired[str]
    where: NotRequired[str | None]
    shape: NotRequired[Shape]
    trace: NotRequired[str | None]
