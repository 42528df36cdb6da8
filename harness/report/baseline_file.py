"""Read and write baseline files: a compact form of a run, made to be committed and to give readable diffs.

    {"format": "harness-baseline/1",
     "scenarios": [one a line, by id: {id, manifest, verdict, score, latency, tokens, cost, …}],
     "coverage": {manifest: {nodes: [taken, all], edges: …, branches: …}}}

A scenario has `variant`, `tags`, `weight`, `varies`, `failed` (the checks that did not hold), `expectations` (a
digest of them), `checks` and `bounds` (see `Strictness`) unless they are empty or have their default. With several
repeats, `verdict` is the worst of them, the figures are means, and `runs` lists each as `[repeat, verdict, score,
latency, tokens, cost]`. Nothing in the file depends on the machine or on the time of writing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem
from harness.report.encoding import encode
from harness.report.formatting import plural, some_of
from harness.report.group import PARTS
from harness.report.reading import RESULTS
from harness.report.repeats import WORST_FIRST, Key
from harness.report.scenario_runs import Repeat, Run, ScenarioRuns, Strictness, read_run
from harness.source.document import hint_for_missing, shown_path
from harness.units import is_number

FORMAT: Final = "harness-baseline/1"
_MAX_BYTES: Final = 500_000_000
_FIGURES: Final = ("score", "latency", "tokens", "cost")
_MALFORMED: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def baseline_text(run: Run) -> str:
    """Return the text of the baseline file of a run.

    Raises:
        FormatError: files with scenarios could not be read, so the run is incomplete (code `baseline-refused`).
    """
    if run.unread:
        files = ", ".join(run.unread)
        message = f"{run.name} cannot be a baseline: the scenarios of {files} could not be read"
        raise FormatError(Problem("baseline-refused", message))
    scenarios = sorted(run.scenarios.values(), key=lambda scenario: scenario.key)
    coverage = [
        f"{encode(manifest)}: {encode({part: list(counts) for part, counts in parts.items()})}"
        for manifest, parts in sorted(run.coverage.items())
    ]
    return (
        f'{{\n  "format": "{FORMAT}",\n'
        f'  "scenarios": [{_lines(encode(_entry(each)) for each in scenarios)}],\n'
        f'  "coverage": {{{_lines(coverage)}}}\n}}\n'
    )


def _lines(items: Iterable[str]) -> str:
    written = ",\n    ".join(items)
    return f"\n    {written}\n  " if written else ""


def _entry(scenario: ScenarioRuns) -> dict[str, Any]:
    repeats = sorted(scenario.repeats.items())
    figures = {name: _mean([getattr(repeat, name) for _, repeat in repeats]) for name in _FIGURES}
    said: dict[str, Any] = {
        "id": scenario.id,
        "variant": scenario.variant,
        "manifest": scenario.manifest,
        "tags": list(scenario.tags),
        "weight": scenario.weight if scenario.weight != 1 else None,
        "verdict": scenario.verdict,
        **figures,
        "varies": scenario.varies,
        "failed": list(scenario.failed),
        "expectations": scenario.expectations,
        "checks": dict(sorted(scenario.strictness.checks.items())),
        "bounds": dict(sorted(scenario.strictness.bounds.items())),
        "runs": [[number, *repeat] for number, repeat in repeats]
        if len(repeats) > 1 or repeats[0][0]
        else None,
    }
    return {name: value for name, value in said.items() if value or name in _FIGURES}


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return known[0] if len(set(known)) == 1 else math.fsum(known) / len(known)


def is_baseline_file(path: Path) -> bool:
    """True if the file starts like a baseline file."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"harness-baseline/' in file.read(200)


def read_baseline(path: Path) -> Run:
    """Read the run to compare with: a baseline file, a folder of results, or a results.jsonl.

    Raises:
        FormatError: there is none (`baseline-missing`), it is damaged (`baseline-damaged`), or `read_run` raises.
    """
    if not path.exists():
        hint = hint_for_missing(path) or "`harness baseline save FILE` writes one"
        raise FormatError(Problem("baseline-missing", f"there is no baseline {shown_path(path)}", None, hint))
    if path.is_dir() or path.name == RESULTS:
        return read_run(path)
    name = shown_path(path)
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(_MAX_BYTES))
    except OSError as error:
        message = f"the baseline {name} cannot be read: {error.strerror or error}"
        raise FormatError(Problem("baseline-damaged", message)) from None
    except json.JSONDecodeError as error:
        raise _damaged_error(f"{name}:{error.lineno}:{error.colno}", "this is not JSON") from None
    except (ValueError, RecursionError):
        raise _damaged_error(name, "this is not JSON") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else None
        message = f"expected the format {FORMAT}" + (f", found {str(found)[:60]!r}" if found else "")
        raise _damaged_error(name, message)
    try:
        return _run(name, document)
    except _MALFORMED as error:
        raise _damaged_error(name, _why(error)) from None


def _why(error: Exception) -> str:
    return f"no '{error.args[0]}'" if isinstance(error, KeyError) else str(error)


def _damaged_error(name: str, why: str) -> FormatError:
    hint = "`harness baseline save FILE` writes it anew"
    return FormatError(
        Problem("baseline-damaged", f"{name} is not a baseline, or is damaged: {why}", None, hint)
    )


