"""Paths from a name in an expression to a value inside it."""

from __future__ import annotations

from typing import Final

ITEM: Final = "*"
"""The step of a path that stands for each item of a list."""

Path = tuple[str, ...]
