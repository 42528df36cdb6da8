"""Hybrid search: keyword search (BM25) and vector search (cosine), with reciprocal rank fusion. spec: "Retrieval"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from harness.source.extras import import_extra

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

    Raises:
        ExtraMissing: the libraries for it are not installed.
    """

    def __init__(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        self._keywords = _Keywords(texts)
        self._numpy = import_extra("numpy", "rag", _PURPOSE)
        self._directions = self._unit(vectors)

    def hits(self, query: str, vector: Sequence[float], top_k: int) -> list[Hit]:
        """Return the best `top_k` texts, the best first. Each search ranks `top_k` texts; the earlier wins a tie."""
        directions = self._numpy.atleast_2d(self._unit([vector]))[0]
        similarities = (self._directions @ directions).round(_PRECISION).tolist()
        by_vector = _rank(enumerate(similarities), top_k)
        by_keyword = _rank(
            ((index, score) for index, score in self._keywords.scores(query) if score > 0), top_k
        )
        return fuse([by_keyword, by_vector])[:top_k]

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


class _Keywords:
    """A BM25 index of the words of texts. Words have two letters or more; case does not matter."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._bm25s = import_extra("bm25s", "rag", _PURPOSE)
        self._index = None
        words = self._words(texts)
        if any(words):  # BM25 cannot index texts without words
            self._index = self._bm25s.BM25()
            self._index.index(words, show_progress=False)

    def scores(self, query: str) -> list[tuple[int, float]]:
        """Return the index and score of each text; empty if the query or all texts have no words."""
        (words,) = self._words([query])
        if self._index is None or not words:
            return []
        return list(enumerate(self._index.get_scores(words).round(_PRECISION).tolist()))

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        words: list[list[str]] = self._bm25s.tokenize(
            list(texts), stopwords=None, return_ids=False, show_progress=False
        )
        return words
