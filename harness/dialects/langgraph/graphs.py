"""From the object that a manifest names to a compiled graph: graphs, builders, factories and any other callable."""

from __future__ import annotations

import asyncio
import copy
import inspect
import re
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NoReturn, TypedDict

from harness.dialects.langgraph.app import import_error
from harness.dialects.langgraph.dialect import Target
from harness.dialects.request import LoadRequest
from harness.engine.versions import CONTEXT_FLOORS, too_old
from harness.errors import ManifestError, Problem, Span
from harness.graph.native import Invocation
from harness.time.clock import VirtualTimeLoop

_OF_NONE: Final = (
    "what sets it later, such as the lifespan of a server, does not run: name a function that makes the graph"
)
_OF_RUN: Final = ("checkpointer", "store")
"""Parameters of a function that makes a graph whose values a run has: None does."""
_GRAPH: Final = re.compile(r"\b(?:StateGraph|CompiledStateGraph|CompiledGraph|Pregel)\b")


def graph_of(found: Any, target: Target, request: LoadRequest, *, declared: bool = False) -> Any:
    """Return the compiled graph of an object of LangGraph: a graph, a builder, or a function that makes one.

    None if the object is none of these, but an agent that can be called. With `declared`, `langgraph.json`
    says that a function makes a graph.

    Raises:
        ManifestError: it is neither a graph nor can it be called, or making the graph failed.
    """
    named_at = request.named_at
    made = found
    if callable(found) and not is_graph(found) and is_factory(found, declared=declared):
        arguments = _factory_arguments(found, request.invocation, named_at)
        try:
            made = _wait(found(**arguments), request.loop)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise import_error(target, error, named_at) from error
        if not is_graph(made):
            kind = type(made).__name__
            text = f"{target.shown} is called without input, as it makes a graph, and it returned {kind}"
            hint = "if it is the agent itself, write `dialect: python`"
            raise ManifestError(Problem("not-a-graph", text, named_at, hint))
    if hasattr(made, "bound") and not hasattr(made, "nodes") and is_graph(made.bound):
        made = made.bound.with_config(made.config)
    if type(made).__name__ == "RemoteGraph":
        text = f"{target.shown} is a graph on another server, which does not run in this process"
        raise ManifestError(Problem("not-runnable", text, named_at, "name the graph that the server runs"))
    if is_graph(made):
        return made.compile() if hasattr(made, "compile") else made
    if not callable(made) and not hasattr(made, "ainvoke"):
        text = f"{target.shown} is neither a graph nor a function, but of the type {type(made).__name__}"
        raise ManifestError(Problem("not-a-graph", text, named_at, _OF_NONE if made is None else ""))
    return None


def is_graph(found: Any) -> bool:
    """True for a graph of LangGraph, compiled or not, and for one with a config."""
    kinds = {kind.__name__ for kind in type(found).__mro__}
    return bool(kinds & {"Pregel", "StateGraph", "RemoteGraph"}) or (
        hasattr(found, "bound") and is_graph(found.bound)
    )


def is_factory(found: Callable[..., Any], *, declared: bool = False) -> bool:
    """True for a function without parameters, or whose first one is the `config` or the `runtime`.

    One that is `declared` to make a graph, is annotated to return one, or takes a `checkpointer` may have other
    parameters, which have defaults, or are for what the run has: `checkpointer` and `store`.
    """
    if hasattr(found, "ainvoke") or not (inspect.isfunction(found) or inspect.ismethod(found)):
        return False
    if inspect.isgeneratorfunction(found) or inspect.isasyncgenfunction(
        found
    ):  # it yields what an agent says
        return False
    parameters = list(inspect.signature(found).parameters.values())
    required = [each for each in parameters if each.default is each.empty and each.name not in _OF_RUN]
    says_so = (
        declared
        or bool(_GRAPH.search(str(found.__annotations__.get("return", ""))))
        or any(each.name == "checkpointer" for each in parameters)
    )
    return not parameters or bool(_given_to_factory(parameters[0])) or (says_so and not required)


def _given_to_factory(parameter: inspect.Parameter) -> str:
    """Return `config` or `runtime`, what a parameter of a factory is for; "" for anything else."""
    annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
    if parameter.name == "runtime" or "Runtime" in annotation:
        return "runtime"
    return "config" if parameter.name == "config" or "RunnableConfig" in annotation else ""


