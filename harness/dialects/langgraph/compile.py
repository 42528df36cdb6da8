"""Imports the graph that a manifest names, and describes it as a `NativeGraph`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Final

from harness.chance import seeded_chance
from harness.dialects.kit.accesses import code_of, functions_in
from harness.dialects.kit.manifest import BadInput
from harness.dialects.langgraph.app import import_target
from harness.dialects.langgraph.declared import declared_app, declared_callable
from harness.dialects.langgraph.dialect import (
    FILE,
    App,
    Target,
    app_of,
    forget_folders,
)
from harness.dialects.langgraph.graphs import graph_of, graph_of_callable
from harness.dialects.langgraph.messages import keys_of_messages, with_messages
from harness.dialects.langgraph.variables import enter, entered
from harness.dialects.request import LoadRequest
from harness.engine.versions import CONTEXT_FLOORS, FLOORS, default_recursion_limit, too_old
from harness.errors import ManifestError, Problem, Span
from harness.graph.effects import NAMED_KINDS
from harness.graph.model import END, NODE, START, Channel, Edge, Lifecycle, NestedGraph, Node, Vocabulary
from harness.graph.native import COMMAND, NativeGraph, PlainState, name_inside, route_label
from harness.source.document import shown_path
from harness.source.imports import recording_environment
from harness.source.python_texts import import_with

_INTERNAL: Final = ("__", "branch:", "join:")
_WHOLE: Final = "__root__"
"""The only key of a state that is no mapping."""
_MOST_STEPS_DRAWN: Final = 250
_WHY_OPEN: Final = "the code of the app decides"


def load(request: LoadRequest) -> NativeGraph:
    """Load a graph, or any other callable."""
    app = app_of(request)
    return _with_warnings(_load(request, app), app)


def load_callable(request: LoadRequest) -> NativeGraph:
    """Load a callable as an agent, even if it looks like a function that makes a graph."""
    app = app_of(request)
    return _with_warnings(_load(request, app, as_callable=True), app)


def _with_warnings(graph: NativeGraph, app: App) -> NativeGraph:
    return replace(graph, warnings=app.warnings) if app.warnings else graph


def preload(request: LoadRequest) -> tuple[str, ...]:
    """Import an app, and return the folders of its modules."""
    forget_folders()
    located = request.path / FILE if request.path.is_dir() else request.path
    app = app_of(replace(request, paths=(located,)))
    enter(app, offline=request.invocation.offline)
    _give_texts(request)
    found = _imported(app, request)
    if hasattr(found, "get_graph") and hasattr(found, "channels"):  # each run has this one
        _edges(found)
        _nodes(found, "langgraph")
        _channels(found)
        keys_of_messages(_input_schema(found))
    return app.folders


def _imported(app: App, request: LoadRequest) -> Any:
    with recording_environment(app.target.base):
        return import_target(app.target, app.folders, request.named_at)


def _give_texts(request: LoadRequest) -> None:
    """Let the modules of an app have the texts of a variant."""
    texts: dict[Path, dict[tuple[int, int], str]] = {}
    for each in request.changes.texts:
        texts.setdefault(each.file, {})[each.line, each.column] = each.text
    if too_late := import_with(texts):
        text = f"{shown_path(too_late[0])} has been imported in this process, so a variant cannot change its texts"
        raise ManifestError(Problem("import", text, request.named_at))


def _load(request: LoadRequest, app: App, *, as_callable: bool = False) -> NativeGraph:
    if app.target.file is not None:
        request.record(app.target.file)
    if not request.imports:
        return _unimported(app, "python" if as_callable else "langgraph")
    if text := too_old(FLOORS, "an app"):
        raise ManifestError(Problem("too-old", text, request.named_at))
    invocation = request.invocation
    compiled = None
    with entered(app, offline=invocation.offline):
        _give_texts(request)
        found = _imported(app, request)
        if not as_callable:
            compiled = graph_of(found, app.target, request, declared=bool(app.name))
    if compiled is None:
        name = getattr(found, "__name__", None) or type(found).__name__
        graph = graph_of_callable(found, name, invocation.context or {}, is_said=as_callable)
        described = _described(graph, name, "python", app, request)
        return replace(described, declared=cache(partial(declared_callable, found)))
    if invocation.context is not None and (text := too_old(CONTEXT_FLOORS, "a graph with a context")):
        raise ManifestError(Problem("too-old", text, request.named_at))
    return _described(compiled, app.name or compiled.get_name(), "langgraph", app, request)


def _unimported(app: App, dialect: str) -> NativeGraph:
    """Return the graph of an app that may not be imported: nothing is known of it."""
    return NativeGraph(
        name=app.name or app.target.name,
        dialect=dialect,
        nodes=(),
        edges=(),
        channels=(),
        vocabulary=lambda: Vocabulary(open=dict.fromkeys((NODE, *NAMED_KINDS), "the app is not imported")),
    )


# ---------------------------------------------------------------- the graph


def _described(compiled: Any, name: str, dialect: str, app: App, request: LoadRequest) -> NativeGraph:
    nodes = _nodes(compiled, dialect)
    return NativeGraph(
        name=name,
        dialect=dialect,
        nodes=nodes,
        edges=_edges(compiled),
        channels=_channels(compiled),
        lifecycle=Lifecycle(accept=_accept_for(compiled, dialect), finish=_finish_for(compiled, dialect)),
        recursion_limit=_recursion_limit(compiled, request),
        pause_before=_breakpoints(compiled.interrupt_before_nodes, nodes),
        pause_after=_breakpoints(compiled.interrupt_after_nodes, nodes),
        shares_answers=False,
        takes_hooks=False,
        identity=_identity(app.target),
        draws_inside=True,
        vocabulary=cache(lambda: _vocabulary(compiled, app, request, dialect)),
        declared=cache(partial(declared_app, compiled, _edges)),
        compiled=compiled,
        invocation=request.invocation,
        enter=partial(enter, app, offline=request.invocation.offline),
        has_tasks=getattr(compiled, "builder", None) is None,
    )


@lru_cache(32)
def _nodes(compiled: Any, dialect: str) -> tuple[Node, ...]:
    named = compiled.nodes.items()
    return tuple(Node(name, dialect, _never, _place(node.bound)) for name, node in named if name != START)


@lru_cache(32)
def _channels(compiled: Any) -> tuple[Channel, ...]:
    return tuple(Channel(name) for name in compiled.channels if not name.startswith(_INTERNAL))


def _place(runnable: Any) -> Span | None:
    """Return the place of the first function of the user that a node runs."""
    try:
        code = next(map(code_of, functions_in(runnable)), None)
    except Exception:  # of an object that has every attribute, such as a mock
        return None
    return Span(shown_path(Path(code.co_filename)), code.co_firstlineno, 1) if code is not None else None


@cache
def _identity(target: Target) -> str:
    """Return the file and the object that a manifest names, in whichever form."""
    file = target.file or getattr(sys.modules.get(target.module), "__file__", None)
    return f"{shown_path(Path(file)) if file else target.module}:{target.name}"


def _recursion_limit(compiled: Any, request: LoadRequest) -> int:
    """Return the most steps of an invocation: the scenario's, the graph's own, or LangGraph's default."""
    own = getattr(compiled, "config", None) or {}
    limit = request.invocation.config.get("recursion_limit") or own.get("recursion_limit")
    return limit or default_recursion_limit()


