"""Import of optional packages, which an extra of the harness installs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from harness import DISTRIBUTION
from harness.errors import ExtraMissing


def import_extra(name: str, extra: str, purpose: str) -> Any:
    """Import and return a module of an optional package. The error message says what it is needed for: `purpose`.

    Raises:
        ExtraMissing: the package, or one that it needs itself, is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ExtraMissing(
            f'package {error.name or name!r} is needed {purpose}: pip install "{DISTRIBUTION}[{extra}]"'
        ) from error
