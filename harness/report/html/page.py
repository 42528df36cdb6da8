"""Write report.html from the files of a run: one page that loads nothing, and runs no script but its own."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.report.encoding import encode, replace
from harness.report.failure import report_argument
from harness.report.figures import FIGURES
from harness.report.formatting import plural
from harness.report.html import overview
from harness.report.html.manifests import Manifests
from harness.report.html.overview import Baseline
from harness.report.html.scenarios import EmbeddedTexts, Row, Rows, by_cause, cause, details_of, trace_of
from harness.report.html.template import asset, inert, policy, safe, template
from harness.report.reading import SCORE, read_lines, results_file
from harness.report.repeats import NOT_PASSED, Key
from harness.report.summary import summary_of
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.report.html.variants import Scoring

Line = Mapping[str, Any]

PAGE: Final = "report.html"
MAX_DETAILS: Final = 12_000_000
"""Characters of details of runs in a page; parsing this many takes about a second."""
MAX_TRACES: Final = 10_000_000
"""Characters of traces of runs in a page, compressed and in base64."""
MAX_ROWS: Final = 20_000
_MAX_CAUSES: Final = 40
_SCRIPTS: Final = (
    "base.js",
    "graph.js",
    "commands.js",
    "table.js",
    "trace.js",
    "trace_files.js",
    "scenario.js",
    "manifests.js",
    "charts.js",
    "costs.js",
    "word_diff.js",
    "matrix.js",
    "pair.js",
    "variants.js",
    "history.js",
    "main.js",
)


class Contents:
    """Collects the contents of the page from the lines of a run. `report` is the folder with its traces.

    If there is no room for the details and traces of all runs, those that did not pass have priority; for a score of
    variants, those `changed`.
    """

    def __init__(self, report: Path, changed: Collection[Key] | None = None) -> None:
        self.rows, self.manifests = Rows(), Manifests()
        self._changed = changed
        self.embedded = EmbeddedTexts(MAX_DETAILS, details_of)
        self.traced = EmbeddedTexts(MAX_TRACES, partial(trace_of, report))

    def collecting(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines unchanged, and collect each."""
        for number, line in enumerate(lines):
            self.rows.add(number, line)
            self.manifests.add(line)
            first = self._has_priority((line["id"], line["variant"] or ""), line["verdict"])
            self.embedded.add(number, line, first=first)
            self.traced.add(number, line, first=first)
            yield line

    def rows_by_priority(self) -> Sequence[Row]:
        """Return all rows; if there are too many, those with priority first."""
        if len(self.rows) <= MAX_ROWS:
            return [*self.rows]
        return sorted(self.rows, key=lambda row: not self._has_priority(row.key, row.verdict))[:MAX_ROWS]

    def _has_priority(self, key: Key, verdict: str) -> bool:
        return verdict in NOT_PASSED if self._changed is None else key in self._changed


def write_page(run: Path) -> Path:
    """Write report.html of a results folder again, and return its path.

    Raises:
        FormatError: the results, or the score beside them, cannot be read.
    """
    file = run / PAGE
    replace(file, page(run, summary_of(run)).encode())
    return file


