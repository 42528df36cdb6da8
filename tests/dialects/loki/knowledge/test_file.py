"""The file of a knowledge base: it is saved and loaded, and a malformed one fails the run with a location."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.dialects.loki.document import RagNode
from harness.dialects.loki.knowledge import store
from harness.dialects.loki.knowledge.store import Chunk, KnowledgeBase, Vector
from tests.dialects.loki.knowledge.desk import Desk, error_of


def kept(
    vectors: str, files: str = '{"0": {path: a.md, documents: [{page_content: mill}, {page_content: wheel}]}}'
) -> str:
    return f"embedding_model: openai:small\nfiles: {files}\nvectors: {vectors}\n"


ONE, TWO = "AACAPw==", "AACAPwAAAAA="
BROKEN = {
    "no YAML": ("files: {", "recall.yaml:1:8"),
    "no model": ("files: {}\n", "recall.yaml:1:1: missing key 'embedding_model' in a knowledge base"),
    "another type": (kept("{}", files="[a.md]"), "recall.yaml:2:8"),
    "a vector is missing": (
        kept(f"{{0-0: {TWO}}}"),
        "recall.yaml:2:61: the knowledge base has no vector '0-1' for this document",
    ),
    "a vector that is none": (
        kept(f"{{0-0: {TWO}, 0-1: 'a.b'}}"),
        "recall.yaml:3:35: the vector '0-1' is not in Base64",
    ),
    "another length": (
        kept(f"{{0-0: {TWO}, 0-1: {ONE}}}"),
        "the vector '0-1' has 1 numbers, but the first vector has a different number of them",
    ),
    "a vector too many": (
        kept(f"{{0-0: {TWO}, 0-1: {TWO}, 7-0: {TWO}}}"),
        "recall.yaml:3:49: the vector '7-0' belongs to no document of the knowledge base",
    ),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_malformed_file_fails_the_run_with_a_location(desk: Desk, text: str, message: str) -> None:
    desk.write("recall.yaml", text)
    assert message in error_of(desk.embedded())["message"]


AS_LOKI_WRITES_IT = f"""\
embedding_model: openai:small
chunk_size: 400
chunk_overlap: 40
reranker_model: null
top_k: 5
batch_size: null
next_file_id: 12
document_paths:
- ./mill.md
files:
  2:
    hash: 8d5c
    path: a.md
    documents:
    - page_content: mill
  11:
    hash: 9b1e
    path: b.md
    documents:
    - page_content: wheel
vectors:
  2-0: {TWO}
  11-0: {TWO}
"""


def test_a_file_that_loki_wrote_is_loaded(desk: Desk) -> None:
    desk.write("recall.yaml", AS_LOKI_WRITES_IT)
    assert desk.embedded().observed.output == "[Source: a.md]\nmill\n\n[Source: b.md]\nwheel"


def test_the_location_of_a_file_that_has_a_number_is_found(desk: Desk) -> None:
    desk.write("recall.yaml", AS_LOKI_WRITES_IT.replace(f"  11-0: {TWO}\n", ""))
    assert "recall.yaml:20:7: the knowledge base has no vector '11-0'" in error_of(desk.embedded())["message"]


def test_a_changed_file_is_read_again(desk: Desk) -> None:
    desk.write("recall.yaml", kept(f"{{0-0: {TWO}}}"))
    error_of(desk.embedded())
    desk.write("recall.yaml", kept(f"{{0-0: {TWO}, 0-1: {TWO}}}"))
    assert desk.embedded().observed.output == "[Source: a.md]\nmill\n\n[Source: a.md]\nwheel"


NODE = RagNode(type="rag", documents=["a.md"], embedding_model="openai:small", chunk_size=9, chunk_overlap=0)
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1)
NUMBERS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3)


@settings(max_examples=25)
@given(parts=st.lists(st.tuples(TEXTS, TEXTS, NUMBERS), max_size=5))
def test_a_saved_base_is_loaded_unchanged(
    parts: list[tuple[str, str, list[float]]], tmp_path_factory: Any
) -> None:
    parts = sorted(parts, key=lambda part: [other[0] for other in parts].index(part[0]))  # by document
    base = KnowledgeBase(
        "openai:small",
        [Chunk(source, text) for source, text, _ in parts],
        [Vector("f", numbers) for _, _, numbers in parts],
    )
    path = tmp_path_factory.getbasetemp() / "recall.yaml"
    store.save(path, NODE, base)
    assert store.load(path) == base
