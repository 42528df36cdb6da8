"""Questions to a person at the terminal, bypassing pytest's capture, while a scenario is recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin.options import record_mode

if TYPE_CHECKING:
    from harness.recording.human import Ask


def ask_past_capture(config: pytest.Config) -> Ask | None:
    """Return a function that asks a person at the terminal, bypassing pytest's capture.

    None in a worker of xdist, if standard input is no terminal, and in replays, which ask nobody.
    """
    if hasattr(config, "workerinput") or record_mode(config) == "none":
        return None
    with _uncaptured(config):
        if not os.isatty(0):
            return None

    def ask(node: str, args: Mapping[str, Any]) -> str:
        from harness.report.terminal_prompt import prompt

        with _uncaptured(config):
            return prompt(node, args)

    return ask


@contextmanager
def _uncaptured(config: pytest.Config) -> Iterator[None]:
    """Connect standard input and output to the terminal inside."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is None:  # -p no:capture
        yield
        return
    capture.suspend(in_=True)
    try:
        yield
    finally:
        capture.resume()