def _breakpoints(names: Any, nodes: Sequence[Node]) -> frozenset[str]:
    return frozenset(node.name for node in nodes) if names == "*" else frozenset(names or ())


@lru_cache(32)
def _edges(compiled: Any) -> tuple[Edge, ...]:
    """Return the edges of a graph. Drawing one takes as long as running some of its nodes, and draws ids, too.

    They are not those of a run, which has the same ones whether its graph was drawn before it or in it.
    """
    with seeded_chance(0, "picture"):
        return tuple(_drawn(compiled))


def _drawn(compiled: Any) -> Iterator[Edge]:
    """Yield the edges of the picture, and those that `Command[Literal[…]]` declares."""
    seen = set()
    for source, target, conditional in _pairs(compiled):
        if (source, target) not in seen:
            seen.add((source, target))
            label = route_label(compiled, source, target) if conditional else None
            yield Edge(source, target, label)
    for source, spec in getattr(getattr(compiled, "builder", None), "nodes", {}).items():
        for target in getattr(spec, "ends", None) or ():
            if (source, target) not in seen:
                seen.add((source, target))
                yield Edge(source, target, COMMAND)


def _pairs(compiled: Any) -> Iterator[tuple[str, str, bool]]:
    """Yield (source, target, whether a condition chooses it) of each edge that LangGraph draws.

    LangGraph finds them by 250 steps through the graph. Of a larger one they are those that the app declared.
    """
    builder = getattr(compiled, "builder", None)
    if builder is None or len(compiled.nodes) <= _MOST_STEPS_DRAWN:
        yield from ((each.source, each.target, each.conditional) for each in compiled.get_graph().edges)
        return
    left = {*(source for source, _ in builder.edges), *builder.branches}
    left |= {source for sources, _ in builder.waiting_edges for source in sources}
    found = {(source, target, False) for source, target in builder.edges}
    found |= {(source, target, False) for sources, target in builder.waiting_edges for source in sources}
    for source, branches in builder.branches.items():
        for branch in branches.values():
            targets = builder.nodes if branch.ends is None else branch.ends.values()
            found |= {(source, target, True) for target in targets}
    chosen = {name for name, spec in builder.nodes.items() if getattr(spec, "ends", None)}
    found |= {(name, END, False) for name in builder.nodes.keys() - left - chosen}
    yield from sorted(found)


