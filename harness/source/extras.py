"""Packages that an extra of the harness installs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from harness import DISTRIBUTION
from harness.errors import ExtraMissing


def import_extra(name: str, extra: str, purpose: str) -> Any:
    """A module of a package that not every installation has; `purpose` is what it is needed for.

    Raises:
        ExtraMissing: it is not installed, nor what it needs itself.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ExtraMissing(
            f'package {error.name or name!r} is needed {purpose}: pip install "{DISTRIBUTION}[{extra}]"'
        ) from error
