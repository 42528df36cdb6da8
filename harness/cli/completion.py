"""Completion of arguments in the shell: what `shell_complete` of arguments and options calls.

The functions import what they need when they are called, since most commands import this module. A file that cannot
be read offers nothing, without a message: the command reports it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.scenario.model import Scenario

_SPECIAL: Final = re.compile(r"[^\w%+,./-]")
"""A character that bash takes literally only after a backslash."""


def scenario_paths(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return completions of FILE::NAME: the shell's own for the file, then the names of its scenarios."""
    file, separator, name = incomplete.partition("::")
    if not separator:
        return [CompletionItem(incomplete, type="file")]
    names = (each.name for each in _scenarios([file]))
    return [CompletionItem(f"{file}::{each}") for each in _beginning(name, names)]


def tags(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the tags of the scenarios in the paths before the option."""
    paths = [path.partition("::")[0] for path in ctx.args]  # click parsed none: the option has no value yet
    return _beginning(incomplete, sorted({tag for each in _scenarios(paths) for tag in each.tags}))


def dialects(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the installed dialects."""
    from harness.dialects.registry import names

    return _beginning(incomplete, names())


def agents(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the agents in the manifest before the option."""
    from harness.dialects.registry import agents_of

    try:
        found = [
            name for path in ctx.args[:1] for name in agents_of(Path(path), ctx.params.get("dialect"))[1]
        ]
    except HarnessError:
        return []
    return _beginning(incomplete, found)


def judges(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the metrics of judges."""
    from harness.judges.library import METRICS

    return _beginning(incomplete, METRICS)


def group_keys(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the keys of `summary --by`, for the last of several."""
    from harness.report.runs import KEYS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{key}" for key in _beginning(last, KEYS)]


def _beginning(text: str, options: Iterable[str]) -> list[str]:
    return [each for each in options if each.startswith(text)]


def _scenarios(paths: Sequence[str]) -> list[Scenario]:
    """Return the scenarios of files and folders; those of a file that cannot be read are left out."""
    from harness.scenario.load import discover, load_file
    from harness.settings import Projects

    projects = Projects()
    found: list[Scenario] = []
    for path in paths:
        try:
            for file in discover([Path(path)]):
                found += load_file(file, projects.of(file)).scenarios
        except HarnessError:
            continue
    return found


class _Bash(BashComplete):
    """Completion in bash, where FILE::NAME outside of quotes is three words: FILE, `::` and NAME.

    A completion then replaces NAME alone, and is inserted as it is, so what is special to bash gets a backslash: two,
    since the script of click reads answers with `read`, which takes one away.
    """

    _replaces_name = False

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, with those of each FILE::NAME joined, and the word at the cursor."""
        words = "\n".join(os.environ["COMP_WORDS"].split("\n")[1 : int(os.environ["COMP_CWORD"]) + 1])
        *before, last = words.replace("\n::", "::").replace("::\n", "::").split("\n")
        self._replaces_name = "::" in last and last[0] not in "'\""
        return split_arg_string("\n".join(before)), "".join(split_arg_string(last)[:1])

    def format_completion(self, item: CompletionItem) -> str:
        if self._replaces_name and item.type == "plain":
            return "plain," + _SPECIAL.sub(r"\\\\\g<0>", item.value.partition("::")[2])
        return super().format_completion(item)


add_completion_class(_Bash)
