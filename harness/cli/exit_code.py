"""What a command ends with: exit codes, and what people read when something raised."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

import click

from harness.errors import HarnessError, SourceError

OK: Final = 0
FAILED: Final = 1  # a scenario did not hold
BAD_INPUT: Final = 2  # a file or an argument is wrong
NOT_JUDGED: Final = 3  # a world that cannot answer, an interrupted run, or a defect of the harness


def guarded(command: Callable[[], int | None], *, debug: bool = False) -> int:
    """The exit code of a command, whatever it raises. A closed pipe (`| head`) ends it without a word.

    Click's own exceptions (usage errors, `--help`) are left to click.
    """
    try:
        return command() or OK
    except SourceError as error:
        from harness.cli.problems import tell

        tell(error.problems)
        return BAD_INPUT
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return NOT_JUDGED
    except (BrokenPipeError, SystemExit):  # rich leaves by SystemExit when the reader of its output has gone
        _drop_output()
        return NOT_JUDGED
    except Exception as error:
        _confess(error, debug)
        return NOT_JUDGED


def _drop_output() -> None:
    """So that nothing is left for the interpreter to write, and to complain about, when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def _confess(error: Exception, debug: bool) -> None:
    """A defect: of the harness, or one of the files' that it should have told better."""
    if debug:
        import traceback

        traceback.print_exception(error)
    what = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
    hint = "" if debug else "\n    HARNESS_DEBUG=1 shows the traceback"
    click.echo(f"harness broke: {what}{hint}", err=True)
