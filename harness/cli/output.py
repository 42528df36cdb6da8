"""Output of commands: texts and files, problems, warnings, unexpected exceptions, and the exit codes."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from harness.ctrl_c import is_interrupt
from harness.errors import ClusterError, ExtraMissing, FormatError, HarnessError, Problem, SourceError
from harness.source.display import escape_json_commands, printable, render

if TYPE_CHECKING:
    from harness.secrets import Secrets


_SECRETS: Final = "harness.secrets"


def secrets_of(context: click.Context) -> Secrets:
    """Return the secrets that a command must not print: those of this process, and those added to the result.

    Called when something is printed.
    """
    if _SECRETS not in context.meta:
        from harness.secrets import Secrets
        from harness.secrets.environment import variables_of_process
        from harness.settings import Settings, load_settings

        try:
            settings = load_settings()
        except FormatError:  # the command itself reports it
            settings = Settings()
        named, public = settings.secrets, settings.public_env
        context.meta[_SECRETS] = Secrets(variables_of_process(named, public), named, public)
    secrets: Secrets = context.meta[_SECRETS]
    return secrets


def deliver(text: str, file: Path | None) -> None:
    """Print a text that ends with a line break, or write it to a file as UTF-8.

    Raises:
        FormatError: the file cannot be written (code `cannot-write`).
    """
    if file is None:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise unwritable(file, error) from None


def deliver_json(data: Any, file: str) -> None:
    """Print data as JSON if `file` is `-`, else write it to the file. Raises as `deliver` does."""
    from harness.report.encoding import encode

    text = encode(data, indented=True)
    if file == "-":
        deliver(escape_json_commands(text) + "\n", None)
    else:
        deliver(text + "\n", Path(file))


def check_writable(file: str | None) -> None:
    """Refuse an output file that cannot be written, before models are asked for its content.

    Raises:
        FormatError: its folder does not exist, or it is a folder (code `cannot-write`).
    """
    if file is None or file == "-":
        return
    path = Path(file)
    code = errno.EISDIR if path.is_dir() else 0 if path.parent.is_dir() else errno.ENOENT
    if code:
        raise unwritable(path, OSError(code, os.strerror(code)))


@contextmanager
def stdout_to_stderr(active: bool = True) -> Iterator[None]:
    """Redirect standard output to standard error, including the output of child processes and C code."""
    if not active:
        yield
    elif _are_descriptors():
        with _descriptor_to_stderr():
            yield
    else:
        with redirect_stdout(sys.stderr):
            yield


def _are_descriptors() -> bool:
    try:
        return (sys.stdout.fileno(), sys.stderr.fileno()) == (1, 2)
    except (OSError, ValueError):
        return False


@contextmanager
def _descriptor_to_stderr() -> Iterator[None]:
    _flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        _flush()
        os.dup2(kept, 1)
        os.close(kept)


def _flush() -> None:
    """Flush both streams of standard output: code that avoids `sys.stdout` writes to `sys.__stdout__`."""
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()


@contextmanager
def warnings_at_end() -> Iterator[None]:
    """Collect the warnings raised in the block, and print each once, on standard error, when the block has ended."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(each.message) for each in caught):
        click.echo(f"warning: {text}", err=True)


def unwritable(file: Path, error: OSError | UnicodeDecodeError) -> FormatError:
    """Return the error for a file that cannot be written."""
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", None) == errno.ENXIO:
        reason = "nobody reads from this pipe"
    return FormatError(Problem("cannot-write", f"{file} cannot be written: {reason}"))


OK: Final = 0
FAILED: Final = 1  # a scenario failed
BAD_INPUT: Final = 2  # a file or an argument is wrong
NOT_JUDGED: Final = 3  # a call that nothing answers, an interrupted run, or a defect of the harness


_is_command = False


def note_command() -> None:
    """Note that this process is that of a command, not of a program that calls one."""
    global _is_command
    _is_command = True


def is_command() -> bool:
    """True in the process of a command."""
    return _is_command


def run_guarded(command: Callable[[], int | None], *, debug: bool = False) -> int:
    """Run a command and return its exit code; print what it raises. A closed pipe (`| head`) ends it silently.

    Click's own exceptions (usage errors, `--help`) are left to click.
    """
    try:
        return command() or OK
    except SourceError as error:
        print_problems(error.problems)
        return BAD_INPUT
    except (ExtraMissing, ClusterError) as error:
        print_problems([Problem(error.code, str(error))])
        return BAD_INPUT if isinstance(error, ExtraMissing) else NOT_JUDGED
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt:
        return interrupted()
    except (BrokenPipeError, SystemExit):  # rich raises SystemExit when its output is a closed pipe
        _drop_output()
        return NOT_JUDGED
    except Exception as error:
        if is_interrupt(error):
            return interrupted()
        if isinstance(error, OSError) and not (isinstance(error, HarnessError) or debug):
            _report_os_error(error)
            return BAD_INPUT
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


def print_problems(problems: Iterable[Problem], *, err: bool = True) -> None:
    """Print problems, on standard error unless `err` is false."""
    for problem in problems:
        click.echo(shown(problem), err=err)


def shown(problem: Problem) -> str:
    """Return `file:line:column: error: message [code]`, the source line with a caret, and the hint.

    A note is one line.
    """
    from harness.secrets import hidden

    titled = replace(problem, message=f"{problem.severity}: {problem.message} [{problem.code}]")
    return printable(
        titled.one_line if problem.severity == "note" else render(titled, hidden), keep_newlines=True
    )


def as_json(problem: Problem, file: str) -> dict[str, Any]:
    """Return {severity, code, message, hint, file, line, column}; line and column are null for a whole file."""
    span = problem.span
    return {
        **{key: getattr(problem, key) for key in ("severity", "code", "message", "hint")},
        "file": span.file if span else file,
        "line": span.line if span else None,
        "column": span.column if span else None,
    }
