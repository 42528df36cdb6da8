"""Loading or building the knowledge base of a rag node. spec: "Knowledge base lifecycle"."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, ValidationError

from harness.dialects.loki.document import RagNode
from harness.dialects.loki.knowledge import store
from harness.dialects.loki.knowledge.documents import HTTPClient, Source, read_documents
from harness.dialects.loki.knowledge.store import Chunk, KnowledgeBase, Vector, context_of
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext
from harness.errors import HarnessError, ManifestError, Problem
from harness.graph.effects import HTTPReply, RetrievalReply, http_call
from harness.source.display import clip
from harness.source.document import Document
from harness.source.imports import import_extra


def split_documents(sources: Iterable[Source], size: int, overlap: int) -> list[Chunk]:
    """Split documents into chunks of at most `size` characters, in order.

    Each chunk repeats up to `overlap` characters of the one before, at most `size`. Chunks end between paragraphs if
    possible, else between lines, else between words.

    Raises:
        ExtraMissing: the library that splits them is not installed.
    """
    splitters = import_extra("langchain_text_splitters", "rag", "to cut documents into chunks")
    splitter = splitters.RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap)
    return [Chunk(source.path, text) for source in sources for text in splitter.split_text(source.text)]


CLIENT: Final = "openai"
DEFAULT_URL: Final = "https://api.openai.com/v1"
DEFAULT_BATCH: Final = 100

_URL_VARIABLES: Final = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_KEY: Final = "OPENAI_API_KEY"


class EmbeddingError(HarnessError):
    """An embedding model that cannot be called, or whose response holds no vectors."""

    code = "embedding"


class _Embedding(BaseModel):
    """The vector of the text at `index` of the request."""

    index: int
    embedding: Annotated[
        list[Annotated[float, Field(allow_inf_nan=False, ge=-3e38, le=3e38)]], Field(min_length=1)
    ]


class _Response(BaseModel):
    """The body of a response with embeddings."""

    data: list[_Embedding]


@dataclass(frozen=True)
class EmbeddingModel:
    """An embedding model.

    model_id     the model as written, `openai:name`
    environment  the variables with the base URL and the key
    """

    model_id: str
    environment: Mapping[str, str]

    async def vectors(
        self, texts: Sequence[str], batch_size: int | None, http: HTTPClient
    ) -> list[Vector[float]]:
        """Request the vector of each text, in batches.

        Raises:
            EmbeddingError: the model is of another client, returns an error, or does not return a vector per text.
            Exception: a request failed without a response.
        """
        client, _, name = self.model_id.partition(":")
        if client != CLIENT or not name:
            raise EmbeddingError(
                f"the embedding model '{self.model_id}' cannot be called: expected '{CLIENT}:NAME', for OpenAI "
                f"and servers that imitate it ({_URL_VARIABLES[0]})"
            )
        found: list[Vector[float]] = []
        size = batch_size or DEFAULT_BATCH
        for start in range(0, len(texts), size):
            found += await self._batch(name, list(texts[start : start + size]), http)
        if len({len(vector) for vector in found}) > 1:
            raise EmbeddingError(f"the vectors of the embedding model '{self.model_id}' differ in length")
        return found

    async def _batch(self, name: str, texts: list[str], http: HTTPClient) -> list[Vector[float]]:
        base = next((url for name in _URL_VARIABLES if (url := self.environment.get(name))), DEFAULT_URL)
        key = self.environment.get(_KEY)
        call = http_call(
            "POST",
            f"{base.rstrip('/')}/embeddings",
            json={"model": name, "input": texts},
            headers={"authorization": f"Bearer {key}"} if key else {},
        )
        reply = await http.send(call)
        if reply.status != 200:
            raise EmbeddingError(self._refusal(reply, bool(key)))
        try:
            rows = sorted(_Response.model_validate(reply.json).data, key=lambda row: row.index)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the answer"
            raise EmbeddingError(
                f"the embedding model '{self.model_id}' answered without embeddings: {where}: {first['msg']}"
            ) from None
        if [row.index for row in rows] != list(range(len(texts))):
            raise EmbeddingError(
                f"the embedding model '{self.model_id}' was given {len(texts)} texts, and answered with "
                f"{len(rows)} embeddings"
            )
        return [array("f", row.embedding) for row in rows]

    def _refusal(self, reply: HTTPReply, has_key: bool) -> str:
        text = f"the embedding model '{self.model_id}' answered with status {reply.status}"
        message = _message(reply.json) or clip(reply.text, 200)
        if reply.status in (401, 403) and not has_key:
            message += f" (no key was sent: the scenario's env_passthrough does not hand on {_KEY})"
        return f"{text}: {message}" if message else text


def _message(answer: Any) -> str:
    """Return the message of an OpenAI error response; "" if this is none."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else error
    return message if isinstance(message, str) else ""


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
