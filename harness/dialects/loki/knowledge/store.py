"""The file of a knowledge base, `<agent-dir>/<node-id>.yaml`: its settings, its chunks and their vectors.

embedding_model: "openai:text-embedding-3-small"
chunk_size: 400
chunk_overlap: 40
top_k: 5
document_paths: ["./papers/"]
files:
  "0": {path: "./papers/mill.md", documents: [{page_content: "The mill closed in 1931."}]}
vectors:
  "0-0": "…"     # of document 0 of file 0: numbers of 32 bits, little-endian, in Base64
"""

from __future__ import annotations

import os
import sys
from array import array
from base64 import b64decode, b64encode
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import yaml
from pydantic import BaseModel, Field

from harness.dialects.loki.document import RagNode
from harness.dialects.loki.knowledge.base import DEFAULT_TOP_K, Chunk, KnowledgeBase, Vector
from harness.dialects.request import Stamp, stamp
from harness.errors import ManifestError, Problem
from harness.source.document import Document, read
from harness.source.models import validate

MAX_BYTES: Final = 500 * 1024 * 1024

_LINE: Final = 2**31 - 1
"""No line is folded."""

_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # not every installation has the fast one


class _Passage(BaseModel, title="a document of a knowledge base"):
    page_content: str


class _File(BaseModel, title="a file of a knowledge base"):
    path: str
    documents: list[_Passage]


class _Stored(BaseModel, title="a knowledge base"):
    """Unknown keys say how it was built, and are not needed to search it."""

    embedding_model: str
    top_k: int = Field(default=DEFAULT_TOP_K, ge=1)
    files: dict[str, _File] = Field(default_factory=dict)
    vectors: dict[str, str] = Field(default_factory=dict)


def load(path: Path) -> KnowledgeBase:
    """The knowledge base in a file.

    Raises:
        ManifestError: the file is not one, with all places.
    """
    return _loaded(path, stamp(path))


@lru_cache(maxsize=4)
def _loaded(path: Path, _stamp: Stamp | None) -> KnowledgeBase:
    """As `load`; the stamp has it read again after it was changed."""
    document = read(path, yaml="1.2", max_bytes=MAX_BYTES)
    stored = validate(_Stored, document)
    chunks: list[Chunk] = []
    vectors: list[Vector[float]] = []
    problems: list[Problem] = []
    left = dict(stored.vectors)
    for id_, file in stored.files.items():
        for at, passage in enumerate(file.documents):
            vector = _decoded(left.pop(f"{id_}-{at}", ""))
            if not vector or (vectors and len(vector) != len(vectors[0])):
                problems.append(_mistake(document, ("files", id_, "documents", at), f"{id_}-{at}", vector))
                continue
            chunks.append(Chunk(file.path, passage.page_content))
            vectors.append(vector)
    for key in left:
        text = f"the vector '{key}' belongs to no document of the knowledge base"
        problems.append(Problem("knowledge-base", text, document.key_span(("vectors", key))))
    if problems:
        raise ManifestError(problems)
    return KnowledgeBase(stored.embedding_model, chunks, vectors, stored.top_k)


def _mistake(document: Document, passage: tuple[str | int, ...], key: str, vector: Any) -> Problem:
    if key not in (document.value.get("vectors") or ()):
        text = f"the knowledge base has no vector '{key}' for this document"
        return Problem("knowledge-base", text, document.span(passage), _AGAIN)
    what = (
        f"has {len(vector)} numbers, and the first has another number of them"
        if vector
        else "is not in Base64"
    )
    text = f"the vector '{key}' {what}"
    return Problem("knowledge-base", text, document.span(("vectors", key)), _AGAIN)


_AGAIN: Final = "remove the file to have the knowledge base built again"


def save(path: Path, node: RagNode, base: KnowledgeBase) -> None:
    """Write a knowledge base that was built for a node, whole or not at all.

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
        **_parts(base),
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


def _parts(base: KnowledgeBase) -> dict[str, Any]:
    """Chunks by their documents, and vectors by the chunk."""
    numbers = {source: str(at) for at, source in enumerate(dict.fromkeys(c.source for c in base.chunks))}
    passages: dict[str, list[dict[str, str]]] = defaultdict(list)
    vectors = {}
    for chunk, vector in zip(base.chunks, base.vectors, strict=True):
        number = numbers[chunk.source]
        vectors[f"{number}-{len(passages[number])}"] = _encoded(vector)
        passages[number].append({"page_content": chunk.text})
    files = {number: {"path": path, "documents": passages[number]} for path, number in numbers.items()}
    return {"files": files, "vectors": vectors}


class _Dumper(_SafeDumper):  # type: ignore[misc]
    """Writes texts in double quotes: plain ones may mean something else to readers of another version of YAML."""


_Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, '"'))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _encoded(vector: Vector[float]) -> str:
    return b64encode(_little_endian(vector).tobytes()).decode("ascii")


def _decoded(text: str) -> Vector[float]:
    """The numbers of a vector; none if this is no vector."""
    vector = array("f")
    try:
        vector.frombytes(b64decode(text, validate=True))
    except ValueError:
        return array("f")
    return _little_endian(vector)


def _little_endian(vector: Vector[float]) -> Vector[float]:
    """The vector, from or for a little-endian machine."""
    if sys.byteorder == "little":
        return vector
    swapped = array("f", vector)
    swapped.byteswap()
    return swapped
