"""Yields: the declared output of an agent, filled in or enforced. spec: "Yields Enforcement"; NOTES 6."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any, Final

from harness.dialects.leafmesh.document import Agent, Fields, Nested
from harness.errors import HarnessError
from harness.source.models import describe
from harness.units import is_number

RERUN: Final = "_rerun_context"

_DEFAULTS: Final[Mapping[str, Callable[[], Any]]] = {
    "string": str,
    "number": int,
    "list": list,
    "object": dict,
    "boolean": bool,
}


class YieldContractFailure(HarnessError):
    """The output of a strict agent violates its yields; `violations` are texts by (dotted) key."""

    code = "yield-contract"

    def __init__(self, agent: str, output: Mapping[str, Any], violations: Mapping[str, str]) -> None:
        self.output, self.violations = output, violations
        super().__init__(f"'{agent}' breaks the contract of its yields: {'; '.join(violations.values())}")

    def rerun_context(self, attempt: int) -> dict[str, Any]:
        """Return the `_rerun_context` of the next attempt."""
        return {
            "previous_output": dict(self.output),
            "validation_errors": list(self.violations.values()),
            "attempt": attempt,
        }


def violations(fields: Fields, output: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys, sub-fields too, that are missing or have a wrong type, each with a message."""
    for key, declared in fields.items():
        name, type_ = f"{prefix}{key}", _type(declared)
        if key not in output:
            yield name, f"'{name}' is missing ({type_})"
        elif not _has_type(type_, output[key]):
            yield name, f"'{name}' is {describe(output[key])}, not of type {type_}"
        elif isinstance(declared, Nested) and isinstance(output[key], Mapping):
            yield from violations(declared.fields, output[key], f"{name}.")


def fill_missing(agent: Agent, output: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Fill in the missing keys of an output; return it with a message per missing or mistyped key."""
    result = dict(output)
    notes = []
    for key, declared in agent.yields.items():
        type_ = _type(declared)
        if key not in output:
            result[key] = _DEFAULTS.get(type_, NoneType)()  # an unknown type
            notes.append(f"yields '{key}' is missing: it is filled with {result[key]!r}")
        elif not _has_type(type_, output[key]):
            notes.append(f"yields '{key}' is {describe(output[key])}, not of type {type_}: it is kept")
    return result, notes


def stored_yields(agent: Agent, output: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of an output for `upstream_yields`: declared keys, or all if there are none. NOTES 3.4."""
    return {key: output[key] for key in agent.yields if key in output} if agent.yields else dict(output)


def _type(declared: str | Nested) -> str:
    return declared.type if isinstance(declared, Nested) else declared


def _has_type(type_: str, value: Any) -> bool:
    match type_:
        case "string":
            return isinstance(value, str)
        case "number":
            return is_number(value)
        case "boolean":
            return isinstance(value, bool)
        case "list":
            return isinstance(value, list | tuple)
        case "object":
            return isinstance(value, Mapping)
        case _:
            return True  # an unknown type
