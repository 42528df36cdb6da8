"""Knowledge retrieval, before the model is called and as its tool. spec: "Knowledge Config"."""

from __future__ import annotations

from harness.dialects.leafmesh.document import Knowledge
from harness.engine.context import NodeContext
from harness.graph.effects import RetrievalCall, RetrievalReply


async def retrieve(knowledge: Knowledge, text: str, ctx: NodeContext) -> str:
    """Return the passages found for a query, as one text. NOTES 14.3."""
    args = {"query": text, "group": knowledge.groupName}
    found: RetrievalReply = await ctx.perform(RetrievalCall(name=knowledge.serviceName, args=args))
    return found.context
