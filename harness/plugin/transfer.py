"""Fast transfer of the reports of scenarios from a worker of xdist to its controller.

execnet serialises each text, number and list of a report separately, in Python. The report of a scenario is plain
data and is serialised as a whole in a tenth of the time. Other reports are not changed.
"""

from __future__ import annotations

import marshal
from collections.abc import Generator
from typing import Any, Final

import pytest

from harness.plugin.item import RECORDS

_PACKED: Final = "harness_packed"
_MARSHAL_VERSION: Final = 2
"""A version of marshal's format that all Pythons read: a worker may have another version than its controller."""


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Pack the data of a scenario's report, unless another plugin has added something that marshal cannot handle."""
    data = yield
    if not isinstance(data, dict) or RECORDS not in data:
        return data
    try:
        return {_PACKED: marshal.dumps(data, _MARSHAL_VERSION)}
    except ValueError:
        return data


@pytest.hookimpl(tryfirst=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> None:
    """Unpack the data in place. pytest then makes the report from it."""
    packed = data.pop(_PACKED, None)
    if packed is not None:
        data.update(marshal.loads(packed))
