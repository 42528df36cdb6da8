"""Handlers of signals by the functions behind those of `signal`, which look for a member of an enum at each call.

A run sets and puts back several, so that the search would be a hundredth of what it takes. `SIG_DFL` and `SIG_IGN`
are plain numbers here, as they are returned.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed has none
from collections.abc import Callable
from typing import Any, Final

Handler = Any
get_handler: Final[Callable[[int], Handler]] = _signal.getsignal
set_handler: Final[Callable[[int, Handler], Handler]] = _signal.signal
