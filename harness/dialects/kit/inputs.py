"""What a scenario gives an agent to begin with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.engine.context import RunContext
from harness.errors import HarnessError
from harness.source.models import describe
from harness.source.suggest import did_you_mean


class BadInput(HarnessError):
    """An input this agent cannot take."""

    code = "bad-input"


def input_values(value: Any, text_key: str, expected: str) -> Mapping[str, Any]:
    """An input as a mapping: text stands under `text_key`, nothing is an empty mapping.

    Raises:
        BadInput: it is neither; the message says what is `expected` ("an input is …").
    """
    if value is None:
        return {}
    if isinstance(value, str):
        return {text_key: value}
    if not isinstance(value, Mapping):
        raise BadInput(f"{expected}, not {describe(value)}")
    return value


def warn_dropped_inputs(names: Iterable[str], known: Iterable[str], why: str, run: RunContext) -> None:
    """Warn of inputs that are dropped, with the known name that is nearest. `why` completes the sentence."""
    options = list(known)
    for name in names:
        hint = did_you_mean(str(name), options)
        run.warn(f"input '{name}' is dropped: {why}" + (f" ({hint})" if hint else ""))
