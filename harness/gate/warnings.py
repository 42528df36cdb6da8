"""Reasons to doubt a verdict: told beside it, without changing it."""

from __future__ import annotations

import filecmp
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.gate.policy import RULES
from harness.gate.ruling import Part, Ruling
from harness.report.baseline_file import baseline_text, is_baseline_file
from harness.report.formatting import plural, some_of
from harness.report.input_files import changed_files
from harness.report.reading import results_file
from harness.report.scenario_runs import Pair, Pairing, Run, weaker
from harness.units import milliseconds_hint

_MAX_NAMES: Final = 5


@dataclass(frozen=True)
class GateWarning:
    """A reason to doubt a verdict.

    code       its kind
    scenarios  those that it is about, if it is not about the whole run
    """

    code: str
    message: str
    scenarios: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the warning as `--json` writes it."""
        return {"code": self.code, "message": self.message, "scenarios": list(self.scenarios)}


def of_files(run: Run) -> Iterator[GateWarning]:
    """Yield a warning if scenario files or manifests were changed after the run."""
    if changed := changed_files(run.files):
        files = f"{plural(len(changed), 'file')} changed after the run: {some_of(changed, _MAX_NAMES)}"
        yield GateWarning("files-changed", f"the results of {run.name} are not of the present files: {files}")


def of_baseline(run: Run, path: Path, baseline: Run, at: Path) -> Iterator[GateWarning]:
    """Yield the warnings about a baseline, read from `at`, for the run in `path`."""
    if _is_same_run(path, at):
        yield GateWarning("baseline-is-run", f"the baseline {baseline.name} is this very run")
    elif _was_saved_from(run, path, at):
        yield GateWarning("baseline-is-run", f"the baseline {baseline.name} was saved from this very run")
    verdicts = (each.verdict for found in baseline.scenarios.values() for each in found.repeats.values())
    if "passed" not in verdicts:
        message = f"nothing passed in the baseline {baseline.name}, so nothing can be a new failure"
        yield GateWarning("baseline-never-passed", message)


def _is_same_run(run: Path, baseline: Path) -> bool:
    """True for the same results, or a copy of them: two runs never take the same real time."""
    if is_baseline_file(baseline):
        return False
    one, other = results_file(run), results_file(baseline)
    return one.samefile(other) or filecmp.cmp(one, other, shallow=False)


def _was_saved_from(run: Run, path: Path, baseline: Path) -> bool:
    """True for a baseline file that was written after the run, and says what the run says.

    One that was written before may say the same: runs with scripted answers do not differ.
    """
    if not is_baseline_file(baseline) or run.unread:
        return False
    is_later = baseline.stat().st_mtime_ns >= results_file(path).stat().st_mtime_ns
    return is_later and baseline.read_text(encoding="utf-8") == baseline_text(run)


def of_expectations(pairing: Pairing) -> Iterator[GateWarning]:
    """Yield a warning about the scenarios that expect less than in the baseline, as far as the results say."""
    found = sorted((pair.after.label, "; ".join(less)) for pair in pairing.pairs if (less := _less(pair)))
    if found:
        some = some_of([f"{label} ({less})" for label, less in found], _MAX_NAMES)
        message = f"{plural(len(found), 'scenario')} with weaker expectations than in the baseline: {some}"
        yield GateWarning("weaker-expectations", message, [label for label, _ in found])


def _less(pair: Pair) -> list[str]:
    before, after = pair.before, pair.after
    found = []
    if after.weight < before.weight:
        found.append(f"its weight {before.weight:g} → {after.weight:g}")
    # Expecting less has not helped a scenario that fails, and one that ends early has fewer checks.
    if after.verdict != "passed" or not pair.expects_other:
        return found
    found += weaker(before.strictness, after.strictness)
    failed = max((each.score for each in before.repeats.values() if each.verdict == "failed"), default=-1.0)
    passed = min(each.score for each in after.repeats.values() if each.verdict == "passed")
    if passed <= failed:
        found.append(f"passes with a score of {passed:.2f}, and failed with {failed:.2f}")
    return found


def of_rules(part: Part, rulings: Sequence[Ruling]) -> Iterator[GateWarning]:
    """Yield the warnings about the rules of a part, from their rulings."""
    for ruling in rulings:
        rule = RULES[ruling.rule]
        if why := rule.cannot_fail(ruling.bound, len(part.scenarios)):
            yield GateWarning("rule-cannot-fail", f"{ruling.label} cannot fail: {why}")
        if rule.is_time and (found := milliseconds_hint(ruling.rule, ruling.bound)):
            yield GateWarning("unlikely-time", f"{found[0]}: {found[1]}")
        figure = rule.figure(ruling.bound)
        values = _values(part, figure, compares=rule.needs_baseline) if figure else []
        if values and not any(values):
            yield GateWarning("figures-all-zero", f"{ruling.label} bounds nothing: every {figure} is 0")
    if [ruling.rule for ruling in rulings] == ["allow_removed"] and rulings[0].bound is True:
        message = f"{rulings[0].label} cannot fail: it is a permission, and there is no rule beside it"
        yield GateWarning("rule-cannot-fail", message)


def _values(part: Part, figure: str, *, compares: bool) -> list[float | None]:
    """Return the figures that a rule looks at: of the judged repeats, also of the baseline if it compares."""
    scenarios = list(part.scenarios)
    if part.pairing is not None and compares:
        scenarios = [each for pair in part.pairing.pairs for each in (pair.before, pair.after)]
    repeats = (
        repeat for each in scenarios for repeat in each.repeats.values() if repeat.verdict != "skipped"
    )
    return [getattr(repeat, figure) for repeat in repeats]
