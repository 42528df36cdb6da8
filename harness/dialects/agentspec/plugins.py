"""Components of other packages. spec: "Ecosystem of plugins".

A plugin reads and writes the component types it names, and runs those that are nodes. It is found under the
entry point group `harness.agentspec_plugins`, or is named by a scenario under `hooks` (its import path).
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Final

from harness.dialects.agentspec.agents import Agent, AgenticComponent, RemoteAgent
from harness.dialects.agentspec.component import Component
from harness.dialects.agentspec.flows import Flow, Node
from harness.dialects.agentspec.tables import TYPE
from harness.dialects.agentspec.visit import NodeResult
from harness.engine.context import NodeContext
from harness.errors import HarnessError, ManifestError, Problem
from harness.source.document import Document
from harness.source.models import describe, validate

GROUP: Final = "harness.agentspec_plugins"


class PluginError(HarnessError):
    """A plugin that cannot be used."""

    code = "plugin"


class ComponentPlugin(ABC):
    """Base class of plugins. `components` maps each component type to its model.

    A model is a class derived from `Component`, or, to stand where one of these may, from `Node`, `Tool`, …;
    it has the fields of its parent and may add some.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    components: ClassVar[Mapping[str, type[Component]]]

    def deserialize(self, component_type: str, document: Document) -> Component:
        """The component of a document in which nested components are already read.

        Raises:
            ManifestError: with everything that is wrong with it.
        """
        return validate(self.components[component_type], document)

    def serialize(self, component: Component, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of a component for its configuration. `fields` has nested components already written."""
        del component
        return fields

    @abstractmethod
    async def run(self, node: Node, inputs: Mapping[str, Any], ctx: NodeContext) -> NodeResult:
        """Run a node. `inputs` are by name, cast to their types; effects go through `ctx`.

        An exception fails the flow at this node.
        """


class Plugins:
    """The plugins of a configuration, by the component types they read.

    `warnings` name the installed plugins that cannot be used.

    Raises:
        PluginError: two of them read the same type.
    """

    def __init__(self, plugins: Iterable[ComponentPlugin], warnings: Sequence[Problem] = ()) -> None:
        self.warnings = warnings
        self._of_type: dict[str, ComponentPlugin] = {}
        for plugin in plugins:
            for component_type in plugin.components:
                other = self._of_type.setdefault(component_type, plugin)
                if other is not plugin:
                    text = f"the plugins '{other.name}' and '{plugin.name}' both read {component_type}"
                    raise PluginError(text)

    def for_type(self, component_type: str) -> ComponentPlugin | None:
        """The plugin that reads components of this type."""
        return self._of_type.get(component_type)

    def plugin_of(self, component: Component) -> ComponentPlugin | None:
        """The plugin of a component; None if its type belongs to Agent Spec."""
        return self.for_type(component.component_type)

    @property
    def component_types(self) -> Sequence[str]:
        """The component types they read."""
        return list(self._of_type)


def deserialize_component(plugin: ComponentPlugin, component_type: str, document: Document) -> Component:
    """The component that a plugin reads from a document.

    Raises:
        ManifestError: the plugin refuses it, fails, or returns something that cannot be used.
    """

    def refused(why: str, hint: str = "") -> ManifestError:
        text = f"the plugin '{plugin.name}', for {component_type}: {why}"
        return ManifestError(Problem("plugin", text, document.span((TYPE,)), hint))

    try:
        made = plugin.deserialize(component_type, document)
    except ManifestError:
        raise
    except Exception as error:
        raise refused(_error_text(error)) from error
    if not isinstance(made, Component):
        raise refused(f"expected a component, found {describe(made)}")
    if isinstance(made, AgenticComponent) and not isinstance(made, Agent | RemoteAgent | Flow):
        raise refused("it cannot be run", "derive it from Agent, RemoteAgent or Flow")
    return made


@lru_cache(maxsize=1)
def installed_plugins() -> tuple[Sequence[ComponentPlugin], Sequence[Problem]]:
    """The plugins of installed packages, and a warning for each that cannot be used."""
    plugins, warnings = [], []
    for point in entry_points(group=GROUP):
        try:
            plugins.append(as_plugin(point.load(), point.value))
        except PluginError as error:
            warnings.append(_broken(point, str(error)))
        except (Exception, SystemExit) as error:  # a package may raise anything when it is imported
            warnings.append(_broken(point, _error_text(error)))
    return plugins, warnings


def _broken(point: EntryPoint, why: str) -> Problem:
    text = f"the installed plugin '{point.name}' ({point.value}) cannot be used: {why}"
    return Problem("plugin", text, severity="warning")


def as_plugin(found: Any, name: str) -> ComponentPlugin:
    """The plugin that an object is, or an instance of a plugin class. Messages call it `name`.

    Raises:
        PluginError: it is not a plugin, or an incomplete one.
    """
    plugin = found
    if inspect.isclass(found) and issubclass(found, ComponentPlugin):
        try:
            plugin = found()
        except Exception as error:
            raise PluginError(f"'{name}' cannot be made: {_error_text(error)}") from error
    if not isinstance(plugin, ComponentPlugin):
        raise PluginError(f"'{name}' is not a ComponentPlugin")
    for attribute in ("name", "version"):
        value = getattr(plugin, attribute, None)
        if not isinstance(value, str):
            raise PluginError(f"'{name}' needs a '{attribute}': expected text, found {describe(value)}")
    if not _are_models(getattr(plugin, "components", None)):
        raise PluginError(f"'{name}' needs 'components': expected a mapping from types to Component classes")
    return plugin


def _are_models(found: Any) -> bool:
    return isinstance(found, Mapping) and all(
        isinstance(name, str) and inspect.isclass(model) and issubclass(model, Component)
        for name, model in found.items()
    )


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
