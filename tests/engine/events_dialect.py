"""The dialect of `tests.engine.events` as a front end, for scenarios: a manifest is an agent, with `events: 1`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal

import pytest

from harness.dialects import DIALECTS, registry
from harness.dialects.dialect import Prompt, single_file
from harness.dialects.request import LoadRequest
from harness.graph.model import Graph
from harness.source.document import Document, read
from tests.engine.events import compiled

name: Final = "events"
title: Final = "agents of the event scheduler"
yaml: Final[Literal["1.2"]] = "1.2"
locate = single_file


def detect(document: Document) -> bool:
    return isinstance(document.value, dict) and "events" in document.value


def agents(document: Document) -> Sequence[str]:
    return []


def prompts(request: LoadRequest) -> Sequence[Prompt]:
    return []


def load(request: LoadRequest) -> Graph:
    return compiled(read(request.path, yaml=yaml).value)


@contextmanager
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install this dialect."""
    caches = (registry.registered, registry.dialect_named)
    with monkeypatch.context() as patch:
        patch.setitem(DIALECTS, name, __name__)
        for cache in caches:
            cache.cache_clear()
        yield
    for cache in caches:
        cache.cache_clear()
