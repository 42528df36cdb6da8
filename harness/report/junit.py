"""junit.xml: the run in the format of build servers, with one test case for each scenario.

It has what pytest's `--junitxml` has (one case for all repeats, the same properties), whatever ran the scenarios.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from harness.report.repeats import NOT_PASSED, Line, worst
from harness.source.display import clip, printable

if TYPE_CHECKING:
    from harness.scenario.outcome import Outcome


PROPERTIES: Final[Mapping[str, Callable[[Sequence[Line]], float | str]]] = {
    "verdict": lambda runs: worst(run["verdict"] for run in runs),
    "score": lambda runs: fmean(run["score"] or 0.0 for run in runs),
    "latency": lambda runs: max(run["latency"]["total"] or 0.0 for run in runs),
    "input_tokens": lambda runs: sum(run["usage"]["input_tokens"] or 0 for run in runs),
    "output_tokens": lambda runs: sum(run["usage"]["output_tokens"] or 0 for run in runs),
    "cost": lambda runs: fsum(run["usage"]["cost"] or 0.0 for run in runs),
}
"""Over all runs of a scenario: the worst verdict, mean score, longest virtual latency, sums of tokens and cost."""


def properties(runs: Sequence[Line]) -> list[tuple[str, str]]:
    """Return (name, text) of each property of a scenario; empty if it has no runs."""
    values = [(name, of(runs)) for name, of in PROPERTIES.items() if runs]
    return [(name, value if isinstance(value, str) else _number(value)) for name, value in values]


def measured(outcome: Outcome) -> Line:
    """Return the fields that properties are computed from, for an outcome that has not become a line yet."""
    observed = outcome.observed
    return {
        "verdict": outcome.verdict,
        "score": outcome.score,
        "latency": observed.latency,
        "usage": observed.usage,
    }


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


JUNIT: Final = "junit.xml"
_COUNTED: Final = {"failed": "failures", "error": "errors", "skipped": "skipped"}
_MAX_MESSAGE: Final = 2_000
_IN_ATTRIBUTES: Final = {'"': "&quot;", "\r": "&#13;", "\n": "&#10;", "\t": "&#09;"}


def junit(lines: Iterable[Line], incomplete: str = "") -> Iterator[bytes]:
    """Yield the lines of a run as JUnit XML. Only one suite is held in memory at a time.

    `lines` are in the order of results.jsonl. `incomplete` says why the run is incomplete; "" if it is not.
    """
    yield b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="harness">\n'
    for suite, of_suite in groupby(lines, lambda line: str(line["suite"])):
        yield from _suite(suite, of_suite, incomplete)
    yield b"</testsuites>\n"


def _suite(name: str, lines: Iterable[Line], incomplete: str) -> Iterator[bytes]:
    counts, walls, cases = Counter[str](), [], []
    for _, group in groupby(lines, lambda line: (line["id"], line["variant"])):
        runs = [*group]
        case, result = _case(runs)
        counts[result] += 1
        walls.append(_wall(runs))
        cases.append(case.encode())
    attributes = {"name": printable(name), "tests": str(len(cases))}
    attributes |= {counted: str(counts[result]) for result, counted in _COUNTED.items()}
    attributes["time"] = f"{fsum(walls):.3f}"
    found = [("complete", "false"), ("reason", incomplete)] if incomplete else []
    yield f"<testsuite{_attributes(attributes)}>\n{_properties(found) if found else ''}".encode()
    yield from cases
    yield b"</testsuite>\n"


def _case(runs: Sequence[Line]) -> tuple[str, str]:
    """Return the test case of a scenario with all its repeats, and its result: the worst of their verdicts."""
    first, found = runs[0], dict(properties(runs))
    result = found["verdict"]
    variant = f" [variant {first['variant']}]" if first["variant"] else ""
    file, line, _ = split_location(first.get("where")) or (first["suite"], 0, 0)
    attributes = {"classname": first["suite"], "name": first["scenario"] + variant, "file": file}
    attributes |= {"line": str(line)} if line else {}
    attributes = {name: printable(text) for name, text in attributes.items()}
    attributes["time"] = f"{_wall(runs):.3f}"
    ended = _result_element(runs, result)
    return f"<testcase{_attributes(attributes)}>{_properties(found.items())}{ended}</testcase>\n", result


def _result_element(runs: Sequence[Line], result: str) -> str:
    """Return the element that says why a scenario did not pass; "" for one that did."""
    if result == "passed":
        return ""
    deciding = next(run for run in runs if run["verdict"] == result)
    if result == "skipped":
        return f"<skipped{_attributes({'message': printable(deciding['reason'])})} />"
    kind = {"failed": "failure", "error": "error"}[result]
    not_passed = [run for run in runs if run["verdict"] in NOT_PASSED]
    text = "\n\n".join(_failure(run, numbered=len(runs) > 1) for run in not_passed)
    attributes = {"message": _cause(deciding), "type": _type(deciding)}
    return f"<{kind}{_attributes(attributes)}>{escape(text)}</{kind}>"


def split_location(where: str | None) -> tuple[str, int, int] | None:
    """Split `file:line:column`; None for any other text."""
    file, _, rest = (where or "").rpartition(":")
    file, _, line = file.rpartition(":")
    return (file, int(line), int(rest)) if file and line.isdecimal() and rest.isdecimal() else None


def _cause(run: Line) -> str:
    return printable(clip(run.get("cause") or run["reason"] or run["verdict"], _MAX_MESSAGE))


def _type(run: Line) -> str:
    error = run["error"]
    return printable(str(error["code"] or error["type"])) if error else "checks"


def _failure(run: Line, *, numbered: bool) -> str:
    """Describe why a run did not pass: its cause, its error and its failed checks, each with its location."""
    head = f"repeat {run['repeat']}: " if numbered else ""
    texts = [f"{head}score {run['score'] or 0:.2f}, {run['verdict']}: {_cause(run)}"]
    if error := run["error"]:
        texts.append(f"{error.get('where') or ''}: {error['type']}: {error['message']}".removeprefix(": "))
    texts += [
        f"{check.get('where') or ''}: {check['name']}: {check['message'] or 'not met'}".removeprefix(": ")
        for check in run["checks"]
        if not check["passed"]
    ]
    return "\n".join(printable(clip(text, _MAX_MESSAGE), keep_newlines=True) for text in texts)


def _properties(pairs: Iterable[tuple[str, str]]) -> str:
    listed = [
        f"<property{_attributes({'name': name, 'value': printable(value)})} />" for name, value in pairs
    ]
    return f"<properties>{''.join(listed)}</properties>"


def _attributes(values: Mapping[str, str]) -> str:
    """Return attributes of an element. Values must be `printable`: XML does not allow every character."""
    return "".join(f' {name}="{escape(value, _IN_ATTRIBUTES)}"' for name, value in values.items())


def _wall(runs: Sequence[Line]) -> float:
    return fsum(run["wall"] or 0.0 for run in runs)
