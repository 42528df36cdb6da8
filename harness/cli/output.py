"""Output of commands, to standard output or to a file."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from harness.errors import FormatError, Problem
from harness.source.display import escape_json_commands

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


def deliver_json(text: str, file: str) -> None:
    """Print JSON text if `file` is `-`, else write it to the file. Raises as `deliver` does."""
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
