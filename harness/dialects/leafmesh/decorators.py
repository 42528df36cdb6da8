"""The decorators of agent functions. spec: "Decorators -- The 5 Pipelines"; NOTES 8.2-8.7.

An agent's function is called as `f(first, input_data, context)`. A decorator that post-processes the result
wraps the function, so other decorators may stand in between, and the lowest runs first. The processors of
`pre_compose` run before the model: they are stored in an attribute of the function, which `functools.wraps`
copies upward.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, Final, NamedTuple

from harness.dialects.leafmesh.session import Start
from harness.engine.callables import call, contained
from harness.graph.effects import ToolSpec
from harness.graph.to_json import to_json
from harness.interception.real_effects import within_effect

Function = Callable[..., Any]
Steps = Generator[Any, Any, Any]
"""A generator that yields what functions return, awaitable or not, and receives the awaited values."""


# ---------------------------------------------------------------- before the model


class Processors(NamedTuple):
    """The processors of one `@pre_compose`, each called as `p(input_data, context)`."""

    business_context: Function | None
    clean_user_input: Function | None
    others: Function | None


def _marks(found: Any, name: str) -> tuple[Any, ...]:
    """Return what decorators of ours have stored in an attribute of an object itself, not of its class."""
    marks: tuple[Any, ...] = getattr(found, "__dict__", {}).get(name, ())
    return marks


_PROCESSORS: Final = "__leafmesh_processors__"


def pre_compose(
    context_processor: Function | None = None,
    input_processor: Function | None = None,
    others_processor: Function | None = None,
) -> Function:
    """Call these processors before the model; their results are in `context["prepared_data"]`."""
    processors = Processors(context_processor, input_processor, others_processor)
    check_functions("pre_compose", [each for each in processors if each is not None])

    def decorate(function: Function) -> Function:
        run: Function = _post_processor("pre_compose", _unchanged, ())(function)
        setattr(run, _PROCESSORS, (*processors_of(function), processors))
        return run

    return decorate


def processors_of(function: Function) -> tuple[Processors, ...]:
    """Return the processors of a function's `@pre_compose` decorators, the lowest first."""
    found: tuple[Processors, ...] = getattr(function, _PROCESSORS, ())
    return found


# ---------------------------------------------------------------- registration

_AGENTS: Final = "__leafmesh_agents__"


def register(agent: str) -> Function:
    """Return a decorator that makes a function that of an agent, whatever its name is."""

    def decorate(function: Function) -> Function:
        check_functions("sdk", [function])
        setattr(function, _AGENTS, (*registered_agents(function), agent))
        return function

    return decorate


def registered_agents(found: Any) -> tuple[str, ...]:
    """Return the agents that an object is registered for."""
    return _marks(found, _AGENTS)


# ---------------------------------------------------------------- after the function


def chain(*steps: Function) -> Function:
    """Pass the result through each `step(result, context)`, in order."""

    def after(result: Any, context: Any) -> Steps:
        for step in steps:
            result = yield step(result, context)
        return result

    return _post_processor("chain", after, steps)


def chain_with_results(*steps: Function) -> Function:
    """Run the steps as `chain` does; add intermediate results to the output.

    `main_result` is the return value of the function, `chain_results` are those of the steps.
    """

    def after(result: Any, context: Any) -> Steps:
        main, results = copy_containers(result), []
        for step in steps:
            result = yield step(result, context)
            results.append(copy_containers(result))
        return {**as_mapping(result), "main_result": main, "chain_results": results}

    return _post_processor("chain_with_results", after, steps)


def conditional_chain(condition: Function, *steps: Function) -> Function:
    """Run the steps as `chain` does if `condition(result, context)` is true; else keep the result."""

    def after(result: Any, context: Any) -> Steps:
        if (yield condition(result, context)):
            for step in steps:
                result = yield step(result, context)
        return result

    return _post_processor("conditional_chain", after, (condition, *steps))


