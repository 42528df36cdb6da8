"""Hooks: Python classes that observe and change the steps of an agent.

The contexts and their fields are sherma's public interface (spec: "Hooks", "custom", "on_node_error Hook"),
so its hook classes run unchanged; `stand_in` makes them importable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from inspect import isclass, isfunction, signature
from types import NoneType
from typing import Any, Final, TypeVar

from harness.dialects.kit.manifest import UnimportedObject
from harness.engine.callables import call, contained
from harness.engine.context import RunContext
from harness.errors import ManifestError, Problem, Span
from harness.source.display import did_you_mean, nearest
from harness.source.models import describe

Context = TypeVar("Context")


@dataclass
class NodeInfo:
    """The node that a hook is called for; `node_def` is its definition (`node_def.args.metadata`, …)."""

    node_def: Any
    config: Any = None
    registries: Any = None


@dataclass
class _NodeContext:
    node_context: Any
    node_name: str
    state: dict[str, Any]


@dataclass
class BeforeLLMCallContext(_NodeContext):
    """`messages` without the system prompt; `system_prompt`, `messages` and `tools` may be replaced."""

    messages: list[Any]
    system_prompt: str
    tools: list[Any]


@dataclass
class AfterLLMCallContext(_NodeContext):
    """`response` is the model's message."""

    response: Any


@dataclass
class BeforeToolCallContext(_NodeContext):
    """`tools` may be replaced."""

    tool_calls: list[Any]
    tools: list[Any]


@dataclass
class AfterToolCallContext(_NodeContext):
    """`result` is `{messages: [tool messages]}`."""

    result: dict[str, Any]


@dataclass
class BeforeAgentCallContext(_NodeContext):
    """`input_value` may be replaced."""

    input_value: Any
    agent: Any


@dataclass
class AfterAgentCallContext(_NodeContext):
    """`result` is `{messages: [the answer]}`."""

    result: dict[str, Any]


@dataclass
class NodeEnterContext(_NodeContext):
    """A node is about to run."""

    node_type: str


@dataclass
class NodeExitContext(_NodeContext):
    """`result`, the node's updates, may be replaced."""

    node_type: str
    result: dict[str, Any]


@dataclass
class NodeExecuteContext(_NodeContext):
    """`result` is empty at first; hooks add the custom node's updates."""

    result: dict[str, Any] = field(default_factory=dict)
    registries: Any = None


@dataclass
class BeforeInterruptContext(_NodeContext):
    """`value` may be replaced."""

    value: Any


@dataclass
class AfterInterruptContext(_NodeContext):
    """`response` may be replaced."""

    value: Any
    response: Any


@dataclass
class OnNodeErrorContext(_NodeContext):
    """Setting `error` to None swallows it: the node writes nothing, and its edges are followed."""

    node_type: str
    error: BaseException | None


@dataclass
class _SkillContext:
    node_context: Any
    skill_id: str
    version: str


@dataclass
class BeforeSkillLoadContext(_SkillContext):
    """`skill_id` and `version` may be replaced."""


@dataclass
class AfterSkillLoadContext(_SkillContext):
    """`content` may be replaced."""

    content: str
    tools_loaded: list[str] = field(default_factory=list)


@dataclass
class BeforeSkillUnloadContext(_SkillContext):
    """`skill_id` and `version` may be replaced."""


@dataclass
class AfterSkillUnloadContext(_SkillContext):
    """A skill was unloaded, with the tools listed."""

    tools_unloaded: list[str] = field(default_factory=list)


@dataclass
class ChatModelCreateContext:
    """A declared model is created; `model_name` and `kwargs` may be changed. `chat_model` is ignored."""

    llm_id: str
    provider: str
    model_name: str
    kwargs: dict[str, Any]
    chat_model: Any = None


@dataclass
class GraphInvokeContext:
    """`config["recursion_limit"]` and `input` may be replaced."""

    agent_id: str
    thread_id: str
    config: dict[str, Any]
    input: dict[str, Any]


@dataclass
class AfterGraphInvokeContext(GraphInvokeContext):
    """`result`, the final state that the agent's answer is taken from, may be replaced."""

    result: dict[str, Any]


@dataclass
class OnErrorContext(GraphInvokeContext):
    """Setting `error` to None swallows it: the run completes with the state reached."""

    error: BaseException | None


HOOK_POINTS: dict[str, type] = {
    "before_llm_call": BeforeLLMCallContext,
    "after_llm_call": AfterLLMCallContext,
    "before_tool_call": BeforeToolCallContext,
    "after_tool_call": AfterToolCallContext,
    "before_agent_call": BeforeAgentCallContext,
    "after_agent_call": AfterAgentCallContext,
    "before_skill_load": BeforeSkillLoadContext,
    "after_skill_load": AfterSkillLoadContext,
    "before_skill_unload": BeforeSkillUnloadContext,
    "after_skill_unload": AfterSkillUnloadContext,
    "node_enter": NodeEnterContext,
    "node_execute": NodeExecuteContext,
    "node_exit": NodeExitContext,
    "before_interrupt": BeforeInterruptContext,
    "after_interrupt": AfterInterruptContext,
    "on_chat_model_create": ChatModelCreateContext,
    "before_graph_invoke": GraphInvokeContext,
    "after_graph_invoke": AfterGraphInvokeContext,
    "on_node_error": OnNodeErrorContext,
    "on_error": OnErrorContext,
}
"""The context class of each hook point."""


