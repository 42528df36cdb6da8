"""`harness new`: write a scenario from one run of an agent, or from a trace."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import output as exit_code
from harness.cli.options import PATH, env_option, flag
from harness.cli.pasting import read_answer
from harness.errors import FormatError, Problem
from harness.graph.to_json import from_json
from harness.scenario import SUFFIXES
from harness.settings import Projects, RecordMode, Settings
from harness.source.display import did_you_mean, printable
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.authoring.from_trace import Draft
    from harness.authoring.setting import Setting
    from harness.authoring.target import Target
    from harness.report.traces import RunTrace
    from harness.scenario.outcome import Outcome

_LONGEST_LINE = 4095
"""Bytes of a line, with its end, that a terminal passes on whole."""
_EPILOG = """\b
What is typed where an answer is asked for:
  any text              a reply, or the result of a tool
  a JSON value          the same as data
  TOOL {"arg": 1}       the model calls this tool
  real                  the tool, handler or script itself answers
  !rate_limit           an error of this kind: timeout, server_error, …
  !MESSAGE              an error with this message

\b
Exit codes: 0 the scenario is written and passes; 1 it is written, and its run
differs from the trace or fails; 2 nothing is written.
"""


@click.command("new", epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="MANIFEST | --from TRACE...")
@click.option(
    "--from", "traces", multiple=True, metavar="TRACE", help="A trace, or FILE::NAME of the last run."
)
@click.option("--manifest", "given", metavar="PATH", help="The manifest of the agent, with --from.")
@click.option("--agent", metavar="NAME", help="Agent, entry point or flow inside the manifest.")
@click.option("--input", "text", metavar="TEXT|@FILE", help="The input; JSON is data. Asked for by default.")
@click.option("--name", metavar="NAME", help="The name of the scenario (default: from its input).")
@flag("--live", help="Real models and services answer; their answers become stubs.")
@flag("--record", help="Real models and services answer; their answers become a cassette.")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="The scenario file; others in it are kept.")
@env_option
def command(
    paths: tuple[str, ...],
    traces: tuple[str, ...],
    given: str | None,
    agent: str | None,
    text: str | None,
    name: str | None,
    live: bool,
    record: bool,
    output: Path | None,
    env: dict[str, str],
) -> int:
    """Run an agent once and write a scenario that would notice a change.

    You type what models, tools and people answer; or, with --live or --record, the real ones do. With --from, what
    happened somewhere becomes a scenario: TRACE is a file of reports/latest/traces, or an export of OpenTelemetry,
    LangSmith, Langfuse or the OpenAI Agents SDK. Model calls, tool calls and the answers of people become stubs. The
    scenario is run before it is written. New scenarios are appended to a file that exists.
    """
    if traces:
        if live or record or text is not None:
            raise click.UsageError("--from has its input and its answers from the trace")
        return _from_traces([*traces, *paths], given, agent, name, output, env)
    if len(paths) != 1 or given is not None:
        raise click.UsageError("give one MANIFEST, or traces with --from TRACE...")
    if live and record:
        raise click.UsageError("--live and --record are mutually exclusive")
    return _from_run(Path(paths[0]), agent, text, name, output, env, live=live, record=record)


def _from_traces(
    paths: Sequence[str],
    manifest: str | None,
    agent: str | None,
    name: str | None,
    output: Path | None,
    env: Any,
) -> int:
    from harness.authoring.from_trace import drafted
    from harness.authoring.setting import keys_of_agent, setting_of

    projects = Projects(given_env=env)
    target: Target | None = None
    drafts: list[Draft] = []
    for label, trace in _read(paths):
        setting = setting_of(trace, Path(manifest) if manifest else None, Path.cwd(), projects)
        if setting is None:
            text = f"{label} does not say which agent it is of"
            raise FormatError(Problem("missing-manifest", text, hint="give it with --manifest PATH"))
        if agent:
            setting = replace(setting, keys={**setting.keys, **keys_of_agent(setting.manifests[0], agent)})
        target = target or _target(output, setting, projects)
        keys = target.keys_for(setting)
        setting = replace(setting, keys={**keys, **setting.keys})
        wanted = name or str(trace.head.get("scenario") or "") or _name_of(_first_input(trace))
        unused = target.unused_name(" ".join(wanted.split()), [each.keys["name"] for each in drafts])
        found = drafted(trace, setting, unused, target.file, target.head, projects.of(target.file))
        if trace.head.get("status") != "invalid":  # a scenario may be about a manifest that is refused
            _require_valid(found.outcome, setting.manifests[0])
        same = next((each for each in drafts if _same(each, found)), None)
        if same is not None:
            click.echo(f"{label}: the same as '{printable(same.keys['name'])}'", err=True)
            continue
        drafts.append(found)
        for gap in found.gaps:
            click.echo(f"{label}: not in the trace: {printable(gap)}", err=True)
    assert target is not None
    return _write(target, drafts)


def _same(one: Draft, other: Draft) -> bool:
    return {**one.keys, "name": ""} == {**other.keys, "name": ""}


def _read(paths: Sequence[str]) -> Iterator[tuple[str, RunTrace]]:
    """Yield the traces that are named, each with its name in messages."""
    from harness.cli.trace import trace_file, trace_of, traces_named

    for path in paths:
        file = trace_file(path)
        if file is None and "::" not in path:
            text = f"{printable(path)} is no trace"
            hint = "give a file of reports/latest/traces, an export, or FILE::NAME for a scenario of the last run"
            raise FormatError(Problem("trace-unknown", text, hint=hint))
        if file is None:
            yield path, trace_of(path)[0]
        else:
            yield from ((path, trace) for trace in traces_named(*file))


def _target(output: Path | None, setting: Setting, projects: Projects) -> Target:
    """Return the file to write to: by default, of the manifest's name, where the project has scenarios."""
    from harness.authoring.target import Target

    if output is None:
        manifest = setting.manifests[0]
        folder = manifest.parent
        below = projects.around(folder.resolve()).project / "scenarios"
        stem = manifest.name.partition(":")[0].partition(".")[0]
        stem = folder.resolve().name if stem in ("langgraph", "graph", "config", "") else stem
        output = Path(shown_path(below if below.is_dir() else folder)) / f"{stem}{SUFFIXES[0]}"
    return Target.at(output, setting)


