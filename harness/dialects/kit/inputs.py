"""The input that a scenario gives to an agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.engine.context import RunContext
from harness.errors import HarnessError
from harness.source.models import describe
from harness.source.suggest import did_you_mean


class BadInput(HarnessError):
    """An input that the agent cannot take."""

    code = "bad-input"


def input_values(value: Any, text_key: str, expected: str) -> Mapping[str, Any]:
    """Return an input as a mapping: text becomes the value of `text_key`, None an empty mapping.

    Raises:
        BadInput: the input is none of these. The message begins with `expected` ("an input is …").
    """
    if value is None:
        return {}
    if isinstance(value, str):
        return {text_key: value}
    if not isinstance(value, Mapping):
        raise BadInput(f"{expected}, not {describe(value)}")
    return value


def warn_dropped_inputs(names: Iterable[str], known: Iterable[str], why: str, run: RunContext) -> None:
    """Warn that the inputs `names` are dropped. `why` completes the sentence; `known` names are suggested."""
    options = list(known)
    for name in names:
        hint = did_you_mean(str(name), options)
        run.warn(f"input '{name}' is dropped: {why}" + (f" ({hint})" if hint else ""))
