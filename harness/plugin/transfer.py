"""Reports of scenarios on their way from a worker of xdist to its controller: as one piece.

execnet writes and reads each text, number and list of a report by itself, in Python; what a report of a scenario has
is plain, and is written as a whole in a tenth of the time. All other reports go as they always do.
"""

from __future__ import annotations

import marshal
from collections.abc import Generator
from typing import Any, Final

import pytest

from harness.plugin.item import RECORDS

_PACKED: Final = "harness_packed"
_EVERY_PYTHON: Final = 2
"""The version of marshal's format: a worker may have another Python than its controller."""


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Pack what pytest makes of the report of a scenario, unless another plugin has put in what is not plain."""
    data = yield
    if not isinstance(data, dict) or RECORDS not in data:
        return data
    try:
        return {_PACKED: marshal.dumps(data, _EVERY_PYTHON)}
    except ValueError:
        return data


@pytest.hookimpl(tryfirst=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> None:
    """Unpack it, in its place: pytest itself makes a report of it."""
    packed = data.pop(_PACKED, None)
    if packed is not None:
        data.update(marshal.loads(packed))
