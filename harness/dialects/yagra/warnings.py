"""Warnings of params that a built-in handler does not read or will refuse, of prompts, and of state keys.

They are not errors, because a scenario may replace a built-in handler; then they do not apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from string import Formatter
from typing import Any, Final

from harness.dialects.yagra import model_nodes
from harness.dialects.yagra.document import ERROR, NEXT, SUBGRAPH, NodeSpec, Workflow
from harness.dialects.yagra.nodes import BUILT_IN, unless_replaced
from harness.dialects.yagra.prompts import MESSAGES, PROMPT_REF, Params, ResolvedPrompt, first_stray_brace
from harness.errors import Problem, Span, Unless
from harness.graph.model import Graph
from harness.source.display import did_you_mean, nearest
from harness.source.document import Document, DocumentPath

_MODEL: Final = "model"
_PARAMS_OF_MODELS: Final = (PROMPT_REF, _MODEL, model_nodes.OUTPUT_KEY)
_READ: Final[Mapping[str, Sequence[str]]] = {
    "llm": _PARAMS_OF_MODELS,
    "structured_llm": (*_PARAMS_OF_MODELS, model_nodes.SCHEMA),
    "streaming_llm": (*_PARAMS_OF_MODELS, "stream"),
    SUBGRAPH: ("workflow_ref",),
}
"""The params that each built-in handler has. `stream` is declared, and changes nothing: each reply is a stream."""

_KEYS_OF_A_MODEL: Final = ("provider", "name", "kwargs")
_NODE_KEYS: Final = frozenset(NodeSpec.model_fields) | {"timeout"}
_SETTINGS: Final = frozenset(
    ("temperature", "max_tokens", "top_p", "stop", "seed", "n", "presence_penalty", "frequency_penalty")
)


def model_warnings(workflow: Workflow, document: Document, params: Sequence[Params]) -> Iterator[Problem]:
    """Yield the warnings of all nodes with a built-in handler, each once: nodes share the global `params`."""
    found = (
        problem
        for index, node in enumerate(workflow.nodes)
        if node.handler in _READ
        for problem in _NodeWarnings(node, index, document, params[index]).warnings()
    )
    yield from dict.fromkeys(found)


class _NodeWarnings:
    """The warnings of one node."""

    def __init__(self, node: NodeSpec, index: int, document: Document, params: Params) -> None:
        self.node, self.index, self.document, self.params = node, index, document, params

    def warnings(self) -> Iterator[Problem]:
        """Yield the warnings."""
        yield from self._unread()
        if self.node.handler in BUILT_IN:
            yield from self._unread_of_model()
            yield from self._refused()
            yield from self._prompt()

    def _unread(self) -> Iterator[Problem]:
        read = _READ[self.node.handler]
        for name in self.node.params:
            if name not in read:
                text = f"node '{self.node.id}': its handler {self.node.handler} does not read '{name}'"
                hint = did_you_mean(name, read)
                if name in _NODE_KEYS:
                    meant = nearest(name, sorted(NodeSpec.model_fields))
                    hint = f"'{meant}' belongs next to params, not inside it"
                elif name in _SETTINGS and self.node.handler in BUILT_IN:
                    hint = _setting(name)
                yield self._warning("unread-param", text, self.document.key_span(self._path(name)), hint)

    def _unread_of_model(self) -> Iterator[Problem]:
        model = self.params.values.get(_MODEL)
        for name in model if isinstance(model, Mapping) else ():
            if name not in _KEYS_OF_A_MODEL:
                near = nearest(name, _KEYS_OF_A_MODEL)
                hint = f"did you mean '{near}'?" if near else _setting(name)
                text = f"'{name}' of a model is not read: it has provider, name and kwargs"
                where = self.document.key_span((*self._path(_MODEL), name))
                yield self._warning("unread-param", text, where, hint)

    def _refused(self) -> Iterator[Problem]:
        """Yield warnings of params that are invalid whatever the state is."""
        values = self.params.values
        checks: dict[str, Callable[[], object]] = {
            model_nodes.OUTPUT_KEY: lambda: model_nodes.output_key_of(values),
            _MODEL: lambda: model_nodes.model_of(values),
            PROMPT_REF: lambda: model_nodes.templates_of(values),
        }
        if self.node.handler == "structured_llm":
            checks[model_nodes.SCHEMA] = lambda: model_nodes.schema_of(values.get(model_nodes.SCHEMA))
        for name, check in checks.items():
            try:
                check()
            except model_nodes.ModelParamsError as error:
                prompt = self.params.prompt
                if name == PROMPT_REF and prompt is not None:
                    yield self._refusal(error, prompt.span, "refer to a mapping with system and user")
                else:
                    yield self._refusal(error, self.document.span(self._path(name)))

    def _prompt(self) -> Iterator[Problem]:
        prompt = self.params.prompt
        if prompt is None or not isinstance(prompt.value, dict):
            return
        if not any(part in prompt.value for part in MESSAGES):
            text = f"node '{self.node.id}': its prompt has neither system nor user, so the model is asked nothing"
            yield self._warning("empty-prompt", text, prompt.span, _keys_hint(prompt))
        for name in prompt.value:
            near = nearest(name, MESSAGES) if name not in MESSAGES else None
            if near is not None and isinstance(prompt.value[name], str):
                text = f"node '{self.node.id}': '{name}' of its prompt is not read"
                where = prompt.document.key_span((*prompt.path, name))
                yield self._warning("unread-param", text, where, f"did you mean '{near}'?")
        yield from self._unfillable(prompt)

    def _unfillable(self, prompt: ResolvedPrompt) -> Iterator[Problem]:
        """Yield a warning of the first prompt that cannot be filled, whatever the state is."""
        try:
            model_nodes.fill_prompts(model_nodes.templates_of(self.params.values), {})
        except model_nodes.ModelParamsError as error:
            template = prompt.value.get(error.part)
            names = {name for name, _ in prompt.placeholders()}
            if template is not None and _always_fails(template, names):
                yield self._refusal(error, prompt.span_of(error.part, first_stray_brace(template)))

    def _refusal(self, error: model_nodes.ModelParamsError, where: Span, hint: str = "") -> Problem:
        text = f"node '{self.node.id}': its handler {self.node.handler} will fail: {error}"
        return self._warning("model-params", text, where, hint)

    def _path(self, name: str) -> tuple[str | int, ...]:
        """Return the path of a param in the document: the node's own, or the global one."""
        inherited = name in self.params.values and name not in self.node.params
        return ("params", name) if inherited else ("nodes", self.index, "params", name)

    def _warning(self, code: str, text: str, where: Span, hint: str) -> Problem:
        return Problem(code, text, where, hint, "warning", unless_replaced(self.node))