def _vocabulary(compiled: Any, app: App, request: LoadRequest, dialect: str) -> Vocabulary:
    inside: dict[str, list[NestedGraph]] = {}
    for node, inner in compiled.get_subgraphs():
        if not hasattr(inner, "nodes"):  # it is on another server
            continue

        nested = cache(partial(_described, inner, node, "langgraph", app, request))
        named = name_inside(inner, node, compiled.nodes[node].bound)
        inside.setdefault(node, []).append(NestedGraph(id(inner), nested, name=named))
    tools = [each for node in compiled.nodes.values() for each in getattr(node.bound, "tools_by_name", ())]
    return Vocabulary(
        names={"tool": tools},
        open=dict.fromkeys((NODE, *NAMED_KINDS), _WHY_OPEN),
        inside=inside,
        # LangGraph drops all others. A function gets its input as it is.
        inputs=(_keys_of_input(compiled) or None) if dialect == "langgraph" else None,
        text_input="messages",
    )


def _accept_for(compiled: Any, dialect: str) -> Any:
    async def accept(value: Any, run: Any) -> Any:
        if dialect == "python":
            return {"input": value}
        if "messages" in compiled.channels:
            if isinstance(value, str):
                value = {"messages": [{"role": "user", "content": value}]}
            elif isinstance(value, list):
                value = {"messages": value}
        if isinstance(value, Mapping):
            return with_messages(value, keys_of_messages(_input_schema(compiled)))
        keys = _keys_of_input(compiled)
        if keys and isinstance(value, str | list):
            what = "text" if isinstance(value, str) else "a list"
            text = f"the state has no 'messages' that {what} could be: input must be a mapping with some of"
            raise BadInput(f"{text} {', '.join(keys)}")
        return value

    return accept


def _keys_of_input(compiled: Any) -> list[str]:
    """Return the keys of the input; empty if it is no mapping, or if that is not known."""
    keys = getattr(getattr(compiled, "builder", None), "schemas", {}).get(_input_schema(compiled), ())
    return [] if _WHOLE in keys else sorted(keys)


def _input_schema(compiled: Any) -> Any:
    builder = getattr(compiled, "builder", None)
    return getattr(builder, "input_schema", None) or getattr(builder, "input", None)  # until 0.4


def _finish_for(compiled: Any, dialect: str) -> Any:
    outputs = compiled.output_channels

    async def finish(state: Any, _run: Any) -> Any:
        if dialect == "python":
            return state.get("output")
        if not isinstance(state, Mapping):
            return state
        if isinstance(state, PlainState):
            return state["value"]
        if isinstance(outputs, str):
            return state.get(outputs, state)
        messages = state.get("messages")
        if "messages" in outputs and messages and hasattr(messages[-1], "content"):
            from harness.graph.messages import message_text

            return message_text(messages[-1])
        return {key: state[key] for key in outputs if key in state}

    return finish


async def _never(*_: Any) -> Any:
    raise AssertionError("LangGraph runs the nodes itself")
