"""Reading documents into components, with source locations; all problems are collected.

All references to a component give the same object. Inside a component, any value may be a reference (`references`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from harness.dialects.agentspec import document as doc
from harness.dialects.agentspec.agents import AgenticComponent
from harness.dialects.agentspec.component import (
    BROKEN,
    Component,
    component_fields,
    holds_lists,
    holds_single_component,
    may_hold_text,
)
from harness.dialects.agentspec.data_rules import nearest_type
from harness.dialects.agentspec.dialect import REFERENCE, TABLE, TYPE, VERSION, table_entries
from harness.dialects.agentspec.plugins import Plugins, deserialize_component
from harness.dialects.agentspec.references import (
    MAX_NODES,
    Budget,
    References,
    TooManyNodes,
    UnreadableValue,
)
from harness.dialects.kit.manifest import Problems
from harness.dialects.kit.rules import sexagesimals
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem, Span
from harness.source.display import did_you_mean
from harness.source.document import Document
from harness.source.models import describe, keys_of, validate

_OMITTED: Final = object()


class Configuration:
    """The components of a main document, and of the disaggregated documents that it refers to.

    root        the component at the top of the main document
    components  all components that were read, nested ones first
    problems    the problems found so far
    unused      the problems of components that nothing refers to, which are warnings in `problems`
    """

    def __init__(self, documents: Sequence[Document], plugins: Plugins, request: LoadRequest) -> None:
        self.plugins = plugins
        self.unused: list[Problem] = []
        self.components: list[Component] = []
        self.problems = Problems(plugins.warnings)
        doc.check_shapes(documents)
        for index, document in enumerate(documents):
            self.problems.add(doc.version_problems(document, required=index == 0))
            self.problems.add(sexagesimals(document))
        self.problems.raise_errors()  # the rest of a document in an unknown version cannot be checked
        self._main = documents[0]
        self._version = doc.version_of(self._main)
        self._needed_version = doc.VERSIONS[0]  # what was read so far needs this version, or a later one
        self._references = References(documents, self.problems, self._read_component)
        self._references.map(request.components, request.components_at)
        self._unreadable: set[str] = set()  # names and ids of components that could not be read
        self._ids: dict[str, Span] = {}
        self.root = self._root()
        self._read_unused()
        self._advise_version()
        if VERSION not in self._main.value:
            text = f"no {VERSION}: {doc.VERSIONS[-1]} is assumed"
            hint = f"say {VERSION}: {self._needed_version}"
            self.problems.add([Problem("no-version", text, self._main.span(), hint, "warning")])

    def find(self, wanted: str | None) -> Component:
        """Return the agent or flow with this name, id or key; the root component if `wanted` is None.

        Raises:
            ManifestError: it does not exist, or could not be read.
        """
        if wanted is None or wanted in (self.root.name, self.root.id):
            return self.root
        candidates = [item for item in self.components if isinstance(item, AgenticComponent)]
        for item in candidates:
            if wanted in (item.name, item.id):
                return item
        found = self._references.values.get(wanted)
        if isinstance(found, AgenticComponent):
            return found
        if wanted in self._unreadable or found is BROKEN:
            raise ManifestError(self.problems.errors or self.unused)
        hint = did_you_mean(wanted, [item.name for item in candidates])
        text = f"no agent or flow '{wanted}' in the configuration"
        raise ManifestError(Problem("unknown-agent", text, self._main.span(), hint))

    def _root(self) -> Component:
        problem = doc.top_problem(self._main)
        if problem is not None:
            self.problems.add([problem])
            return BROKEN
        return self._read_component(
            self._main.without(VERSION) if VERSION in self._main.value else self._main
        )

    def _read_unused(self) -> None:
        """Read the components that nothing refers to. Their problems become warnings, except for duplicate ids."""
        for key, part in list(table_entries(self._main)):
            if key in self._references.values or not isinstance(part.value, dict) or TYPE not in part.value:
                continue
            errors = self.problems.errors
            before = len(errors)
            self._references.follow(key, part.span())
            faults = errors[before:]
            del errors[before:]
            for fault in faults:
                if fault.code == "duplicate-id":
                    errors.append(fault)
                else:
                    self.unused.append(fault)
                    text = f"{fault.message} (in '{key}', which nothing uses)"
                    self.problems.warnings.append(replace(fault, message=text, severity="warning"))

    # ------------------------------------------------------------------ components

    def _read_component(self, part: Document) -> Component:
        """Read the component that a part of a document defines or refers to."""
        value = part.value
        if isinstance(value, dict) and REFERENCE in value:
            found = self._references.resolve(part)
            if isinstance(found, Component):
                return found
            key = value[REFERENCE]
            why = f"it has no {TYPE}" if isinstance(found, dict) else f"it is {describe(found)}"
            # Located at the definition, so that it is reported only once.
            place = self._references.entry(key).span()
            self.problems.refuse("wrong-component", f"'{key}' is used as a component, but {why}", place)
            return BROKEN
        if not isinstance(value, dict) or TYPE not in value:
            text = f"expected a component, with a {TYPE}, or a {REFERENCE}; found {describe(value)}"
            self.problems.refuse("wrong-component", text, part.span(), self._component_hint(value))
            return BROKEN
        return self._build_component(part)

    def _component_hint(self, value: Any) -> str:
        """Return a hint for a value that is not a component: a bare key, or the notation of older versions."""
        if isinstance(value, dict) and "$ref" in value:
            return f"write {{{REFERENCE}: {value['$ref']}}}"
        if isinstance(value, dict) and value.get("type") in tuple(doc.TYPES):
            return f"write {TYPE}: {value['type']}"
        return f"write {{{REFERENCE}: {value}}}" if self._is_key(value) else ""

    def _is_key(self, value: Any) -> bool:
        return isinstance(value, str) and value in self._references

    def _build_component(self, part: Document) -> Component:
        """Build the component that a part of a document defines. Its nested components are read first."""
        component_type = part.value[TYPE]
        plugin = self.plugins.for_type(component_type) if isinstance(component_type, str) else None
        model = self._model(part)
        if model is None:
            return BROKEN
        self._register(part)
        try:
            of_plugin = plugin is not None or doc.PLUGIN in part.value
            own = part.with_value(self._fields(part, model, of_plugin=of_plugin))
            made = (
                validate(model, own) if plugin is None else deserialize_component(plugin, component_type, own)
            )
        except (ManifestError, UnreadableValue) as error:
            if isinstance(error, ManifestError):
                self.problems.add(_with_owner(part, problem) for problem in error.problems)
            self._unreadable |= {part.value[key] for key in ("name", "id") if _is_text(part.value.get(key))}
            return BROKEN
        made.set_source(part, component_type)
        for value in doc.LATER_VALUES:
            if isinstance(made, value.kind) and value.has_value(made):
                self._tell_later(part, value.text, value.since, made.span(value.field), works=True)
        self.components.append(made)
        return made

    def _model(self, part: Document) -> type[Component] | None:
        """Return the model of the component that a part defines. If its type is unknown, add a problem; None."""
        component_type, span = part.value[TYPE], part.span((TYPE,))
        if not isinstance(component_type, str):
            text = f"{TYPE}: expected text, found {describe(component_type)}"
            self.problems.refuse("wrong-type", text, span)
            return None
        plugin = self.plugins.for_type(component_type)
        model = doc.TYPES.get(component_type) if plugin is None else plugin.components[component_type]
        since = doc.LATER_TYPES.get(component_type) if plugin is None else None
        if model is not None:
            if since is not None:
                self._tell_later(part, component_type, since, span)
            return model
        broken = [warning.message for warning in self.plugins.warnings]
        if doc.PLUGIN in part.value:
            text = f"{component_type} is a component of the plugin '{part.value[doc.PLUGIN]}', which is not installed"
            hint = "; ".join(broken) or "install it, or name its class under `hooks` in the scenario"
            self.problems.refuse("unknown-plugin", text, span, hint)
        elif since is not None:
            text = f"component type '{component_type}', of Agent Spec {since}, is not supported"
            self.problems.refuse("unsupported", text, span)
        else:
            of = {name: doc.LATER_TYPES.get(name, doc.VERSIONS[0]) for name in doc.TYPES}
            known = [name for name in of if not doc.later(of[name], self._version)]
            hint = "; ".join([nearest_type(component_type, [*known, *self.plugins.component_types]), *broken])
            text = f"unknown component type '{component_type}'"
            self.problems.refuse("unknown-component-type", text, span, hint)
        return None

    def _register(self, part: Document) -> None:
        """Register the id of a component. spec: invalid "if two components … use the same id"."""
        id_ = part.value.get("id")
        if not _is_text(id_):
            return
        span = part.span(("id",))
        if id_ in self._ids:
            text = f"a second component with the id '{id_}'; the first is at {self._ids[id_]}"
            self.problems.refuse("duplicate-id", text, span, "to use one component twice, refer to it")
        self._ids.setdefault(id_, span)

    # ------------------------------------------------------------------ fields

    def _fields(self, part: Document, model: type[Component], *, of_plugin: bool) -> dict[str, Any]:
        """Read the fields of a component and resolve the references in them.

        Raises:
            UnreadableValue: a field could not be read. The others were read, and their problems collected.
        """
        if not isinstance(part.value.get(TABLE, {}), dict):
            text = f"{TABLE}: expected a mapping, found {describe(part.value[TABLE])}"
            self.problems.refuse("wrong-type", text, part.span((TABLE,)))
        budget = Budget()
        fields: dict[str, Any] = {}
        unreadable = False
        for key in part.value:
            if key in (TYPE, TABLE) or (of_plugin and key.startswith(doc.PLUGIN_KEYS)):
                continue
            try:
                fields[key] = self._field(key, part, model, budget, of_plugin=of_plugin)
            except UnreadableValue:
                unreadable = True
            except TooManyNodes:
                text = f"more than {MAX_NODES:,} values in a component, with its references expanded"
                raise ManifestError(Problem("too-many-nodes", text, part.key_span((key,)))) from None
        if unreadable:
            raise UnreadableValue
        return {key: value for key, value in fields.items() if value is not _OMITTED}

    def _field(
        self, key: str, part: Document, model: type[Component], budget: Budget, *, of_plugin: bool
    ) -> Any:
        """Read the value of one field; `_OMITTED` if the model has no such field and it is accepted."""
        newer = doc.later_field(model, key)
        if newer is not None:
            self._check_later(newer, part, model)
        if key in component_fields(model):
            return self._components(key, part.at((key,)), model)
        if key in keys_of(model) and key != "metadata":
            return self._references.value(part.at((key,)), budget)
        if newer is not None:
            return _OMITTED
        if issubclass(model, doc.WAYFLOW_FIELDS.get(key, ())):
            self._check_wayflow_field(key, part)
            return _OMITTED
        if of_plugin and key != "metadata":
            return self._references.value(part.at((key,)), budget)
        return part.value[key]  # metadata, which is not interpreted, or a key that the model refuses

    def _components(self, key: str, part: Document, model: type[Component]) -> Any:
        """Read a field of components: one, a list of them (or of them and texts), or a list of such lists."""
        if holds_single_component(model, key):
            return self._component_or_list(part)
        if isinstance(part.value, list):
            items = [part.at((index,)) for index in range(len(part.value))]
            if may_hold_text(model, key):
                return [
                    each.value if isinstance(each.value, str) else self._read_component(each)
                    for each in items
                ]
            if holds_lists(model, key):
                return [self._component_list(key, each) for each in items]
        return self._component_list(key, part)

    def _component_or_list(self, part: Document) -> Any:
        """Read a component. A list, too, is read, and the model refuses it."""
        found = self._references.components(part)
        if found is not None:
            return found
        return None if part.value is None else self._read_component(part)

    def _component_list(self, key: str, part: Document) -> Any:
        """Read a list of components."""
        value = part.value
        if value is not None and not isinstance(value, dict | list):
            hint = f"write [{{{REFERENCE}: {value}}}]" if self._is_key(value) else ""
            text = f"{key}: expected a list of components, found {describe(value)}"
            self.problems.refuse("wrong-component", text, part.span(), hint)
            raise UnreadableValue
        found = self._component_or_list(part)
        if found is BROKEN:
            raise UnreadableValue
        return found

    def _check_later(self, field: doc.LaterField, part: Document, model: type[Component]) -> None:
        """Refuse a field of a later version than the configuration's, and a value that is not supported.

        A neutral value, which changes nothing, is only a warning.
        """
        key, neutral = field.name, field.neutral_values
        works = neutral is None or part.value[key] in neutral
        if works or key in keys_of(model):
            what = f"'{key}' in {model.model_config['title']}"
            self._tell_later(part, what, field.since, part.key_span((key,)), works=works)
        else:
            plain = " or ".join(map(describe, neutral or ()))
            text = f"'{key}' other than {plain}, of Agent Spec {field.since}, is not supported"
            self.problems.refuse("unsupported", text, part.span((key,)))

    def _tell_later(self, part: Document, what: str, since: str, span: Span, *, works: bool = False) -> None:
        """Note that a component needs a version, and tell it if the configuration has an earlier one.

        `works`: it works in the earlier version all the same, so it is a warning.
        """
        if doc.later(since, self._needed_version):
            self._needed_version = since
        if doc.later(since, self._version):
            text = f"{what}: new in {since}, and this configuration says {self._main.value[VERSION]}"
            problem = Problem("later-version", text, span, severity="warning" if works else "error")
            self.problems.add([_with_owner(part, problem)])

    def _advise_version(self) -> None:
        """Advise the version that has all that was read."""
        hint = f"say {VERSION}: {self._needed_version}"
        for problems in (self.problems.errors, self.problems.warnings, self.unused):
            problems[:] = [
                replace(problem, hint=hint) if problem.code == "later-version" else problem
                for problem in problems
            ]

    def _check_wayflow_field(self, key: str, part: Document) -> None:
        """Warn of a field that only WayFlow writes if it is an empty list; refuse it otherwise."""
        text = f"'{key}' is not a key of {part.value[TYPE]}"
        if part.value[key] == []:
            text = f"{text}; it is empty, so it is ignored"
            problem = Problem("unknown-key", text, part.key_span((key,)), severity="warning")
        else:
            text = f"{text}: a value other than [] is not supported"
            problem = Problem("unsupported", text, part.span((key,)))
        self.problems.add([_with_owner(part, problem)])


def _with_owner(part: Document, problem: Problem) -> Problem:
    """Prefix a problem with the name of its component. Without a location, it gets that of the component."""
    name = part.value.get("name") or part.value.get("id")
    message = f"'{name}': {problem.message}" if _is_text(name) else problem.message
    return replace(problem, message=message, span=problem.span or part.span((TYPE,)))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
