"""Files of variables, which no run reads: `.env`, `.env.local`, …

They have real keys, and other values on each machine. An app's own `load_dotenv()` finds such a file empty.
"""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Callable
from functools import wraps
from typing import Any


def hide_variable_files() -> None:
    """Let this process find each file of variables empty. Writing one works."""
    for module in (builtins, io):
        really: Callable[..., Any] = module.open
        if not hasattr(really, "hides_variables"):
            module.open = _hiding(really)  # type: ignore[attr-defined]


def _hiding(really: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(really)
    def opened(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        hidden = not isinstance(file, int) and "r" in mode and "+" not in mode and _has_variables(file)
        return really(os.devnull if hidden else file, mode, *args, **options)

    opened.hides_variables = True  # type: ignore[attr-defined]
    return opened


def _has_variables(file: Any) -> bool:
    name = os.path.basename(os.fsdecode(file))
    return (name == ".env" or name.startswith(".env.")) and os.path.isfile(file)
