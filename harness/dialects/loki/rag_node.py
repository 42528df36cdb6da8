"""The rag node: a search in the knowledge base of the node. spec: "rag"."""

from __future__ import annotations

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.loki.document import RagNode
from harness.dialects.loki.knowledge.base import context_of
from harness.dialects.loki.knowledge.provision import Knowledge
from harness.dialects.loki.routing import leaving
from harness.dialects.loki.state import updated
from harness.dialects.loki.templates import render
from harness.engine.context import NodeContext
from harness.graph.effects import RetrievalCall, RetrievalReply
from harness.graph.model import State, Update
from harness.time.deadline import Deadline


async def retrieve(node: RagNode, knowledge: Knowledge, state: State, ctx: NodeContext) -> Update:
    """Search, and go on with `{context, sources}` as the output.

    Raises:
        Exception: the search failed, or took too long.
    """
    query = render(node.query, state)
    deadline = Deadline(node.timeout)

    async def real() -> RetrievalReply:
        # spec: "Knowledge base lifecycle": built before the graph runs, so the retrieval's time begins after that.
        deadline.stop()
        base = await knowledge.base(ctx)
        deadline.restart()
        return await knowledge.search(base, query, node.top_k, ctx)

    effect = RetrievalCall(
        name=ctx.name,
        args={"query": query, **({} if node.top_k is None else {"top_k": node.top_k})},
        real=real,
        hint=f"or `{ctx.name}: real`, which searches its knowledge base",
    )
    what = f"the retrieval of node '{ctx.name}'"
    found: RetrievalReply = await with_timeout(lambda: ctx.perform(effect), ctx, node.timeout, what, deadline)
    context = context_of(found.passages) if found.passages else found.context
    output = {"context": context, "sources": list(found.sources)}
    return leaving(updated(state, node, output))
