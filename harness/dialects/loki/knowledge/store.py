"""Loading and saving the file of a knowledge base, `<agent-dir>/<node-id>.yaml`: settings, chunks and vectors.

embedding_model: "openai:text-embedding-3-small"
chunk_size: 400
chunk_overlap: 40
top_k: 5
document_paths: ["./papers/"]
files:
  0: {path: "./papers/mill.md", documents: [{page_content: "The mill closed in 1931."}]}
vectors:
  "0-0": "…"     # document 0 of file 0: little-endian 32-bit floats in Base64
"""

from __future__ import annotations

import os
import sys
from array import array
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, NamedTuple

import yaml
from pydantic import BaseModel, Field

from harness.dialects.loki.document import RagNode
from harness.dialects.request import Stamp, stamp
from harness.errors import ManifestError, Problem
from harness.source.document import Document, read
from harness.source.imports import import_extra
from harness.source.models import validate

RANK_CONSTANT: Final = 60
"""The constant k of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009)."""

_PRECISION: Final = 6
"""The decimals of a score. Rounding keeps the order the same on machines whose floating-point errors differ."""

_PURPOSE: Final = "to search a knowledge base"


class Hit(NamedTuple):
    """A search result: the position of a text, and its fused score."""

    position: int
    score: float


class HybridSearch:
    """A search index of texts with a vector each.

    Keywords are found by BM25. Words have two letters or more; case does not matter.

    Raises:
        ExtraMissing: the libraries for it are not installed.
    """

    def __init__(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        self._bm25s = import_extra("bm25s", "rag", _PURPOSE)
        self._keywords = None
        words = self._words(texts)
        if any(words):  # BM25 cannot index texts without words
            self._keywords = self._bm25s.BM25()
            self._keywords.index(words, show_progress=False)
        self._numpy = import_extra("numpy", "rag", _PURPOSE)
        self._directions = self._unit(vectors)

    def hits(self, query: str, vector: Sequence[float], top_k: int) -> list[Hit]:
        """Return the best `top_k` texts, the best first. Each search ranks `top_k` texts; the earlier wins a tie."""
        directions = self._numpy.atleast_2d(self._unit([vector]))[0]
        similarities = (self._directions @ directions).round(_PRECISION).tolist()
        by_vector = _rank(enumerate(similarities), top_k)
        by_keyword = _rank(self._keyword_scores(query), top_k)
        return fuse([by_keyword, by_vector])[:top_k]

    def _keyword_scores(self, query: str) -> list[tuple[int, float]]:
        """Return the index and score of each text with a word of the query."""
        (words,) = self._words([query])
        if self._keywords is None or not words:
            return []
        scores = self._keywords.get_scores(words).round(_PRECISION).tolist()
        return [(index, score) for index, score in enumerate(scores) if score > 0]

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        words: list[list[str]] = self._bm25s.tokenize(
            list(texts), stopwords=None, return_ids=False, show_progress=False
        )
        return words

    def _unit(self, vectors: Sequence[Sequence[float]]) -> Any:
        """Return the vectors scaled to length 1, except for those of length 0."""
        matrix = self._numpy.asarray(vectors, dtype="float64")
        lengths = self._numpy.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix / self._numpy.where(lengths == 0, 1, lengths)


def fuse(rankings: Sequence[Sequence[int]]) -> list[Hit]:
    """Fuse rankings of indexes: each adds 1 / (60 + rank) to the score of an index."""
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, index in enumerate(ranking, 1):
            scores[index] += 1 / (RANK_CONSTANT + rank)
    return [Hit(index, scores[index]) for index in _rank(scores.items(), len(scores))]


def _rank(scores: Any, limit: int) -> list[int]:
    """Return indexes by descending score, ties by index."""
    return [index for index, _ in sorted(scores, key=lambda item: (-item[1], item[0]))[:limit]]


DEFAULT_TOP_K: Final = 5

# An array of 'f', the precision of the file of a base: a base just built then finds the same as a loaded one.
Vector = array


@dataclass(frozen=True)
class Chunk:
    """A document or a part of it. `source` is its citation: the path as written, extended below a folder."""

    source: str
    text: str


def context_of(passages: Iterable[Mapping[str, Any]]) -> str:
    """Return the context block of passages `{text, source}` for a prompt. spec: "`{{output}}` shape", `context`."""
    return "\n\n".join(
        f"[Source: {passage['source']}]\n{passage['text']}" if "source" in passage else str(passage["text"])
        for passage in passages
    )


@dataclass(frozen=True)
class KnowledgeBase:
    """Chunks and their vectors, in the same order. `model` is the embedding model of the vectors."""

    model: str
    chunks: Sequence[Chunk]
    vectors: Sequence[Vector[float]]
    top_k: int = DEFAULT_TOP_K

    @property
    def dimensions(self) -> int:
        """The length of its vectors; 0 if it has none."""
        return len(self.vectors[0]) if self.vectors else 0

    @cached_property
    def search(self) -> HybridSearch:
        """The search index of the base."""
        return HybridSearch([chunk.text for chunk in self.chunks], self.vectors)


MAX_BYTES: Final = 500 * 1024 * 1024

_LINE: Final = 2**31 - 1
"""A line width at which no line is folded."""

_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # some installations lack the fast one


class _Passage(BaseModel, title="a document of a knowledge base"):
    """The text of one chunk."""

    page_content: str


class _File(BaseModel, title="a file of a knowledge base"):
    """A document by its citation, and its chunks."""

    path: str
    documents: list[_Passage]


class _Stored(BaseModel, title="a knowledge base"):
    """The keys of the file that a search needs. Others describe how the base was built."""

    embedding_model: str
    top_k: int = Field(default=DEFAULT_TOP_K, ge=1)
    files: dict[str, _File] = Field(default_factory=dict)
    vectors: dict[str, str] = Field(default_factory=dict)


def load(path: Path) -> KnowledgeBase:
    """Load a knowledge base from its file.

    Raises:
        ManifestError: the file is malformed; with all problems.
    """
    return _load_cached(path, stamp(path))


@lru_cache(maxsize=4)
def _load_cached(path: Path, _stamp: Stamp | None) -> KnowledgeBase:
    """Load a file. The stamp is part of the cache key, so that a changed file is read again."""
    document = read(path, yaml="numbered", max_bytes=MAX_BYTES)
    stored = validate(_Stored, document)
    chunks: list[Chunk] = []
    vectors: list[Vector[float]] = []
    problems: list[Problem] = []
    unused = dict(stored.vectors)
    for id_, file in stored.files.items():
        for index, passage in enumerate(file.documents):
            vector = _decode(unused.pop(f"{id_}-{index}", ""))
            if not vector or (vectors and len(vector) != len(vectors[0])):
                problems.append(
                    _vector_problem(document, ("files", id_, "documents", index), f"{id_}-{index}", vector)
                )
                continue
            chunks.append(Chunk(file.path, passage.page_content))
            vectors.append(vector)
    for key in unused:
        text = f"the vector '{key}' belongs to no document of the knowledge base"
        problems.append(Problem("knowledge-base", text, document.key_span(("vectors", key))))
    if problems:
        raise ManifestError(problems)
    return KnowledgeBase(stored.embedding_model, chunks, vectors, stored.top_k)


def _vector_problem(document: Document, passage: tuple[str | int, ...], key: str, vector: Any) -> Problem:
    if key not in (document.value.get("vectors") or ()):
        text = f"the knowledge base has no vector '{key}' for this document"
        return Problem("knowledge-base", text, document.span(passage), _REBUILD_HINT)
    what = (
        f"has {len(vector)} numbers, but the first vector has a different number of them"
        if vector
        else "is not in Base64"
    )
    text = f"the vector '{key}' {what}"
    return Problem("knowledge-base", text, document.span(("vectors", key)), _REBUILD_HINT)


_REBUILD_HINT: Final = "remove the file to have the knowledge base built again"


def save(path: Path, node: RagNode, base: KnowledgeBase) -> None:
    """Write the knowledge base of a node to its file, atomically.

    Raises:
        OSError: it cannot be written.
    """
    content = {
        "embedding_model": node.embedding_model,
        "chunk_size": node.chunk_size,
        "chunk_overlap": node.chunk_overlap,
        "reranker_model": node.reranker_model,
        "top_k": base.top_k,
        "batch_size": node.batch_size,
        "document_paths": node.documents,
        **_file_sections(base),
    }
    with NamedTemporaryFile("w", dir=path.parent, suffix=".new", encoding="utf-8", delete=False) as stream:
        try:
            yaml.dump(content, stream, _Dumper, allow_unicode=True, sort_keys=False, width=_LINE)
            stream.close()
            os.chmod(stream.name, 0o666 & ~_umask())
            os.replace(stream.name, path)
        except BaseException:
            os.unlink(stream.name)
            raise


def _file_sections(base: KnowledgeBase) -> dict[str, Any]:
    """Return the sections `files` and `vectors` of the file."""
    numbers = {source: index for index, source in enumerate(dict.fromkeys(c.source for c in base.chunks))}
    passages: dict[int, list[dict[str, str]]] = defaultdict(list)
    vectors = {}
    for chunk, vector in zip(base.chunks, base.vectors, strict=True):
        number = numbers[chunk.source]
        vectors[f"{number}-{len(passages[number])}"] = _encode(vector)
        passages[number].append({"page_content": chunk.text})
    files = {number: {"path": path, "documents": passages[number]} for path, number in numbers.items()}
    return {"files": files, "vectors": vectors}


class _Dumper(_SafeDumper):  # type: ignore[misc]
    """A dumper that quotes strings, since plain ones may have another type in another version of YAML."""


_Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, '"'))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _encode(vector: Vector[float]) -> str:
    return b64encode(_little_endian(vector).tobytes()).decode("ascii")


def _decode(text: str) -> Vector[float]:
    """Decode a vector; empty if the text is none."""
    vector = array("f")
    try:
        vector.frombytes(b64decode(text, validate=True))
    except ValueError:
        return array("f")
    return _little_endian(vector)


def _little_endian(vector: Vector[float]) -> Vector[float]:
    """Convert a vector between the byte order of this machine and little-endian."""
    if sys.byteorder == "little":
        return vector
    swapped = array("f", vector)
    swapped.byteswap()
    return swapped