def compose(**shapers: Function) -> Function:
    """Shape the input of agents: that of `agent` is `shaper(result, context)` instead of the whole result.

    A key that is not the name of an agent puts its function into `context`.
    """

    def before(context: Any) -> None:
        running = _compose_state.get()
        if running is not None:
            context.update({key: each for key, each in shapers.items() if key not in running.agents})

    def after(result: Any, context: Any) -> Steps:
        running = _compose_state.get()
        for key, shaper in shapers.items():
            if running is not None and key in running.agents:
                running.shaped[key] = copy_containers((yield shaper(copy_containers(result), context)))
        return result

    return _post_processor("compose", after, shapers.values(), before)


@dataclass
class ComposeState:
    """The state of `@compose` in one call of an agent's function: the mesh's agents, and the shaped inputs."""

    agents: Collection[str]
    shaped: dict[str, Any] = field(default_factory=dict)


_compose_state: ContextVar[ComposeState | None] = ContextVar("_compose_state", default=None)


async def call_with_compose(
    function: Function, agents: Collection[str], *given: Any
) -> tuple[Any, Mapping[str, Any]]:
    """Call a function; return its result, and the inputs that its `@compose` shaped, by agent."""
    running = ComposeState(agents)
    token = _compose_state.set(running)
    try:
        result = function(*given)
        return (await result if inspect.isawaitable(result) else result), running.shaped
    finally:
        _compose_state.reset(token)


def _post_processor(
    name: str,
    after: Callable[[Any, Any], Steps],
    functions: Collection[Function],
    before: Callable[[Any], None] = lambda _context: None,
) -> Function:
    """Return a decorator that runs `before` and `after` around the function.

    The decorated function stays synchronous if it and all `functions` are.
    """
    check_functions(name, functions)

    def decorate(function: Function) -> Function:
        check_functions(name, [function])

        def work(given: tuple[Any, ...], named: dict[str, Any]) -> Steps:
            context = named["context"] if "context" in named else given[2] if len(given) > 2 else {}
            before(context)
            result = yield function(*given, **named)
            return (yield from after(result, context))

        if any(map(inspect.iscoroutinefunction, (function, *functions))):

            @wraps(function)
            async def run_async(*given: Any, **named: Any) -> Any:
                result = _run(work(given, named))
                return await result if inspect.isawaitable(result) else result

            return run_async

        @wraps(function)
        def run(*given: Any, **named: Any) -> Any:
            return _run(work(given, named))

        return run

    return decorate


def _run(work: Steps) -> Any:
    """Run the generator to its end and return the result, or an awaitable of it once an awaitable is yielded."""
    value = None
    try:
        while True:
            value = work.send(value)
            if inspect.isawaitable(value):
                return _run_async(work, value)
    except StopIteration as end:
        return end.value


async def _run_async(work: Steps, waited: Any) -> Any:
    try:
        while True:
            waited = work.send(await waited if inspect.isawaitable(waited) else waited)
    except StopIteration as end:
        return end.value


def _unchanged(result: Any, context: Any) -> Steps:
    yield from ()
    return result


def check_functions(name: str, functions: Collection[Any]) -> None:
    """Check the arguments of a decorator.

    Raises:
        TypeError: one of them is not callable.
    """
    for function in functions:
        if not callable(function):
            raise TypeError(f"@{name} takes functions, not {function!r}")


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return an output as a mapping. NOTES 4.1."""
    return value if isinstance(value, Mapping) else {"result": value}


def copy_containers(value: Any) -> Any:
    """Return the value with copies of its lists and mappings; other objects are shared."""
    if isinstance(value, dict):
        return {key: copy_containers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copy_containers(item) for item in value]
    return value


Caller = Callable[..., Awaitable[Any]]
"""Calls a function, synchronous or not: `await caller(function, *given, **named)`."""

_TOOLS: Final = "__leafmesh_tools__"


@dataclass(frozen=True)
class RegisteredTool:
    """A function that is registered as a tool.

    given_description      the description passed to the decorator; without one, the docstring is used
    allowed_agents         None if all agents may use it
    timeout_s              its own time limit in virtual seconds, if any
    unknown_arguments      arguments of the decorator that have no meaning here
    """

    function: Function
    name: str
    given_description: str | None = None
    category: str | None = None
    allowed_agents: tuple[str, ...] | None = None
    timeout_s: float | None = None
    unknown_arguments: tuple[str, ...] = ()
    caller: Caller = call

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as models see it, with the parameters of the function."""
        from harness.dialects.kit.tool_calls import spec_of_function

        return spec_of_function(self.function, self.name, self.given_description)

    async def call(self, args: Mapping[str, Any]) -> Any:
        """Call the function with copies of the arguments and return its result."""
        return await self.caller(self.function, **copy_containers(dict(args)))


