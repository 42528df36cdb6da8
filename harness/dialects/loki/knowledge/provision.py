"""Loading or building the knowledge base of a rag node. spec: "Knowledge base lifecycle"."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.dialects.loki.document import RagNode
from harness.dialects.loki.knowledge import store
from harness.dialects.loki.knowledge.base import KnowledgeBase, context_of
from harness.dialects.loki.knowledge.chunks import split_documents
from harness.dialects.loki.knowledge.documents import read_documents
from harness.dialects.loki.knowledge.embeddings import EmbeddingError, EmbeddingModel
from harness.dialects.loki.knowledge.http_client import HTTPClient
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext
from harness.errors import ManifestError, Problem
from harness.graph.effects import RetrievalReply
from harness.source.document import Document


@dataclass(frozen=True)
class KnowledgeProvider:
    """A provider of the knowledge base of a node, which is loaded or built at the first search of a run.

    file      the file of the base; it need not exist if the node is fully specified
    document  the manifest, in which the node is at `path`
    """

    node: RagNode
    file: Path
    request: LoadRequest
    document: Document
    path: tuple[str, ...]

    async def base(self, ctx: NodeContext) -> KnowledgeBase:
        """Load or build the knowledge base, once per run.

        Raises:
            ManifestError: its file or a document cannot be read.
            EmbeddingError: the embedding model cannot be called.
            ExtraMissing: the libraries for it are not installed.
        """
        resources = ctx.run.simulation.resources
        key = ("knowledge", self.file)
        if key not in resources:
            resources[key] = store.load(self.file) if self.file.is_file() else await self._build(ctx)
            if self.node.reranker_model is not None:
                ctx.warn(f"node '{ctx.name}': the reranker {self.node.reranker_model} is not applied")
            if not resources[key].chunks:
                ctx.warn(f"node '{ctx.name}': its knowledge base holds no text")
        base: KnowledgeBase = resources[key]
        return base

    async def _build(self, ctx: NodeContext) -> KnowledgeBase:
        """Build the base. It is saved only if no request was answered by a stub or recorded."""
        node, http = self.node, HTTPClient(ctx)
        model, size, overlap = node.embedding_model, node.chunk_size, node.chunk_overlap
        assert model is not None  # a node that is not fully specified is refused at load
        assert size is not None
        assert overlap is not None
        if overlap > size:
            text = f"chunk_overlap, {overlap}, is larger than chunk_size, {size}"
            where = self.document.span((*self.path, "chunk_overlap"))
            raise ManifestError(Problem("knowledge-base", text, where))
        spans = [self.document.span((*self.path, "documents", index)) for index in range(len(node.documents))]
        sources = await read_documents(node.documents, spans, self.request, http)
        chunks = split_documents(sources, size, overlap)
        embedder = EmbeddingModel(model, self.request.env)
        vectors = await embedder.vectors([chunk.text for chunk in chunks], node.batch_size, http)
        base = KnowledgeBase(model, chunks, vectors)
        if chunks and http.all_live:
            try:
                store.save(self.file, node, base)
            except OSError as error:
                ctx.warn(f"node '{ctx.name}': its knowledge base cannot be kept: {error.strerror or error}")
        return base

    async def search(
        self, base: KnowledgeBase, query: str, top_k: int | None, ctx: NodeContext
    ) -> RetrievalReply:
        """Search the base and return the best passages, the best first. `top_k` defaults to that of the base.

        Raises:
            EmbeddingError: the embedding model cannot be called, or its vectors do not have the length of the base's.
        """
        if not base.chunks:
            return RetrievalReply("")
        model = EmbeddingModel(base.model, self.request.env)
        (vector,) = await model.vectors([query], None, HTTPClient(ctx))
        if len(vector) != base.dimensions:
            raise EmbeddingError(
                f"the embedding model '{base.model}' answered with {len(vector)} numbers for the query, and the "
                f"vectors of the knowledge base have {base.dimensions}"
            )
        hits = base.search.hits(query, vector, top_k or base.top_k)
        found = [(base.chunks[hit.position], hit.score) for hit in hits]
        passages = tuple(
            {"text": chunk.text, "source": chunk.source, "score": score} for chunk, score in found
        )
        sources = tuple(dict.fromkeys(chunk.source for chunk, _ in found))
        return RetrievalReply(context_of(passages), sources, passages)
