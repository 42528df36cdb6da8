"""What all tests share."""

import os

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

# A busy machine is no fault of what is tested.
settings.register_profile("unhurried", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "unhurried"))

for _name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):  # of this run, not of those that tests begin
    os.environ.pop(_name, None)

LONGEST = ("test_digests.py", "test_suite_determinism.py")
"""Each of their tests runs all suites."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest come first, so that no worker is left alone with one in the end."""
    items.sort(key=lambda item: item.path.name not in LONGEST)