def global_tool(
    name: str | Function | None = None,
    description: str | None = None,
    category: str | None = None,
    allowed_agents: str | Collection[str] | None = None,
    timeout_seconds: float | None = None,
    requires_confirmation: bool = False,
    **unknown_arguments: Any,
) -> Any:
    """Register a function as a tool, named `name` or else as the function. Parentheses are optional.

    `requires_confirmation` has no effect: runs do not ask for confirmation.
    """
    if callable(name):
        return global_tool()(name)
    allowed = (allowed_agents,) if isinstance(allowed_agents, str) else allowed_agents

    def decorate(function: Function) -> Function:
        check_functions("global_tool", [function])
        tool = RegisteredTool(
            function=function,
            name=str(name or function.__name__),
            given_description=description,
            category=category,
            allowed_agents=None if allowed is None else tuple(allowed),
            timeout_s=timeout_seconds,
            unknown_arguments=tuple(unknown_arguments),
        )
        setattr(function, _TOOLS, (*registered_tools(function), tool))
        return function

    return decorate


def registered_tools(found: Any) -> tuple[RegisteredTool, ...]:
    """Return the tools that an object is registered as."""
    return _marks(found, _TOOLS)


@dataclass(frozen=True)
class RawOutput:
    """The output of an agent's own work, and the inputs that `@compose` shaped from it, by agent."""

    value: Any
    shaped: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AgentFunction:
    """The Python function of an agent. It gets copies, so it may change its arguments."""

    name: str
    function: Callable[..., Any]
    agents: frozenset[str] = frozenset()
    caller: Caller = call

    @property
    def has_processors(self) -> bool:
        """True if the function has `@pre_compose` processors."""
        return bool(processors_of(self.function))

    async def run_processors(self, input_data: Mapping[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        """Call the `@pre_compose` processors; return their results by key of `prepared_data`.

        The keys are `business_context`, `clean_user_input` and `others`. Changes that the processors make to
        `context` are kept for the function.
        """
        given, own, prepared = copy_containers(input_data), copy_containers(context), {}
        for processors in processors_of(self.function):
            for key, processor in processors._asdict().items():
                if processor is not None:
                    prepared[key] = await self.caller(processor, given, own)
        context.update(own)
        return prepared

    async def run(self, first: Any, input_data: Mapping[str, Any], context: Mapping[str, Any]) -> RawOutput:
        """Call the function as `f(first, input_data, context)`; return its output as JSON data. NOTES 8.1.

        `first` is the model's reply, the connector's response, or None for a plain programmatic agent.

        Raises:
            TypeError: the function is a generator.
            Exception: any exception of the function itself.
        """
        given = (copy_containers(first), copy_containers(input_data), copy_containers(context))
        value, shaped = await self.caller(call_with_compose, self.function, self.agents, *given)
        if inspect.isgenerator(value) or inspect.isasyncgen(value):
            raise TypeError(f"the function of agent '{self.name}' yields: it must return its output")
        return RawOutput(to_json(as_mapping(value)), {agent: to_json(each) for agent, each in shaped.items()})


async def post_process(function: AgentFunction | None, first: Any, start: Start, otherwise: Any) -> RawOutput:
    """Pass `first` to the agent's function; without one, return `otherwise`.

    HTTP requests of the function are intercepted.
    """
    if function is None:
        return RawOutput(otherwise)
    return await contained(within_effect(lambda: function.run(first, start.input, start.context)))
