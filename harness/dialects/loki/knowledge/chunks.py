"""Documents cut into chunks. spec: "Knowledge-base build config", `chunk_size`, `chunk_overlap`."""

from __future__ import annotations

from collections.abc import Iterable

from harness.dialects.loki.knowledge.base import Chunk
from harness.dialects.loki.knowledge.documents import Source
from harness.source.extras import import_extra


def cut(sources: Iterable[Source], size: int, overlap: int) -> list[Chunk]:
    """The chunks of documents, in order: of at most `size` characters, each with up to `overlap` of the one before.

    They end between paragraphs, else lines, else words, where there are any. `overlap` is not larger than `size`.

    Raises:
        ExtraMissing: the library that cuts them is not installed.
    """
    splitters = import_extra("langchain_text_splitters", "rag", "to cut documents into chunks")
    splitter = splitters.RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap)
    return [Chunk(source.path, text) for source in sources for text in splitter.split_text(source.text)]
