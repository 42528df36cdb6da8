"""The validator: errors that refuse a graph, and warnings. spec: "Validation".

It follows static edges only (`next`, `routes`, `on_other`, `fallback`). The nodes that scripts name in `_next` are
unknown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any, Final

from harness.dialects.kit.rules import Rules, reachable
from harness.dialects.loki import document as doc
from harness.dialects.loki.dialect import MANIFEST
from harness.dialects.loki.model_nodes import CONFIG, is_file_name, sibling_folder
from harness.dialects.loki.routing import NEXT, AnswerExit, DeclaredEdge, declared_edges, links
from harness.dialects.loki.templates import MISSPELLING_CUTOFF
from harness.dialects.loki.tool_universe import SERVER, Functions, ToolUniverse, shared_file
from harness.dialects.loki.warnings import written_keys
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.source.display import did_you_mean, nearest
from harness.source.document import Document
from harness.source.models import keys_of

_MANIFESTS: Final = tuple(Path(name).stem for name in (MANIFEST, CONFIG))


class GraphRules(Rules):
    """The rules, applied to one graph agent."""

    def __init__(
        self, graph: doc.GraphFile, document: Document, request: LoadRequest, tools: ToolUniverse
    ) -> None:
        super().__init__(document)
        self.graph, self.request, self.tools = graph, request, tools
        self.edges = list(declared_edges(graph))
        self.scripts: dict[str, Path] = {}
        """The files of script nodes that exist, by node id. `errors` fills it."""

    # -------------------------------------------------------------- errors

    def errors(self) -> Iterator[Problem]:
        """Yield the errors that abort the start, in the order of the documentation."""
        yield from self._targets()
        yield from self._cycles()
        yield from self._ends()
        yield from self._model(self.graph.model, "model")
        for id_, node in self.graph.nodes.items():
            yield from self._side_by_side(id_, node)
            match node:
                case doc.ApprovalNode():
                    yield from self._options(id_, node)
                case doc.MapNode():
                    yield from self._map(id_, node)
                case doc.ScriptNode():
                    yield from self._script(id_, node)
                case doc.AgentNode():
                    yield from self._agent(id_, node)
                case doc.RagNode(documents=[]):
                    text = f"the rag node '{id_}' has no documents: at least one source is needed"
                    yield self.error("no-documents", text, "nodes", id_, "documents")
                case doc.LLMNode():
                    yield from self._skills(id_, node)
                    yield from (each for each in self._tools(id_, node, {}) if each.severity == "error")
                    yield from self._model(node.model, "nodes", id_, "model")

    def _targets(self) -> Iterator[Problem]:
        for edge in self.edges:
            text = f"{_edge_text(edge)} must be the id of a node, and there is no node '{edge.target}'"
            yield from self.known_name("unknown-node", text, edge.target, self.graph.nodes, *edge.path)

    def _cycles(self) -> Iterator[Problem]:
        """Yield an error for each cycle of static edges, and remove an edge of it, until no cycle is left."""
        sources: dict[str, list[str]] = {id_: [] for id_ in self.graph.nodes}
        edges: dict[tuple[str, str], DeclaredEdge] = {}
        for edge in self.edges:
            if edge.target in sources:
                edges.setdefault((edge.source, edge.target), edge)
        # In the order of the nodes, so that every run finds the same cycles.
        for source in self.graph.nodes:
            for target in sorted(target for start, target in edges if start == source):
                sources[target].append(source)
        while (cycle := _find_cycle(sources)) is not None:
            source, target = cycle[-2:]
            sources[target].remove(source)
            edge = edges[source, target]
            text = f"declared edges form a cycle: {' → '.join(cycle)}"
            hint = "a script can lead back by `_next`, up to max_loop_iterations"
            yield self.error("cycle", text, *edge.path, hint=hint)

    def _ends(self) -> Iterator[Problem]:
        if not self.graph.of(doc.EndNode):
            text = "the graph has no end node: a run would never end"
            yield self.error("no-end", text, "nodes", key=True)

    def _map(self, id_: str, node: doc.MapNode) -> Iterator[Problem]:
        """Yield the errors of the node that a map node runs: it is one step, whose result the map node collects."""
        branch, where = self.graph.nodes.get(node.branch), ("nodes", id_, "branch")
        if branch is None:
            text = (
                f"the branch of node '{id_}' must be the id of a node, and there is no node '{node.branch}'"
            )
            yield from self.known_name("unknown-node", text, node.branch, self.graph.nodes, *where)
            return
        if not isinstance(branch, doc.LLMNode | doc.AgentNode | doc.RagNode | doc.ScriptNode):
            text = (
                f"the branch of node '{id_}' is of type {branch.type}, not an llm, agent, rag or script node"
            )
            yield self.error("bad-branch", text, *where)
        for field in ("next", "state_updates", "output_schema"):
            if getattr(branch, field, None):
                text = f"node '{node.branch}' is the branch of '{id_}', and cannot have {field}"
                yield self.error("bad-branch", text, "nodes", node.branch, field)
        for edge in self.edges:
            if edge.target == node.branch:
                text = f"{_edge_text(edge)} leads to '{node.branch}', which only the map node '{id_}' runs"
                yield self.error("bad-branch", text, *edge.path)

    def _side_by_side(self, id_: str, node: doc.NodeSpec) -> Iterator[Problem]:
        """Yield the errors of the nodes that run side by side after a node."""
        targets = node.next if isinstance(node.next, list) else ()
        writers: dict[str, str] = {}
        for index, target in enumerate(targets):
            beside = self.graph.nodes.get(target)
            if beside is None or len(targets) < 2:
                continue
            if isinstance(beside, doc.ApprovalNode | doc.InputNode):
                text = f"the {beside.type} node '{target}' cannot run beside others, after node '{id_}'"
                yield self.error("bad-branch", text, "nodes", id_, "next", index)
            for key in written_keys(beside):
                first = writers.setdefault(key, target)
                if first != target and key not in self.graph.reducers:
                    text = f"'{first}' and '{target}' run side by side after '{id_}', and both write '{key}'"
                    hint = f"add {key} to reducers"
                    yield self.error("missing-reducer", text, "nodes", id_, "next", index, hint=hint)

    def _skills(self, id_: str, node: doc.LLMNode) -> Iterator[Problem]:
        known = self.graph.enabled_skills
        for index, skill in enumerate(node.enabled_skills or () if known is not None else ()):
            text = f"node '{id_}': '{skill}' is none of the enabled_skills of the graph"
            path = ("nodes", id_, "enabled_skills", index)
            yield from self.known_name("unknown-skill", text, skill, known or (), *path)

    def _options(self, id_: str, node: doc.ApprovalNode) -> Iterator[Problem]:
        for index, option in enumerate(node.options):
            text = f"node '{id_}': the option '{option}' has no route"
            yield from self.known_name("no-route", text, option, node.routes, "nodes", id_, "options", index)

    def _script(self, id_: str, node: doc.ScriptNode) -> Iterator[Problem]:
        try:
            where = self.document.span(("nodes", id_, "script"))
            self.scripts[id_] = self.request.resolve(node.script, where)
        except ManifestError as error:
            yield from error.problems

    def _agent(self, id_: str, node: doc.AgentNode) -> Iterator[Problem]:
        folder, where = sibling_folder(self.request, node.agent), ("nodes", id_, "agent")
        if folder is None:
            agents = self.request.path.resolve().parent.parent
            if is_file_name(node.agent) and os.path.isdir(agents / node.agent):  # through a link
                text = f"node '{id_}': the agent '{node.agent}' is outside the folders a manifest may read"
                hint = "allow its folder in [tool.harness] allow_paths"
                yield self.error("path-outside", text, *where, hint=hint)
                return
            text = f"node '{id_}': there is no agent '{node.agent}'"
            known = sorted(path.name for path in agents.iterdir() if _has_manifest(path))
            yield self.error("unknown-agent", text, *where, hint=did_you_mean(node.agent, known))
            return
        if not _has_manifest(folder):
            text = f"node '{id_}': the agent '{node.agent}' has neither a {CONFIG} nor a {MANIFEST}"
            near = next((path.name for path in sorted(folder.glob("*.yml")) if path.stem in _MANIFESTS), None)
            hint = f"rename {near}: it must end in .yaml" if near is not None else ""
            yield self.error("empty-agent", text, *where, hint=hint)
        for name in (MANIFEST, CONFIG):
            self.request.record(folder / name)

    def _model(self, model: str | None, *where: str) -> Iterator[Problem]:
        """Yield an error for a model without a client name. The models that exist are not known here."""
        if model is not None and not model.partition(":")[0].strip():
            hint = "write client:name, such as openai:gpt-4o, or leave it out for the model that is active"
            yield self.error("unknown-model", f"there is no model '{model}'", *where, hint=hint)

    def tools_of_nodes(self, functions: Functions) -> Iterator[Problem]:
        """Yield the problems of whitelists that depend on the functions of MCP servers, of which some are known."""
        for id_, node in self.graph.of(doc.LLMNode).items():
            yield from self._tools(id_, node, functions)

    def _tools(self, id_: str, node: doc.LLMNode, functions: Functions) -> Iterator[Problem]:
        """Yield an error for each unknown tool, and a warning for each that looks misspelt and may be a function."""
        for index, entry in enumerate(node.tools):
            where = ("nodes", id_, "tools", index)
            lacks = self.tools.lacks(entry, functions)
            if lacks:
                text = f"node '{id_}': the agent has no tool '{entry}'"
                yield self.error("unknown-tool", text, *where, hint=self._tool_hint(entry, functions))
            elif lacks is None and (hint := self._misspelling_hint(entry)):
                text = f"node '{id_}': '{entry}' is no tool of the agent itself, and looks misspelt"
                yield self.warning("unknown-tool", text, *where, hint=hint)

    def _misspelling_hint(self, entry: str) -> str:
        """Return a hint if a name that may be a function of an MCP server looks like another name; else ""."""
        if entry in self.tools.servers:
            return f"did you mean '{SERVER}{entry}'?"
        if (file := shared_file(entry, self.request)) is not None:
            return f"add {file} to global_tools"
        near = nearest(entry, self.tools.local, cutoff=MISSPELLING_CUTOFF)
        return f"did you mean '{near}'?" if near else ""

    def _tool_hint(self, entry: str, functions: Functions) -> str:
        """Return a hint for an unknown tool: a similar name, or the entry that would add it to the agent."""
        known = [*self.tools.names(), *chain.from_iterable(functions.get(s, ()) for s in self.tools.servers)]
        if nearest(entry, known) is None:
            server = entry.removeprefix(SERVER)
            if server and server != entry:
                return f"add '{server}' to mcp_servers"
            if (file := shared_file(entry, self.request)) is not None:
                return f"add {file} to global_tools"
        return did_you_mean(entry, known)

    # -------------------------------------------------------------- warnings

    def warnings(self) -> Iterator[Problem]:
        """Yield the warnings."""
        yield from self._unreachable()
        for id_, node in self.graph.nodes.items():
            if isinstance(node, doc.ApprovalNode):
                yield from self._spare_routes(id_, node)
            if isinstance(node, doc.RagNode) and not node.state_updates:
                text = f"the rag node '{id_}' has no state_updates: its result is discarded"
                yield self.warning("unused-retrieval", text, "nodes", id_, key=True)
            if node.scoped is not None and node.scoped in node.state_updates:
                text = (
                    f"node '{id_}': '{node.scoped}' is restored after state_updates, so this update is lost"
                )
                yield self.warning("scoped-key", text, "nodes", id_, "state_updates", node.scoped, key=True)
        if doc.INITIAL_PROMPT in self.graph.initial_state:
            text = f"the seed of '{doc.INITIAL_PROMPT}' is replaced by the user's text"
            yield self.warning("seeded-prompt", text, "initial_state", doc.INITIAL_PROMPT, key=True)
        yield from self._unknown_keys()

    def _unreachable(self) -> Iterator[Problem]:
        found = reachable(self.graph.start, links(self.graph))
        unreachable = [id_ for id_ in self.graph.nodes if id_ not in found]
        if unreachable:
            nodes = "node" if len(unreachable) == 1 else "the nodes"
            text = f"no declared edge leads from the start to {nodes} {', '.join(unreachable)}"
            yield self.warning("unreachable", text, "nodes", unreachable[0], key=True)
        if not any(isinstance(self.graph.nodes.get(id_), doc.EndNode) for id_ in found):
            text = "no declared edge leads from the start to an end node"
            yield self.warning("unreachable-end", text, "start", key=True)

    def _spare_routes(self, id_: str, node: doc.ApprovalNode) -> Iterator[Problem]:
        for answer in node.routes:
            if answer not in node.options:
                text = f"node '{id_}': the route '{answer}' has no option, so only a typed answer takes it"
                yield self.warning("spare-route", text, "nodes", id_, "routes", answer, key=True)

    def _unknown_keys(self) -> Iterator[Problem]:
        yield from self._unknown_in((), doc.GraphFile)
        if isinstance(self.document.value.get("settings"), dict):
            yield from self._unknown_in(("settings",), doc.Settings)
        for id_, node in self.graph.nodes.items():
            yield from self._unknown_in(("nodes", id_), type(node), node.ignored)

    def _unknown_in(
        self, path: tuple[str, ...], model: type[doc.Section], ignored: tuple[str, ...] = ()
    ) -> Iterator[Problem]:
        value: Mapping[str, Any] = self.document.at(path).value
        known = keys_of(model)
        for key in value:
            if key not in known and key not in ignored:
                text = f"unknown key '{key}' in {model.model_config.get('title')}: it is ignored"
                hint = _owning_sections_hint(key) or did_you_mean(str(key), known, listing=False)
                yield self.warning("unknown-key", text, *path, key, hint=hint, key=True)


def _owning_sections_hint(key: Any) -> str:
    """Return a hint with the sections that have a key; "" if none has it."""
    sections: tuple[type[doc.Section], ...] = (doc.GraphFile, doc.Settings, *doc.NODE_TYPES)
    titles = [str(section.model_config.get("title")) for section in sections if key in keys_of(section)]
    if len(titles) > 1:
        titles[-2:] = [" and ".join(titles[-2:])]
    return f"it is a key of {', '.join(titles)}" if titles else ""


def _has_manifest(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (MANIFEST, CONFIG))


def _edge_text(edge: DeclaredEdge) -> str:
    """Describe an edge in a message."""
    if isinstance(edge.exit, AnswerExit):
        return f"the route '{edge.exit.answer}' of node '{edge.source}'"
    return f"{'the next' if edge.exit == NEXT else edge.exit} of node '{edge.source}'"


def _find_cycle(sources: Mapping[str, list[str]]) -> list[str] | None:
    """Return the nodes of a cycle along its edges, the first node again at the end; None if there is no cycle."""
    try:
        TopologicalSorter(sources).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return None
