"""`harness validate`: report all problems of manifests and scenario files, without a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from harness.cli import exit_code
from harness.cli.load_options import LoadOptions, agent_option, load_options
from harness.cli.options import PATH
from harness.cli.output import stdout_to_stderr
from harness.cli.problems import as_json, print_problems
from harness.cli.validation import Files, collect, problems
from harness.errors import Problem
from harness.report.formatting import plural
from harness.source.document import shown_path


@click.command("validate")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=PATH)
@agent_option
@load_options
@click.option("--imports", is_flag=True, help="Import tools, handlers and hooks; this runs their modules.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--json", "json_", is_flag=True, help="Print the problems as a JSON list.")
def command(
    paths: tuple[Path, ...],
    options: LoadOptions,
    imports: bool,
    strict: bool,
    json_: bool,
) -> int:
    """Check manifests and scenario files without running them.

    PATH is a manifest, a scenario file (*.scenario.yaml), or a folder of both; in a folder, YAML and JSON files that
    are not manifests are skipped, with a warning if they cannot be read. All problems are reported at once. A ${VAR}
    without a value is a problem: set it with --env, or check the scenario files that set it in the same call. Nothing
    is imported unless --imports is given: tools, handlers and hooks are looked up in the source of their modules. MCP
    servers are not contacted.

    Exits with 2 if there are errors, else with 0. With --strict, warnings are errors. Notes are remarks without an
    effect on runs.
    """
    options.imports = imports
    files = collect(paths, options.dialect)
    with stdout_to_stderr(json_):
        found = list(problems(files, options))
    if strict:
        found = [(path, _strict(problem)) for path, problem in found]
    if json_:
        listed = [as_json(problem, shown_path(path) if path else "") for path, problem in found]
        click.echo(json.dumps(listed, indent=2))
    else:
        print_problems((problem for _, problem in found), err=False)
        click.echo(_counts(files, [problem for _, problem in found]))
    return exit_code.BAD_INPUT if any(problem.severity == "error" for _, problem in found) else exit_code.OK


def _strict(problem: Problem) -> Problem:
    return replace(problem, severity="error") if problem.severity == "warning" else problem


def _counts(files: Files, found: Sequence[Problem]) -> str:
    looked_at = f"{plural(len(files.manifests), 'manifest')}, {plural(len(files.scenarios), 'scenario file')}"
    by_severity = Counter(problem.severity for problem in found)
    counts = [plural(by_severity[name], name) for name in ("error", "warning") if by_severity[name]]
    return f"{looked_at}: {', '.join(counts) or 'no problems'}"
