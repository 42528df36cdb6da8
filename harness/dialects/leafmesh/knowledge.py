"""Knowledge: what a retrieval finds, before the model is asked and when it asks. spec: "Knowledge Config"."""

from __future__ import annotations

from harness.dialects.leafmesh.document import Knowledge
from harness.engine.context import NodeContext
from harness.graph.effects import RetrievalCall, RetrievalReply


async def query(knowledge: Knowledge, text: str, ctx: NodeContext) -> str:
    """The passages for a query, as one text. NOTES 14.3."""
    args = {"query": text, "group": knowledge.groupName}
    found: RetrievalReply = await ctx.perform(RetrievalCall(name=knowledge.serviceName, args=args))
    return found.context
