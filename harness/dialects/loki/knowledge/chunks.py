"""Splitting documents into chunks. spec: "Knowledge-base build config", `chunk_size`, `chunk_overlap`."""

from __future__ import annotations

from collections.abc import Iterable

from harness.dialects.loki.knowledge.base import Chunk
from harness.dialects.loki.knowledge.documents import Source
from harness.source.extras import import_extra


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
