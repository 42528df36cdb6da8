"""Exit codes of commands, and the conversion of exceptions into messages and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import click

from harness.ctrl_c import is_interrupt
from harness.errors import HarnessError, SourceError

OK: Final = 0
FAILED: Final = 1  # a scenario failed
BAD_INPUT: Final = 2  # a file or an argument is wrong
NOT_JUDGED: Final = 3  # a call that nothing answers, an interrupted run, or a defect of the harness


def run_guarded(command: Callable[[], int | None], *, debug: bool = False) -> int:
    """Run a command and return its exit code; print what it raises. A closed pipe (`| head`) ends it silently.

    Click's own exceptions (usage errors, `--help`) are left to click.
    """
    try:
        return command() or OK
    except SourceError as error:
        from harness.cli.problems import print_problems

        print_problems(error.problems)
        return BAD_INPUT
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt:
        return interrupted()
    except (BrokenPipeError, SystemExit):  # rich raises SystemExit when its output is a closed pipe
        _drop_output()
        return NOT_JUDGED
    except OSError as error:
        if isinstance(error, HarnessError) or debug:
            _report_defect(error, debug)
            return NOT_JUDGED
        _report_os_error(error)
        return BAD_INPUT
    except Exception as error:
        if is_interrupt(error):
            return interrupted()
        _report_defect(error, debug)
        return NOT_JUDGED


def interrupted() -> int:
    """Print that the command was interrupted, and return its exit code."""
    click.echo("interrupted", err=True)
    return NOT_JUDGED


def _drop_output() -> None:
    """Redirect the output streams to devnull: flushing a closed pipe at exit would print an error."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(devnull, stream.fileno())


def _report_os_error(error: OSError) -> None:
    """Print an error of the operating system, such as a full disk; without a file name, one of standard output."""
    from harness.cli.problems import print_problems
    from harness.errors import Problem

    where = error.filename if error.filename is not None else "standard output"
    with suppress(OSError):
        print_problems([Problem("system", f"{where}: {error.strerror or error}")])
    if error.filename is None:
        _drop_output()


def _report_defect(error: Exception, debug: bool) -> None:
    """Print an unexpected exception: a defect of the harness, or of its reading of some file."""
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, ImportError):
        from harness.installation import why_not_importable

        if why := why_not_importable(error):
            click.echo(f"cannot continue: {why}", err=True)
            return
    what = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
    hint = "" if debug else "\n    HARNESS_DEBUG=1 shows the traceback"
    click.echo(f"harness broke: {what}{hint}", err=True)
