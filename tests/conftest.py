"""Fixtures, Hypothesis profiles and environment that all tests share."""

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import engine, providers

from tests import forked

pytest_plugins = ["pytester"]

gc.disable()  # imports and collection leave little garbage; `pytest_collection_finish` enables it again

# No deadlines: a busy machine must not fail a test. `make test` tries the same examples each time, so that what
# passed passes again; `make fuzz` draws new ones (profile `long`).
settings.register_profile("usual", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("quick", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
if settings().derandomize:  # without constants of the modules that happen to be imported
    providers._get_local_constants = lambda: providers._local_constants
engine.MAX_SHRINKING_SECONDS = 20  # of 300: what fails is reported soon, if with a longer example

for _name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):  # not for the commands that tests start
    os.environ.pop(_name, None)

# Tests connect to no other machine, so no certificate authority is needed: without this, each HTTP client would load
# the 150 authorities of the system.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: list[Any]) -> None:
    """Fork the xdist workers from one process that has imported everything."""
    forked.fork_workers(specs)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest test file first, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: item.path.name != "test_digests.py")


def pytest_collection_finish() -> None:
    """Collect garbage rarely, and skip the objects that all tests share: it would take a tenth of their time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
