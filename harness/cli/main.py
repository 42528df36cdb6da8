"""The command `harness`. Each of its commands is a module, imported when it is called."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TextIO

import click

from harness import __version__
from harness.cli.exit_code import guarded, interrupted
from harness.workers.garbage import collect_rarely

COMMANDS = {
    "run": "Run scenarios and say which of them hold.",
    "trace": "Tell what happened in a run, as a conversation.",
    "score": "Say which variant of an agent is better, and how sure that is.",
    "evolve": "Search for better prompts, temperatures and tools of an agent.",
    "gate": "Say whether a run is good enough, also against an earlier one.",
    "baseline": "Keep a run to compare later ones with.",
    "record": "Ask the real thing once, to be replayed from then on.",
    "cassettes": "List recordings, and what is wrong with them.",
    "serve": "Answer any client from the stubs of a scenario.",
    "validate": "Check manifests and scenario files without running them.",
    "compare": "Tell what differs between two runs, and where it began.",
    "history": "Show how figures and scenarios changed from run to run.",
    "summary": "Print the figures of a run, or of several together.",
    "report": "Write the page of a run, also against an earlier one.",
    "export": "Write a run as OpenTelemetry spans.",
    "show": "Draw the graph of a manifest.",
    "prompts": "List the prompts of a manifest, with their places.",
    "judges": "List the ready judges of scenarios, or print the prompt of one.",
    "judge-check": "Measure a judge against labels of people.",
    "schema": "Print the JSON Schema of scenario files, for editors.",
    "init": "Write a small example that works, to start from.",
}

EXIT_CODES = """\b
Exit codes:
  0  all is well
  1  a scenario failed
  2  a file or an argument is wrong
  3  something could not be judged: a call nothing answers, a run that was
     interrupted, or a defect of the harness
"""


class LazyGroup(click.Group):
    """Lists its commands without importing them, and turns what they raise into exit codes."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from importlib import import_module

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

            with redacted_streams(_without_secrets):
                ctx.exit(guarded(lambda: super(LazyGroup, self).invoke(ctx), debug=ctx.params["debug"]))
        except KeyboardInterrupt:
            sys.exit(interrupted())


def _without_secrets(text: str) -> str:
    return _scrub()(text)


@cache
def _scrub() -> Callable[[str], str]:
    """What takes the secrets of this process out of a text: found when something is printed, not before."""
    from harness.errors import FormatError
    from harness.secrets import Secrets
    from harness.secrets.environment import variables_of_process
    from harness.settings import load_settings

    try:
        settings = load_settings()
    except FormatError:  # said by the command itself
        return Secrets(variables_of_process()).text
    return Secrets(variables_of_process(settings.secrets, settings.public_env)).text


@click.group(
    cls=LazyGroup,
    commands=[click.Command(name, short_help=text) for name, text in COMMANDS.items()],
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--debug", is_flag=True, envvar="HARNESS_DEBUG", help="Show the traceback of a defect.")
@click.version_option(__version__, prog_name="harness", message="%(prog)s %(version)s")
def cli(debug: bool) -> None:
    """Run declarative LLM agents for real, offline, in a simulated world, and test what they do."""
    click.get_current_context().call_on_close(_warn_of_misspelt_variables)


def _warn_of_misspelt_variables() -> None:
    """Say at the end, where it is seen, which settings of the environment were not read."""
    from harness.settings import misspelt_variables

    for text in misspelt_variables(os.environ):
        click.echo(f"warning: {text}", err=True)


def main() -> None:
    """Run the command with the arguments of this process, and leave with its exit code."""
    for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:  # closed by who started us (`>&-`)
            setattr(sys, name, _nowhere(descriptor))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 is no reason to break
    collect_rarely()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both interrupts end a run the same way
    try:
        cli(prog_name="harness")
    except SystemExit as leaving:
        if "harness.scenario.real_limit" in sys.modules:
            _leave_threads_behind(leaving.code)
        raise


def _nowhere(descriptor: int) -> TextIO:
    """A stream from or to nowhere in the place of a closed one; processes that are started have it, too."""
    opened = os.open(os.devnull, os.O_RDWR)
    if opened == descriptor:
        os.set_inheritable(descriptor, True)
    else:
        os.dup2(opened, descriptor)
        os.close(opened)
    return open(
        descriptor, "w" if descriptor else "r", encoding="utf-8", closefd=False
    )  # as long as the process


def _leave_threads_behind(code: Any) -> None:
    """Leave without waiting for threads of a run past its limit; Python would wait for them for ever."""
    from harness.scenario.real_limit import is_held_up

    if is_held_up():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
