"""The rag node: a search in the knowledge base of the node. spec: "rag"."""

from __future__ import annotations

from harness.dialects.kit.attempts import in_time
from harness.dialects.loki.document import RagNode
from harness.dialects.loki.routing import leaving
from harness.dialects.loki.state import updated
from harness.dialects.loki.templates import render
from harness.engine.context import NodeContext
from harness.graph.effects import RetrievalCall, RetrievalReply
from harness.graph.model import State, Update


async def retrieve(node: RagNode, state: State, ctx: NodeContext) -> Update:
    """Search, and go on with `{context, sources}` as the output.

    Raises:
        Exception: the search failed, or took too long.
    """
    args = {"query": render(node.query, state), **({} if node.top_k is None else {"top_k": node.top_k})}
    effect = RetrievalCall(name=ctx.name, args=args)
    found: RetrievalReply = await in_time(
        lambda: ctx.perform(effect), ctx, node.timeout, f"the retrieval of node '{ctx.name}'"
    )
    output = {"context": found.context, "sources": list(found.sources)}
    return leaving(updated(state, node, output))
