"""The cases of the dialects, which pytest collects as scenarios, have the digests of `tests/digests.txt`."""

from collections.abc import Generator
from functools import cache

import pytest

from harness.plugin.item import ScenarioItem
from tests.test_digests import CASES, ROOT, stored_digests


@cache
def known() -> dict[str, str]:
    """Return the digest of each run of a case."""
    return stored_digests(CASES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    yield
    if isinstance(item, ScenarioItem):
        name = f"{item.path.relative_to(ROOT).as_posix()}::{item.name}"
        found = {f"{name} #{made.repeat}": made.digest or "-" * 64 for made in item.outcomes}
        assert found.items() <= known().items()
