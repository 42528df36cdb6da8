"""Arguments and options that several commands share, and their types."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from harness.budget import parse as parse_budget
from harness.cli import completion
from harness.errors import FormatError, Problem
from harness.settings import RecordMode, is_ci_machine, parse_cluster, parse_variables

if TYPE_CHECKING:
    from harness.selection.keywords import Shard


PATH: Final = click.Path(path_type=Path)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Parsed(click.ParamType):  # type: ignore[type-arg]  # older versions of click have no argument here
    """A parameter type whose values are parsed by a function; its ValueErrors become usage errors."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def flag(*names: str, help: str) -> Decorator:
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=help)


def path_option(*names: str, help: str, metavar: str = "FILE", **more: Any) -> Decorator:
    """Return an option whose value is the path of a file or folder."""
    return click.option(*names, type=PATH, metavar=metavar, help=help, **more)


def _jobs(text: str) -> int:
    """Parse a number of processes; `auto` is the number of processors this process may use."""
    if text == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"'{text}' is neither a number of processes nor 'auto'")
    return int(text)


def share(text: str) -> float:
    """Parse a share from 0 to 1.

    Raises:
        ValueError: the text is not one.
    """
    text = text.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise ValueError(f"'{text}' is not a number from 0 to 1") from None
    if not text.endswith("%") and 0 <= number <= 1:
        return number
    meant = f"; did you mean {number / 100:g}?" if 0 <= number <= 100 else ""
    raise ValueError(f"'{text}' is not a share from 0 to 1{meant}")


# ---------------------------------------------------------------- which scenarios


def _shard(text: str) -> Shard:
    from harness.selection.keywords import Shard

    return Shard.parse(text)


words_option = click.option(
    "-k",
    "words",
    default="",
    metavar="EXPRESSION",
    help="Only scenarios whose folder, file, name or tags match, such as 'slow and not (mail or fax)'.",
)
_tags = click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    shell_complete=completion.tags,
    help="Only scenarios with this tag; may be repeated.",
)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select scenarios by their words and tags, passed as `words` and `tags`."""
    return words_option(_tags(command))


shard_option = click.option(
    "--shard",
    type=Parsed("shard", _shard),
    metavar="I/N",
    help="Only the I-th of N parts, to spread the scenarios over N machines.",
)
changed_option = click.option(
    "--changed",
    is_flag=False,
    flag_value="HEAD",
    metavar="[REF]",
    help="Only scenarios affected by changes since the commit REF (default: by uncommitted changes).",
)


last_failed_option = flag(
    "--last-failed", help="Only scenarios that failed, or could not be judged, in the last run."
)


def paths_and_ref(paths: tuple[str, ...], changed: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the paths and the commit of a command line.

    In `--changed scenarios/` click takes the path for the commit. As git does, this takes an argument that is not a
    commit for a path.

    Raises:
        click.UsageError: there is no path.
    """
    if changed is not None and os.path.lexists(changed):
        from harness.selection.changes import is_ref

        if not paths or not is_ref(Path.cwd(), changed):
            paths, changed = (changed, *paths), "HEAD"
    if not paths:
        raise click.UsageError("Missing argument 'PATH...'.")
    return paths, changed


# ---------------------------------------------------------------- how they run

JOBS_WHILE_RECORDING: Final = 8
"""The scenarios that run at once by default where real systems are called, whose answers are waited for."""

jobs_option = click.option(
    "-j",
    "--jobs",
    type=Parsed("jobs", _jobs),
    metavar="N|auto",
    help="Run scenarios in N parallel processes; auto is one per processor (default: 1, or 8 where real models and "
    "services are called, which are waited for).",
)
cluster_option = click.option(
    "--cluster",
    type=Parsed("cluster", parse_cluster),
    metavar="ADDRESS|local:N",
    help="Run on the workers of a Dask cluster: tcp://HOST:PORT of its scheduler, or N workers on this machine.",
)


def chosen_settings(**given: Any) -> dict[str, str]:
    """Return the settings that the command line gives, of those with a value, as `Projects` takes them."""
    return {key: str(value) for key, value in given.items() if value}


repeat_option = click.option(
    "--repeat", type=click.IntRange(min=1), metavar="N", help="Run each scenario N times."
)
exit_first_option = flag("-x", "--exit-first", help="Stop after the first scenario that does not pass.")
quiet_option = flag("-q", "--quiet", help="Print only what did not pass, and the summary.")
now_option = click.option(
    "--now", metavar="TIME", help="Start of virtual time, ISO 8601, in scenarios without `now`."
)


def pairs(_ctx: click.Context, _option: click.Parameter, written: tuple[str, ...]) -> dict[str, str]:
    """Parse values of an option that are written as NAME=value."""
    try:
        return parse_variables(written)
    except FormatError as error:
        raise click.BadParameter(error.problems[0].message) from None


env_option = click.option(
    "--env", "env", multiple=True, metavar="K=V", callback=pairs, help="Value of ${K} in manifests."
)
report_option = path_option("--report", metavar="DIR", help="Folder for results.")


def start_workers(jobs: int | None, mode: RecordMode) -> None:
    """Start the process that workers are forked from, if runs are parallel, as it imports more than the command."""
    if jobs is not None and jobs > 1 and mode is RecordMode.NONE:
        from harness.workers import fork_server

        fork_server.start()


def record_mode_option(help: str) -> Decorator:
    """Return the option `--record-mode`, with every mode but that of `--live`."""
    return click.option(
        "--record-mode",
        type=click.Choice([mode.value for mode in RecordMode if mode is not RecordMode.LIVE]),
        default=RecordMode.NONE.value,
        show_default=True,
        help=help,
    )


def budget_option(spent_on: str) -> Decorator:
    """Return the option `--budget`; its help ends with `spent_on`."""
    return click.option(
        "--budget",
        type=Parsed("budget", parse_budget),
        metavar="CALLS|COST",
        help=f"Limit, in model calls (200) or US dollars ($1.50), {spent_on}.",
    )


# ---------------------------------------------------------------- a run that has ended

run_argument = click.argument("run", type=PATH, required=False)


yes_option = flag(
    "--yes", help="Call models without a question; needed where there is no terminal, as on CI."
)


def may_call_models(yes: bool) -> bool:
    """Return True if `--yes` was given, or the answer at the terminal is yes. Called before the first call.

    Raises:
        FormatError: without `--yes`, there is no terminal to ask at (code `unconfirmed`).
    """
    if yes:
        return True
    if not is_at_terminal():
        text = "models would be called, which may cost money, and there is no terminal to ask at: nothing was run"
        raise FormatError(Problem("unconfirmed", text, hint="--yes goes on without a question"))
    try:
        agreed = click.confirm("go on?", err=True)
    except click.Abort:  # Ctrl-C, or the end of the input
        agreed = False
    if not agreed:
        click.echo("nothing was run", err=True)
    return agreed


def is_at_terminal() -> bool:
    """True if there is a person to ask: standard input and error are a terminal, and this is no CI machine."""
    return not is_ci_machine() and sys.stdin.isatty() and sys.stderr.isatty()