def page(
    run: Path,
    summary: Mapping[str, Any],
    baseline: Baseline | None = None,
    history: Path | None = None,
    contents: Contents | None = None,
) -> str:
    """Return the page of a run.

    Args:
        run: the results folder, or a results file.
        summary: the summary of the run.
        baseline: an earlier run to compare with, if any.
        history: the file of the project's history, if it has one.
        contents: the contents of all lines, if they were collected before; otherwise the lines are read.

    Raises:
        FormatError: the results, or the score of variants beside them, cannot be read.
    """
    folder = run if run.is_dir() else run.parent
    scoring = _scoring(folder)
    if contents is None:
        contents = Contents(folder, scoring and scoring.changed)
        for _ in contents.collecting(read_lines(run)):
            pass
    rows, manifests = contents.rows, contents.manifests
    names = manifests.names()
    listed = [_listed(row, names[row.manifest], baseline) for row in contents.rows_by_priority()]
    conversations = contents.traced.texts()
    report = report_argument(Path(listed[0]["suite"]), folder) if listed else ""
    texts, groups = contents.embedded.texts(), by_cause(listed)
    data = {
        "format": "harness-report/1",
        "summary": {
            key: value
            for key, value in summary.items()
            if key not in ("failures", "losses", "coverage", "latency_by_scenario", "files")
        },
        "figures": [
            {
                "label": each.label,
                "path": each.path,
                "unit": each.unit.name,
                "more": each.more,
                "less": each.less,
            }
            for each in FIGURES
        ],
        "rows": listed,
        "manifests": manifests.as_json(),
        "report": report,
        "folder": shlex.quote(shown_path(folder)),
        "removed": [] if baseline is None else [*baseline.removed(rows)],
        "baseline": None if baseline is None else {"name": baseline.name, "total": baseline.total},
        "history": None if history is None else _history(history),
        "score": scoring and scoring.script,
    }
    scored = scoring and scoring.view
    # Totals over all variants mean nothing.
    tiles = [] if scored else overview.tiles(summary["total"], baseline.total if baseline else None)
    return template("page.html").render(
        policy=policy(asset("style.css"), _script()),
        style=safe(asset("style.css")),
        script=safe(_script()),
        data=inert(encode(data)),
        scored=scored,
        traces=list(conversations.items()),
        runs=[(number, inert(text)) for number, text in texts.items()],
        complete=summary["complete"],
        reason=summary["reason"] or "",
        headline=f"{scored['headline']}." if scored else overview.headline(rows, baseline),
        state="scored" if scored else overview.state(summary["total"]),
        tiles=tiles,
        facts=_facts(results_file(run), summary, baseline, scored, rows),
        left_out=_left_out(
            len(rows) - len(listed), contents.embedded.left_out, contents.traced.left_out, scored is not None
        ),
        changes=[] if baseline is None else overview.changes(rows, baseline),
        report=report,
        causes=[cause(group, texts) for group in groups[:_MAX_CAUSES]],
        more_causes=max(0, len(groups) - _MAX_CAUSES),
        suites=summary["suites"],
    )


def _scoring(folder: Path) -> Scoring | None:
    """Return the score of variants in a results folder; None if there is none."""
    if not (folder / SCORE).is_file():
        return None
    from harness.report.html.variants import read_scoring

    return read_scoring(folder / SCORE)


def _history(file: Path) -> dict[str, Any]:
    from harness.report.history.text import page_data

    return page_data(file)


def _listed(row: Row, manifest: str, baseline: Baseline | None) -> dict[str, Any]:
    shown = row.as_json(manifest)
    if baseline is not None:
        shown |= {"change": baseline.change(row), "before": baseline.before(row)}
    return shown | {"fault": row.fault}


def _facts(
    results: Path,
    summary: Mapping[str, Any],
    baseline: Baseline | None,
    scored: Mapping[str, Any] | None,
    rows: Rows,
) -> list[str]:
    total = summary["total"]
    facts = [datetime.fromtimestamp(results.stat().st_mtime).strftime("%Y-%m-%d %H:%M")]
    if scored is not None:
        scenarios = plural(len({row.id for row in rows}), "scenario")
        variants = plural(len(scored["variants"]), "variant")
        return [*facts, scenarios, f"{variants} with {scored['baseline']}", plural(total["runs"], "run")]
    facts.append(plural(total["scenarios"], "scenario"))
    if total["runs"] != total["scenarios"]:
        facts.append(plural(total["runs"], "run"))
    if total["distinct_runs"] != total["runs"]:
        facts.append(
            f"{total['distinct_runs']} of them distinct (repeats with the same answers and nothing random count once)"
        )
    if baseline is None:
        return [*facts, "no baseline"]
    runs = baseline.total["runs"]
    other = "" if runs == total["runs"] else f", which has {plural(runs, 'run')}"
    return [*facts, f"against {baseline.name}{other}"]


def _left_out(rows: int, runs: int, traces: int, is_score: bool) -> list[str]:
    """Describe the contents that were left out of the page."""
    of = "that did not change, as one of the variants" if is_score else "that passed"
    found = {
        f"{plural(rows, 'scenario')} {of}": rows,
        f"the details of {plural(runs, 'run')}": runs,
        f"the conversations of {plural(traces, 'run')}, which their pages open from traces/": traces,
    }
    return [text for text, count in found.items() if count]


@cache
def _script() -> str:
    return "".join(['"use strict";\n', *map(asset, _SCRIPTS)])