def _setting(name: str) -> str:
    return f"put settings under kwargs: model: {{…, kwargs: {{{name}: …}}}}"


def _keys_hint(prompt: ResolvedPrompt) -> str:
    """Suggest the reference to a prompt nested in this one; empty if there is none."""
    inside: Any = prompt.value
    for name, value in inside.items():
        if isinstance(value, dict) and any(part in value for part in MESSAGES):
            key = f"{prompt.reference.key}.{name}" if prompt.reference.key else name
            return f"did you mean '{prompt.reference.file}#{key}'?"
    return ""


def _always_fails(template: str, names: Collection[str]) -> bool:
    """True if a template that cannot be filled with empty texts fails with any values.

    It is then no format string, reads an attribute, or has a field whose name is not among `names`. Any other
    failure is of formatting or indexing an empty text, which may succeed with another value.
    """
    try:
        fields = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
    except ValueError:
        return True
    first = [re.split(r"[.\[]", field)[0] for field in fields]
    return any("." in field for field in fields) or any(name.isdigit() or name not in names for name in first)


def placeholder_warnings(
    workflow: Workflow, params: Sequence[Params], subgraphs: Mapping[str, Graph]
) -> Iterator[Problem]:
    """Yield a warning of each placeholder that nothing is known to set, or whose braces are doubled."""
    known = _state_keys(workflow, params, subgraphs)
    may_be_more = not workflow.state_schema and any(graph.open_state for graph in subgraphs.values())
    items_of, others = item_keys(workflow)
    for node, resolved in zip(workflow.nodes, params, strict=True):
        items = items_of.get(node.id, set())
        alone = bool(items) and node.id not in others
        here = items if alone else known | items
        for name, where in resolved.prompt.placeholders() if resolved.prompt else ():
            if name in here or (may_be_more and not alone):
                continue
            why = "it is neither in state_schema nor the output_key of a node"
            if alone:
                why = f"the node runs for each item, and is given {', '.join(sorted(items))} alone"
            text = f"node '{node.id}': nothing is known to set '{{{name}}}' of its prompt: {why}"
            hint = did_you_mean(name, sorted(here), listing=False)
            # With a schema, keys that it lacks are dropped from inputs and answers.
            unless = None if workflow.state_schema or alone else Unless("key", name)
            yield Problem("unknown-placeholder", text, where, hint, "warning", unless)
        for name, where in resolved.prompt.placeholders(doubled=True) if resolved.prompt else ():
            if name in here:
                text = f"node '{node.id}': '{{{{{name}}}}}' of its prompt is not filled in: doubled braces are text"
                yield Problem("unknown-placeholder", text, where, f"write {{{name}}}", "warning")


