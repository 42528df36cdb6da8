"""The rag node, which searches a knowledge base of its own. spec: "rag"."""

from __future__ import annotations

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.loki.document import RagNode
from harness.dialects.loki.knowledge.base import context_of
from harness.dialects.loki.knowledge.provision import KnowledgeProvider
from harness.dialects.loki.routing import exit_update
from harness.dialects.loki.state import apply_state_updates
from harness.dialects.loki.templates import render
from harness.engine.context import NodeContext
from harness.graph.effects import RetrievalCall, RetrievalReply
from harness.graph.model import State, Update
from harness.time.gather import Deadline


async def retrieve(node: RagNode, knowledge: KnowledgeProvider, state: State, ctx: NodeContext) -> Update:
    """Search the knowledge base and update the state with `{context, sources}`.

    Raises:
        Exception: the search failed or timed out.
    """
    query = render(node.query, state)
    deadline = Deadline(node.timeout)

    async def real() -> RetrievalReply:
        # spec: "Knowledge base lifecycle". Loki builds the base at load, so building takes none of the timeout.
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
    return exit_update(apply_state_updates(state, node, output))
