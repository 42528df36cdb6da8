"""Extracts the names that a scenario uses, each with its location, from its stubs and inputs.

Those in expectations are found by the rules of each check, the general ones of which are here.
`harness.scenario.names` checks if they can exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness.errors import Span
from harness.graph.effects import EFFECTS, Effect
from harness.matchers.value import is_matcher
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath
from harness.world.spec import BY_FORM, WorldSpec
from harness.world.stub_models import AnyStub, LLMStub


def unknown_arguments(kind: str, args: Any) -> Iterator[tuple[str, str]]:
    """Yield the names in expected arguments `args` that no call of this kind has, each with a hint."""
    known = EFFECTS[kind].arguments if kind in EFFECTS else None
    for name in written_arguments(args):
        if known is not None and name not in known:
            yield name, did_you_mean(name, known) if known else "calls of models have no arguments"


def written_arguments(args: Any) -> list[str]:
    """Return the names of the expected arguments; none if one matcher applies to all of them."""
    return [str(name) for name in args] if isinstance(args, Mapping) and not is_matcher(args) else []


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

WORLD_KEYS: Final = frozenset({"faults", "hooks", "env", *(effect.key for effect in EFFECTS.values())})
_ROLES: Final[Mapping[str, Role]] = {"list": "caller", "name": "stub", "server": "server"}
RERUN: Final = "rerun"
"""The key of a turn that names an agent to run again."""
CONDITIONS: Final = "checks"
"""The key of CEL conditions."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A name under `key` of a scenario. For the roles `called` and `stub`, `kind` is the kind of call.

    `span` is None if the scenario is not from a file.
    """

    key: str
    role: Role
    name: str
    span: Span | None
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


def world_mentions(world: WorldSpec, at: Document) -> Iterator[Mention]:
    """Yield the names in the world of the scenario or turn at `at`."""
    below: dict[DocumentPath, list[Mention]] = defaultdict(list)
    for effect, path, stubs in world.lists():
        for index, stub in enumerate(stubs):
            below[path[:2]] += _in_stub(effect, stub, at, stub.path(path, index))
    for effect in BY_FORM:
        key, role = effect.key, _ROLES[effect.stubs]
        written = at.value.get(key, ())
        for name in written if isinstance(written, Mapping) else ():
            yield Mention(key, role, name, at.key_span((key, name)), effect.kind if role == "stub" else "")
            yield from below[key, name]
        yield from below[key,]
    for index, fault in enumerate(world.faults):
        if fault.node is not None:
            yield Mention("faults", "caller", fault.node, at.span(("faults", index, "node")))
        if fault.name is not None:
            yield from target_mentions("faults", fault.effect, fault.name, at.span(("faults", index, "name")))


def scenario_mentions(
    parts: Sequence[tuple[Document, WorldSpec]], of_expect: Callable[[Document], Iterator[Mention]]
) -> Iterator[Mention]:
    """Yield the names used in a scenario and in its turns, each with its world.

    `of_expect` has those of `expect` and `explore`.
    """
    whole, _ = parts[0]
    yield from context_mentions(whole)
    for part, world in parts:
        yield from world_mentions(world, part)
        if isinstance(part.value.get(RERUN), dict):
            yield Mention(RERUN, "node", part.value[RERUN]["agent"], part.span((RERUN, "agent")))
        if part is not whole:
            for key in ("agent", "entry_point"):
                if key in part.value:
                    yield Mention(key, "entry", part.value[key], part.span((key,)))
        for key in ("expect", "explore"):
            if isinstance(part.value.get(key), dict):
                yield from of_expect(part.at((key,)))


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


def argument_mentions(key: str, kind: str, args: Any, at: Document, path: DocumentPath) -> Iterator[Mention]:
    """Yield the names in expected arguments, which are at `path`, of calls with arbitrary arguments."""
    for name in written_arguments(args) if EFFECTS[kind].arguments is None else ():
        yield Mention(key, "argument", name, at.key_span((*path, name)), kind)


def target_mentions(key: str, kind: str, name: str, span: Span) -> Iterator[Mention]:
    """Yield the name of what is called, by the kind of the call."""
    if kind == "human":
        yield Mention(key, "caller", name, span)
    elif EFFECTS[kind].listed:
        yield Mention(key, "called", name, span, kind)


def _in_stub(effect: type[Effect], stub: AnyStub, at: Document, path: DocumentPath) -> Iterator[Mention]:
    """Yield the names that a stub asks for."""
    if stub.node is not None:
        yield Mention(effect.key, "caller", stub.node, at.span((*path, "node")))
    if isinstance(stub, LLMStub) and stub.model is not None:
        yield Mention(effect.key, "called", stub.model, at.span((*path, "model")), effect.kind)
    yield from argument_mentions(effect.key, effect.kind, stub.args, at, (*path, "args"))
