"""Plugins, which add component types. spec: "Ecosystem of plugins".

A plugin reads and writes components of its types, and runs those that are nodes. It is installed through an entry
point in the group `harness.agentspec_plugins`, or a scenario names its import path under `hooks`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import entry_points
from itertools import count
from typing import Any, ClassVar, Final

from harness.dialects.agentspec.agents import Agent, AgenticComponent, RemoteAgent, SpecializedAgent, Team
from harness.dialects.agentspec.component import Component, ComponentWithIO, component_fields
from harness.dialects.agentspec.data_flow import NodeResult
from harness.dialects.agentspec.dialect import REFERENCE, TABLE, TYPE, VERSION
from harness.dialects.agentspec.document import VERSIONS, later, later_field
from harness.dialects.agentspec.flows import Flow, Node
from harness.engine.context import NodeContext
from harness.errors import HarnessError, ManifestError, Problem
from harness.graph.to_json import to_json
from harness.source.document import Document
from harness.source.models import describe, validate

GROUP: Final = "harness.agentspec_plugins"


class PluginError(HarnessError):
    """A plugin that cannot be used."""

    code = "plugin"


class ComponentPlugin(ABC):
    """Base class of plugins. `components` maps each component type to its model.

    A model is a class derived from `Component`, or from `Node`, `Tool`, … to be allowed where one of these is. It
    inherits the fields of its base class and may add some.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    components: ClassVar[Mapping[str, type[Component]]]

    def deserialize(self, component_type: str, document: Document) -> Component:
        """Make a component from a document whose nested components are already read.

        Raises:
            ManifestError: with all problems of the component.
        """
        return validate(self.components[component_type], document)

    def serialize(self, component: Component, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of a component for a configuration. In `fields`, nested ones are already serialized."""
        del component
        return fields

    @abstractmethod
    async def run(self, node: Node, inputs: Mapping[str, Any], ctx: NodeContext) -> NodeResult:
        """Run a node and return its result. An exception fails the flow at this node.

        Args:
            node: the node.
            inputs: its inputs by name, cast to their types.
            ctx: the context of the visit; effects are performed through it.
        """


class Plugins:
    """The plugins of a configuration, by the component types they read.

    `warnings` are those of installed plugins that cannot be used.

    Raises:
        PluginError: two plugins read the same type.
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
        """Return the plugin that reads components of this type; None if there is none."""
        return self._of_type.get(component_type)

    def plugin_of(self, component: Component) -> ComponentPlugin | None:
        """Return the plugin of a component; None if its type belongs to Agent Spec."""
        return self.for_type(component.component_type)

    @property
    def component_types(self) -> Sequence[str]:
        """The component types that the plugins read."""
        return list(self._of_type)


def deserialize_component(plugin: ComponentPlugin, component_type: str, document: Document) -> Component:
    """Let a plugin read a component from a document.

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
    if isinstance(made, AgenticComponent) and not isinstance(
        made, Agent | SpecializedAgent | RemoteAgent | Team | Flow
    ):
        raise refused("it cannot be run", "derive it from Agent, RemoteAgent or Flow")
    return made


@lru_cache(maxsize=1)
def installed_plugins() -> tuple[Sequence[ComponentPlugin], Sequence[Problem]]:
    """Return the plugins of installed packages, and a warning for each that cannot be used."""
    plugins, warnings = [], []
    for point in entry_points(group=GROUP):
        try:
            plugins.append(as_plugin(point.load(), point.value))
        except (Exception, SystemExit) as error:  # importing a package can raise anything
            why = str(error) if isinstance(error, PluginError) else _error_text(error)
            text = f"the installed plugin '{point.name}' ({point.value}) cannot be used: {why}"
            warnings.append(Problem("plugin", text, severity="warning"))
    return plugins, warnings


def as_plugin(found: Any, name: str) -> ComponentPlugin:
    """Return an object that is a plugin, or an instance of a plugin class. `name` is its name in messages.

    Raises:
        PluginError: it is not a plugin, or is incomplete.
    """
    plugin = found
    if inspect.isclass(found) and issubclass(found, ComponentPlugin):
        try:
            plugin = found()
        except Exception as error:
            raise PluginError(f"'{name}' cannot be instantiated: {_error_text(error)}") from error
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


def serialize(component: Component, plugins: Plugins, *, version: str = VERSIONS[0]) -> dict[str, Any]:
    """Return the configuration of a component without errors, as JSON data. Reading it gives an equal component.

    Components that are used more than once become references. Fields that a later version adds are left out if they
    have their defaults.
    """
    serializer = _Serializer(component, plugins, version)
    top = serializer.definition(component)
    tables = {TABLE: serializer.tables()} if serializer.shared else {}
    return {**top, **tables, VERSION: version}


class _Serializer:
    """A serializer of one root component. `shared` has the keys of the components that are used more than once."""

    def __init__(self, root: Component, plugins: Plugins, version: str) -> None:
        self.plugins = plugins
        self.version = version
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
            if not self._is_left_out(component, name)
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

    def _is_left_out(self, component: Component, name: str) -> bool:
        """True for the default of a field that a later version adds."""
        added = later_field(type(component), name)
        if added is None or not later(added.since, self.version):
            return False
        return bool(
            getattr(component, name)
            == type(component).model_fields[name].get_default(call_default_factory=True)
        )

    def _field_value(self, value: Any) -> Any:
        """Return the value of a field with a component or a list of them: definitions or references."""
        if isinstance(value, list):
            return [self._field_value(item) for item in value]
        if value is None or isinstance(value, str):
            return value
        return {REFERENCE: self.shared[value]} if value in self.shared else self.definition(value)


def _free_key(name: str, taken: Collection[str]) -> str:
    """Return an unused key for a component without an id."""
    return next(key for number in count(1) if (key := f"{name}-{number}") not in taken)
