"""The data of an app, by the types of its state, the annotations and the source of its functions.

A state has a key only when something wrote it, so no key is required. Messages stay open: they are mappings here.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, is_dataclass, replace
from dataclasses import fields as of_dataclass
from typing import Any, Final, get_type_hints

from typing_extensions import is_typeddict

from harness.dialects.kit.accesses import Access, access_of, functions_in
from harness.dialects.kit.declared import (
    first_read,
    is_number,
    object_schema,
    return_schema,
    return_schemas,
    type_schema,
    user_messages,
)
from harness.graph.model import Declared, Edge, Schema
from harness.time.rebinding import USER, origin_of

_MESSAGES: Final = "messages"
_HANDLERS: Final = ("with_retry", "with_fallbacks", "retry_policy=", "RetryMiddleware", "FallbackMiddleware")
_OWN_ARGUMENTS: Final = ("config", "context", "thread_id")


EdgesOf = Callable[[Any], Sequence[Edge]]
"""Returns the edges of a graph of LangGraph."""


def declared_app(compiled: Any, edges_of: EdgesOf) -> Declared:
    """Return what a graph of LangGraph declares."""
    builder = getattr(compiled, "builder", None)
    runs = {name: _accesses(node.bound, edges_of) for name, node in compiled.nodes.items()}
    chooses = {name: _routers(each) for name, each in getattr(builder, "branches", {}).items()}
    everything = [compiled, *(inner for _, inner in compiled.get_subgraphs(recurse=True))]
    tools = {name: tool for each in everything for name, tool in _tools(each)}
    handles = any(map(_handles, everything)) or any(access.catches for own in runs.values() for access in own)
    results = return_schemas("tool", tools)
    if builder is None:
        function = next((each for node in compiled.nodes.values() for each in functions_in(node.bound)), None)
        return replace(_called(function), results=results, handles_faults=handles)
    outputs = _types(_schema_of(builder, "output"))
    given = _inputs(compiled, edges_of(compiled), runs, chooses)
    return Declared(
        input=given,
        context=_context_of(builder),
        takes_text=_MESSAGES in given["properties"] and set(given["required"]) <= {_MESSAGES},
        output={"type": "string"} if _MESSAGES in compiled.output_channels else object_schema(outputs, ()),
        state=object_schema(_types(_schema_of(builder, "state")), ()),
        results=results,
        handles_faults=handles,
    )


def declared_callable(agent: Any) -> Declared:
    """Return what an agent declares that is any callable."""
    return _called(next(functions_in(agent if callable(agent) else agent.ainvoke), None))


def _called(function: Any) -> Declared:
    """Return what a function declares by the annotations of its first parameter and of its result."""
    if function is None:
        return Declared(takes_text=True)
    access = access_of(function)
    parameters = [name for name in inspect.signature(function).parameters if name not in _OWN_ARGUMENTS]
    try:
        hints = get_type_hints(inspect.unwrap(function))
    except Exception:  # annotations may name what only a type checker imports
        hints = {}
    given = type_schema(hints.get(parameters[0], Any)) if parameters else None
    keys = [key for key in (*access.needs, *access.asks) if key]
    if (given is None or not {"properties", "$ref"} & given.keys()) and keys and parameters:
        given = object_schema(dict.fromkeys(keys, _ANY), [key for key in access.needs if key])
    is_mapping = given is not None and (given.get("type") == "object" or "$ref" in given)
    return Declared(
        input=given if is_mapping else None,
        takes_text=bool(parameters) and not is_mapping and (given is None or given.get("type") == "string"),
        output=return_schema(function),
        handles_faults=access.catches,
    )


# ---------------------------------------------------------------- types


_ANY: Final[Schema] = {}


def _schema_of(builder: Any, which: str) -> Any:
    """Return the type of the state, the input or the output. LangGraph 0.3 has other names."""
    own = "schema" if which == "state" else which
    return getattr(builder, f"{which}_schema", None) or getattr(builder, own, None)


def _context_of(builder: Any) -> Schema | None:
    """Return the schema of the context; None if the graph has none, as before LangGraph 0.6."""
    schema = getattr(builder, "context_schema", None)
    types = {} if schema is None else _types(schema)
    return object_schema(types, _required(schema)) if types else None


def _types(schema: Any) -> dict[str, Schema]:
    """Return the schema of each key of a type. Of messages it is open."""
    try:
        hints, annotated = get_type_hints(schema), get_type_hints(schema, include_extras=True)
    except Exception:  # annotations may name what only a type checker imports
        hints, annotated = {}, {}
    return {
        key: _ANY if "essage" in repr(annotated[key]) else type_schema(hint) or _ANY  # add_messages, too
        for key, hint in hints.items()
        if not key.startswith("_")
    }


def _required(schema: Any) -> list[str]:
    """Return the keys that a model or a dataclass requires, or that a type of an input of its own does."""
    fields = getattr(schema, "model_fields", None)
    if fields is not None:
        return [key for key, field in fields.items() if field.is_required()]
    if is_dataclass(schema):
        return [
            each.name for each in of_dataclass(schema) if each.init and not _has_default(schema, each.name)
        ]
    return [key for key in _types(schema) if key in getattr(schema, "__required_keys__", ())]


def _has_default(schema: Any, key: str) -> bool:
    fields = getattr(schema, "model_fields", None) or {}
    if key in fields:
        return not fields[key].is_required()
    if is_dataclass(schema):
        known = {each.name: each for each in of_dataclass(schema)}
        return key in known and (known[key].default, known[key].default_factory) != (MISSING, MISSING)
    return hasattr(schema, key) and not is_typeddict(schema)


# ---------------------------------------------------------------- the functions


def _accesses(runnable: Any, edges_of: EdgesOf | None = None) -> list[Access]:
    if edges_of is not None and getattr(runnable, "builder", None) is not None:  # a graph
        inner = declared_app(runnable, edges_of)
        given, keys = inner.input or {}, (inner.state or {}).get("properties", {})
        asks = dict.fromkeys(given.get("properties", ()))
        writes: dict[str | None, None] = {key: None for key in keys if key not in asks}
        return [Access(needs=dict.fromkeys(given.get("required", ())), asks=asks, writes=writes)]
    steps = getattr(runnable, "steps", None) or [runnable]
    found = [access_of(function) for function in functions_in(runnable)]
    for name in getattr(steps[0], "input_variables", ()):  # a prompt
        found.append(Access(needs={name: None}))
    return found


def _routers(branches: Mapping[str, Any]) -> list[Access]:
    return [access for branch in branches.values() for access in _accesses(branch.path)]


def _tools(compiled: Any) -> Iterator[tuple[str, Any]]:
    for node in compiled.nodes.values():
        yield from getattr(node.bound, "tools_by_name", {}).items()


def _handles(compiled: Any) -> bool:
    """True if a graph retries, turns errors of tools into messages, or names what handles failures."""
    nodes = compiled.nodes.values()
    functions = [each for node in nodes for each in functions_in(node.bound)]
    files = {getattr(each, "func", each).__code__.co_filename for each in functions}
    return (
        any(getattr(node, "retry_policy", None) for node in nodes)
        or any(getattr(node.bound, "_handle_tool_errors", None) is True for node in nodes)
        or any(word in "".join(linecache.getlines(file)) for file in files for word in _HANDLERS)
    )


def _inputs(
    compiled: Any,
    edges: Sequence[Edge],
    runs: Mapping[str, Sequence[Access]],
    chooses: Mapping[str, Sequence[Access]],
) -> Schema:
    """Return the schema of what a caller gives: an input type of its own, else what nodes read first."""
    builder = compiled.builder
    schema, state = _schema_of(builder, "input"), _schema_of(builder, "state")
    accesses = [(node, access) for each in (runs, chooses) for node, own in each.items() for access in own]
    read = (key for _, access in accesses for key in (*access.needs, *access.asks) if key is not None)
    types = _types(schema) or dict.fromkeys(read, _ANY)  # such as `StateGraph(dict)`
    module = sys.modules.get(getattr(schema, "__module__", ""))
    if schema is not state and module is not None and origin_of(module) is USER:
        required = _required(schema)
        properties = dict(types)
    else:
        first = _read_first(compiled, edges, runs, accesses, types)
        required = [] if is_typeddict(schema) else _required(schema)
        required += [key for key in first if first[key]]
        properties = {key: types[key] for key in (*required, *first)}
    if _MESSAGES in types:
        properties[_MESSAGES] = user_messages()
        required.append(_MESSAGES)
    return object_schema(properties, dict.fromkeys(required))


def _read_first(
    compiled: Any,
    edges: Sequence[Edge],
    runs: Mapping[str, Sequence[Access]],
    accesses: Sequence[tuple[str, Access]],
    types: Mapping[str, Schema],
) -> dict[str, bool]:
    """Return the keys that something reads before a node can have written them, each with True if it must be there.

    A key that has a value at first is none. Where no source tells what is read, any text and the like may be.
    """
    state = _schema_of(compiled.builder, "state")
    reads = [(node, key) for node, access in accesses for key in access.read(types)]
    writes = {node: [key for access in own for key in access.set(types)] for node, own in runs.items()}
    for node, access in accesses:
        writes.setdefault(node, []).extend(access.sends)
    written = {key for keys in writes.values() for key in keys}
    if not reads and _MESSAGES not in types:
        return {
            key: True
            for key in types
            if key not in written and not is_number(types[key]) and not _is_reduced(compiled, key)
        }
    found = {}
    for key in first_read([(edge.source, edge.target) for edge in edges], reads, writes):
        has_value = _has_default(state, key) or (key in written and _is_reduced(compiled, key))
        needed = any(key in access.needs or None in access.needs for _, access in accesses)
        if not has_value and (needed or not (key in written or is_number(types[key]))):
            found[key] = needed
    return found


def _is_reduced(compiled: Any, key: str) -> bool:
    return type(compiled.channels.get(key)).__name__ == "BinaryOperatorAggregate"
