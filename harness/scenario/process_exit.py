"""Replacement of `os._exit`: a tool or hook that calls it fails, instead of ending the process of all scenarios."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def refuse_os_exit() -> Iterator[None]:
    """Make `os._exit` raise a RuntimeError in this process. In forked child processes it still exits."""
    real, process = os._exit, os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:
            real(status)
        raise RuntimeError(
            f"it called os._exit({status}), which would have ended the process of all scenarios"
        )

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = real