def _first_input(trace: RunTrace) -> Any:
    from harness.authoring.world import inputs_of

    return next((value for _, value in inputs_of(trace.events)), None)


def _name_of(value: Any) -> str:
    """Return a name for a scenario, from its input."""
    from harness.report.encoding import encode
    from harness.source.display import clip

    if isinstance(value, dict) and isinstance(value.get("messages"), list) and value["messages"]:
        said = value["messages"][-1]
        said = said.get("content") if isinstance(said, dict) else said
        value = said if isinstance(said, str) else value
    text = value if isinstance(value, str) else encode(value) if value is not None else ""
    return clip(" ".join(text.split()), 60) or "a run"


def _from_run(
    manifest: Path,
    agent: str | None,
    text: str | None,
    name: str | None,
    output: Path | None,
    env: Any,
    *,
    live: bool,
    record: bool,
) -> int:
    from harness.authoring.from_trace import drafted
    from harness.authoring.interview import interviewed, real_entries
    from harness.authoring.setting import Setting, keys_of_agent
    from harness.authoring.trial import run_trial
    from harness.authoring.writer import scenario_text
    from harness.dialects.registry import agents_of
    from harness.report.console import terminal_asker
    from harness.report.traces import RunTrace, restored

    _, agents = agents_of(manifest, None)
    if len(agents) > 1 and agent is None:
        hint = f"name one with --agent: {', '.join(agents)}"
        raise FormatError(
            Problem("missing-agent", f"{shown_path(manifest)} has {len(agents)} agents", hint=hint)
        )
    if agent and agents and agent not in agents:
        text_ = f"{shown_path(manifest)} has no agent '{agent}'"
        raise FormatError(Problem("unknown-agent", text_, hint=did_you_mean(agent, agents)))
    projects = Projects(given_env=env)
    own = {**keys_of_agent(manifest, agent), **({"env": dict(env)} if env else {})}
    setting = Setting((manifest,), own, {}, None)
    target = _target(output, setting, projects)
    settings = projects.of(target.file)
    try:
        given = _input(text, is_asked=not (live or record) or sys.stdin.isatty())
    except EOFError:
        click.echo("\nnothing was written", err=True)
        return exit_code.BAD_INPUT
    unused = target.unused_name(name or _name_of(given))
    keys = {"name": unused, **target.keys_for(setting), **own}
    keys |= {"input": given} if given is not None else {}
    if record:
        return _write(target, [_recorded(target, manifest, keys, settings)])
    if live:
        real = replace(settings, record_mode=RecordMode.LIVE)
        [outcome] = run_trial(target.file, target.head, keys, real, ask=terminal_asker())
    else:
        try:
            keys, outcome = interviewed(keys, target.file, target.head, settings, _ask)
        except (EOFError, KeyboardInterrupt):
            typed = printable(scenario_text(keys, 2), keep_newlines=True)
            click.echo(f"\nnothing was written; so far:\n{typed}", err=True)
            return exit_code.BAD_INPUT
    _require_valid(outcome, manifest)
    head = {**outcome.identity, "format": "a run", "seed": outcome.seed, "now": outcome.now}
    trace = RunTrace(head, [*restored(outcome.events)])
    setting = replace(
        setting,
        keys={**target.keys_for(setting), **own},
        world=real_entries(keys),
        place=(target.file, unused),
    )
    draft = drafted(trace, setting, unused, target.file, target.head, settings)
    if error := draft.outcome.observed.error:
        told = printable(f"{error['type']}: {error['message']}", keep_newlines=True)
        click.echo(f"\nthe agent fails, and the scenario expects that: {told}", err=True)
    return _write(target, [draft])


