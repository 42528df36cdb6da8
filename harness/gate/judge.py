"""The verdict of the gate on a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem
from harness.gate import warnings
from harness.gate.changes import allow_removed
from harness.gate.policy import DEFAULT_CONFIDENCE, RULES, Policy, Rules, default_rules
from harness.gate.rule import NothingToJudge, Terms
from harness.gate.rules import max_errors
from harness.gate.ruling import Part, Ruling, Scope, ScopedCoverage, part_of
from harness.gate.warnings import GateWarning
from harness.report.baseline_file import read_baseline
from harness.report.formatting import plural, some_of
from harness.report.scenario_runs import Pairing, Run, ScenarioRuns, pair, read_run
from harness.report.summary import Summary
from harness.report.traces import LAST_WHOLE
from harness.source.display import did_you_mean
from harness.source.document import shown_path

FORMAT: Final = "harness-gate/1"
_MAX_LISTED: Final = 5


@dataclass(frozen=True)
class Verdict:
    """The verdict of a gate.

    run, baseline, policy  names of what was judged, compared with, and applied; "" for none
    rulings                in the order of the rules: of the whole run, then of its parts
    notes                  remarks for the reader
    changed_expectations   the scenarios whose expectations differ from those in the baseline
    warnings               what makes the verdict worth little
    """

    run: str
    baseline: str
    policy: str
    rulings: Sequence[Ruling]
    notes: Sequence[str] = field(default_factory=tuple)
    changed_expectations: Sequence[str] = ()
    warnings: Sequence[GateWarning] = ()

    @property
    def passed(self) -> bool:
        """True if all rules hold."""
        return all(ruling.passed for ruling in self.rulings)

    @property
    def unjudged(self) -> bool:
        """True if more scenarios could not be judged than `max_errors` allows."""
        return any(ruling.rule == "max_errors" and not ruling.passed for ruling in self.rulings)

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as `--json` writes it."""
        return {
            "format": FORMAT,
            "passed": self.passed,
            "run": self.run,
            "baseline": self.baseline or None,
            "policy": self.policy or None,
            "rules": [ruling.as_json() for ruling in self.rulings],
            "notes": list(self.notes),
            "changed_expectations": list(self.changed_expectations),
            "warnings": [warning.as_json() for warning in self.warnings],
        }


def refused_json(problems: Sequence[Problem]) -> dict[str, Any]:
    """Return what `--json` writes if nothing could be judged: no rules, and the problems."""
    listed = [{"code": each.code, "message": each.message, "hint": each.hint} for each in problems]
    return {"format": FORMAT, "passed": False, "rules": [], "problems": listed}


def judge(
    run: Path,
    policy: Policy,
    baseline: Path | None = None,
    *,
    partial: bool = False,
    history: Path | None = None,
) -> Verdict:
    """Judge a run.

    Args:
        run: a folder of results.
        policy: the rules.
        baseline: replaces the policy's baseline.
        partial: True to accept an incomplete run or baseline.
        history: the history that the run was appended to.

    Raises:
        FormatError: the run or the baseline is missing, damaged or incomplete; the two have no scenario in common; or
            rules apply to nothing (all of them are listed).
    """
    scopes = [None, *(part.scope for part in policy.by)]
    sums, coverage = Summary(), [ScopedCoverage(scope) for scope in scopes]
    read = read_run(run, [sums.add, *(each.add for each in coverage)])
    read = replace(read, scenarios=dict(sorted(read.scenarios.items())))
    _require_whole(read, run, partial)
    at = baseline or policy.baseline
    compared = None if at is None else _read_baseline(at, partial)
    pairing = None if compared is None else _pair_with_baseline(compared, read, partial)
    notes, summary = _notes(read, compared, pairing, partial), sums.as_json()
    evaluation = _RuleEvaluation(policy, compared is not None, history)
    doubts = [*warnings.of_files(read)]
    if compared is not None and at is not None and pairing is not None:
        doubts += [*warnings.of_baseline(read, run, compared, at), *warnings.of_expectations(pairing)]
    for number, scope in enumerate(scopes):
        graphs = coverage[number].summary()
        index = None if scope is None else number - 1
        part = part_of(scope, read, summary, graphs, _without_left_out(pairing, partial), compared)
        if part is not None:
            doubts += warnings.of_rules(part, evaluation.add(part, index))
        elif partial:
            notes.append(f"no scenario of {_part_name(scope)} ran: its rules are not judged")
        else:
            evaluation.unmatched(scope, index, summary)
    if evaluation.problems:
        raise FormatError(evaluation.problems)
    name = compared.name if compared else ""
    changed = tuple(each.label for each in _with_changed_expectations(pairing)) if pairing else ()
    rulings = tuple(evaluation.rulings)
    return Verdict(read.name, name, policy.source, rulings, tuple(notes), changed, tuple(doubts))


def _require_whole(read: Run, path: Path, partial: bool) -> None:
    """Refuse an incomplete run: scenarios left out of it would look like removed ones."""
    if partial or not read.incomplete:
        return
    whole = path / LAST_WHOLE
    hint = f"{shown_path(whole)} has the last whole run; " if whole.is_dir() else ""
    message = f"{read.name} is not a whole run: {read.incomplete}"
    raise FormatError(
        Problem("partial-run", message, None, f"{hint}`harness gate --partial` judges what is there")
    )


def _read_baseline(path: Path, partial: bool) -> Run:
    baseline = read_baseline(path)
    if baseline.unread:
        files = ", ".join(baseline.unread)
        message = f"{baseline.name} is not a baseline: the scenarios of {files} could not be read"
        raise FormatError(Problem("baseline-refused", message))
    _require_whole(baseline, path, partial)
    return baseline


