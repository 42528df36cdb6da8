"""The options of commands that run scenarios, or ask models."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from harness.cli.selection_options import Command
from harness.settings import RecordMode


class _Jobs(click.ParamType[int]):
    """A number of processes, or `auto`: as many as this process may use processors."""

    name = "jobs"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "auto":
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if not value.isdecimal() or int(value) < 1:
            self.fail(f"'{value}' is neither a number of processes nor 'auto'", param, ctx)
        return int(value)


def jobs_option(command: Command) -> Command:
    """Give a command the option `-j`, as `jobs`."""
    return click.option(
        "-j",
        "--jobs",
        type=_Jobs(),
        default="1",
        metavar="N|auto",
        help="Run scenarios in N processes at once; auto is one for each processor.",
    )(command)


def start_workers(jobs: int, mode: RecordMode) -> bool:
    """Start the process that workers are forked from, if there will be any: it imports more than the command does.

    True if runs go on side by side.
    """
    if jobs == 1 or mode is not RecordMode.NONE:
        return False
    from harness.workers import template

    template.start()
    return True


def record_mode_option(help: str) -> Callable[[Command], Command]:
    """Give a command the option `--record-mode`, as `record_mode`: every mode but that of `--live`."""
    return click.option(
        "--record-mode",
        type=click.Choice([mode.value for mode in RecordMode if mode is not RecordMode.LIVE]),
        default=RecordMode.NONE.value,
        show_default=True,
        help=help,
    )
