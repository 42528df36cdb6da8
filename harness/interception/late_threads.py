"""Threads that outlive the run that started them: what they send afterwards is refused.

They cannot be ended where they catch everything, and would reach the network, or the stubs of a later run.
"""

from __future__ import annotations

import threading
from typing import Final

_late: Final[dict[int, threading.Thread | None]] = {}
"""By the number of a thread, its object; None for one that was started without."""


def note_late(number: int, thread: threading.Thread | None) -> None:
    """Refuse what this thread sends from now on."""
    _late[number] = thread


def is_late() -> bool:
    """True in a thread that has outlived its run. Its number may have passed to another one."""
    number = threading.get_ident()
    if number not in _late:
        return False
    now, noted = threading._active.get(number), _late[number]  # type: ignore[attr-defined]
    return now is noted or (noted is None and isinstance(now, threading._DummyThread))


def refuse_late() -> None:
    """Refuse what a thread sends that has outlived its run.

    Raises:
        ConnectionError: this is such a thread.
    """
    if is_late():
        raise ConnectionError("the run that started this thread has ended")
