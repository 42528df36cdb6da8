"""Environment variables that a run gives to the scripts and tools of an agent.

They come from a scenario or a manifest, so they are secret by their names only (`Secrets.add`), and only in this run.
Variables that code sets in this process are judged more strictly, and for all later runs (`variables_of_process`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from harness.secrets.environment import not_watched
from harness.secrets.secrets import Secrets

_secrets: ContextVar[Secrets | None] = ContextVar("_secrets", default=None)


@contextmanager
def known_to(secrets: Secrets) -> Iterator[None]:
    """Add the variables that are given within the context to these secrets."""
    token = _secrets.set(secrets)
    try:
        yield
    finally:
        _secrets.reset(token)


def note_given(environment: Mapping[str, str]) -> None:
    """Note that a process or a tool is about to get these variables."""
    secrets = _secrets.get()
    if secrets is not None:
        secrets.add(environment)


@contextmanager
def given_to_this_process(environment: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process within the context, for a tool that runs in it."""
    if not environment:
        yield
        return
    note_given(environment)
    before = {name: os.environ.get(name) for name in environment}
    with not_watched():
        os.environ.update(environment)
    try:
        yield
    finally:
        with not_watched():
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
