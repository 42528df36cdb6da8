"""The knowledge base of a rag node: reading, splitting and embedding its documents, or loading the base.

spec: "rag", `documents`; "Knowledge base lifecycle".
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from harness.dialects.loki.document import RagNode
from harness.dialects.loki.knowledge import store
from harness.dialects.loki.knowledge.store import Chunk, KnowledgeBase, Vector, context_of
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext
from harness.errors import HarnessError, ManifestError, Problem, Span
from harness.graph.effects import HTTPCall, HTTPReply, RetrievalReply
from harness.graph.http_call import http_call
from harness.source.display import clip
from harness.source.document import Document
from harness.source.imports import import_extra

_PURPOSE = "to read documents"


class UnreadableDocument(Exception):
    """A document whose text cannot be read. The message completes a sentence that begins with its name."""


def extract_text(data: bytes, suffix: str) -> str:
    """Return the text of a file with this extension. Files other than PDF and HTML are read as UTF-8.

    Raises:
        UnreadableDocument: it is not text, or a PDF that cannot be read.
        ExtraMissing: the library that reads it is not installed.
    """
    if suffix.lower() == ".pdf":
        return _pdf_text(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UnreadableDocument("is not UTF-8 text: documents are text, Markdown, HTML and PDF")
    return html_text(text) if suffix.lower() in (".html", ".htm", ".xhtml") else text


def html_text(html: str) -> str:
    """Convert HTML to Markdown, without scripts and styles.

    Raises:
        UnreadableDocument: it is nested too deep.
        ExtraMissing: the library that converts it is not installed.
    """
    markdownify = import_extra("markdownify", "rag", _PURPOSE)
    try:
        text: str = markdownify.markdownify(html, heading_style=markdownify.ATX)
    except RecursionError:
        raise UnreadableDocument("is HTML that is nested too deep") from None
    return text.strip()


def _pdf_text(data: bytes) -> str:
    pypdf = import_extra("pypdf", "rag", _PURPOSE)
    try:
        pages = [page.extract_text() for page in pypdf.PdfReader(BytesIO(data)).pages]
    except Exception as error:  # on damaged files pypdf raises more than its own errors
        raise UnreadableDocument(f"is a PDF that cannot be read: {error}") from None
    return "\n\n".join(pages)


class HTTPClient:
    """An HTTP client for one visit of a node. `all_live`: no request was answered by a stub or recorded."""

    def __init__(self, ctx: NodeContext) -> None:
        self._ctx = ctx
        self.all_live = True

    async def send(self, call: HTTPCall) -> HTTPReply:
        """Send a request and return the response, whatever its status.

        Raises:
            Exception: the request failed without a response.
        """
        self.all_live = self.all_live and self._ctx.asks_live(call)
        reply: HTTPReply = await self._ctx.perform(call)
        return reply


MAX_BYTES: Final = 100 * 1024 * 1024

_PROTOCOL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HINT: Final = "documents are files, folders, and addresses with http or https"


def has_protocol(written: str) -> bool:
    """True if a document is an address or a loader-protocol path, and not a file or folder."""
    return _PROTOCOL.match(written) is not None


async def read_documents(
    written: list[str], spans: list[Span], request: LoadRequest, http: HTTPClient
) -> list[Chunk]:
    """Read documents in the order in which they are named, those of a folder sorted by path; each once.

    Args:
        written: the documents as written in the node.
        spans: the location of each.
        request: the request that loads the agent.
        http: sends the requests for addresses.

    Raises:
        ManifestError: a document cannot be read. The error has its location.
    """
    found: dict[str, Chunk] = {}
    for name, where in zip(written, spans, strict=True):
        try:
            async for each in _sources(name, where, request, http):
                found.setdefault(each.source, each)
        except UnreadableDocument as error:
            raise _refusal(str(error), where) from None
    return list(found.values())


async def _sources(written: str, where: Span, request: LoadRequest, http: HTTPClient) -> AsyncIterator[Chunk]:
    protocol = _PROTOCOL.match(written)
    if protocol is not None and protocol[1].lower() in ("http", "https"):
        yield Chunk(written, await _fetch(written, http))
    elif protocol is not None:
        raise _refusal(f"'{written}': loader-protocol paths are not supported", where, _HINT)
    elif os.path.isdir((request.base_path or Path()) / written):
        folder = request.resolve_folder(written, where)
        for path in folder.files:
            cited = f"{written.rstrip('/') or '/'}/{path.relative_to(folder.path).as_posix()}"
            yield Chunk(cited, _file_text(path, cited))
    else:
        yield Chunk(written, _file_text(request.resolve(written, where), written))


def _file_text(path: Path, cited: str) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableDocument(f"'{cited}' cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise UnreadableDocument(f"'{cited}' is larger than {MAX_BYTES // 1024**2} MiB")
    try:
        return extract_text(data, path.suffix)
    except UnreadableDocument as error:
        raise UnreadableDocument(f"'{cited}' {error}") from None


async def _fetch(url: str, http: HTTPClient) -> str:
    """Fetch the text at an address. It is HTML by its content type, or else by its extension."""
    hint = f"or name a file instead of {url}"
    reply = await http.send(http_call("GET", url, hint=hint))
    if not 200 <= reply.status < 300:
        leads = f", and leads to {reply.headers['location']}" if "location" in reply.headers else ""
        raise UnreadableDocument(f"'{url}' answers with status {reply.status}{leads}")
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    suffix = PurePosixPath(urlsplit(url).path).suffix.lower()
    if kind == "application/pdf" or suffix == ".pdf":
        raise UnreadableDocument(f"'{url}' is a PDF: it is read from a file only")
    is_html = kind in ("text/html", "application/xhtml+xml") or (not kind and suffix in (".html", ".htm"))
    if kind and not is_html and not kind.startswith("text/") and not kind.endswith(("json", "xml", "yaml")):
        raise UnreadableDocument(f"'{url}' is {kind}: documents at addresses are text, Markdown and HTML")
    return html_text(reply.text) if is_html else reply.text


def _refusal(text: str, where: Span, hint: str = "") -> ManifestError:
    return ManifestError(Problem("document", text, where, hint))


def split_documents(documents: Iterable[Chunk], size: int, overlap: int) -> list[Chunk]:
    """Split documents into chunks of at most `size` characters, in order.

    Each chunk repeats up to `overlap` characters of the one before, at most `size`. Chunks end between paragraphs if
    possible, else between lines, else between words.

    Raises:
        ExtraMissing: the library that splits them is not installed.
    """
    splitters = import_extra("langchain_text_splitters", "rag", "to cut documents into chunks")
    splitter = splitters.RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap)
    return [Chunk(whole.source, text) for whole in documents for text in splitter.split_text(whole.text)]


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

    def __str__(self) -> str:
        return f"the embedding model '{self.model_id}'"

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
            wanted = f"expected '{CLIENT}:NAME', for OpenAI and servers that imitate it ({_URL_VARIABLES[0]})"
            raise EmbeddingError(f"{self} cannot be called: {wanted}")
        found: list[Vector[float]] = []
        size = batch_size or DEFAULT_BATCH
        for start in range(0, len(texts), size):
            found += await self._batch(name, list(texts[start : start + size]), http)
        if len({len(vector) for vector in found}) > 1:
            raise EmbeddingError(f"the vectors of {self} differ in length")
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
            raise EmbeddingError(f"{self} answered without embeddings: {where}: {first['msg']}") from None
        if [row.index for row in rows] != list(range(len(texts))):
            counts = f"{len(texts)} texts, and answered with {len(rows)} embeddings"
            raise EmbeddingError(f"{self} was given {counts}")
        return [array("f", row.embedding) for row in rows]

    def _refusal(self, reply: HTTPReply, has_key: bool) -> str:
        text = f"{self} answered with status {reply.status}"
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
            text = f"{model} answered with {len(vector)} numbers for the query"
            raise EmbeddingError(f"{text}, and the vectors of the knowledge base have {base.dimensions}")
        hits = base.search.hits(query, vector, top_k or base.top_k)
        found = [(base.chunks[hit.position], hit.score) for hit in hits]
        passages = tuple(
            {"text": chunk.text, "source": chunk.source, "score": score} for chunk, score in found
        )
        sources = tuple(dict.fromkeys(chunk.source for chunk, _ in found))
        return RetrievalReply(context_of(passages), sources, passages)
