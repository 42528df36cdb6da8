"""A knowledge base: chunks of documents and their embedding vectors."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from harness.dialects.loki.knowledge.search import HybridSearch

DEFAULT_TOP_K: Final = 5

# An array of 'f', the precision of the file of a base: a base just built then finds the same as a loaded one.
Vector = array


@dataclass(frozen=True)
class Chunk:
    """A part of a document. `source` is the path by which the document is cited."""

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
