"""How often Python looks for cyclic garbage in a process of ours."""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (50_000, 20, 50)
"""Python's own (700, 10, 10) walk all of LangGraph several times while it is imported, and find nothing."""


def collect_rarely() -> None:
    """Look for garbage rarely. What is there already is taken to stay, and not looked at again."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
