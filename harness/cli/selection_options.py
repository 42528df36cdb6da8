"""The options of commands that choose among scenarios."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from harness.selection.shard import Shard

Command = TypeVar("Command", bound=Callable[..., Any])


class _ShardType(click.ParamType["Shard"]):
    """One of so many parts of the scenarios: `2/5`."""

    name = "shard"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Shard:
        from harness.selection.shard import Shard

        try:
            return Shard.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def words_option(command: Command) -> Command:
    """Give a command the option `-k`, as `words`."""
    return click.option(
        "-k",
        "words",
        default="",
        metavar="EXPRESSION",
        help="Only scenarios with these words in folder, file, name or tag, such as 'slow and not (mail or fax)'.",
    )(command)


def tags_option(command: Command) -> Command:
    """Give a command the option `--tag`, as `tags`."""
    return click.option(
        "--tag", "tags", multiple=True, metavar="TAG", help="Only scenarios with this tag, or another given."
    )(command)


def shard_option(command: Command) -> Command:
    """Give a command the option `--shard`, as `shard`."""
    return click.option(
        "--shard",
        type=_ShardType(),
        metavar="I/N",
        help="Only the I-th of N parts: for N machines, which run everything together.",
    )(command)


def changed_option(command: Command) -> Command:
    """Give a command the option `--changed`, as `changed`: a commit, or None."""
    return click.option(
        "--changed",
        is_flag=False,
        flag_value="HEAD",
        metavar="[REF]",
        help="Only what a change touches: since REF was left, or what is not committed (the default).",
    )(command)


def paths_and_ref(paths: tuple[str, ...], changed: str | None) -> tuple[tuple[str, ...], str | None]:
    """The paths and the commit of a command line.

    In `--changed scenarios/` a path stands where a commit may. As for git, what is no commit there is a path.

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
