"""A knowledge base: chunks of documents, each with the vector that an embedding model gave it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from harness.dialects.loki.knowledge.search import HybridSearch

DEFAULT_TOP_K: Final = 5

Vector = array  # of 'f': the precision in which a base is kept, so that one just built finds the same


@dataclass(frozen=True)
class Chunk:
    """A part of a document. `source` is how the document is cited."""

    source: str
    text: str


def context_of(passages: Iterable[Mapping[str, Any]]) -> str:
    """The text of passages `{text, source}` as a prompt gets it. spec: "`{{output}}` shape", `context`."""
    return "\n\n".join(
        f"[Source: {passage['source']}]\n{passage['text']}" if "source" in passage else str(passage["text"])
        for passage in passages
    )


@dataclass(frozen=True)
class KnowledgeBase:
    """Chunks and their vectors, in the same order; `model` is the embedding model that made these."""

    model: str
    chunks: Sequence[Chunk]
    vectors: Sequence[Vector[float]]
    top_k: int = DEFAULT_TOP_K

    @property
    def dimensions(self) -> int:
        """The length of its vectors; 0 without any."""
        return len(self.vectors[0]) if self.vectors else 0

    @cached_property
    def search(self) -> HybridSearch:
        """The search in it."""
        return HybridSearch([chunk.text for chunk in self.chunks], self.vectors)
