"""What all tests share."""

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import forked

pytest_plugins = ["pytester"]

gc.disable()  # what is imported and collected is no garbage: see `pytest_collection_finish`

# No deadlines: a busy machine is no fault of what is tested. The examples are others each time: few runs of many
# examples (`make fuzz`) find what many runs of few do.
settings.register_profile("usual", deadline=None, max_examples=40)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

for _name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):  # of this run, not of those that tests begin
    os.environ.pop(_name, None)

# Nothing outside of this machine is spoken to: there is nobody to trust, and HTTP clients, each of which reads whom
# it trusts, need not read the 150 authorities of the system.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: list[Any]) -> None:
    """Let the workers start with everything imported: a process does it for all of them."""
    forked.fork_workers(specs)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest, which runs all suites, comes first, so that no worker is left alone with it in the end."""
    items.sort(key=lambda item: item.path.name != "test_digests.py")


def pytest_collection_finish() -> None:
    """Look for garbage rarely, and never among what all tests share: it would take a tenth of their time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
