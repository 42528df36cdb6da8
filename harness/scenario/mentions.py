"""Extracts the names that a scenario uses, each with its location, from its stubs and inputs.

Those in expectations are found by the rules of each check, the general ones of which are here.
`harness.scenario.names` checks if they can exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness.errors import Span
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
NAMED_BY_NODE: Final = "human"
"""The kind of calls that are named by the node that makes them."""
RERUN: Final = "rerun"
"""The key of a turn that names an agent to run again."""
NAMED_BY_URL: Final = "http"
"""The kind of calls whose names are URLs, which are not checked."""
CONDITIONS: Final = "checks"
"""The key of CEL conditions."""


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


def nodes_listed(key: str, at: Document) -> Iterator[Mention]:
    """Yield the nodes in the list at `key`, which may contain lists."""
    for path, name in written_texts(at.value[key], (key,)):
        yield Mention(key, "node", name, at.span(path))


def nodes_as_keys(key: str, at: Document) -> Iterator[Mention]:
    """Yield the nodes that are the keys of the mapping at `key`."""
    for name in at.value[key]:
        yield Mention(key, "node", name, at.key_span((key, name)))


def written_texts(value: Any, path: DocumentPath) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the texts in a list, at any depth, or the single text that stands in its place."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from written_texts(item, (*path, index))


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
            yield from target_mentions(
                "faults", fault["effect"], fault["name"], at.span(("faults", index, "name"))
            )


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


def argument_mentions(key: str, kind: str, at: Document, path: DocumentPath) -> Iterator[Mention]:
    """Yield the arguments at `path`, if there are any, of calls with arbitrary arguments."""
    args = at.at(path[:-1]).value.get("args")
    for name in written_arguments(args) if has_own_arguments(kind) else ():
        yield Mention(key, "argument", name, at.key_span((*path, name)), kind)


def target_mentions(key: str, kind: str, name: str, span: Span) -> Iterator[Mention]:
    """Yield the name of what is called, by the kind of the call."""
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
        yield from argument_mentions(key, ENTRIES.get(key, key), at, (*path, "args"))
