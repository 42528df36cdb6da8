"""The members of `harness.dialects.dialect.Dialect` for any other callable: `agent.py:run`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.dialects.dialect import lazy_function
from harness.dialects.langgraph import dialect
from harness.dialects.langgraph.dialect import is_object
from harness.source.document import Document
from harness.source.yaml import Version

name = "python"
title = "a function of a module, of any framework"
yaml: Version = "1.2"
load = lazy_function("harness.dialects.langgraph.compile:load_callable")
claims = is_object
preload = lazy_function("harness.dialects.langgraph.compile:preload")
prompts = dialect.prompts


def locate(path: Path) -> Sequence[Path]:
    """Return the path itself: it names a file and an object."""
    return () if path.is_dir() else (path,)


def detect(document: Document) -> bool:
    """Return False: no document is a callable."""
    return False


def agents(document: Document) -> list[str]:
    """Return no names: a callable is one agent."""
    return []
