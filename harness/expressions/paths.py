"""Where an expression looks: the steps from a name to what is inside it."""

from __future__ import annotations

from typing import Final

ITEM: Final = "*"
"""The step of a path that leads to each item of a list."""

Path = tuple[str, ...]
