"""Extracts the names that a scenario uses, each with its location, from its expectations, stubs and inputs.

`harness.scenario.names` checks if they can exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness.errors import Span
from harness.expressions.cel import ITEM, Path
from harness.matchers.value import is_matcher
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath

_ARGUMENTS: Final = {
    "llm": (),
    "http": ("method", "url", "query", "json", "headers", "text"),
    "agent": ("input",),
    "human": ("question", "options", "value"),
    "retrieval": ("query", "top_k", "group"),
}


def unknown_arguments(kind: str, args: Any) -> Iterator[tuple[str, str]]:
    """Yield the names in expected arguments `args` that no call of this kind has, each with a hint."""
    known = _ARGUMENTS.get(kind, ())
    for name in written_arguments(args) if kind in _ARGUMENTS else ():
        if name not in known:
            yield name, did_you_mean(name, known) if known else "calls of models have no arguments"


def written_arguments(args: Any) -> list[str]:
    """Return the names of the expected arguments; none if one matcher applies to all of them."""
    return [str(name) for name in args] if isinstance(args, Mapping) and not is_matcher(args) else []


def has_own_arguments(kind: str) -> bool:
    """True if calls of this kind have arbitrary arguments, as calls of tools do."""
    return kind not in _ARGUMENTS


Role = Literal[
    "node", "source", "target", "timed", "caller", "called", "stub", "server", "pause",
    "absent", "argument", "kind", "anything", "variable", "hook", "input", "entry",
]  # fmt: skip
"""The role of a name:

node, source, target  a node of the graph, or its start or end
timed                 a node in `latency.nodes`
caller                a glob for the node that makes a call, or that fails
called                a glob for the target of a call: a model, a tool, …
stub                  a name that has stubs: a tool, an agent, …
server                an MCP server
pause                 a text with which a run pauses
absent                a key of the state or the output that is expected to be missing
argument              an argument of calls
kind                  a kind of call
anything              the target of a call of any kind
variable              an environment variable
hook                  the dotted path of a hook
input                 a key of an input; "" for an input of text
entry                 the entry point or agent that the input of a turn enters
"""

ENTRIES: Final = {
    "tools": "tool",
    "handlers": "handler",
    "agents": "agent",
    "scripts": "script",
    "retrieval": "retrieval",
}
"""The keys of a world that are mappings by name, each with the kind of call that it answers."""
WORLD_KEYS: Final = frozenset({"llm", "human", "http", "mcp", "faults", "hooks", "env", *ENTRIES})
_OF_ONE: Final = ("$all", "$some", "$json", "$exact")
"""Matchers whose argument is compared with the same value, or with a part of it."""
NAMED_BY_NODE: Final = "human"
"""The kind of calls that are named by the node that makes them."""
RERUN: Final = "rerun"
"""The key of a turn that names an agent to run again."""
NAMED_BY_URL: Final = "http"
"""The kind of calls whose names are URLs, which are not checked."""
CONDITIONS: Final = "checks"
"""The key of CEL conditions."""
_LOOKUP_ROLES: Final[Mapping[tuple[Path, bool], Role]] = {
    (("path",), False): "node",
    (("path", ITEM), True): "node",
    (("visits",), False): "node",
    (("latency", "nodes"), False): "timed",
    (("state",), False): "absent",
    (("output",), False): "absent",
    (("calls", ITEM, "kind"), True): "kind",
    (("calls", ITEM, "name"), True): "anything",
    (("calls", ITEM, "node"), True): "caller",
}
"""The role of a name that a CEL condition looks up, by (path, is_value); see `NameLookup`."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A name under `key` of a scenario. For the roles `called` and `stub`, `kind` is the kind of call."""

    key: str
    role: Role
    name: str
    span: Span
    kind: str = ""

    @property
    def in_world(self) -> bool:
        """True if the name is in the world and not in an expectation."""
        return self.key in WORLD_KEYS


def expectation_mentions(at: Document) -> Iterator[Mention]:
    """Yield the names in the `expect` mapping at `at`."""
    values = at.value
    for key in ("path", "path_includes", "never"):
        for path, name in _texts(values.get(key, ()), (key,)):
            yield Mention(key, "node", name, at.span(path))
    for key in ("visits", "max_visits"):
        for name in values.get(key, ()):
            yield Mention(key, "node", name, at.key_span((key, name)))
    for index, route in enumerate(values.get("routes", ())):
        yield Mention("routes", "source", route["from"], at.span(("routes", index, "from")))
        yield Mention("routes", "target", route["to"], at.span(("routes", index, "to")))
    for name in (values.get("latency") or {}).get("nodes", ()):
        yield Mention("latency.nodes", "timed", name, at.key_span(("latency", "nodes", name)))
    yield from _in_calls(values, at)
    node = (values.get("error") or {}).get("node")
    if isinstance(node, str):
        yield Mention("error.node", "caller", node, at.span(("error", "node")))
    for path, name in _texts(values.get("interrupt", ()), ("interrupt",)):
        yield Mention("interrupt", "pause", name, at.span(path))
    yield from _in_values(at)
    for index, item in enumerate(values.get(CONDITIONS, ())):
        yield from _in_condition(item["that"], at.span((CONDITIONS, index, "that")))


def _in_values(at: Document) -> Iterator[Mention]:
    """Yield the keys of the state and of the output that these expectations allow to be missing."""
    for key in ("state", "output"):
        for path in _absent(at.value.get(key), (key,)):
            yield Mention(key, "absent", str(path[-1]), at.key_span(path))
    for name in _optional(at.value.get("state_schema")):
        where = at.key_span(("state_schema", "properties", name))
        yield Mention("state_schema", "absent", name, where)


