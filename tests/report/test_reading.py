"""Lines of results.jsonl are validated when they are read."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FormatError
from harness.report.reading import Line, read_lines
from harness.report.results import line
from tests.report.fixtures import MakeCheck, MakeOutcome

Write = Callable[..., Path]


@pytest.fixture
def good(outcome: MakeOutcome, failed_check: MakeCheck) -> dict[str, Any]:
    """Return a valid line, as JSON data."""
    error = {"type": "KeyError", "message": "'x'"}
    found: dict[str, Any] = json.loads(
        json.dumps(line(outcome("failed", checks=[failed_check()], error=error, causes=["a → b"])))
    )
    return found


@pytest.fixture
def write_results(good: dict[str, Any], tmp_path: Path) -> Write:
    """Return a function that writes results: a valid line, then the given one."""

    def write(second: bytes | dict[str, Any]) -> Path:
        file = tmp_path / "results.jsonl"
        raw = second if isinstance(second, bytes) else json.dumps(second).encode() + b"\n"
        file.write_bytes(json.dumps(good).encode() + b"\n" + raw)
        return file

    return write


def _refused(file: Path) -> str:
    with pytest.raises(FormatError) as caught:
        [*read_lines(file)]
    return str(caught.value).replace(str(file), "FILE")


def test_a_line_is_read_as_it_was_written(good: dict[str, Any], write_results: Write) -> None:
    assert [*read_lines(write_results({**good, "seed": 2**70}))] == [good, {**good, "seed": 2**70}]


def test_the_format_names_every_field_of_a_line(good: dict[str, Any]) -> None:
    assert list(good) == list(Line.__annotations__)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"checks": None}, "checks must be a list, found null"),
        ({"checks": [{"name": "path"}]}, "it has no 'checks[0].passed'"),
        ({"verdict": "pased"}, "verdict cannot be 'pased'\n    did you mean 'passed'?"),
        ({"variant": 3}, "variant must be a text or null, found 3"),
        ({"score": 2}, "score cannot be 2"),
        ({"wall": -1}, "wall cannot be -1"),
        ({"latency": {"total": 1, "nodes": {"a": "fast"}}}, "latency.nodes[…] must be a number, found {'a': 'fast'}"),
        ({"usage": {}}, "it has no 'usage.llm_calls'"),
        ({"tags": ["a", 1]}, "tags[1] must be a text, found 1"),
    ],
)  # fmt: skip
def test_invalid_field_is_named(
    change: dict[str, Any], problem: str, good: dict[str, Any], write_results: Write
) -> None:
    assert _refused(write_results({**good, **change})) == f"FILE:2:1: not a line of results: {problem}"


def test_missing_field_is_named_with_a_suggestion(good: dict[str, Any], write_results: Write) -> None:
    good["taggs"] = good.pop("tags")
    assert _refused(write_results(b"")) == (
        "FILE:1:1: not a line of results: it has no 'tags'\n    did you mean 'taggs'?"
    )


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"\x00\x01\xff\n", "FILE:2:1: not a line of JSON: "),
        (b'{"format": oops}\n', "FILE:2:12: not a line of JSON: 'oops}"),
        (b"[" * 100_000 + b"\n", "FILE:2:1: not a line of JSON: '[[["),
        (b"[1]\n", "FILE:2:1: not a line of the format harness-results/1: found [1]"),
        (b'{"format": "other/1"}\n', "FILE:2:1: not a line of the format harness-results/1: found 'other/1'"),
    ],
)
def test_invalid_line_is_rejected_with_its_location(raw: bytes, problem: str, write_results: Write) -> None:
    assert _refused(write_results(raw)).startswith(problem)


def test_incomplete_last_line_is_skipped_with_a_warning(good: dict[str, Any], write_results: Write) -> None:
    file = write_results(json.dumps(good).encode()[:-40])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [*read_lines(file)] == [good]
    assert [str(each.message) for each in caught] == [f"{file}:2: the last line was cut off and is left out"]


def test_old_lines_without_causes_shapes_and_prices_are_read(
    good: dict[str, Any], write_results: Write
) -> None:
    for name in ("reason", "cause", "fault", "recording", "varies", "where", "shape", "trace"):
        del good[name]
    good["usage"]["by_model"] = {"gpt-4o": {"llm_calls": 1, "input_tokens": 2, "output_tokens": 3}}
    assert [*read_lines(write_results(b""))] == [good]
