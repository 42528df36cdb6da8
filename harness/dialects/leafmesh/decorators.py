"""The decorators of agent functions. spec: "Decorators -- The 5 Pipelines"; NOTES 8.2-8.7.

An agent's function is called as `f(first, input_data, context)`. Decorators that work after it wrap it, so that
other decorators may stand between them, and the lowest works first. What works before the model (`pre_compose`) is
written on the function, and `functools.wraps` carries it upward.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, NamedTuple

Function = Callable[..., Any]
Work = Generator[Any, Any, Any]
"""Yields what functions return, awaitable or not, and is sent the values."""


# ---------------------------------------------------------------- before the model


class Preparation(NamedTuple):
    """The processors of one `@pre_compose`, each called as `p(input_data, context)`."""

    business_context: Function | None
    clean_user_input: Function | None
    others: Function | None


_PREPARATIONS: Final = "__leafmesh_preparations__"


def pre_compose(
    context_processor: Function | None = None,
    input_processor: Function | None = None,
    others_processor: Function | None = None,
) -> Function:
    """Call these before the model; the function finds their results in `context["prepared_data"]`."""
    processors = Preparation(context_processor, input_processor, others_processor)
    check_functions("pre_compose", [each for each in processors if each is not None])

    def decorate(function: Function) -> Function:
        run: Function = _working_after("pre_compose", _unchanged, ())(function)
        setattr(run, _PREPARATIONS, (*preparations(function), processors))
        return run

    return decorate


def preparations(function: Function) -> tuple[Preparation, ...]:
    """The preparations of a function, the lowest `@pre_compose` first."""
    found: tuple[Preparation, ...] = getattr(function, _PREPARATIONS, ())
    return found


# ---------------------------------------------------------------- after the function


def chain(*steps: Function) -> Function:
    """Pass the result through each `step(result, context)`, in order."""

    def after(result: Any, context: Any) -> Work:
        for step in steps:
            result = yield step(result, context)
        return result

    return _working_after("chain", after, steps)


def chain_with_results(*steps: Function) -> Function:
    """As `chain`; the output has also what the function (`main_result`) and each step (`chain_results`) returned."""

    def after(result: Any, context: Any) -> Work:
        main, results = copied(result), []
        for step in steps:
            result = yield step(result, context)
            results.append(copied(result))
        return {**as_mapping(result), "main_result": main, "chain_results": results}

    return _working_after("chain_with_results", after, steps)


def conditional_chain(condition: Function, *steps: Function) -> Function:
    """As `chain`, if `condition(result, context)` holds; else the result stays as it is."""

    def after(result: Any, context: Any) -> Work:
        if (yield condition(result, context)):
            for step in steps:
                result = yield step(result, context)
        return result

    return _working_after("conditional_chain", after, (condition, *steps))


def compose(**shapers: Function) -> Function:
    """Make the input of agents: that of `agent` is `shaper(result, context)`, instead of the whole result.

    A key that is no agent's name puts its function into `context`.
    """

    def before(context: Any) -> None:
        running = _composing.get()
        if running is not None:
            context.update({key: each for key, each in shapers.items() if key not in running.agents})

    def after(result: Any, context: Any) -> Work:
        running = _composing.get()
        for key, shaper in shapers.items():
            if running is not None and key in running.agents:
                running.shaped[key] = copied((yield shaper(copied(result), context)))
        return result

    return _working_after("compose", after, shapers.values(), before)


@dataclass
class Composing:
    """One call of an agent's function: the agents of its mesh, and what `@compose` makes for them."""

    agents: Collection[str]
    shaped: dict[str, Any] = field(default_factory=dict)


_composing: ContextVar[Composing | None] = ContextVar("_composing", default=None)


async def composed(function: Function, agents: Collection[str], *given: Any) -> tuple[Any, Mapping[str, Any]]:
    """What a function returns, and what its `@compose` made, by agent."""
    running = Composing(agents)
    token = _composing.set(running)
    try:
        result = function(*given)
        return (await result if inspect.isawaitable(result) else result), running.shaped
    finally:
        _composing.reset(token)


def _working_after(
    name: str,
    after: Callable[[Any, Any], Work],
    functions: Collection[Function],
    before: Callable[[Any], None] = lambda _context: None,
) -> Function:
    """A decorator. What it decorates stays synchronous if all functions that it calls are."""
    check_functions(name, functions)

    def decorate(function: Function) -> Function:
        check_functions(name, [function])

        def work(given: tuple[Any, ...], named: dict[str, Any]) -> Work:
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


def _run(work: Work) -> Any:
    """The result of the work; an awaitable of it as soon as the work yields an awaitable."""
    value = None
    try:
        while True:
            value = work.send(value)
            if inspect.isawaitable(value):
                return _continued(work, value)
    except StopIteration as end:
        return end.value


async def _continued(work: Work, waited: Any) -> Any:
    try:
        while True:
            waited = work.send(await waited if inspect.isawaitable(waited) else waited)
    except StopIteration as end:
        return end.value


def _unchanged(result: Any, context: Any) -> Work:
    yield from ()
    return result


def check_functions(name: str, functions: Collection[Any]) -> None:
    """Refuse what a decorator cannot call.

    Raises:
        TypeError: one of these is no function.
    """
    for function in functions:
        if not callable(function):
            raise TypeError(f"@{name} takes functions, not {function!r}")


def as_mapping(value: Any) -> Mapping[str, Any]:
    """An output, which is always a mapping. NOTES 4.1."""
    return value if isinstance(value, Mapping) else {"result": value}


def copied(value: Any) -> Any:
    """The value with copies of the lists and mappings in it; anything else is shared."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copied(item) for item in value]
    return value
