"""Versions of tools, skills and other entities in sherma's registries."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

_PLAIN: Final = re.compile(r"\d+(\.\d+)*")


def resolve_version(versions: Collection[str], wanted: str) -> str | None:
    """Return the wanted version as written, else the latest equal version; None if there is none."""
    if wanted in versions and wanted != "*":
        return wanted
    fitting = [version for version in versions if same_version(version, wanted)]
    return max(fitting, key=version_order, default=None)


def find_version(versions: Collection[str], wanted: str) -> str | None:
    """Return the version that `resolve_version` finds, else the latest in a range such as `>=1.0,<2` (PEP 440)."""
    found = resolve_version(versions, wanted)
    if found is not None:
        return found
    try:
        wanted_range = SpecifierSet(wanted)
        return max((version for version in versions if version in wanted_range), key=Version, default=None)
    except (InvalidSpecifier, InvalidVersion):
        return None


def same_version(one: str, other: str) -> bool:
    """True if two versions are equal, such as `1.0` and `1.0.0`. `*` equals any version."""
    if one == other or not {"*", ""}.isdisjoint((one, other)):
        return True
    plain = all(_PLAIN.fullmatch(version) for version in (one, other))
    return plain and _without_zeros(one) == _without_zeros(other)


def version_order(version: str) -> list[int]:
    """Return a sort key for versions: the numbers in it."""
    return [int(part) for part in re.findall(r"\d+", version)]


def _without_zeros(version: str) -> list[int]:
    numbers = version_order(version)
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers
