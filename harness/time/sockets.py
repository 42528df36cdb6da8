"""The sockets of an event loop whose clock is not the real one."""

from __future__ import annotations

import selectors
from collections.abc import Mapping
from typing import Any


class RealSockets(selectors.BaseSelector):
    """A selector whose files are those of a real one, `_real`. Subclasses decide how long `select` waits."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def close(self) -> None:
        self._real.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()
