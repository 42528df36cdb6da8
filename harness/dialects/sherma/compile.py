"""Compiles a sherma manifest to a Graph. One function per section of the documentation, in its order."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from harness.dialects.kit.manifest import only_document
from harness.dialects.request import LoadRequest
from harness.dialects.sherma import document as doc
from harness.dialects.sherma import document as graph_doc
from harness.dialects.sherma.agent import Agent
from harness.dialects.sherma.document import INTERNAL_STATE_KEY
from harness.dialects.sherma.lifecycle import lifecycle
from harness.dialects.sherma.manifest_compiler import ManifestCompiler
from harness.dialects.sherma.nodes import NODE_FUNCTIONS
from harness.dialects.sherma.routing import edges_and_routers
from harness.dialects.sherma.rules import Rules
from harness.dialects.sherma.visit import node_function
from harness.dialects.sherma.vocabulary import vocabulary
from harness.dialects.sherma.warnings import agent_warnings, duplicate_declarations, unknown_keys
from harness.errors import ManifestError, Problem, Span
from harness.graph.messages import MessageLog, append_messages, to_messages
from harness.graph.model import Channel, Graph, Node
from harness.source.document import Document, DocumentPath
from harness.source.environment import substitute
from harness.source.models import validate
from harness.source.suggest import did_you_mean

_COLLISION_HINT: Final = (
    "only `messages` has a reducer: give each node a field of its own, or have them run one after the other"
)


def load(request: LoadRequest) -> Graph:
    """Return the graph of the agent that a request names.

    Raises:
        ManifestError: lists all problems.
    """
    document = substitute(only_document(request, what="a sherma manifest", yaml="scalar-keys"), request.env)
    try:
        return _compile(request, document)
    except ManifestError as error:
        # A missing key may be misspelt: report unknown keys together with the errors.
        raise ManifestError([*error.problems, *unknown_keys(document)]) from None


def _compile(request: LoadRequest, document: Document) -> Graph:
    manifest = validate(doc.Manifest, document)
    name = select_agent(manifest, document, request.agent)
    compiler = ManifestCompiler(request, document, manifest, load)
    agent = compiler.agent(name)
    compiler.problems.add(Rules(manifest, name, document).problems())
    compiler.problems.raise_errors()
    warnings = [*unknown_keys(document), *compiler.problems.warnings]
    warnings += [*duplicate_declarations(manifest, document), *agent_warnings(agent, document)]
    if request.agent is not None and request.agent != name:
        text = f"agent '{request.agent}' is not in the manifest; its only agent '{name}' is run"
        warnings.append(Problem("other-agent", text, document.span(("agents",)), severity="warning"))
    return _graph(agent, document, warnings)


def select_agent(manifest: doc.Manifest, document: Document, wanted: str | None) -> str:
    """Return the agent with this id, else the only agent. spec: "id must match an agent key in the YAML"."""
    names = list(manifest.agents)
    if wanted in manifest.agents:
        return str(wanted)
    if len(names) == 1:
        return names[0]
    where = document.span(("agents",))
    if not names:
        raise ManifestError(Problem("no-agent", "the manifest defines no agent", where))
    if wanted is None:
        text = f"the manifest has several agents: say which ({', '.join(names)})"
        raise ManifestError(Problem("which-agent", text, where))
    text = f"agent '{wanted}' is not in the manifest"
    raise ManifestError(Problem("unknown-agent", text, where, did_you_mean(wanted, names)))


def _graph(agent: Agent, document: Document, warnings: Sequence[Problem]) -> Graph:
    definition = agent.definition
    places: DocumentPath = ("agents", agent.name, "graph", "nodes")
    nodes = [
        Node(
            node.name, node.type, node_function(node, NODE_FUNCTIONS[node.type]), document.span((*places, at))
        )
        for at, node in enumerate(definition.graph.nodes)
    ]
    nodes += [
        _injected_tool_node(definition.graph.injected[node.name], document.span((*places, at)))
        for at, node in enumerate(definition.graph.nodes)
        if node.name in definition.graph.injected
    ]
    edges, routers = edges_and_routers(agent, document)
    limit = definition.langgraph_config.recursion_limit if definition.langgraph_config else None
    return Graph(
        name=agent.name,
        dialect="sherma",
        nodes=tuple(nodes),
        edges=tuple(edges),
        channels=tuple(_channels(definition)),
        routers=routers,
        lifecycle=lifecycle(agent),
        recursion_limit=limit or 25,
        # Hooks may pause a node.
        may_pause=bool(agent.hooks) or any(node.kind == "interrupt" for node in nodes),
        warnings=tuple(warnings),
        collision_hint=_COLLISION_HINT,
        shares_answers=False,
        vocabulary=lambda: vocabulary(agent, tuple(nodes)),
    )


def _injected_tool_node(name: str, span: Span) -> Node:
    """Return an injected tool node, which serves every registered tool. spec: "Auto-injected tool_node"."""
    definition = graph_doc.ToolNodeNode(name=name, type="tool_node", args=graph_doc.ToolNode())
    return Node(definition.name, "tool_node", node_function(definition, NODE_FUNCTIONS["tool_node"]), span)


def _channels(definition: doc.Agent) -> Iterator[Channel]:
    """Yield the state channels: `messages` accumulates, other fields are replaced. spec: `state`."""
    for field in definition.state.fields_:
        if field.name == "messages" and definition.keeps_messages:
            yield Channel(field.name, append_messages, partial(_initial_messages, field.default))
        elif field.name != INTERNAL_STATE_KEY:
            yield Channel(
                field.name, initial=partial(copy.deepcopy, field.default) if field.has_default else None
            )
    yield Channel(INTERNAL_STATE_KEY)


def _initial_messages(messages: Any) -> MessageLog:
    written = to_messages(messages or [])
    return MessageLog(
        [m if m.id else m.model_copy(update={"id": f"default-{at}"}) for at, m in enumerate(written)]
    )
