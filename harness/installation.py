"""Whether the packages that the harness needs are installed, and how to install those that are not."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING

from harness import DISTRIBUTION

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def why_not_importable(error: ImportError) -> str:
    """What is missing, or too old, of the packages that the harness needs, and the command that installs it.

    `error` is what an import of the harness raised. Empty if it is not for want of a package.
    """
    wanting = list(_wanting())
    if wanting:
        packages = " ".join(shlex.quote(_as_argument(requirement)) for requirement, _ in wanting)
        reasons = ", ".join(reason for _, reason in wanting)
        return (
            f"{DISTRIBUTION} needs other packages than are installed: {reasons}\n    pip install {packages}"
        )
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("harness."):
        # What is installed may be older than the code that runs: then its list of packages is, too.
        module = error.name.partition(".")[0]
        missing = f"the package of the module '{module}' is not installed"
        return f"{missing}\n    install {DISTRIBUTION} again: pip install path/to/{DISTRIBUTION}"
    return ""


def _wanting() -> Iterator[tuple[Requirement, str]]:
    """The packages that are not installed, or not in a version that will do."""
    from packaging.requirements import Requirement

    try:
        needed = requires(DISTRIBUTION) or ()
    except PackageNotFoundError:  # it runs from its source, and was never installed
        return
    for text in needed:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            there = version(requirement.name)
        except PackageNotFoundError:
            yield requirement, f"{requirement.name} is missing"
            continue
        if not requirement.specifier.contains(there, prereleases=True):
            yield requirement, f"{requirement.name} is {there}, and {requirement.specifier} is needed"


def _as_argument(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"