def _factory_arguments(
    found: Callable[..., Any], invocation: Invocation, named_at: Span | None
) -> dict[str, Any]:
    """Return the arguments of a function that makes a graph: parameters with defaults of their own keep these."""
    config = {"configurable": {}, **invocation.config}
    given: dict[str, Any] = {}
    for each in inspect.signature(found).parameters.values():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        what = _given_to_factory(each)
        if what == "runtime":
            if text := too_old(CONTEXT_FLOORS, "a function that makes a graph from the runtime"):
                raise ManifestError(Problem("too-old", text, named_at))
            from langgraph.runtime import Runtime

            given[each.name] = Runtime(context=invocation.context)
        elif what:
            given[each.name] = config
        elif each.name in _OF_RUN and each.default is each.empty:
            given[each.name] = None
    return given


def _wait(made: Any, loop: Callable[[], AbstractEventLoop] | None) -> Any:
    """Return what a factory makes: at once, as a coroutine, or as a context manager, which stays open.

    What needs an event loop gets that of the run, and stays open until that is closed; outside of runs, one that
    is closed at once.
    """
    if is_graph(made):
        return made
    if hasattr(made, "__aenter__"):
        made = _opened(made)
    if inspect.isawaitable(made):
        if loop is not None:
            return loop().run_until_complete(_awaited(made))
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(_awaited(made))
    return made.__enter__() if hasattr(made, "__enter__") else made


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


async def _opened(manager: Any) -> Any:
    """Enter a context manager in a task of its own, which the end of the run cancels: then it is left."""
    entered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def hold() -> None:
        try:
            async with manager as made:
                entered.set_result(made)
                await asyncio.get_running_loop().create_future()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)

    holder = asyncio.create_task(hold())
    _held.add(holder)
    holder.add_done_callback(_held.discard)
    return await entered


_held: Final[set[asyncio.Task[None]]] = set()
"""The tasks that hold a context manager open. A loop does not keep its tasks."""


class Called(TypedDict, total=False):
    """The state of an agent that is a callable."""

    input: Any
    output: Any


def graph_of_callable(agent: Any, name: str, context: Mapping[str, Any], *, is_said: bool) -> Any:
    """Return a graph of one node, which calls an agent with the input, and the context if it wants it.

    `output` is what it returns, or the pieces that it yields. Unless it `is_said` to be an agent, it must not
    return a graph.
    """
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph import END, START, StateGraph

    function = agent if callable(agent) else agent.ainvoke
    wanted = inspect.signature(function).parameters
    is_async = _is_async(function) or _is_async(getattr(function, "__call__", None))  # noqa: B004

    def arguments(state: Called, config: RunnableConfig) -> tuple[list[Any], dict[str, Any]]:
        given = {
            "config": config,
            "context": copy.deepcopy(dict(context)),
            "thread_id": config["configurable"].get("thread_id"),
        }
        named = {key: value for key, value in given.items() if key in wanted}
        return ([state.get("input")] if len(wanted) > len(named) else []), named

    def output(made: Any) -> Any:
        return made if is_said or not is_graph(made) else _refuse(name)

    async def call_async(state: Called, config: RunnableConfig) -> Called:
        positional, named = arguments(state, config)
        made = function(*positional, **named)
        if inspect.isasyncgen(made):
            return {"output": _whole([piece async for piece in made])}
        return {"output": output(await made)}

    def call(state: Called, config: RunnableConfig) -> Called:
        positional, named = arguments(state, config)
        made = function(*positional, **named)
        return {"output": _whole(list(made)) if inspect.isgenerator(made) else output(made)}

    for each in (call_async, call):  # LangGraph reads the hints, which are texts here
        each.__annotations__ = {"state": Called, "config": RunnableConfig}
    builder: Any = StateGraph(Called)
    builder.add_node(name, call_async if is_async else call)
    builder.add_edge(START, name)
    builder.add_edge(name, END)
    return builder.compile(name=name)


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _refuse(name: str) -> NoReturn:
    """Raise the error of an agent that returned a graph, which nobody has run."""
    text = f"'{name}' was called with the input, as the agent, and returned a graph"
    hint = (
        "list it under `graphs` in a langgraph.json, where a function whose parameters all have defaults makes a "
        "graph, or name a function without parameters that calls it"
    )
    raise ManifestError(Problem("not-a-graph", text, None, hint))


def _whole(pieces: list[Any]) -> Any:
    """Return what an agent yielded: pieces of text as one text, anything else as a list."""
    return "".join(pieces) if pieces and all(isinstance(each, str) for each in pieces) else pieces
