"""`os._exit` in a tool or a hook: its own failure, where it would end the process of all scenarios without a word."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def exit_refused() -> Iterator[None]:
    """Let `os._exit` raise a RuntimeError in this process; in processes that are forked inside it ends them."""
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
