"""Components of other packages. spec: "Ecosystem of plugins".

A plugin reads and writes the component types it names, and runs those that are nodes. It is found under the
entry point group `harness.agentspec_plugins`, or is named by a scenario under `hooks` (its import path).
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, ClassVar, Final

from harness.dialects.agentspec.component import Component
from harness.dialects.agentspec.flows import Node
from harness.dialects.agentspec.visit import NodeResult
from harness.errors import HarnessError, ManifestError, Problem
from harness.graph.context import NodeContext
from harness.source.document import Document
from harness.source.models import validate

GROUP: Final = "harness.agentspec_plugins"


class PluginError(HarnessError):
    """A plugin did not do what it is asked to."""

    code = "plugin"


class ComponentPlugin(ABC):
    """What a plugin offers. `components` maps each component type to its model.

    A model is a class derived from `Component`, or, to stand where one of these may, from `Node`, `Tool`, …;
    it has the fields of its parent and may add some.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    components: ClassVar[Mapping[str, type[Component]]]

    def deserialize(self, component_type: str, document: Document) -> Component:
        """The component in a document, whose nested components have been read.

        Raises:
            ManifestError: with everything that is wrong with it.
        """
        return validate(self.components[component_type], document)

    def serialize(self, component: Component, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of a component as they are written, nested components among them already."""
        del component
        return fields

    @abstractmethod
    async def run(self, node: Node, inputs: Mapping[str, Any], ctx: NodeContext) -> NodeResult:
        """Run a node. Everything outside through `ctx`; `inputs` by name, cast to their types.

        What it raises fails the flow at the node.
        """

    def type_of(self, component: Component) -> str:
        """The component type of a component it read."""
        return next(name for name, model in self.components.items() if type(component) is model)


class Plugins:
    """The plugins at hand, by the component types they read."""

    def __init__(self, plugins: Iterable[ComponentPlugin]) -> None:
        self._of_type: dict[str, ComponentPlugin] = {}
        for plugin in plugins:
            for component_type in plugin.components:
                other = self._of_type.setdefault(component_type, plugin)
                if other is not plugin:
                    text = f"the plugins '{other.name}' and '{plugin.name}' both read {component_type}"
                    raise ManifestError(Problem("plugin", text))

    def for_type(self, component_type: str) -> ComponentPlugin | None:
        """The plugin that reads components of this type."""
        return self._of_type.get(component_type)

    def of(self, component: Component) -> tuple[ComponentPlugin, str] | None:
        """The plugin that read a component, and its type there."""
        for component_type, plugin in self._of_type.items():
            if type(component) is plugin.components[component_type]:
                return plugin, component_type
        return None

    @property
    def known(self) -> Sequence[str]:
        """The component types they read."""
        return list(self._of_type)


@lru_cache(maxsize=1)
def installed() -> tuple[ComponentPlugin, ...]:
    """Those of installed packages."""
    return tuple(as_plugin(point.load()) for point in entry_points(group=GROUP))


def as_plugin(found: Any) -> ComponentPlugin:
    """A plugin from its class, or from itself.

    Raises:
        PluginError: it is none.
    """
    plugin = found() if inspect.isclass(found) and issubclass(found, ComponentPlugin) else found
    if not isinstance(plugin, ComponentPlugin):
        raise PluginError(f"{found!r} is no ComponentPlugin")
    return plugin