def _state_keys(workflow: Workflow, params: Sequence[Params], subgraphs: Mapping[str, Graph]) -> set[str]:
    """Return the state keys that a workflow is known to set."""
    known = {*workflow.state_schema, *(resolved.output_key for resolved in params)}
    if any(node.fallback is not None for node in workflow.nodes):
        known.add(ERROR)
    if any(edge.condition is not None for edge in workflow.edges):
        known.add(NEXT)
    if not workflow.state_schema:
        known.update(channel.name for graph in subgraphs.values() for channel in graph.channels)
    return known


def item_keys(workflow: Workflow) -> tuple[Mapping[str, set[str]], Collection[str | None]]:
    """Return the item keys of the fan-outs to each node, and the nodes that are run by other means, too."""
    items: dict[str, set[str]] = {}
    others = {workflow.start_at, *(node.fallback for node in workflow.nodes)}
    for edge in workflow.edges:
        if edge.fan_out is None:
            others.add(edge.target)
        else:
            items.setdefault(edge.target, set()).add(edge.fan_out.item_key)
    return items, others


def version_warnings(params: Sequence[Params]) -> Iterator[Problem]:
    """Yield a warning of each prompt whose file has another version than the reference pins."""
    for resolved in params:
        prompt = resolved.prompt
        if prompt is None or prompt.reference.version in (None, prompt.version):
            continue
        found = f"is of version '{prompt.version}'" if prompt.version else "has no _meta.version"
        text = f"prompt version '{prompt.reference.version}' is asked for, and {prompt.document.file} {found}"
        yield Problem("prompt-version", text, prompt.span, severity="warning")


OPEN_STATE_HINT: Final = (
    "declare what they write in state_schema, with reducer: add where several write the same"
)

CARRIED_KEY_HINT: Final = (
    "a node writes back every key that it was given: declare it with `type: list` and `reducer: add`; the item of a "
    "fan_out needs no declaration"
)


def state_warnings(workflow: Workflow, document: Document, params: Sequence[Params]) -> Iterator[Problem]:
    """Yield the warnings of output keys, and of nodes that write the same key in one superstep."""
    yield from _output_keys(workflow, document, params)
    if workflow.state_schema:
        yield from _kept_item_keys(workflow, document)
        yield from _mapped_outputs(workflow, document, params)
    else:
        yield from _parallel_nodes(workflow, document)


