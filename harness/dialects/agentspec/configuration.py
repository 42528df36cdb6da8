"""From documents to components: references are followed, places kept, and every fault collected.

spec: "Symbolic references", "Disaggregated components". A component that is referred to from several places is one
object. Inside a component, any value may be a reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from harness.dialects.agentspec.agents import AgenticComponent
from harness.dialects.agentspec.component import BROKEN, Component, component_fields, holds_one
from harness.dialects.agentspec.document import (
    LATER,
    PLUGIN,
    REFERENCE,
    TABLE,
    TYPE,
    TYPES,
    VERSION,
    referenced,
    version_problems,
)
from harness.dialects.agentspec.plugins import Plugins
from harness.errors import ManifestError, Problem, Span
from harness.source.document import Document
from harness.source.models import describe, validate
from harness.source.suggest import did_you_mean


class _Unreadable(Exception):
    """A value could not be read, and what is wrong with it has been noted."""


def _check_shapes(documents: Sequence[Document]) -> None:
    """spec: "A serialized configuration of disaggregated components contains only … `$referenced_components`".

    Raises:
        ManifestError: a document is no mapping, or one behind the first has more, or less, in it.
    """
    problems = []
    for document in documents:
        if not isinstance(document.value, dict):
            text = f"a configuration is a mapping, found {describe(document.value)}"
            problems.append(Problem("wrong-type", text, document.span()))
    for document in documents[1:]:
        if not isinstance(document.value, dict):
            continue
        for key in document.value:
            if key not in (TABLE, VERSION):
                text = f"unknown key '{key}' in a document of disaggregated components"
                hint = did_you_mean(key, [TABLE, VERSION])
                problems.append(Problem("unknown-key", text, document.key_span((key,)), hint))
        if not isinstance(document.value.get(TABLE, {}), dict):
            text = f"{TABLE}: expected a mapping, found {describe(document.value[TABLE])}"
            problems.append(Problem("wrong-type", text, document.span((TABLE,))))
        elif TABLE not in document.value:
            text = f"missing key '{TABLE}' in a document of disaggregated components"
            problems.append(Problem("missing-key", text, document.span()))
    if problems:
        raise ManifestError(problems)


def _of(part: Document, problem: Problem) -> Problem:
    """The problem with the name of the component it is in."""
    name = part.value.get("name") or part.value.get("id")
    return replace(problem, message=f"'{name}': {problem.message}") if _is_text(name) else problem


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


class Configuration:
    """The components of a main document, and of the documents it draws some from.

    `root` is the component at the top of the main document, `components` all that were read, inner ones first.
    """

    def __init__(self, documents: Sequence[Document], plugins: Plugins) -> None:
        self.plugins = plugins
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.unused: list[Problem] = []  # what is wrong with components that nothing refers to
        self.components: list[Component] = []
        _check_shapes(documents)
        for at, document in enumerate(documents):
            self._note_version(document, required=at == 0)
        if self.problems:  # what else is wrong with a version that is not known, nobody can tell
            raise ManifestError(self.problems)
        self._main = documents[0]
        self._later = self._main.value.get(VERSION) == "25.4.2" or VERSION not in self._main.value
        self._tables = self._referenced(documents)
        self._read: dict[str, Any] = {}  # what references lead to, by key
        self._open: list[str] = []  # the references being followed
        self._unreadable: set[str] = set()  # names and ids of components that could not be read
        self._ids: dict[str, Span] = {}
        self.root = self._root()
        self._look_at_unused(documents[0])

    def named(self, wanted: str | None) -> Component:
        """The agent or flow of that name (or id, or key); without a name, the one at the top.

        Raises:
            ManifestError: there is none, or it could not be read.
        """
        if wanted is None or wanted in (self.root.name, self.root.id):
            return self.root
        candidates = [item for item in self.components if isinstance(item, AgenticComponent)]
        for item in candidates:
            if wanted in (item.name, item.id):
                return item
        found = self._read.get(wanted)
        if isinstance(found, AgenticComponent):
            return found
        if wanted in self._unreadable or found is BROKEN:
            raise ManifestError(self.problems or self.unused)
        hint = did_you_mean(wanted, [item.name for item in candidates])
        text = f"no agent or flow '{wanted}' in the configuration"
        raise ManifestError(Problem("unknown-agent", text, self._main.span(), hint))

    # ------------------------------------------------------------------ documents

    def _referenced(self, documents: Sequence[Document]) -> dict[str, Document]:
        """What can be referred to, from all tables of all documents. A key may stand once."""
        tables: dict[str, Document] = {}
        for document in documents:
            for key, part in referenced(document):
                if key in tables:
                    text = f"'{key}' is in two tables of components; first at {tables[key].span()}"
                    self.problems.append(Problem("duplicate-reference", text, part.span()))
                tables.setdefault(key, part)
        return tables

    def _root(self) -> Component:
        value = self._main.value
        if TYPE not in value and REFERENCE not in value:
            text = "there is no component at the top that could be run"
            hint = "a document of disaggregated components goes behind the one that refers to them"
            self._refuse("no-component", text, self._main.span(), hint)
            return BROKEN
        return self._component(self._main.without(VERSION) if VERSION in value else self._main)

    def _look_at_unused(self, main: Document) -> None:
        """What nothing refers to cannot spoil a run: its faults are warnings. Ids are unique all the same."""
        own = {key for key, _ in referenced(main)}
        for key in [key for key in self._tables if key in own and key not in self._read]:
            part = self._tables[key]
            if not isinstance(part.value, dict) or TYPE not in part.value:
                continue
            before = len(self.problems)
            self._follow(key, part.span())
            faults = self.problems[before:]
            del self.problems[before:]
            for fault in faults:
                if fault.code == "duplicate-id":
                    self.problems.append(fault)
                else:
                    self.unused.append(fault)
                    text = f"{fault.message} (in '{key}', which nothing uses)"
                    self.warnings.append(replace(fault, message=text, severity="warning"))

    def _note_version(self, document: Document, *, required: bool = False) -> None:
        for problem in version_problems(document, required=required):
            (self.warnings if problem.severity == "warning" else self.problems).append(problem)

    def _refuse(self, code: str, text: str, span: Span, hint: str = "") -> None:
        self.problems.append(Problem(code, text, span, hint))

    # ------------------------------------------------------------------ components

    def _component(self, part: Document) -> Component:
        """The component that stands, or is referred to, at a place."""
        value = part.value
        if isinstance(value, dict) and REFERENCE in value:
            found = self._reference(part)
            if isinstance(found, Component):
                return found
            entry = self._tables[value[REFERENCE]]  # where it is told of once, however often it is used
            why = f"it has no {TYPE}" if isinstance(found, dict) else f"it is {describe(found)}"
            text = f"'{value[REFERENCE]}' is used as a component, but {why}"
            self._refuse("wrong-component", text, entry.span())
            return BROKEN
        if not isinstance(value, dict) or TYPE not in value:
            text = f"expected a component, with a {TYPE}, or a {REFERENCE}; found {describe(value)}"
            self._refuse("wrong-component", text, part.span())
            return BROKEN
        return self._made(part)

    def _made(self, part: Document) -> Component:
        """A component from its own text, its inner components first."""
        component_type = part.value[TYPE]
        if not isinstance(component_type, str):
            text = f"{TYPE}: expected text, found {describe(component_type)}"
            self._refuse("wrong-type", text, part.span((TYPE,)))
            return BROKEN
        plugin = self.plugins.for_type(component_type)
        model = TYPES.get(component_type) if plugin is None else plugin.components[component_type]
        if PLUGIN in part.value and model is None:
            text = f"{component_type} is a component of the plugin '{part.value[PLUGIN]}', which is not here"
            hint = "install it, or name its class under `hooks` in the scenario"
            self._refuse("unknown-plugin", text, part.span((TYPE,)), hint)
            return BROKEN
        if model is None:
            hint = did_you_mean(component_type, [*TYPES, *self.plugins.known])
            text = f"no component type '{component_type}' is known"
            self._refuse("unknown-component-type", text, part.span((TYPE,)), hint)
            return BROKEN
        self._register(part)
        try:
            of_plugin = plugin is not None or PLUGIN in part.value
            own = part.with_value(self._fields(part, model, of_plugin=of_plugin))
            made = validate(model, own) if plugin is None else plugin.deserialize(component_type, own)
        except (ManifestError, _Unreadable) as error:
            if isinstance(error, ManifestError):
                self.problems += [_of(part, problem) for problem in error.problems]
            self._unreadable |= {part.value[key] for key in ("name", "id") if _is_text(part.value.get(key))}
            return BROKEN
        made.found_in(part)
        self.components.append(made)
        return made

    def _fields(self, part: Document, model: type[Component], *, of_plugin: bool) -> dict[str, Any]:
        """The fields of a component with what is referred to in place of references."""
        fields: dict[str, Any] = {}
        unreadable = False
        for key in part.value:
            if key == TYPE or (of_plugin and key.startswith("component_plugin_")):
                continue
            try:
                fields.update(self._field(key, part, model, of_plugin=of_plugin))
            except _Unreadable:
                unreadable = True
        if unreadable:
            raise _Unreadable
        return fields

    def _field(
        self, key: str, part: Document, model: type[Component], *, of_plugin: bool
    ) -> Iterator[tuple[str, Any]]:
        value = part.value[key]
        if key == TABLE:
            if not isinstance(value, dict):
                text = f"{TABLE}: expected a mapping, found {describe(value)}"
                self._refuse("wrong-type", text, part.span((TABLE,)))
        elif key in component_fields(model):
            found = self._components(part.at((key,)))
            if found is BROKEN and not holds_one(model, key):
                raise _Unreadable
            yield key, found
        elif key in LATER and self._later and key not in model.model_fields:
            plain_values = LATER[key]
            if plain_values is not None and value not in plain_values:
                plain = " or ".join(describe(one) for one in plain_values)
                text = f"'{key}' other than {plain} is not supported"
                self._refuse("unsupported", text, part.span((key,)))
        elif key == "metadata" or not (of_plugin or key in model.model_fields):
            yield key, value
        else:
            yield key, self._plain(part.at((key,)))

    def _components(self, part: Document) -> Any:
        """A component, or a list of them; the list too may be referred to."""
        followed, target = self._target(part)
        if isinstance(target.value, list):
            self._read.update(dict.fromkeys(followed, target.value))
            return [self._component(target.at((at,))) for at in range(len(target.value))]
        return None if part.value is None else self._component(part)

    def _target(self, part: Document) -> tuple[list[str], Document]:
        """The keys of a chain of references, and what stands unread at its end; the part itself if it is none."""
        followed: list[str] = []
        while isinstance(part.value, dict) and _is_text(part.value.get(REFERENCE)):
            key = part.value[REFERENCE]
            if key not in self._tables or key in followed:
                break
            followed.append(key)
            part = self._tables[key]
        return followed, part

    def _register(self, part: Document) -> None:
        """spec: "If two components in an Agent Spec configuration use the same id", it is invalid."""
        id_ = part.value.get("id")
        if not _is_text(id_):
            return
        span = part.span(("id",))
        if id_ in self._ids:
            text = f"a second component with the id '{id_}'; the first is at {self._ids[id_]}"
            self._refuse("duplicate-id", text, span, "to use one component twice, refer to it")
        self._ids.setdefault(id_, span)

    # ------------------------------------------------------------------ references

    def _reference(self, part: Document) -> Any:
        """What a `{"$component_ref": key}` leads to; `BROKEN`, and a problem, if nothing."""
        key = part.value[REFERENCE]
        for extra in part.value:
            if extra not in (REFERENCE, TABLE):
                text = f"unknown key '{extra}' beside {REFERENCE}"
                self._refuse("unknown-key", text, part.key_span((extra,)))
        if not isinstance(key, str):
            text = f"{REFERENCE}: expected text, found {describe(key)}"
            self._refuse("wrong-type", text, part.span((REFERENCE,)))
            return BROKEN
        return self._follow(key, part.span((REFERENCE,)))

    def _follow(self, key: str, span: Span) -> Any:
        if key in self._read:
            return self._read[key]
        if key in self._open:
            circle = " → ".join([*self._open[self._open.index(key) :], key])
            self._refuse("circular-reference", f"components contain each other: {circle}", span)
            return BROKEN
        if key not in self._tables:
            hint = did_you_mean(key, self._tables)
            self._refuse("unknown-reference", f"no component '{key}' is here to refer to", span, hint)
            self._read[key] = BROKEN
            return BROKEN
        part = self._tables[key]
        _, end = self._target(part)
        is_component = isinstance(end.value, dict) and TYPE in end.value
        if is_component and VERSION in part.value:  # the official SDK gives one to what it disaggregates
            self._note_version(part)
            part = part.without(VERSION)
        self._open.append(key)
        try:
            self._read[key] = self._component(part) if is_component else self._plain(part)
        except _Unreadable:
            self._read[key] = BROKEN
        finally:
            self._open.pop()
        return self._read[key]

    def _plain(self, part: Document) -> Any:
        """A value with the values that are referred to in it. spec: "also values … can become referenced"."""
        value = part.value
        if isinstance(value, list):
            return [self._plain(part.at((at,))) for at in range(len(value))]
        if not isinstance(value, dict):
            return value
        if REFERENCE in value:
            found = self._reference(part)
            if isinstance(found, Component):
                if found is not BROKEN:
                    self._refuse("wrong-component", f"expected a value, found the {found}", part.span())
                raise _Unreadable
            return found
        return {key: self._plain(part.at((key,))) for key in value}
