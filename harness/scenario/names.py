"""Detects names in scenarios that cannot exist. With a typo, a `never` can never fail, and a stub never answers.

    mentions of the scenario ──▶ compared with the names of its graph (harness/graph/names.py), and those that the
                                 scenario adds (judges, tools that a stub makes a model call, scripted servers)

A name that cannot exist is an error of the file, or a warning if it belongs to a stub and `allow_unused` is
set. A name that may become known only during a run is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Final

from harness.dialects.load import load_graph
from harness.errors import ManifestError, Problem, Severity, SourceError, Span
from harness.graph.effects import EFFECTS, SERVER
from harness.graph.model import END, NODE, START, Graph, Vocabulary
from harness.graph.names import Names, names_of, noun_of
from harness.graph.native import NativeGraph
from harness.graph.trace import Trace
from harness.matchers.regex import glob_matches, last_part_matches, name_matches
from harness.scenario.judge import JUDGE_NODE
from harness.scenario.load import load_file
from harness.scenario.mentions import CONDITIONS, RERUN, Mention
from harness.scenario.model import MUTATOR_NODE, Scenario, load_request
from harness.scenario.words import AgentWords
from harness.settings import RecordMode, Settings
from harness.source.display import clip, did_you_mean, nearest
from harness.world.mcp.tools import sampled_model
from harness.world.spec import ScriptedMCPServer

_NAME_LENGTH: Final = 60

_CHECKED_BY_THE_RUN: Final = ("calls", "calls.node", "error.node")
"""Expectations that fail anyway if the name does not exist."""

Load = Callable[[Scenario], Graph]
"""Returns the graph of a scenario, or raises a ManifestError."""


def unknown_names(
    scenario: Scenario, graph: Graph, settings: Settings, load: Load | None = None
) -> list[Problem]:
    """Return a problem for each name in a scenario that its graph does not have.

    It is a warning if the graph may have the name. A name that several scenarios share (`defaults`) need only
    exist for one of them. If the scenario expects its manifest to be refused, no name is checked: its stubs may
    be for parts that the manifest names but lacks.

    Args:
        scenario: the scenario to check.
        graph: its graph.
        settings: those of the project.
        load: loads the graphs of the other scenarios of the file.
    """

    def loaded(other: Scenario) -> Graph:
        return load_graph(load_request(other, settings), other.dialect)

    if isinstance(graph, NativeGraph) and graph.compiled is None:  # an app that is not imported
        return []
    if not (found := _unknown(scenario, graph, settings)):
        return []
    shared = _valid_in_others(scenario, found, settings, load or loaded)
    return [problem for mention, problem in found.items() if mention not in shared]


def names_unknown_in_run(
    scenario: Scenario,
    graph: NativeGraph,
    trace: Trace,
    settings: Settings,
    connected: Iterable[str] = (),
    *,
    ended: bool,
) -> list[Problem]:
    """Return a warning for each name in a scenario that neither an app's graph has nor its run showed.

    What an app calls is known only when it runs, so its names are looked up afterwards: among the calls that it made,
    the tools that it offered to its models, the MCP servers that it connected to, and the nodes of graphs that ran
    inside its own. Of a run that did not come to its end, only the nodes of the top graph are known.
    """
    if not scenario.mentions:
        return []
    calls = [event for event in trace.events if event["event"] == "call"]
    shown: dict[str, list[str]] = {kind: [] for kind in EFFECTS}
    for call in calls:
        shown[call["kind"]].append(call["name"])
    shown["tool"] += trace.tools
    nodes = {call["node"] for call in calls}
    starts = [event for event in trace.events if event["event"] == "node_start"]
    nodes |= {event["graph"] + event["node"] for event in starts}
    known = names_of(graph) or Names()
    names = {kind: [*known.names.get(kind, ()), *found] for kind, found in shown.items()}
    servers = [*connected, *(call["request"]["server"] for call in calls if call["kind"] == "mcp")]
    seen = Vocabulary(
        names={**names, SERVER: servers},
        callers={*nodes, *known.callers},
        inputs=known.inputs,
        text_input=known.text_input,
    )
    visited = [event["node"] for event in starts if not event["graph"]]
    own = [node.name for node in graph.nodes]
    if not ended:
        tops = {*own, *visited}
        lost = [each for each in scenario.mentions if not graph.has_tasks and _is_in_none(each, tops)]
        scenario = replace(scenario, mentions=tuple(lost))
    tasks = [replace(graph.nodes[0], name=name) for name in dict.fromkeys(visited) if name not in own]
    closed = replace(graph, nodes=(*graph.nodes, *tasks), vocabulary=lambda: seen)
    unknown = unknown_names(scenario, closed, settings, lambda _: closed)
    return [replace(each, severity="warning") for each in unknown]


def _is_in_none(mention: Mention, nodes: Collection[str]) -> bool:
    """True for the name of a node `outer/inner` that is inside none of these nodes."""
    outer, inside, _ = mention.name.partition("/")
    return mention.role == "caller" and bool(inside) and not any(glob_matches(outer, node) for node in nodes)


def _unknown(scenario: Scenario, graph: Graph, settings: Settings) -> dict[Mention, Problem]:
    refused = any(expect.values.get("status") == "invalid" for expect in scenario.expectations)
    if refused or not scenario.mentions:
        return {}
    # Nested graphs may be files that are not loaded yet, so only names missing in the top graph are looked up there.
    found: list[Mention] = list(scenario.mentions)
    problems: dict[Mention, Problem] = {}
    for inside in (False, True):
        known = _NameChecker(scenario, graph, names_of(graph, inside=inside), settings)
        problems = {mention: problem for mention in found if (problem := known.problem(mention))}
        if not (found := list(problems)):
            break
    return problems


def _valid_in_others(
    scenario: Scenario, found: Collection[Mention], settings: Settings, load: Load
) -> set[Mention]:
    """Return the mentions that other scenarios of the file share, and that exist for one of them.

    If another scenario's manifest is refused, its names are unknown, and any shared stub may be meant for it. A
    value that is filled from a row of a table is not shared: the place is the same, but the name differs.
    """
    stubs = {mention for mention in found if mention.in_world}
    fitting: set[Mention] = set()
    for other in _other_scenarios(scenario, settings):
        sharing = set(other.mentions) & set(found) - fitting
        if sharing:
            try:
                graph = load(other)
            except ManifestError:
                fitting |= sharing & stubs
                continue
            fitting |= sharing - _unknown(other, graph, settings).keys()
    return fitting


def _other_scenarios(scenario: Scenario, settings: Settings) -> Iterator[Scenario]:
    try:
        loaded = load_file(scenario.file, settings).scenarios
    except SourceError:  # the file no longer exists, or never did
        return
    seen = {id(scenario.mentions)}
    for other in loaded:
        if other.name != scenario.name and id(other.mentions) not in seen:
            seen.add(id(other.mentions))  # all rows of a table share one tuple of mentions
            yield other


@dataclass
class _NameChecker:
    """The names that exist for a scenario. `names` are those of its graph, if its front end lists them."""

    scenario: Scenario
    graph: Graph
    names: Names | None
    settings: Settings

    def problem(self, mention: Mention) -> Problem | None:
        """Return the problem with a name, or None if it can exist."""
        if mention.key == RERUN and not self.graph.reruns:
            text = f"no node of '{self.graph.name}' can be run again: {self.graph.dialect} has no rerun"
            return Problem("unknown-name", text, mention.span)
        if mention.role == "entry":
            return self._entry(mention)
        if mention.role == "hook":
            text = f"'{mention.name}' does nothing: {self.graph.dialect} has no hooks"
            return None if self.graph.takes_hooks else _warning(text, mention.span)
        if mention.role == "input":
            return self._input(mention)
        if mention.role in ("absent", "argument", "variable"):
            return self._word(mention)
        if mention.key != CONDITIONS:
            return self._named(mention)
        problem = self._in_condition(mention)
        return replace(problem, severity="warning") if problem is not None else None

    def _entry(self, mention: Mention) -> Problem | None:
        known = self.graph.entries
        if mention.name in known:
            return None
        text, hint = f"there is no entry point or agent '{mention.name}'", did_you_mean(mention.name, known)
        if not known:
            text = f"all inputs enter '{self.graph.name}' at the same place: {self.graph.dialect} has no entry points"
            hint = "name the agent of the scenario beside `turns`"
        return Problem("unknown-agent", text, mention.span, hint)

    def _named(self, mention: Mention) -> Problem | None:
        if mention.role in ("node", "source", "target", "timed"):
            return self._node(mention)
        if self.names is None:
            return None
        if mention.role == "pause":
            return self._pause(mention)
        if mention.role == "caller":
            return self._caller(mention, self.names)
        kind = SERVER if mention.role == "server" else mention.kind
        known = self._called(kind, asked=mention.role == "called")
        if mention.role == "called":
            fits = partial(name_matches, mention.name, in_parts=EFFECTS[kind].named_in_parts)
            is_known = set(mention.name) == {"*"} or any(map(fits, known))
        else:
            is_known = mention.name in known or mention.name in self.names.aliases.get(kind, {})
        return None if is_known else self._refused(mention, kind, known, self._open_reason(kind))

    def _in_condition(self, mention: Mention) -> Problem | None:
        """Check a name in a CEL condition: a kind of call, the target of a call, or a node."""
        if mention.role == "kind":
            known: Collection[str] = list(EFFECTS)
            text = f"{mention.key} names '{mention.name}', which is not a kind of call"
        elif mention.role == "anything":
            if self.names is None or self.names.open or "/" in mention.name:  # a URL may be anything
                return None
            called = (self._called(kind, asked=True) for kind in EFFECTS)
            known = [*self._nodes, *self.names.callers, *chain.from_iterable(called)]
            text = f"{mention.key} names '{mention.name}', but '{self.graph.name}' calls nothing of that name"
        else:
            return self._named(mention)
        if mention.name in known:
            return None
        return Problem("unknown-name", text, mention.span, did_you_mean(mention.name, list(known)))

    def _input(self, mention: Mention) -> Problem | None:
        if self.names is None or self.names.inputs is None:
            return None
        name = mention.name or self.names.text_input
        if name in self.names.inputs:
            return None
        text = f"the input is dropped: '{clip(self.graph.name, _NAME_LENGTH)}' has no '{clip(name, _NAME_LENGTH)}'"
        return _warning(text, mention.span, did_you_mean(name, list(self.names.inputs)))

    def _word(self, mention: Mention) -> Problem | None:
        """Check a name that has no effect if it occurs nowhere in the agent.

        Of an app, all its packages count: a key is told if it also resembles one of its state.
        """
        channels = [channel.name for channel in self.graph.channels]
        resembles = mention.role == "absent" and nearest(mention.name, channels)
        if mention.name in channels or (isinstance(self.graph, NativeGraph) and not resembles):
            return None
        name, graph = clip(mention.name, _NAME_LENGTH), clip(self.graph.name, _NAME_LENGTH)
        if mention.role == "variable":
            if self._words.may_ask_for(mention.name):
                return None
            text = f"nothing in '{graph}' uses the variable '{name}'"
        elif self._words.may_have(mention.name) or (mention.kind and self._open_reason(mention.kind)):
            return None
        elif mention.role == "argument":
            text = (
                f"{mention.key}: no call has an argument '{name}', since nothing in '{graph}' has that name"
            )
        else:
            text = f"{mention.key}: '{name}' is always missing, since nothing in '{graph}' has that name"
        return _warning(text, mention.span, did_you_mean(name, list(self._words), listing=False))

    @cached_property
    def _words(self) -> AgentWords:
        return AgentWords(self.scenario, self.graph, self.settings)

    @cached_property
    def _nodes(self) -> dict[str, None]:
        return dict.fromkeys(node.name for node in self.graph.nodes)

    def _node(self, mention: Mention) -> Problem | None:
        """Check the full name of a node: expectations on nodes refer to the top graph."""
        if mention.name in self._nodes:
            return None
        known = [*self._nodes]
        if mention.role in ("source", "target"):
            known.append(START if mention.role == "source" else END)
        elif mention.role == "timed" and self.graph.includes_nested_latency and self.names is not None:
            known += self.names.inner
        if mention.name in known:
            return None
        problem = self._refused(mention, NODE, known, "")
        outer = self.names.inner.get(mention.name.rpartition("/")[2]) if self.names else None
        if problem and outer:
            inside = f"it is a node inside '{clip(outer, _NAME_LENGTH)}'"
            problem = replace(problem, hint=f"{inside}; the name is looked up in the outer graph only")
        return problem

    @cached_property
    def _callers(self) -> frozenset[str]:
        """All nodes that may make a call. Most mentions are full names, which a set finds without a search."""
        own = self.names.callers if self.names is not None else ()
        return frozenset([*own, START, JUDGE_NODE, MUTATOR_NODE])

    def _caller(self, mention: Mention, names: Names) -> Problem | None:
        pattern = mention.name.rpartition("/")[2] if names.circular else mention.name
        if pattern in self._callers or any(last_part_matches(pattern, name) for name in self._callers):
            return None
        return self._refused(mention, NODE, list(names.callers), names.open.get(NODE, ""))

    def _pause(self, mention: Mention) -> Problem | None:
        pauses = self.graph.vocabulary().pauses if self.graph.vocabulary is not None else None
        if pauses is None or mention.name in pauses:
            return None
        text = f"{mention.key} names '{clip(mention.name, _NAME_LENGTH)}', where '{self.graph.name}' never pauses"
        return Problem("unknown-name", text, mention.span, did_you_mean(mention.name, list(pauses)))

    # ------------------------------------------------------------ what the scenario adds

    @cached_property
    def _servers(self) -> list[ScriptedMCPServer]:
        return [server for world in self.scenario.worlds for server in world.mcp.values()]

    @cached_property
    def _asked_models(self) -> list[str]:
        """The models that judge, and those that scripted MCP servers ask."""
        expected = (expect.values.get("judge", ()) for expect in self.scenario.expectations)
        stubs = (stub for server in self._servers for tool in server.tools for stub in tool.stubs)
        sampled = (sampled_model(stub.sample) for stub in stubs if stub.sample is not None)
        return [*(item["model"] for items in expected for item in items), *sampled]

    def _called(self, kind: str, *, asked: bool) -> list[str]:
        """Return the possible targets of calls of a kind; with `asked`, also tools that a stub makes a model call."""
        assert self.names is not None
        known = list(self.names.names.get(kind, ()))
        if kind == "llm":
            known += self._asked_models
        elif kind == "mcp":
            known += [tool.name for server in self._servers for tool in server.tools]
        elif kind == "tool" and asked:
            stubs = (stub for world in self.scenario.worlds for stub in world.stubs("llm"))
            known += [call["name"] for stub in stubs for call in stub.answer.get("tool_calls", ())]
        return known

    def _open_reason(self, kind: str) -> str:
        """Return the reason why a run may know more names of this kind; empty if it cannot."""
        assert self.names is not None
        if kind in self.names.open:
            return self.names.open[kind]
        is_real = self.settings.record or self.settings.record_mode is RecordMode.LIVE
        if kind in ("llm", "tool", "mcp") and (self.scenario.cassette is not None or is_real):
            return "its models and servers are recorded, or real"
        if kind == "llm" and any(True for world in self.scenario.worlds for _ in world.real()):
            return "real Python code may ask other models"
        if kind == "mcp" and any(server.real for server in self._servers):
            return "the tools of a real server are known when it is asked"
        return ""

    def _refused(self, mention: Mention, kind: str, known: Collection[str], why_open: str) -> Problem | None:
        name, graph = clip(mention.name, _NAME_LENGTH), clip(self.graph.name, _NAME_LENGTH)
        noun = noun_of(kind)
        text = f"{mention.key} names '{name}', but '{graph}' has no such {noun}"
        meant = self.names.aliases.get(kind, {}).get(mention.name) if self.names is not None else None
        hint = f"did you mean '{meant}'?" if meant else self._suggestion(mention.name, noun, known)
        if why_open:
            if mention.key in _CHECKED_BY_THE_RUN:
                return None
            text = f"{text}, as far as can be known before the run: {why_open}"
        is_fine = mention.in_world and self.scenario.allow_unused
        severity: Severity = "warning" if why_open or is_fine else "error"
        return Problem("unknown-name", text, mention.span, hint, severity)

    def _suggestion(self, name: str, noun: str, known: Collection[str]) -> str:
        named = self.names.names if self.names is not None else {}
        others = [noun_of(kind) for kind, names in named.items() if name in names]
        if others:
            return f"it has {'an' if others[0][0] in 'aM' else 'a'} {others[0]} of that name"
        if not known:
            return f"'{clip(self.graph.name, _NAME_LENGTH)}' has no {noun}"
        return did_you_mean(name, [clip(each, _NAME_LENGTH) for each in known])


def _warning(text: str, span: Span | None, hint: str = "") -> Problem:
    return Problem("unknown-name", text, span, hint, "warning")
