"""Warnings of params that a built-in handler does not read, or will refuse when it runs.

They are not errors, because a scenario may replace a built-in handler; then they do not apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from string import Formatter
from typing import Any, Final

from harness.dialects.yagra.document import SUBGRAPH, NodeSpec, Workflow
from harness.dialects.yagra.handlers import BUILT_IN, unless_replaced
from harness.dialects.yagra.model_nodes import (
    OUTPUT_KEY,
    ModelParamsError,
    fill_prompts,
    model_of,
    output_key_of,
    templates_of,
)
from harness.dialects.yagra.prompts import PROMPT_REF, Params, ResolvedPrompt, first_stray_brace
from harness.dialects.yagra.structured import SCHEMA, schema_of
from harness.errors import Problem, Span
from harness.source.document import Document
from harness.source.suggest import did_you_mean, nearest

_MODEL: Final = "model"
_PARAMS_OF_MODELS: Final = (PROMPT_REF, _MODEL, OUTPUT_KEY)
_READ: Final[Mapping[str, Sequence[str]]] = {
    "llm": _PARAMS_OF_MODELS,
    "structured_llm": (*_PARAMS_OF_MODELS, SCHEMA),
    "streaming_llm": (*_PARAMS_OF_MODELS, "stream"),
    SUBGRAPH: ("workflow_ref",),
}
"""The params that each built-in handler has. `stream` is declared, and changes nothing: each reply is a stream."""

_KEYS_OF_A_MODEL: Final = ("provider", "name", "kwargs")
_NODE_KEYS: Final = frozenset(NodeSpec.model_fields) | {"timeout"}
_SETTINGS: Final = frozenset(
    ("temperature", "max_tokens", "top_p", "stop", "seed", "n", "presence_penalty", "frequency_penalty")
)
_MESSAGES: Final = ("system", "user")


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
            OUTPUT_KEY: lambda: output_key_of(values),
            _MODEL: lambda: model_of(values),
            PROMPT_REF: lambda: templates_of(values),
        }
        if self.node.handler == "structured_llm":
            checks[SCHEMA] = lambda: schema_of(values.get(SCHEMA))
        for name, check in checks.items():
            try:
                check()
            except ModelParamsError as error:
                prompt = self.params.prompt
                if name == PROMPT_REF and prompt is not None:
                    yield self._refusal(error, prompt.span, "refer to a mapping with system and user")
                else:
                    yield self._refusal(error, self.document.span(self._path(name)))

    def _prompt(self) -> Iterator[Problem]:
        prompt = self.params.prompt
        if prompt is None or not isinstance(prompt.value, dict):
            return
        if not any(part in prompt.value for part in _MESSAGES):
            text = f"node '{self.node.id}': its prompt has neither system nor user, so the model is asked nothing"
            yield self._warning("empty-prompt", text, prompt.span, _keys_hint(prompt))
        for name in prompt.value:
            near = nearest(name, _MESSAGES) if name not in _MESSAGES else None
            if near is not None and isinstance(prompt.value[name], str):
                text = f"node '{self.node.id}': '{name}' of its prompt is not read"
                where = prompt.document.key_span((*prompt.path, name))
                yield self._warning("unread-param", text, where, f"did you mean '{near}'?")
        yield from self._unfillable(prompt)

    def _unfillable(self, prompt: ResolvedPrompt) -> Iterator[Problem]:
        """Yield a warning of the first prompt that cannot be filled, whatever the state is."""
        try:
            fill_prompts(templates_of(self.params.values), {})
        except ModelParamsError as error:
            template = prompt.value.get(error.part)
            names = {name for name, _ in prompt.placeholders()}
            if template is not None and _always_fails(template, names):
                yield self._refusal(error, prompt.span_of(error.part, first_stray_brace(template)))

    def _refusal(self, error: ModelParamsError, where: Span, hint: str = "") -> Problem:
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
        if isinstance(value, dict) and any(part in value for part in _MESSAGES):
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
