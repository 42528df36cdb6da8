"""Access to signal handlers through the C functions below the module `signal`, which converts to enums at each call.

A run sets and restores several handlers; the conversions would take a hundredth of its time. `SIG_DFL` and `SIG_IGN`
are plain numbers here.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed has none
from collections.abc import Callable
from typing import Any, Final

Handler = Any
get_handler: Final[Callable[[int], Handler]] = _signal.getsignal
set_handler: Final[Callable[[int, Handler], Handler]] = _signal.signal
