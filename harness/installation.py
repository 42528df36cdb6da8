"""Check of the installed packages: explains an ImportError that a missing or outdated one causes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING

from harness import DISTRIBUTION

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def why_not_importable(error: ImportError) -> str:
    """Return the missing or outdated packages, and the command that installs them.

    `error` was raised by an import of the harness. The result is "" if no package is missing or outdated.
    """
    unmet = list(_unmet_requirements())
    if unmet:
        packages = " ".join(shlex.quote(_as_argument(requirement)) for requirement, _ in unmet)
        reasons = ", ".join(reason for _, reason in unmet)
        return (
            f"{DISTRIBUTION} needs other packages than are installed: {reasons}\n    pip install {packages}"
        )
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("harness."):
        # The installed metadata may be older than the code, and lack a requirement.
        module = error.name.partition(".")[0]
        missing = f"the package of the module '{module}' is not installed"
        return f"{missing}\n    install {DISTRIBUTION} again: pip install path/to/{DISTRIBUTION}"
    return ""


def _unmet_requirements() -> Iterator[tuple[Requirement, str]]:
    """Yield the requirements that no installed package meets, each with the reason."""
    from packaging.requirements import Requirement

    try:
        needed = requires(DISTRIBUTION) or ()
    except PackageNotFoundError:  # the harness runs from its source, and is not installed
        return
    for text in needed:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            yield requirement, f"{requirement.name} is missing"
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            yield requirement, f"{requirement.name} is {installed}, and {requirement.specifier} is needed"


def _as_argument(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"