def _output_keys(workflow: Workflow, document: Document, params: Sequence[Params]) -> Iterator[Problem]:
    fields = workflow.state_schema
    for index, (node, resolved) in enumerate(zip(workflow.nodes, params, strict=True)):
        has_prompt = resolved.prompt is not None and isinstance(resolved.prompt.value, dict)
        if not (fields and has_prompt and writes_output_key(workflow, node, resolved)):
            continue
        key, where = resolved.output_key, ("nodes", index, "params", model_nodes.OUTPUT_KEY)
        if key not in fields:
            text = f"node '{node.id}': its output_key '{key}' is not in state_schema, so its output is lost"
            unless = None if model_nodes.OUTPUT_KEY in resolved.values else unless_replaced(node)
            yield _warning("undeclared-output", text, document, where, did_you_mean(key, fields), unless)
        elif fields[key].is_reduced_list and node.handler in BUILT_IN:
            text = f"node '{node.id}': '{key}' appends lists (reducer: add), and {node.handler} writes none"
            hint = f"write another key, and have a handler of your own return {{{key}: [...]}}"
            yield _warning("not-a-list", text, document, where, hint, unless_replaced(node))


def writes_output_key(workflow: Workflow, node: NodeSpec, params: Params) -> bool:
    """True if a node writes its output key: it is written in its params, or the default of a model node."""
    if model_nodes.OUTPUT_KEY in params.values:
        return True
    return node.handler in BUILT_IN and not workflow.has_conditional_edges(node.id)


def _kept_item_keys(workflow: Workflow, document: Document) -> Iterator[Problem]:
    """Yield a warning of each item key that the state keeps: every mapped call writes back its item."""
    subgraphs = {node.id for node in workflow.nodes if node.handler == SUBGRAPH}
    for index, edge in enumerate(workflow.edges):
        if edge.fan_out is None or edge.target in subgraphs:
            continue
        key = edge.fan_out.item_key
        field = workflow.state_schema.get(key)
        if field is not None and field.reducer is None and field.type != "messages":
            text = f"'{key}' is in state_schema, and each item of '{edge.target}' writes it: they collide"
            hint = "leave it out of state_schema: the node is given its item all the same"
            yield _warning("collision", text, document, ("edges", index, "fan_out", "item_key"), hint)


def _mapped_outputs(workflow: Workflow, document: Document, params: Sequence[Params]) -> Iterator[Problem]:
    """Yield a warning of each mapped model node whose output key has no reducer: every mapped call writes it."""
    mapped = {edge.target for edge in workflow.edges if edge.fan_out is not None}
    for index, (node, resolved) in enumerate(zip(workflow.nodes, params, strict=True)):
        field = workflow.state_schema.get(resolved.output_key)
        if node.id in mapped and node.handler in BUILT_IN and field is not None and field.reducer is None:
            if field.type == "messages" or not writes_output_key(workflow, node, resolved):
                continue
            key = resolved.output_key
            text = f"'{key}' has no reducer, and each item of '{node.id}' writes it: they collide"
            hint = (
                f"map a handler of your own that returns {{{key}: [...]}}, and declare it with reducer: add"
            )
            where = ("nodes", index, "params", model_nodes.OUTPUT_KEY)
            yield _warning("collision", text, document, where, hint, unless_replaced(node))


def _parallel_nodes(workflow: Workflow, document: Document) -> Iterator[Problem]:
    """Yield a warning of each set of parallel nodes: without a schema, each of them writes the whole state."""
    targets: dict[str, set[str]] = {}
    for index, edge in enumerate(workflow.edges):
        if edge.fan_out is not None:
            text = f"'{edge.target}' runs for several items, which collide without a state_schema"
            yield _warning("collision", text, document, ("edges", index, "fan_out"), OPEN_STATE_HINT)
        elif edge.condition is None:
            known = targets.setdefault(edge.source, set())
            known.add(edge.target)
            if len(known) == 2:
                text = f"the nodes after '{edge.source}' run in parallel, and collide without a state_schema"
                yield _warning("collision", text, document, ("edges", index), OPEN_STATE_HINT)


def _warning(
    code: str, text: str, document: Document, path: DocumentPath, hint: str, unless: Unless | None = None
) -> Problem:
    return Problem(code, text, document.span(path), hint, "warning", unless)
