"""Headers that are no part of written configurations (25.4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BeforeValidator

from harness.source.models import Mistake, mistaken

NULL_IS_NONE_GIVEN: Final = BeforeValidator(lambda given: {} if given is None else given)


def check_disjoint(headers: Mapping[str, Any] | None, sensitive: Mapping[str, Any]) -> None:
    """Raise an error for a sensitive header that is also one of the headers."""
    for name in (headers or {}).keys() & sensitive.keys():
        text = f"the header '{name}' is also one of the headers"
        raise mistaken(Mistake(text, ("sensitive_headers", name), code="bad-value"))
