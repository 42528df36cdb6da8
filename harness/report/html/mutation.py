"""report.html of `harness mutate`: the graphs with the score of each node and edge, and what nobody noticed."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness.report.formatting import plural
from harness.report.html.manifests import figure
from harness.report.html.template import asset, policy, safe, template

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
