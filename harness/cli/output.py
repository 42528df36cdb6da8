"""The output of a command: on standard output, or in a file."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from harness.errors import FormatError, Problem
from harness.source.workflow_commands import inert_json


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
    """Print a text of JSON, for `-`, or write it to this file; raises as `deliver` does."""
    if file == "-":
        deliver(inert_json(text) + "\n", None)
    else:
        deliver(text + "\n", Path(file))


@contextmanager
def warnings_at_end() -> Iterator[None]:
    """Print the warnings that are given inside, each once, on standard error when the block has ended."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(each.message) for each in caught):
        click.echo(f"warning: {text}", err=True)


def unwritable(file: Path, error: OSError | UnicodeDecodeError) -> FormatError:
    """The error for a file that cannot be written."""
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", None) == errno.ENXIO:
        reason = "nobody reads from this pipe"
    return FormatError(Problem("cannot-write", f"{file} cannot be written: {reason}"))
