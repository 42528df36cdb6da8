"""The base classes of components, and the fields in which components contain each other.

spec: "Base Component", "Input/output schemas". The models in this package are the components of the published
JSON schema: one class per component type, with the names of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Annotated, Any, Final, get_args, get_origin

from pydantic import (
    BaseModel,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    PrivateAttr,
    field_validator,
)
from pydantic_core import core_schema

from harness.dialects.agentspec.properties import Property, mistakes, normalize_null_types
from harness.dialects.kit.rules import repeated
from harness.errors import Span
from harness.source.document import Document
from harness.source.models import Mistake, describe, mistaken


class Component(BaseModel, extra="forbid", strict=True, title="a component"):
    """Base class of components. spec: "Base Component". Components compare by identity.

    A component without an `id` has an empty one, to which nothing can refer.
    """

    id: str = ""
    name: str
    description: str | None = None
    metadata: dict[str, Any] | None = None

    _source: Document = PrivateAttr()
    _component_type: str = PrivateAttr("")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def component_type(self) -> str:
        """The name of the component type in configurations."""
        return self._component_type or type(self).__name__

    @cached_property
    def is_complete(self) -> bool:
        """True if every component in it, at any depth, could be read."""
        return all(part is not BROKEN and part.is_complete for part in self.parts())

    def parts(self) -> Iterator[Component]:
        """Yield the components directly in it, in the order of its fields."""
        for name in component_fields(type(self)):
            yield from (item for item in _flat(getattr(self, name)) if isinstance(item, Component))

    def set_source(self, source: Document, component_type: str) -> None:
        """Set the part of the document that defines it, and the name of its type there."""
        self._source, self._component_type = source, component_type

    def span(self, *path: str | int) -> Span:
        """Return the location of the component, or of a value in it."""
        return self._source.span(path)

    def span_in_text(self, name: str, offset: int, length: int) -> Span:
        """Return the location of a part of a text field; of the whole text if the part cannot be located."""
        if not isinstance(self._source.value[name], str):  # a reference
            return self._source.span((name,))
        return self._source.span_in_text((name,), offset, length)

    def __str__(self) -> str:
        return f"{self.component_type} '{self.name}'"


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


class _Broken(Component):
    """The placeholder for a component that could not be read. It lets reading continue."""


BROKEN: Final = _Broken(name="broken")


class ComponentField:
    """The annotation of a field that holds a component of this kind, defined in place or by reference.

    Nested components are read before the model is validated.
    """

    def __init__(self, kind: type[Component]) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> Any:
        return core_schema.no_info_plain_validator_function(self._check)

    def _check(self, value: Any) -> Any:
        if isinstance(value, self.kind) or value is BROKEN:
            return value
        found = f"the {value}" if isinstance(value, Component) else describe(value)
        text = f"expected {self.kind.model_config.get('title')}, found {found}"
        raise mistaken(Mistake(text, code="wrong-component"))


class OptionalComponentField(ComponentField):
    """The annotation of a field that holds a component of this kind, or null."""

    def _check(self, value: Any) -> Any:
        return None if value is None else super()._check(value)


class ComponentOrTextField(ComponentField):
    """The annotation of an item that is a component of this kind, or text."""

    def _check(self, value: Any) -> Any:
        return value if isinstance(value, str) else super()._check(value)


@cache
def component_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of the fields of a model that hold components."""
    fields = model.model_fields.items()
    return tuple(
        name for name, field in fields if _annotated(field.annotation, field.metadata, ComponentField)
    )


def holds_single_component(model: type[BaseModel], name: str) -> bool:
    """True if a field holds one component, and not a list of them."""
    return any(isinstance(item, ComponentField) for item in model.model_fields[name].metadata)


@cache
def may_hold_text(model: type[BaseModel], name: str) -> bool:
    """True if a field holds a list of components and texts."""
    return _annotated(model.model_fields[name].annotation, (), ComponentOrTextField)


@cache
def holds_lists(model: type[BaseModel], name: str) -> bool:
    """True if a field holds a list of lists of components."""
    items = get_args(model.model_fields[name].annotation)
    inner = get_args(items[0])[:1] if items else ()
    return any(get_origin(item) is list for item in inner)


def _annotated(annotation: Any, metadata: Sequence[Any], kind: type[ComponentField]) -> bool:
    if any(isinstance(item, kind) for item in metadata):
        return True
    return any(_annotated(inner, getattr(inner, "__metadata__", ()), kind) for inner in get_args(annotation))


def inner_first(root: Component) -> list[Component]:
    """Return a component and all components in it, each once, nested ones first."""
    found: dict[Component, None] = {}
    _find(root, found)
    return list(found)


def _find(component: Component, found: dict[Component, None]) -> None:
    if component not in found:
        for part in component.parts():
            _find(part, found)
        found[component] = None


# ------------------------------------------------------------------ inputs and outputs


def _parse_property(written: Any) -> Property:
    value = normalize_null_types(written)
    found = list(mistakes(value))
    if found:
        title = value.get("title") if isinstance(value, dict) else None
        named = f"property '{title}': " if isinstance(title, str) and title else ""
        raise mistaken(*(replace(mistake, message=named + mistake.message) for mistake in found))
    return Property(value)


PropertyField = Annotated[Property, PlainValidator(_parse_property)]


class ComponentWithIO(Component):
    """Base class of components with inputs and outputs. spec: "Input/output schemas".

    The declared ones are as written; None if they are to be inferred.
    """

    declared_inputs: list[PropertyField] | None = Field(None, alias="inputs")
    declared_outputs: list[PropertyField] | None = Field(None, alias="outputs")

    @field_validator("declared_inputs", "declared_outputs")
    @classmethod
    def _titles_are_unique(cls, properties: list[Property] | None) -> list[Property] | None:
        titles = [item.title for item in properties or ()]
        for index, _ in repeated(titles):
            text = f"a second property called '{titles[index]}'"
            raise mistaken(Mistake(text, (index,), code="duplicate-property"))
        return properties

    @cached_property
    def inputs(self) -> Mapping[str, Property]:
        """The inputs by name: the declared ones, else the inferred ones."""
        return by_title(self.inferred_inputs() if self.declared_inputs is None else self.declared_inputs)

    @cached_property
    def outputs(self) -> Mapping[str, Property]:
        """The outputs by name: the declared ones, else the inferred ones."""
        return by_title(self.inferred_outputs() if self.declared_outputs is None else self.declared_outputs)

    def inferred_inputs(self) -> Sequence[Property]:
        """Return the inputs that the configuration of the component implies."""
        return self.declared_inputs or ()

    def inferred_outputs(self) -> Sequence[Property]:
        """Return the outputs that the configuration of the component implies."""
        return self.declared_outputs or ()


def by_title(properties: Sequence[Property]) -> Mapping[str, Property]:
    """Return properties by name."""
    return {item.title: item for item in properties}


def text_properties(titles: Sequence[str]) -> list[Property]:
    """Return a string property for each name. spec: placeholders are "transformed in inputs of type string"."""
    return [Property({"title": title, "type": "string"}) for title in titles]
