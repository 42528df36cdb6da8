"""The command `harness`. Each subcommand is a module, imported when it is called."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import click

from harness import __version__
from harness.cli.output import interrupted, note_command, run_guarded, secrets_of
from harness.workers.garbage import reduce_gc

COMMANDS = {
    "run": "Run scenarios and report which pass.",
    "accept": "Review changed expectations, and write the new values.",
    "trace": "Print what happened in a run, as a conversation.",
    "score": "Compare variants of an agent: which is better, and how certain that is.",
    "explore": "Look for a conversation that breaks an agent, and write it down.",
    "evolve": "Search for better prompts, temperatures and tools of an agent.",
    "mutate": "Make small faults in agents: which of them do the scenarios notice?",
    "gate": "Check a run against rules, and against an earlier run.",
    "baseline": "Save a run as a baseline for later comparisons.",
    "new": "Write a scenario from one run of an agent, or from a trace.",
    "record": "Record calls to real models and services, to be replayed.",
    "cassettes": "List recordings and their problems.",
    "serve": "Serve the stubs of a scenario to any client.",
    "validate": "Check manifests and scenario files without running them.",
    "compare": "List the differences between two runs, and where they begin.",
    "history": "Show figures, and changed scenarios, from run to run.",
    "summary": "Print the figures of one run, or of several combined.",
    "report": "Write the HTML report of a run, also compared with an earlier one.",
    "export": "Write a run as OpenTelemetry spans.",
    "show": "Draw the graph of a manifest.",
    "prompts": "List the prompts of a manifest, with file and line.",
    "judges": "List the built-in judges, or print the prompt of one.",
    "judge-check": "Measure how far a judge agrees with labels of people.",
    "schema": "Print the JSON Schema of scenario files, for editors.",
    "init": "Write a small working example, to start from.",
}

EXIT_CODES = """\b
Exit codes:
  0  success
  1  a scenario failed
  2  a file or an argument is wrong
  3  something could not be judged: a call that nothing answers, a run that
     was interrupted, or a defect of the harness
"""


class LazyGroup(click.Group):
    """A command group that lists its commands without importing them, and turns their exceptions into exit codes."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            command = import_module(f"harness.cli.{name.replace('-', '_')}").command
        return name, command, rest

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*args, **options)
        except KeyboardInterrupt:  # click would leave with 1, which means that a scenario failed
            sys.exit(interrupted())

    def invoke(self, ctx: click.Context) -> Any:
        try:
            from harness.secrets.output import redacted_streams

            with redacted_streams(lambda text: secrets_of(ctx).text(text)):
                ctx.exit(run_guarded(lambda: super(LazyGroup, self).invoke(ctx), debug=ctx.params["debug"]))
        except KeyboardInterrupt:
            sys.exit(interrupted())


@click.group(
    cls=LazyGroup,
    commands=[click.Command(name, short_help=text) for name, text in COMMANDS.items()],
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--debug", is_flag=True, envvar="HARNESS_DEBUG", help="Print tracebacks of internal errors.")
@click.version_option(__version__, prog_name="harness", message="%(prog)s %(version)s")
def cli(debug: bool) -> None:
    """Run declarative LLM agents for real, offline, in a simulated environment, and test what they do."""
    context = click.get_current_context()
    context.call_on_close(lambda: _warn_of_settings(context.invoked_subcommand))


def _warn_of_settings(command: str | None) -> None:
    """Warn of settings without effect, at the end of the output: misspelt variables and, of a run, those in files."""
    from harness.settings import misspelt_variables

    found = misspelt_variables(os.environ)
    if command in ("run", "record"):
        from harness.scenario.idle_settings import warnings_of_project

        found += warnings_of_project(Path.cwd())
    for text in found:
        click.echo(f"warning: {text}", err=True)


def main() -> None:
    """Run the command with the arguments of this process, and exit with its exit code."""
    for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:  # closed by the parent process (`>&-`)
            setattr(sys, name, _open_devnull(descriptor))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 is no error
    reduce_gc()
    note_command()
    if "_HARNESS_COMPLETE" in os.environ:  # the shell asks
        import_module("harness.cli.completion")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both interrupts end a run the same way
    try:
        cli(prog_name="harness")
    except SystemExit as leaving:
        if (leftovers := sys.modules.get("harness.scenario.leftovers")) is not None:
            leftovers.note_exit_code(leaving.code)
        raise


def _open_devnull(descriptor: int) -> TextIO:
    """Open devnull on the descriptor of a closed standard stream; child processes inherit it."""
    opened = os.open(os.devnull, os.O_RDWR)
    if opened == descriptor:
        os.set_inheritable(descriptor, True)
    else:
        os.dup2(opened, descriptor)
        os.close(opened)
    # Not closed: it is open as long as the process runs.
    return open(descriptor, "w" if descriptor else "r", encoding="utf-8", closefd=False)


if __name__ == "__main__":
    main()
