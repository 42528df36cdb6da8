"""Schemas as agents declare them, by Pydantic and by hand."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AnyUrl, BaseModel, ConfigDict, Field


class Intent(BaseModel):
    intent: Literal["billing", "question", "other"]
    confidence: Annotated[float, Field(ge=0, le=1)]
    reason: str | None = None


class Priority(Enum):
    LOW = "low"
    HIGH = "high"


class Address(BaseModel):
    street: Annotated[str, Field(min_length=1, max_length=40)]
    code: Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{5}$")]


class Ticket(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: UUID
    priority: Priority
    tags: Annotated[list[str], Field(max_length=3)]
    address: Address | None
    due: date
    opened: datetime
    at: time | None = None
    takes: timedelta = timedelta(hours=1)


class Line(BaseModel):
    article: str
    count: Annotated[int, Field(gt=0, le=99)]
    price: Decimal


class Order(BaseModel):
    lines: Annotated[list[Line], Field(min_length=1)]
    notes: dict[str, str]
    page: AnyUrl | None = None
    paid: bool = False


class Pay(BaseModel):
    kind: Literal["pay"]
    amount: Annotated[float, Field(gt=0, multiple_of=0.5)]


class Refuse(BaseModel):
    kind: Literal["refuse"]
    because: str


class Decision(BaseModel):
    action: Annotated[Pay | Refuse, Field(discriminator="kind")]
    also: list[Pay | Refuse] = []


class Step(BaseModel):
    task: str
    steps: list[Step] = []


class Sum(BaseModel):
    left: Term
    right: Term


class Number(BaseModel):
    value: int


Term = Sum | Number


class Formula(BaseModel):
    term: Term


class Grid(BaseModel):
    size: tuple[int, int]
    cells: set[int]
    names: Annotated[dict[str, int], Field(min_length=1)]
    anything: Any


for _model in (Sum, Formula, Step):
    _model.model_rebuild()

MODELS: list[type[BaseModel]] = [Intent, Ticket, Order, Decision, Step, Formula, Grid]

BY_HAND: dict[str, Any] = {
    "anything": True,
    "a free object": {"type": "object"},
    "several types": {"type": ["integer", "null", "boolean"], "minimum": 3},
    "a constant": {"const": {"a": [1]}},
    "mixed values": {"enum": [None, 1, "a", [1], True]},
    "values of a type": {"type": "string", "enum": ["a", 1, "b"]},
    "no type": {"properties": {"a": {"minLength": 2}}, "required": ["a", "b"]},
    "bounds": {"type": "integer", "exclusiveMinimum": 6, "exclusiveMaximum": 8},
    "a small step": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.01},
    "a fraction": {"type": "number", "exclusiveMinimum": 0.2, "exclusiveMaximum": 0.201},
    "a length": {"type": "string", "minLength": 400, "maxLength": 410},
    "an alternation": {"type": "string", "pattern": "^(?:GET|POST) /[^ ]*(?:\\?q=(a|b))?$"},
    "a back reference": {"type": "string", "pattern": r"^([xy])-\1$", "maxLength": 3},
    "a tuple": {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"type": "integer"}],
        "items": False,
        "minItems": 2,
    },
    "a set": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
    "a count": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4},
    "names": {
        "type": "object",
        "propertyNames": {"pattern": "^x_"},
        "minProperties": 2,
        "additionalProperties": {"type": "null"},
    },
    "patterns of names": {
        "type": "object",
        "patternProperties": {"^n[0-9]$": {"type": "integer"}},
        "additionalProperties": False,
    },
    "parts": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
            {"properties": {"a": {"maximum": 4}, "b": {"type": "string"}}, "required": ["b"]},
        ]
    },
    "two alternatives at once": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "oneOf": [{"minimum": 2}, {"type": "string", "minLength": 3}],
    },
    "exactly one": {"oneOf": [{"type": "integer", "multipleOf": 2}, {"type": "integer", "multipleOf": 3}]},
    "a condition": {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}, "why": {"type": "string"}},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "b"}}},
        "then": {"required": ["why"]},
    },
    "what needs another": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "dependentRequired": {"a": ["b"]},
    },
    "not this": {"type": "string", "not": {"enum": ["", "a"]}},
    "not what is named": {
        "type": "string",
        "not": {"$ref": "#/$defs/no"},
        "$defs": {"no": {"enum": ["", "a"]}},
    },
    "a reference to the whole": {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["next"],
    },
    "an escaped reference": {"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "null"}}},
}
"""By what is special about them."""

SCHEMAS: dict[str, Any] = {
    **{model.__name__: model.model_json_schema() for model in MODELS},
    **BY_HAND,
}