def _run(name: str, document: Mapping[str, Any]) -> Run:
    scenarios: dict[tuple[str, str], ScenarioRuns] = {}
    for number, entry in enumerate(document["scenarios"], start=1):
        try:
            scenario = _scenario(entry)
        except _MALFORMED as error:
            raise ValueError(f"scenario {number}: {_why(error)}") from None
        if scenario.key in scenarios:
            raise ValueError(f"'{scenario.label}' is listed twice")
        scenarios[scenario.key] = scenario
    if not scenarios:
        raise ValueError("it has no scenarios")
    coverage = {
        str(manifest): {part: _counts(manifest, parts[part]) for part in PARTS}
        for manifest, parts in document["coverage"].items()
    }
    return Run(name, scenarios, coverage=coverage)


def _counts(manifest: str, counts: Any) -> tuple[int, int]:
    taken, everything = (int(_number(f"coverage of {manifest}", count, math.inf)) for count in counts)
    return taken, everything


def _scenario(entry: Mapping[str, Any]) -> ScenarioRuns:
    """Return the scenario of an entry.

    Raises:
        ValueError: the entry is not what would be written for this scenario, as after an edit by hand.
    """
    runs = entry.get("runs") or [[0, entry["verdict"], *(entry[name] for name in _FIGURES)]]
    scenario = ScenarioRuns(
        entry["id"],
        entry.get("variant"),
        entry["id"].partition("::")[0],
        entry.get("manifest", ""),
        tuple(entry.get("tags", ())),
        _number("weight", entry.get("weight", 1.0), math.inf),
        entry.get("varies", False),
        dict.fromkeys(entry.get("failed", ()), ""),
        expectations=entry.get("expectations", ""),
        repeats={number: _repeat(*figures) for number, *figures in runs},
        strictness=Strictness(_numbers(entry, "checks"), _numbers(entry, "bounds")),
    )
    if len(scenario.repeats) < len(runs):
        raise ValueError(f"'{scenario.label}' has a repeat twice")
    if (written := _entry(scenario)) != entry:
        names = [name for name in {**entry, **written} if entry.get(name) != written.get(name)]
        raise ValueError(f"{plural(len(names), 'field')} of '{scenario.label}' cannot be: {', '.join(names)}")
    return scenario


def _repeat(verdict: str, score: float, latency: float | None, tokens: int, cost: float | None) -> Repeat:
    if verdict not in WORST_FIRST:
        raise ValueError(f"verdict {verdict!r} is not one of {', '.join(WORST_FIRST)}")
    return Repeat(
        verdict,
        _number("score", score, 1.0),
        None if latency is None else _number("latency", latency, math.inf),
        int(_number("tokens", tokens, math.inf)),
        None if cost is None else _number("cost", cost, math.inf),
    )


def _numbers(entry: Mapping[str, Any], name: str) -> dict[str, float]:
    found = dict(entry.get(name, {}))
    wrong = [value for value in found.values() if not is_number(value) or not math.isfinite(value)]
    if wrong:
        raise ValueError(f"{name} cannot have {wrong[0]!r}")
    return found


def _number(name: str, value: Any, largest: float) -> float:
    """Return `value` if it can be a figure of results.

    Raises:
        ValueError: it is no number, negative, greater than `largest`, infinite or NaN.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= largest:
        raise ValueError(f"{name} cannot be {value!r}")
    if math.isinf(value):
        raise ValueError(f"{name} cannot be infinite")
    return value


_MAX_NAMES: Final = 3


def baseline_of(runs: Sequence[Run]) -> Run:
    """Return the runs as one, in which the repeats of the later runs have the next numbers.

    Raises:
        FormatError: the runs do not have the same scenarios, with the same expectations and, for those that do
        not vary,
            the same results (code `baseline-refused`).
    """
    first, *others = runs
    scenarios = dict(first.scenarios)
    for run in others:
        different = sorted(scenarios.keys() ^ run.scenarios.keys())
        if different:
            raise _refused(first, run, different, "only in one of them")
        changed = [key for key, found in run.scenarios.items() if not _is_alike(scenarios[key], found)]
        if changed:
            raise _refused(first, run, changed, "changed between them")
        scenarios = {key: _together(found, run.scenarios[key]) for key, found in scenarios.items()}
    coverage = {
        manifest: {part: max(run.coverage[manifest][part] for run in runs) for part in parts}
        for manifest, parts in first.coverage.items()
        if all(manifest in run.coverage for run in runs)
    }
    return replace(first, scenarios=scenarios, coverage=coverage)


def _is_alike(one: ScenarioRuns, other: ScenarioRuns) -> bool:
    """True if two runs may be of the same agent."""
    expected_alike = (one.expectations, one.weight) == (other.expectations, other.weight)
    return expected_alike and (one.varies or other.varies or one.repeats == other.repeats)


def _together(one: ScenarioRuns, other: ScenarioRuns) -> ScenarioRuns:
    if not (one.varies or other.varies):
        return one
    start = max(one.repeats) + 1
    more = {start + at: repeat for at, (_, repeat) in enumerate(sorted(other.repeats.items()))}
    worst = one if one.failed or not other.failed else other
    return replace(one, varies=True, repeats={**one.repeats, **more}, failed=worst.failed, cause=worst.cause)


def _refused(first: Run, run: Run, keys: Sequence[Key], what: str) -> FormatError:
    names = some_of([f"{id_} [{variant}]" if variant else id_ for id_, variant in keys], _MAX_NAMES)
    message = (
        f"{first.name} and {run.name} are not runs of the same agents: {plural(len(keys), 'scenario')} {what}"
    )
    return FormatError(Problem("baseline-refused", f"{message}: {names}"))
