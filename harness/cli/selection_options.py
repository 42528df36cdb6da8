"""The options of commands that choose among scenarios."""

from __future__ import annotations

from collections.abc import Callable
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