def _absent(value: Any, path: DocumentPath, *, negated: bool = False) -> Iterator[DocumentPath]:
    """Yield the paths of keys that match if they are missing: `$missing: true`, and keys under `$not`."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _absent(item, (*path, index), negated=negated)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            is_matcher = str(key).startswith("$")
            if key in _OF_ONE or (key == "$not" and not negated):
                yield from _absent(item, (*path, key), negated=key == "$not")
            elif not is_matcher and (negated or item == {"$missing": True}):
                yield *path, key
            elif not is_matcher:
                yield from _absent(item, (*path, key))


def _optional(schema: Any) -> list[str]:
    """Return the properties that a schema lists but does not require."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return []
    return [name for name in schema["properties"] if name not in schema.get("required", ())]


def _in_condition(that: str, span: Span) -> Iterator[Mention]:
    from harness.expressions.inspection import looked_up_names

    for lookup in looked_up_names(that):
        if role := _LOOKUP_ROLES.get((lookup.path, lookup.is_value)):
            yield Mention(CONDITIONS, role, lookup.name, span)


def _in_calls(values: Mapping[str, Any], at: Document) -> Iterator[Mention]:
    for key in ("calls", "never_calls"):
        for index, call in enumerate(values.get(key, ())):
            yield from _in_call(key, call, at, (key, index))
    for name in values.get("call_counts", ()):
        kind, _, pattern = name.partition(":")
        if pattern:
            yield from _called("call_counts", kind, pattern, at.key_span(("call_counts", name)))


def world_mentions(at: Document) -> Iterator[Mention]:
    """Yield the names in the world of the scenario or turn at `at`."""
    values = at.value
    for key in ("llm", "human", "http"):
        stubs = values.get(key, ())
        if isinstance(stubs, Mapping):
            for node, of_node in stubs.items():
                yield Mention(key, "caller", node, at.key_span((key, node)))
                yield from _in_stubs(key, of_node, at, (key, node))
        else:
            yield from _in_stubs(key, stubs, at, (key,))
    for key, kind in ENTRIES.items():
        for name, entry in values.get(key, {}).items():
            yield Mention(key, "stub", name, at.key_span((key, name)), kind)
            yield from _in_stubs(key, entry, at, (key, name))
    for name, server in values.get("mcp", {}).items():
        yield Mention("mcp", "server", name, at.key_span(("mcp", name)))
        tools = server.get("tools", ()) if isinstance(server, Mapping) else ()
        for index, tool in enumerate(tools):
            yield from _in_stubs("mcp", tool.get("stubs", ()), at, ("mcp", name, "tools", index, "stubs"))
    for index, fault in enumerate(values.get("faults", ())):
        if "node" in fault:
            yield Mention("faults", "caller", fault["node"], at.span(("faults", index, "node")))
        if "name" in fault:
            yield from _called("faults", fault["effect"], fault["name"], at.span(("faults", index, "name")))


def context_mentions(at: Document) -> Iterator[Mention]:
    """Yield the environment variables, hooks and inputs of the scenario at `at`."""
    for part in (at, *(at.at(("turns", number)) for number in range(len(at.value.get("turns") or ())))):
        given = part.value.get("input")
        if isinstance(given, str):
            yield Mention("input", "input", "", part.span(("input",)))
        for name in given if isinstance(given, Mapping) else ():
            yield Mention("input", "input", str(name), part.key_span(("input", name)))
    for name in at.value.get("env", ()):
        yield Mention("env", "variable", name, at.key_span(("env", name)))
    for index, hook in enumerate(at.value.get("hooks", ())):
        yield Mention("hooks", "hook", hook, at.span(("hooks", index)))


def _in_call(key: str, call: Mapping[str, Any], at: Document, path: DocumentPath) -> Iterator[Mention]:
    for kind, name in call.items():
        if kind == "node":
            yield Mention(f"{key}.node", "caller", name, at.span((*path, kind)))
        elif kind not in ("args", "ok"):
            yield from _called(key, kind, name, at.span((*path, kind)))
            if key == "never_calls":
                yield from _arguments(key, kind, at, (*path, "args"))


def _arguments(key: str, kind: str, at: Document, path: DocumentPath) -> Iterator[Mention]:
    """Yield the arguments at `path`, if there are any, of calls with arbitrary arguments."""
    args = at.at(path[:-1]).value.get("args")
    for name in written_arguments(args) if has_own_arguments(kind) else ():
        yield Mention(key, "argument", name, at.key_span((*path, name)), kind)


def _called(key: str, kind: str, name: str, span: Span) -> Iterator[Mention]:
    if kind == NAMED_BY_NODE:
        yield Mention(key, "caller", name, span)
    elif kind != NAMED_BY_URL:
        yield Mention(key, "called", name, span, kind)


def _in_stubs(key: str, stubs: Any, at: Document, path: DocumentPath) -> Iterator[Mention]:
    """Yield the names in a stub or a list of stubs. A text is an answer or names a callable, and is skipped."""
    if isinstance(stubs, list):
        for index, stub in enumerate(stubs):
            yield from _in_stubs(key, stub, at, (*path, index))
    elif isinstance(stubs, Mapping):
        if "node" in stubs:
            yield Mention(key, "caller", stubs["node"], at.span((*path, "node")))
        if key == "llm" and "model" in stubs:
            yield Mention(key, "called", stubs["model"], at.span((*path, "model")), "llm")
        yield from _arguments(key, ENTRIES.get(key, key), at, (*path, "args"))


def _texts(value: Any, path: DocumentPath) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the texts in a list, at any depth, or the single text that stands in its place."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))