class BaseHookExecutor:
    """Base class of hooks. Subclasses override some points: `async def node_exit(self, ctx): …`.

    A method gets a context and returns one; None stands for the same context.
    """


async def _pass_on(_self: BaseHookExecutor, _context: Any) -> None:
    return None


for _point in HOOK_POINTS:
    setattr(BaseHookExecutor, _point, _pass_on)


class Hooks:
    """The hooks of one run, in order: those of the caller, then those of the manifest."""

    def __init__(self, executors: Sequence[Any]) -> None:
        self._executors = executors

    def __bool__(self) -> bool:
        return bool(self._executors)

    async def run(self, point: str, context: Context) -> Context:
        """Run the hooks of a point in order; each gets the context that the one before returned."""
        for executor in self._executors:
            method = getattr(executor, point, None)
            if method is None:
                continue
            result = await contained(call(method, context))
            context = context if result is None else result
            _check_context(context, HOOK_POINTS[point], f"{type(executor).__name__}.{point}")
        return context


_FIELD_TYPES: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "config": ((Mapping,), "a mapping"),
    "error": ((BaseException, NoneType), "an exception or None"),
    "input": ((Mapping,), "a mapping"),
    "kwargs": ((Mapping,), "a mapping"),
    "skill_id": ((str,), "text"),
    "system_prompt": ((str, NoneType), "text"),
    "tools": ((list, tuple), "a list"),
    "version": ((str,), "text"),
}
"""The types, with their description, that hooks may set in these fields; other fields may have any value."""


def _check_context(context: Any, point: type, hook: str) -> None:
    """Check the context that a hook returned.

    Raises:
        TypeError: a field is missing or has a wrong type.
    """
    for name in (each.name for each in fields(point)):
        if not hasattr(context, name):
            raise TypeError(f"hook {hook} must return its context or None, not {describe(context)}")
        kinds, words = _FIELD_TYPES.get(name, ((object,), ""))
        value = getattr(context, name)
        if not isinstance(value, kinds):
            raise TypeError(f"hook {hook} must leave '{name}' {words}, not {describe(value)}")


_BASES: Final = ("BaseHookExecutor", "HookExecutor", "object")
"""Classes whose hook methods do nothing, here and in sherma."""


@dataclass(frozen=True)
class InstalledHook:
    """An imported hook, with its name and location. Objects given by a caller are named after their type."""

    imported: Any
    name: str
    span: Span | None

    @cached_property
    def overridden(self) -> frozenset[str]:
        """The hook points that it overrides; all points if it was not imported."""
        if isinstance(self.imported, UnimportedObject):
            return frozenset(HOOK_POINTS)
        kind = self.imported if isclass(self.imported) else type(self.imported)
        inherited = {point for base in kind.__mro__ if base.__name__ in _BASES for point in vars(base)}
        found = {point for point in HOOK_POINTS if point not in inherited and hasattr(self.imported, point)}
        return frozenset(found | (HOOK_POINTS.keys() & self._own.keys()))

    @property
    def _own(self) -> dict[str, Any]:
        """The attributes of the hook's classes without those of the base classes, and of the object itself."""
        kind = self.imported if isclass(self.imported) else type(self.imported)
        parts: list[Any] = [part for part in kind.__mro__ if part.__name__ not in _BASES]
        parts += [self.imported] if hasattr(self.imported, "__dict__") else []
        return {name: value for part in parts for name, value in vars(part).items()}

    def problems(self) -> Iterator[Problem]:
        """Yield an error if it is not a hook; warnings about misspelt methods, and about a hook without any."""
        if isinstance(self.imported, UnimportedObject):
            return
        if not any(hasattr(self.imported, point) for point in HOOK_POINTS):
            text = f"'{self.name}' is not a hook: it has none of the hook methods"
            yield Problem("not-a-hook", text, self.span, ", ".join(HOOK_POINTS))
            return
        misspelt = dict(self._misspelt())
        for method, point in misspelt.items():
            text = f"nothing calls '{method}' of '{self.name}': it is not one of the hook methods"
            yield Problem("not-a-hook", text, self.span, did_you_mean(method, [point]), "warning")
        if not self.overridden and not misspelt:
            text = f"'{self.name}' does nothing: it overrides none of the hook methods"
            yield Problem("not-a-hook", text, self.span, severity="warning")

    def _misspelt(self) -> Iterator[tuple[str, str]]:
        """Yield methods with one parameter whose name resembles a point that is not overridden, and the point."""
        for method, function in self._own.items():
            if (
                not isfunction(function)
                or method in HOOK_POINTS
                or method.startswith("_")
                or len(signature(function).parameters) != 2
            ):
                continue
            point = nearest(method, HOOK_POINTS, cutoff=0.8)
            if point is not None and point not in self.overridden:
                yield method, point

    async def instance(self, _run: RunContext) -> Any:
        """Return a new instance of a hook class; other objects are returned themselves.

        Raises:
            ManifestError: the class cannot be instantiated without arguments.
        """
        if not isclass(self.imported):
            return self.imported
        try:
            return self.imported()
        except Exception as error:
            text = f"hook {self.imported.__qualname__} cannot be created: {type(error).__name__}: {error}"
            raise ManifestError(Problem("hook", text, self.span)) from error
