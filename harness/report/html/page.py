"""report.html, written from the files of a run: one page that loads nothing, and runs nothing but its own script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.report.baseline import Baseline
from harness.report.commands import report_argument
from harness.report.encoding import encode
from harness.report.formatting import plural
from harness.report.html import words
from harness.report.html.causes import by_cause, cause
from harness.report.html.embedded import Embedded, details_of, trace_of
from harness.report.html.history import history_data
from harness.report.html.manifests import Manifests
from harness.report.html.scenarios import NOT_PASSED, Row, Rows
from harness.report.reading import RESULTS, read_lines

if TYPE_CHECKING:
    from jinja2 import Template

Line = Mapping[str, Any]

PAGE: Final = "report.html"
MOST_DETAILS: Final = 12_000_000
"""Characters of the details of runs in a page; so much is read in about a second."""
MOST_TRACES: Final = 10_000_000
"""Characters of the traces of runs in a page, packed."""
MOST_ROWS: Final = 20_000
_MOST_CAUSES: Final = 40
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
    "variants.js",
    "history.js",
    "main.js",
)


class Contents:
    """Collects what the page of a run shows of its lines. `report` is the folder of its traces."""

    def __init__(self, report: Path) -> None:
        self.rows, self.manifests = Rows(), Manifests()
        self.embedded = Embedded(MOST_DETAILS, details_of)
        self.traced = Embedded(MOST_TRACES, partial(trace_of, report))

    def passed_on(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The lines, each of which is collected when it is asked for."""
        for number, line in enumerate(lines):
            self.rows.add(number, line)
            self.manifests.add(line)
            self.embedded.add(number, line, first=line["verdict"] in NOT_PASSED)
            self.traced.add(number, line, first=line["verdict"] in NOT_PASSED)
            yield line


def page(
    run: Path,
    summary: Mapping[str, Any],
    baseline: Baseline | None = None,
    history: Path | None = None,
    contents: Contents | None = None,
) -> str:
    """The page of a run: the folder with its results, or a file of them. `summary` is that of the run,
    and `history` the file of the project's history, if it has one.

    `contents` are those of all its lines, where somebody has read them already.

    Raises:
        FormatError: the results cannot be read.
    """
    if contents is None:
        contents = Contents(run if run.is_dir() else run.parent)
        for _ in contents.passed_on(read_lines(run)):
            pass
    rows, manifests, embedded, traced = (
        contents.rows,
        contents.manifests,
        contents.embedded,
        contents.traced,
    )
    names = manifests.names()
    listed = [_listed(row, names[row.manifest], baseline) for row in _most_wanted(rows)]
    conversations = traced.texts()
    folder = run if run.is_dir() else run.parent
    report = report_argument(Path(listed[0]["suite"]), folder) if listed else ""
    texts, alike = embedded.texts(), by_cause(listed)
    data = {
        "format": "harness-report/1",
        "summary": {
            key: value
            for key, value in summary.items()
            if key not in ("failures", "losses", "coverage", "latency_by_scenario")
        },
        "rows": listed,
        "manifests": manifests.as_json(),
        "report": report,
        "removed": [] if baseline is None else [*baseline.removed(rows)],
        "baseline": None if baseline is None else {"name": baseline.name, "total": baseline.total},
        "history": None if history is None else history_data(history),
    }
    results = run / RESULTS if run.is_dir() else run
    return _template().render(
        policy=_policy(),
        style=_safe(_asset("style.css")),
        script=_safe(_script()),
        data=_inert(encode(data)),
        traces=list(conversations.items()),
        runs=[(number, _inert(text)) for number, text in texts.items()],
        complete=summary["complete"],
        reason=summary["reason"] or "",
        headline=words.headline(rows, baseline),
        state=words.state(summary["total"]),
        tiles=words.tiles(summary["total"], None if baseline is None else baseline.total),
        facts=_facts(results, summary, baseline),
        left_out=_left_out(len(rows) - len(listed), embedded.left_out, traced.left_out),
        changes=[] if baseline is None else words.changes(rows, baseline),
        report=report,
        causes=[cause(group, texts) for group in alike[:_MOST_CAUSES]],
        more_causes=max(0, len(alike) - _MOST_CAUSES),
        suites=summary["suites"],
        plural=plural,
    )


def _most_wanted(rows: Rows) -> Sequence[Row]:
    """All rows; where there are too many, those that did not pass first."""
    if len(rows) <= MOST_ROWS:
        return [*rows]
    return sorted(rows, key=lambda row: row.verdict not in NOT_PASSED)[:MOST_ROWS]


def _listed(row: Row, manifest: str, baseline: Baseline | None) -> dict[str, Any]:
    shown = row.as_json(manifest)
    if baseline is not None:
        shown |= {"change": baseline.change(row), "before": baseline.before(row)}
    return shown | {"fault": row.fault}


def _facts(results: Path, summary: Mapping[str, Any], baseline: Baseline | None) -> list[str]:
    total = summary["total"]
    facts = [datetime.fromtimestamp(results.stat().st_mtime).strftime("%Y-%m-%d %H:%M")]
    facts.append(plural(total["scenarios"], "scenario"))
    if total["runs"] != total["scenarios"]:
        facts.append(plural(total["runs"], "run"))
    if total["distinct_runs"] != total["runs"]:
        facts.append(
            f"{total['distinct_runs']} of them distinct (the others had the same answers and nothing random)"
        )
    if baseline is None:
        return [*facts, "no baseline"]
    runs = baseline.total["runs"]
    other = "" if runs == total["runs"] else f", which has {plural(runs, 'run')}"
    return [*facts, f"against {baseline.name}{other}"]


def _left_out(rows: int, runs: int, traces: int) -> list[str]:
    """What the page does not have, in words."""
    found = [f"{plural(rows, 'scenario')} that passed"] if rows else []
    found += [f"the details of {plural(runs, 'run')}"] if runs else []
    found += (
        [f"the conversations of {plural(traces, 'run')}, which their pages open from traces/"]
        if traces
        else []
    )
    return found


def _policy() -> str:
    """The content security policy: our script and our style, by their hashes, and nothing else."""
    script, style = (_hash(text) for text in (_script(), _asset("style.css")))
    return (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; base-uri 'none';"
        " form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _script() -> str:
    return "".join(['"use strict";\n', *map(_asset, _SCRIPTS)])


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: getattr(words, name) for name in ("folded", "score", "seconds", "shown")}
    return environment.get_template("page.html")


def _safe(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


def _inert(json_text: str) -> Any:
    r"""JSON that ends no element, whatever is in it: `<` is `\u003c`; and no line separators of JavaScript."""
    escaped = json_text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return _safe(escaped)