def _pair_with_baseline(baseline: Run, run: Run, partial: bool) -> Pairing:
    pairing = pair(baseline, run)
    if pairing.pairs:
        return pairing
    message = (
        f"{baseline.name} and {run.name} have no scenario in common\n"
        f"  in the baseline only: {_some(pairing.gone)}\n"
        f"  in the run only: {_some(pairing.added)}"
    )
    raise FormatError(Problem("baseline-foreign", message, None, _hint(pairing)))


def _hint(pairing: Pairing) -> str:
    """Return a hint if the scenarios are the same except for the variant or the folder."""
    ids = {scenario.id for scenario in pairing.gone}
    varied = next((each for each in pairing.added if each.id in ids), None)
    if varied is not None:
        return f"'{varied.id}' is in both, but not as the same variant"
    names = {scenario.id.partition("::")[2] for scenario in pairing.gone}
    moved = next((each for each in pairing.added if each.id.partition("::")[2] in names), None)
    if moved is None:
        return "`harness baseline save FILE` makes one of this run"
    return f"'{moved.id.partition('::')[2]}' is in both, in files of other names: run it from the same folder"


def _some(scenarios: Sequence[ScenarioRuns]) -> str:
    return some_of([scenario.label for scenario in scenarios], _MAX_LISTED) or "none"


def _without_left_out(pairing: Pairing | None, partial: bool) -> Pairing | None:
    """Return the pairing for the rules: scenarios that an incomplete run left out do not count as removed."""
    if pairing is None or not partial:
        return pairing
    skipped = {each.after.key for each in pairing.pairs}
    return Pairing(pairing.pairs, [each for each in pairing.gone if each.key in skipped], pairing.added)


def _notes(run: Run, baseline: Run | None, pairing: Pairing | None, partial: bool) -> list[str]:
    """Return notes on scenarios that were left out, changed or added."""
    notes = [f"not a whole run: {run.incomplete}"] if run.incomplete else []
    if baseline is None or pairing is None:
        return notes
    notes += [f"the baseline is not a whole run: {baseline.incomplete}"] if baseline.incomplete else []
    missing = [each for each in pairing.gone if each.key not in run.scenarios]
    if partial and missing:
        notes.append(f"{plural(len(missing), 'scenario')} of the baseline not judged: {_some(missing)}")
    changed = _with_changed_expectations(pairing)
    if changed:
        where = "other expectations than in the baseline"
        notes.append(f"{plural(len(changed), 'scenario')} with {where}: {_some(changed)}")
    if pairing.added:
        notes.append(f"{plural(len(pairing.added), 'scenario')} not in the baseline: {_some(pairing.added)}")
    return notes


def _with_changed_expectations(pairing: Pairing) -> list[ScenarioRuns]:
    """Return the scenarios whose expectations changed; verdicts by the old expectations are not known."""
    return [each.after for each in pairing.pairs if each.expects_other]


def _part_name(scope: tuple[Scope, str] | None) -> str:
    return f"{scope[0]} '{scope[1]}'" if scope else "the run"


class _RuleEvaluation:
    """Applies the rules of a policy to parts of a run, and collects the rulings and problems."""

    def __init__(self, policy: Policy, has_baseline: bool, history: Path | None) -> None:
        self._policy, self._has_baseline, self._history = policy, has_baseline, history
        self.rulings: list[Ruling] = []
        self.problems: list[Problem] = []

    def unmatched(self, scope: tuple[Scope, str] | None, at: int | None, summary: Any) -> None:
        """Add the problem that no scenario of the run is in a part."""
        assert scope is not None
        kind, name = scope
        hint = did_you_mean(name, list(summary[f"{kind}s"])) or f"no scenario has a {kind}"
        self._refuse("gate-nothing", f"no scenario of the run has {_part_name(scope)}", at, kind, hint)

    def add(self, part: Part, at: int | None) -> list[Ruling]:
        """Apply the rules of the whole run, or of `by[at]`, to a part, and return their rulings."""
        before = len(self.rulings)
        whole = self._policy.rules
        rules = whole if at is None else self._policy.by[at]
        if at is None and self._policy.is_default:
            rules = default_rules(baseline=self._has_baseline)
        for rule, bound in rules.rules.items():
            if RULES[rule].needs_baseline and not self._has_baseline:
                hint = "--baseline names a run or a file, as does `baseline` in the policy"
                self._refuse("baseline-missing", f"{rule} needs a baseline", at, rule, hint)
                continue
            try:
                self.rulings += RULES[rule].judge(part, bound, self._terms(rules))
            except NothingToJudge as nothing:
                where = f" of {_part_name(part.scope)}" if part.scope else ""
                self._refuse("gate-nothing", f"{rule}{where}: {nothing.message}", at, rule, nothing.hint)
        if at is None:
            self.rulings += self._default_rulings(part, rules)
        return self.rulings[before:]

    def _default_rulings(self, part: Part, rules: Rules) -> Iterator[Ruling]:
        """Yield the rulings of rules that apply by default, if they fail or if there are no other rules."""
        defaults = [] if "max_errors" in rules.rules else [max_errors(part, 0)]
        if self._has_baseline and "allow_removed" not in rules.rules:
            defaults.append(allow_removed(part, False))
        nothing = not self.rulings and not self._policy.by
        yield from (ruling for ruling in defaults if nothing or not ruling.passed)

    def _terms(self, rules: Rules) -> Terms:
        whole = self._policy.rules
        confidence = rules.confidence or whole.confidence or DEFAULT_CONFIDENCE
        allowed = rules.rules.get("allow_removed", whole.rules.get("allow_removed", False))
        return Terms(confidence, self._history, allowed)

    def _refuse(self, code: str, message: str, at: int | None, key: str, hint: str = "") -> None:
        self.problems.append(self._policy.problem(code, message, at, key, hint))
