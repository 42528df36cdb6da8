"""The sections of a Yagra workflow as pydantic models, in the order of the "Workflow YAML Reference".

Unknown keys are refused everywhere but in `params`. Rules between sections are in `rules`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field, field_validator, model_validator

from harness.source.display import did_you_mean
from harness.source.models import Mistake, mistaken

FIELD_TYPES: Final = ("str", "int", "float", "bool", "list", "dict", "messages")
REDUCERS: Final = ("add",)
REDUCIBLE: Final = ("list", "messages")
_SYNONYMS: Final = {"object": "dict", "array": "list", "number": "float", "text": "str"}
"""Types by their names in JSON Schema and elsewhere, for suggestions."""
SUBGRAPH: Final = "subgraph"
TEXT_INPUT: Final = "input"
"""The state key that holds the input of a run, if it is text."""
NEXT: Final = "__next__"
"""The state key that holds the label of the conditional edge to follow."""
ERROR: Final = "__error__"
"""The state key that holds the error text for a fallback node."""


ParamsSection = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)]
"""A mapping of params; null is an empty mapping."""


class Section(BaseModel, extra="forbid"):
    """Base class of the sections of a workflow."""


class StateField(Section, title="a state field"):
    """A field of `state_schema`. spec: "State Schema". Values are not checked against its type."""

    main_key: ClassVar[str] = "type"

    type: str
    reducer: str | None = None

    @model_validator(mode="after")
    def _known(self) -> StateField:
        mistakes = []
        if self.type not in FIELD_TYPES:
            text = f"state type '{self.type}' is not known: expected one of {', '.join(FIELD_TYPES)}"
            meant = _SYNONYMS.get(self.type, self.type)
            mistakes.append(Mistake(text, ("type",), hint=did_you_mean(meant, FIELD_TYPES, listing=False)))
        if self.reducer is not None and self.reducer not in REDUCERS:
            text = f"reducer '{self.reducer}' is not known: expected {', '.join(REDUCERS)}"
            hint = did_you_mean(self.reducer, REDUCERS, listing=False)
            if self.type == "messages":
                hint = "messages are appended without a reducer"
            mistakes.append(Mistake(text, ("reducer",), hint=hint))
        if mistakes:
            raise mistaken(*mistakes)
        return self

    @property
    def is_reduced_list(self) -> bool:
        """True if written lists are appended. `reducer: add` has no effect on messages."""
        return self.reducer is not None and self.type != "messages"


class RetrySpec(Section, title="a retry block"):
    """The `retry` block of a node. spec: "Resilience". `max_attempts` includes the first attempt."""

    main_key: ClassVar[str] = "max_attempts"

    max_attempts: int = Field(default=3, ge=1, le=10)
    backoff: Literal["exponential", "fixed"] = "exponential"
    base_delay_seconds: float = Field(default=2.0, ge=0, le=60)


class NodeSpec(Section, title="a node"):
    """A node. spec: "Node Specification".

    `params` lacks the global parameters (see `prompts.Params`). `timeout_seconds` limits each attempt.
    """

    id: str = Field(min_length=1)
    handler: str = Field(min_length=1)
    params: ParamsSection = Field(default_factory=dict)
    retry: RetrySpec | None = None
    timeout_seconds: int | None = Field(default=None, ge=1, le=600)
    fallback: str | None = None


class FanOut(Section, title="a fan_out block"):
    """The `fan_out` block of an edge. spec: "Fan-Out Edge".

    The target runs once per item of the list at `items_key`, with the state `{item_key: item}`.
    """

    main_key: ClassVar[str] = "items_key"

    items_key: str = Field(min_length=1)
    item_key: str = Field(min_length=1)


class EdgeSpec(Section, title="an edge"):
    """An edge. spec: "Edge Specification". `condition` is a label that is compared with `state["__next__"]`."""

    source: str = Field(min_length=1)
    target: str = Field(min_length=1)
    condition: str | None = None
    fan_out: FanOut | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> EdgeSpec:
        if self.condition is not None and self.fan_out is not None:
            text = f"the edge '{self.source}' -> '{self.target}' has both 'condition' and 'fan_out': expected one"
            raise mistaken(Mistake(text, ("fan_out",), on_key=True, code="edge-kind"))
        return self


class Workflow(Section, title="a workflow"):
    """A whole workflow. spec: "Top-Level Structure"."""

    version: str = Field(min_length=1)
    start_at: str = Field(min_length=1)
    end_at: list[str] = Field(min_length=1)
    state_schema: dict[str, StateField] = Field(default_factory=dict)
    nodes: list[NodeSpec] = Field(min_length=1)
    edges: list[EdgeSpec]
    params: ParamsSection = Field(default_factory=dict)
    interrupt_before: list[str] = Field(default_factory=list)
    interrupt_after: list[str] = Field(default_factory=list)

    @field_validator("state_schema", mode="after")
    @classmethod
    def _reducers_fit(cls, fields: dict[str, StateField]) -> dict[str, StateField]:
        """Check that fields with a reducer have a type that it applies to. spec: validation rule 7."""
        mistakes = [
            Mistake(
                f"field '{name}' of type {field.type} has a reducer: expected type {' or '.join(REDUCIBLE)}",
                (name, "reducer"),
                code="reducer-type",
            )
            for name, field in fields.items()
            if field.reducer is not None and field.type not in REDUCIBLE
        ]
        if mistakes:
            raise mistaken(*mistakes)
        return fields

    def edges_from(self, source: str) -> Sequence[EdgeSpec]:
        """Return the edges whose source is a node, in order."""
        return self._edges_by_source.get(source, ())

    @cached_property
    def _edges_by_source(self) -> Mapping[str, Sequence[EdgeSpec]]:
        found: dict[str, list[EdgeSpec]] = {}
        for edge in self.edges:
            found.setdefault(edge.source, []).append(edge)
        return found

    def has_conditional_edges(self, node: str) -> bool:
        """True if a node is the source of conditional edges."""
        return any(edge.condition is not None for edge in self.edges_from(node))
