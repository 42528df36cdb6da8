"""Types of the values in a mesh file, and the base class of its sections.

Values are parsed as leniently as in LeafMesh: a number may be written as text. A boolean is not a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from harness.graph.to_json import to_json


def _reject_boolean(kind: Literal["int", "float"]) -> BeforeValidator:
    def check(value: Any) -> Any:
        if isinstance(value, bool):
            raise PydanticCustomError(f"{kind}_type", "a boolean is not a number")
        return value

    return BeforeValidator(check)


Whole = Annotated[int, _reject_boolean("int")]
Number = Annotated[float, _reject_boolean("float"), Field(allow_inf_nan=False)]
Count = Annotated[Whole, Field(ge=0)]
Positive = Annotated[Whole, Field(ge=1)]
Rate = Annotated[Number, Field(ge=0, le=1)]
Seconds = Annotated[Number, Field(gt=0)]
Name = Annotated[str, Field(min_length=1)]
Texts = dict[str, str]
JSON = Annotated[dict[str, Any], AfterValidator(to_json)]
"""A mapping in JSON form: dates are converted to texts."""


class Fallback:
    """Environment variables that replace a missing field; the first that is set counts. spec: "Env Fallback"."""

    def __init__(self, *names: str) -> None:
        self.names = names


class Section(BaseModel, extra="allow"):
    """Base class of the sections of a mesh file. Unknown keys are ignored, with a warning.

    `allows_any_key`: any key is allowed, without a warning.
    `refuses_misspellings`: an unknown key that resembles a known one is an error.
    """

    allows_any_key: ClassVar[bool] = False
    refuses_misspellings: ClassVar[bool] = False


Filled = TypeVar("Filled", bound=Section)


def with_fallbacks(section: Filled, env: Mapping[str, str]) -> Filled:
    """Return the section with fields that are missing or empty filled from their fallback variables."""
    values = {}
    for field, info in type(section).model_fields.items():
        for fallback in (item for item in info.metadata if isinstance(item, Fallback)):
            value = next((env[name] for name in fallback.names if env.get(name)), None)
            if value and (field not in section.model_fields_set or not getattr(section, field)):
                values[field] = value
    return section.model_copy(update=values)
