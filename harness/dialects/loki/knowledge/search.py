"""Hybrid search: by keywords (BM25) and by vectors (cosine), fused by reciprocal rank. spec: "Retrieval"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from harness.source.extras import import_extra

RANK_CONSTANT: Final = 60
"""The constant k of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009)."""

_PRECISION: Final = 6
"""Decimals of a similarity: what rounding errors of a machine change must not change the order."""

_PURPOSE: Final = "to search a knowledge base"


class Hit(NamedTuple):
    """A text that was found, by its position, and its fused score."""

    at: int
    score: float


class HybridSearch:
    """A search in texts that have a vector each.

    Raises:
        ExtraMissing: the libraries for it are not installed.
    """

    def __init__(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        self._keywords = _Keywords(texts)
        self._numpy = import_extra("numpy", "rag", _PURPOSE)
        self._directions = self._unit(vectors)

    def hits(self, query: str, vector: Sequence[float], top_k: int) -> list[Hit]:
        """The best `top_k` texts, the best first. Both searches rank as many; the earlier text wins a tie."""
        directions = self._numpy.atleast_2d(self._unit([vector]))[0]
        similarities = (self._directions @ directions).round(_PRECISION).tolist()
        by_vector = _ranked(enumerate(similarities), top_k)
        by_keyword = _ranked(((at, score) for at, score in self._keywords.scores(query) if score > 0), top_k)
        return fused([by_keyword, by_vector])[:top_k]

    def _unit(self, vectors: Sequence[Sequence[float]]) -> Any:
        """The vectors with length 1; those of length 0 as they are."""
        matrix = self._numpy.asarray(vectors, dtype="float64")
        lengths = self._numpy.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix / self._numpy.where(lengths == 0, 1, lengths)


def fused(rankings: Sequence[Sequence[int]]) -> list[Hit]:
    """Rankings as one: each adds 1 / (60 + rank) to the score of what it ranks."""
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, at in enumerate(ranking, 1):
            scores[at] += 1 / (RANK_CONSTANT + rank)
    return [Hit(at, scores[at]) for at in _ranked(scores.items(), len(scores))]


def _ranked(scores: Any, most: int) -> list[int]:
    """Positions by falling score, and among equals by position."""
    return [at for at, _ in sorted(scores, key=lambda each: (-each[1], each[0]))[:most]]


class _Keywords:
    """BM25 over the words of texts, of two letters or more and without regard to case."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._bm25s = import_extra("bm25s", "rag", _PURPOSE)
        self._index = None
        words = self._words(texts)
        if any(words):  # an index of no words cannot be made
            self._index = self._bm25s.BM25()
            self._index.index(words, show_progress=False)

    def scores(self, query: str) -> list[tuple[int, float]]:
        """The score of each text; nothing if the query has no word."""
        (words,) = self._words([query])
        if self._index is None or not words:
            return []
        return list(enumerate(self._index.get_scores(words).round(_PRECISION).tolist()))

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        words: list[list[str]] = self._bm25s.tokenize(
            list(texts), stopwords=None, return_ids=False, show_progress=False
        )
        return words
