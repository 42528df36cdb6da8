"""The results of mutants: their score, what they are as text, mutation.json and report.html, and the journal on disk.

The journal, in `.harness/mutate/`, gets each result as soon as it is known. It holds as long as the mutant, and the
inputs of all scenarios that reach it, are the same (`harness.variants.fingerprint`): only what changed is run again,
and a killed run goes on.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any, Final

from harness.mutation.mutant import Mutant
from harness.report.encoding import replace
from harness.report.folder_check import refuse_foreign
from harness.report.formatting import plural
from harness.report.html.manifests import figure
from harness.report.html.page import PAGE
from harness.report.html.template import asset, policy, safe, template
from harness.source.display import clip

FORMAT: Final = "harness-mutate/1"
_JSON: Final = "mutation.json"
OUTCOMES: Final = ("killed", "timeout", "survived", "no_coverage", "equivalent", "invalid")
"""The outcomes, by their names in files."""


@dataclass(frozen=True)
class Result:
    """The result of a mutant: an item of `mutants` in mutation.json.

    Attributes:
        id, operator, where, diff: those of the mutant.
        outcome: one of `OUTCOMES`.
        killed_by: the scenario that noticed it; None if none did.
        check: the check that failed, or the error with which the scenario could no longer be judged.
        suggestion: of one that nobody noticed, what would notice it: an expectation to paste, or what to provoke.
        by_error: the scenario could no longer be judged.
        scenarios: the scenarios that ran it.
        suggested_for: the scenario that the expectation is for; None if the suggestion is none.
        expect: the expectation as data.
        difference: the first event in which the traces differ, as in `harness compare --json`; None if none does.
        part: the node, or the edge, that it is about; "" for the agent as a whole.
    """

    id: str
    operator: str
    where: str
    diff: str
    outcome: str
    killed_by: str | None = None
    check: str | None = None
    suggestion: str | None = None
    by_error: bool = False
    scenarios: Sequence[str] = ()
    suggested_for: str | None = None
    expect: Mapping[str, Any] | None = None
    difference: Mapping[str, Any] | None = None
    part: str = ""
    manifest: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self) | {"scenarios": list(self.scenarios)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Result:
        """Return the result that `as_json` returned. Raises TypeError if it is none."""
        known = {each.name for each in fields(cls)}
        return cls(**{key: value for key, value in data.items() if key in known})


def score_of(results: Iterable[Result]) -> float | None:
    """Return the share of the mutants that were noticed, from 0 to 1; None if none counts."""
    counts = counts_of(results)
    noticed = counts["killed"] + counts["timeout"]
    counted = noticed + counts["survived"] + counts["no_coverage"]
    return noticed / counted if counted else None


def counts_of(results: Iterable[Result]) -> dict[str, int]:
    """Return the number of mutants by outcome."""
    found = dict.fromkeys(OUTCOMES, 0)
    for each in results:
        found[each.outcome] += 1
    return found


@dataclass
class Mutation:
    """The results of all mutants.

    Attributes:
        results: in the order of the mutants.
        left_out: the number of mutants that were not drawn, or for which there was no time.
        unusable: the scenarios that do not pass without a mutant, each with the reason.
    """

    results: list[Result] = field(default_factory=list)
    left_out: int = 0
    unusable: dict[str, str] = field(default_factory=dict)
    complete: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return them as mutation.json has them."""
        return {
            "format": FORMAT,
            "score": score_of(self.results),
            **counts_of(self.results),
            "killed_by_error": sum(each.by_error for each in self.results),
            "left_out": self.left_out,
            "complete": self.complete,
            "unusable": self.unusable,
            "mutants": [each.as_json() for each in self.results],
        }


