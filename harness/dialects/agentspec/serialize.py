"""Serialization of components to a configuration.

spec: "Note about serialization of components", "Note about references". Inferred inputs, outputs and branches are
included, as they "should always be explicitly included in the representation".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import count
from typing import Any

from harness.dialects.agentspec.component import Component, ComponentWithIO, component_fields
from harness.dialects.agentspec.document import VERSIONS
from harness.dialects.agentspec.flows import Node
from harness.dialects.agentspec.plugins import Plugins
from harness.dialects.agentspec.tables import REFERENCE, TABLE, TYPE, VERSION
from harness.graph.to_json import to_json


def serialize(component: Component, plugins: Plugins, *, version: str = VERSIONS[0]) -> dict[str, Any]:
    """Return the configuration of a component without errors, as JSON data. Reading it gives an equal component.

    Components that are used more than once become references.
    """
    serializer = _Serializer(component, plugins)
    top = serializer.definition(component)
    tables = {TABLE: serializer.tables()} if serializer.shared else {}
    return {**top, **tables, VERSION: version}


class _Serializer:
    """A serializer of one root component. `shared` has the keys of the components that are used more than once."""

    def __init__(self, root: Component, plugins: Plugins) -> None:
        self.plugins = plugins
        uses: Counter[Component] = Counter()

        def note(component: Component) -> None:
            uses[component] += 1
            if uses[component] == 1:
                for part in component.parts():
                    note(part)

        note(root)
        self.shared: dict[Component, str] = {}
        taken = {component.id for component in uses}
        for component, times in uses.items():
            if times > 1:
                self.shared[component] = component.id or _free_key(component.name, taken)
                taken.add(self.shared[component])

    def tables(self) -> dict[str, Any]:
        """Return the table of shared components, by key."""
        return {key: self.definition(component) for component, key in self.shared.items()}

    def definition(self, component: Component) -> dict[str, Any]:
        """Return the definition of a component."""
        nested = component_fields(type(component))
        fields = {
            field.alias or name: self._field_value(getattr(component, name))
            if name in nested
            else to_json(getattr(component, name))
            for name, field in type(component).model_fields.items()
        }
        if not component.id:
            del fields["id"]
        if isinstance(component, ComponentWithIO):
            fields["inputs"] = [dict(item.schema) for item in component.inputs.values()]
            fields["outputs"] = [dict(item.schema) for item in component.outputs.values()]
        if isinstance(component, Node):
            fields["branches"] = list(component.branches)
        head = {TYPE: component.component_type}
        plugin = self.plugins.plugin_of(component)
        if plugin is None:
            return {**head, **fields}
        own = {"component_plugin_name": plugin.name, "component_plugin_version": plugin.version}
        return {**head, **own, **plugin.serialize(component, fields)}

    def _field_value(self, value: Any) -> Any:
        """Return the value of a field with a component or a list of them: definitions or references."""
        if isinstance(value, list):
            return [self._field_value(item) for item in value]
        if value is None:
            return None
        return {REFERENCE: self.shared[value]} if value in self.shared else self.definition(value)


def _free_key(name: str, taken: Collection[str]) -> str:
    """Return an unused key for a component without an id."""
    return next(key for number in count(1) if (key := f"{name}-{number}") not in taken)