def _require_valid(outcome: Outcome, manifest: Path) -> None:
    if outcome.observed.status == "invalid":
        why = str((outcome.observed.error or {}).get("message"))
        raise FormatError(Problem("invalid-manifest", f"{shown_path(manifest)} cannot be run: {why}"))


def _recorded(target: Target, manifest: Path, keys: dict[str, Any], settings: Settings) -> Draft:
    """Record a run, and return the scenario that replays it."""
    from harness.authoring.from_trace import Draft, with_expectations
    from harness.authoring.trial import run_trial
    from harness.report.console import terminal_asker

    cassette = re.sub(r"[^a-z0-9]+", "-", keys["name"].lower()).strip("-")[:60] or "run"
    keys = {**keys, "cassette": cassette}
    real = replace(settings, record_mode=RecordMode.NEW_EPISODES, record_in_ci=True)
    [made] = run_trial(target.file, target.head, keys, real, ask=terminal_asker())
    _require_valid(made, manifest)
    if made.observed.error is not None and made.verdict == "error":
        error = made.observed.error
        is_kept = (settings.project / settings.cassettes / cassette).is_dir()
        hint = "what was recorded is kept: the same command goes on from there" if is_kept else ""
        raise FormatError(Problem("not-recorded", f"{error['type']}: {error['message']}", hint=hint))
    trial = {**keys, "expect": {"status": made.observed.status}}
    first, other = run_trial(target.file, target.head, trial, settings, repeat=2)
    if other.observed.status != first.observed.status:  # with other ids it asks what was not recorded
        other = first
    keys, last = with_expectations(keys, [first, other], target.file, target.head, settings)
    return Draft(keys, last)


def _input(text: str | None, *, is_asked: bool) -> Any:
    """Return the input: a text, JSON data, or the content of a file. It is asked for if the command line has none."""
    if text is None:
        text = _ask("", "input (text, JSON or @FILE; Enter for none)") if is_asked else ""
    if text.startswith("@"):
        text = read_text(Path(text[1:]))
    data = from_json(text)
    return (data if isinstance(data, dict | list) else text) if text else None


def read_text(path: Path) -> str:
    """Return the text of a file that holds an input.

    Raises:
        FormatError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise FormatError(Problem("unreadable-file", f"{shown_path(path)} cannot be read: {why}")) from None


def _ask(shown: str, prompt: str) -> str:
    """Show a call at the terminal, and return what is typed: a line, or the lines that are pasted."""
    if shown:
        click.echo(f"\n{printable(shown, keep_newlines=True)}", err=True)
    while True:
        click.echo(f"{prompt}: ", nl=False, err=True)
        typed = read_answer()
        longest = max(len(line.encode()) for line in typed.splitlines(keepends=True))
        if not sys.stdin.isatty() or longest <= _LONGEST_LINE:
            return typed.rstrip("\n")
        click.echo("too long: the terminal cuts lines at 4095 bytes; pipe the answers in", err=True)


def _write(target: Target, drafts: Sequence[Draft]) -> int:
    """Write the scenarios, and tell what became of each. Return the exit code."""
    target.write([each.keys for each in drafts])
    file, is_good = shown_path(target.file), True
    for each in drafts:
        click.echo(f"wrote {printable(file)}::{printable(each.keys['name'])}")
        for text in each.differences:
            click.echo(f"  its run differs from the trace: {printable(text)}", err=True)
        outcome = each.outcome
        if not outcome.passed:
            is_good = False
            click.echo(f"  it does not pass: {outcome.verdict}", err=True)
            for check in outcome.checks:
                if not check.passed:
                    click.echo(f"    {check.name}: {printable(check.message, keep_newlines=True)}", err=True)
        is_good = is_good and not each.differences
    click.echo(f"\nNext:\n  harness run {printable(shlex.quote(file))}")
    return exit_code.OK if is_good else exit_code.FAILED