def write_report(folder: Path, mutation: Mutation, shapes: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the results of mutants into a folder: mutation.json, and the page.

    Raises:
        FormatError: it has other files, or cannot be written.
    """
    refuse_foreign(folder)
    text = json.dumps(mutation.as_json(), indent=1, ensure_ascii=False)
    replace(folder / _JSON, f"{text}\n".encode())
    replace(folder / PAGE, page(mutation.as_json(), shapes).encode())


FOLDER: Final = Path(".harness", "mutate")
_FILE: Final = "results.jsonl"


class Journal:
    """The results of a project.

    Args:
        project: the root of the project.
        inputs: the fingerprints of its scenarios, by number.
        fresh: earlier results do not count.

    Raises:
        FormatError: it cannot be written.
    """

    def __init__(self, project: Path, inputs: Mapping[int, str], *, fresh: bool = False) -> None:
        self._file, self._inputs = project / FOLDER / _FILE, inputs
        self._known: dict[str, Mapping[str, Any]] = {} if fresh else _read(self._file)
        ignored = project / FOLDER.parent / ".gitignore"
        if not ignored.exists():
            replace(ignored, b"*\n")
        self._rewrite()
        self._stream: IO[bytes] = self._file.open("ab")

    def result(self, mutant: Mutant) -> Result | None:
        """Return the result of a mutant, if it is known and nothing has changed."""
        known = self._known.get(mutant.id)
        if known is None or known["fingerprint"] != self._fingerprint(mutant):
            return None
        return Result.of_json({**known, "where": mutant.place, "diff": mutant.diff})

    def add(self, mutant: Mutant, result: Result) -> None:
        """Keep the result of a mutant."""
        line = {"format": FORMAT, "fingerprint": self._fingerprint(mutant), **result.as_json()}
        self._known[mutant.id] = line
        self._stream.write(_encoded(line))
        self._stream.flush()

    def close(self) -> None:
        """Write the file anew, each result once."""
        self._stream.close()
        self._rewrite()

    def _fingerprint(self, mutant: Mutant) -> str:
        inputs = [self._inputs[number] for number in mutant.users if number in self._inputs]
        text = "\0".join([mutant.id, str(mutant.changes), *inputs])
        return hashlib.sha256(text.encode()).hexdigest()

    def _rewrite(self) -> None:
        replace(self._file, b"".join(map(_encoded, self._known.values())))


def stored_results(project: Path) -> dict[str, Result]:
    """Return the last result of each mutant of a project, by id."""
    return {id_: Result.of_json(line) for id_, line in _read(project / FOLDER / _FILE).items()}


def _encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _read(file: Path) -> dict[str, Mapping[str, Any]]:
    """Return the lines by mutant. A damaged one, such as the last one of a killed run, counts as missing."""
    found: dict[str, Mapping[str, Any]] = {}
    lines: list[bytes] = []
    with suppress(OSError):
        lines = file.read_bytes().splitlines()
    for text in lines:
        with suppress(ValueError, RecursionError, KeyError, TypeError):
            line = json.loads(text)
            if line["format"] == FORMAT and "fingerprint" in line:
                found[Result.of_json(line).id] = line
    return found


_MOST_SHOWN: Final = 20
_MOST_LINES: Final = 12
_LONGEST: Final = 200


def shown_score(score: float | None) -> str:
    """Return a score as text."""
    return "–" if score is None else f"{score:.2f}"


def lines(mutation: Mutation) -> Iterator[str]:
    """Yield the results of mutants, those that nobody noticed in full."""
    left = [each for each in mutation.results if each.outcome == "survived"]
    for result in left[:_MOST_SHOWN]:
        yield from _survivor(result)
    if len(left) > _MOST_SHOWN:
        yield f"… {len(left) - _MOST_SHOWN} more survived: see mutation.json"
        yield ""
    unrun = [each for each in mutation.results if each.outcome == "no_coverage"]
    for text in dict.fromkeys(each.suggestion for each in unrun):
        same = [each.id for each in unrun if each.suggestion == text]
        yield f"no coverage  {plural(len(same), 'mutant')}, such as {same[0]}: {text}"
    yield from [""] if unrun else []
    for id_, why in mutation.unusable.items():
        yield f"does not pass without a mutant, and judges none: {id_}: {why}"
    yield from _figures(mutation)


def _survivor(result: Result) -> Iterator[str]:
    yield f"survived  {result.where}  {result.id}"
    shown = [line for line in result.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    yield from (f"  {clip(line, _LONGEST)}" for line in shown[:_MOST_LINES])
    if result.scenarios:
        names = ", ".join(result.scenarios[:3])
        yield f"  ran in {names}" + (
            f" and {len(result.scenarios) - 3} more" if len(result.scenarios) > 3 else ""
        )
    if result.difference is not None:
        yield f"  first event that differs: {result.difference['what']}"
        for part in result.difference["parts"][:2]:
            told = [line for line in part["diff"] if line[1:].strip()]
            yield from (f"    {clip(line, _LONGEST)}" for line in told[:4])
    if result.suggested_for is not None:
        yield f"  noticed by this expectation of {result.suggested_for}:"
        yield from (f"    {line}" for line in (result.suggestion or "").splitlines())
    elif result.suggestion:
        yield f"  {result.suggestion}"
    yield ""


def _figures(mutation: Mutation) -> Iterator[str]:
    results, counts = mutation.results, counts_of(mutation.results)
    by_error = {"of these by an error": sum(each.by_error for each in results)}
    told = {"killed": counts.pop("killed")} | by_error | counts
    if len({each.operator for each in results}) > 1:
        for operator in dict.fromkeys(each.operator for each in results):
            of = [each for each in results if each.operator == operator]
            yield f"{operator:<8} {shown_score(score_of(of)):>5}  {plural(len(of), 'mutant')}"
    figures = " · ".join(f"{n} {name.replace('_', ' ')}" for name, n in told.items() if n)
    yield ": ".join(filter(None, (plural(len(results), "mutant"), figures)))
    if mutation.left_out:
        yield f"left out: {plural(mutation.left_out, 'mutant')}"
    yield f"score  {shown_score(score_of(results))}"


_ORDER: Final = ("survived", "no_coverage", "timeout", "killed", "equivalent", "invalid")
_COUNTED: Final = ("killed", "timeout", "survived", "no_coverage")
_NOTICED: Final = ("killed", "timeout")
_MARGIN: Final = 12
_MOST_LISTED: Final = 2000


def page(found: Mapping[str, Any], shapes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page.

    Args:
        found: the content of mutation.json.
        shapes: the graph of each manifest (`shape` in results.jsonl).
    """
    mutants = found["mutants"]
    score = found["score"]
    left = sum(each["outcome"] in ("survived", "no_coverage") for each in mutants)
    told = f"{score:.2f}" if score is not None else "–"
    quoted = [{**each, "quoted": shlex.quote(each["id"])} for each in mutants]
    listed = sorted(quoted, key=lambda each: _ORDER.index(each["outcome"]))[:_MOST_LISTED]
    return template("mutation.html").render(
        policy=policy(asset("style.css")),
        style=safe(asset("style.css")),
        headline=f"Mutation score {told}: {plural(left, 'mutant')} of {len(mutants)} not noticed",
        state="failed" if left else "passed",
        facts=[f"{found[name]} {name.replace('_', ' ')}" for name in _ORDER if found[name]],
        left_out=found["left_out"],
        unusable=found["unusable"],
        manifests=[each for name, shape in shapes.items() if (each := _manifest(name, shape, mutants))],
        listed=listed,
        more=len(mutants) - len(listed),
        operators=_by(mutants, "operator"),
    )


def _manifest(
    name: str, shape: Mapping[str, Any], mutants: Iterable[Mapping[str, Any]]
) -> dict[str, Any] | None:
    own = [each for each in mutants if each["manifest"] == name and each["part"]]
    parts = {row["name"]: row for row in _by(own, "part")}
    if not parts or not shape.get("nodes"):
        return None
    known = {**shape, "kinds": [_caption(parts.get(node)) for node in shape["nodes"]]}
    drawn = figure(known)
    return {"name": name, "parts": parts, "drawn": drawn, "margin": _MARGIN}


def _by(mutants: Iterable[Mapping[str, Any]], key: str) -> list[dict[str, Any]]:
    """Return {name, noticed, counted, score} for each value of a key, the lowest score first."""
    groups: dict[str, list[str]] = {}
    for each in mutants:
        groups.setdefault(each[key], []).append(each["outcome"])
    rows = []
    for name, outcomes in groups.items():
        counted = sum(outcome in _COUNTED for outcome in outcomes)
        noticed = sum(outcome in _NOTICED for outcome in outcomes)
        share = noticed / counted if counted else None
        rows.append({"name": name, "noticed": noticed, "counted": counted, "score": share})
    return sorted(rows, key=lambda row: (row["score"] is None, row["score"] or 0.0, row["name"]))


def _caption(row: Mapping[str, Any] | None) -> str:
    return f"{row['noticed']} of {row['counted']}" if row is not None and row["counted"] else "no mutant"
