"""Splitting documents into chunks, and their vectors from the embedding model. spec: "rag"."""

from __future__ import annotations

import json
import sys

import pytest

from tests.dialects.loki.knowledge.desk import EMBEDDINGS, VECTOR, Desk, error_of, http_calls


def test_chunks_have_chunk_size_and_overlap_by_chunk_overlap(desk: Desk) -> None:
    desk.graph("[words.txt]", size=12, overlap=6)
    desk.write("words.txt", "mill1 mill2 mill3 mill4")
    vectors = ", ".join(f"{{index: {at}, embedding: [1, 0]}}" for at in range(3))
    expected = "['mill1 mill2', 'mill2 mill3', 'mill3 mill4']"
    stubs = f"""\
- {{url: '{EMBEDDINGS}', when: "request.json.input == {expected}", json: {{data: [{vectors}]}}}}
- {{url: '{EMBEDDINGS}', json: {{data: [{VECTOR}]}}}}"""
    outcome = desk.run(f"retrieval: {{recall: real}}\nhttp:\n{stubs}")
    assert outcome.observed.status == "completed", outcome.observed.error
    assert json.loads(outcome.observed.state["sources"]) == ["words.txt"]


def test_an_overlap_larger_than_a_chunk_is_refused(desk: Desk) -> None:
    desk.graph(size=10, overlap=11)
    error = error_of(desk.embedded())
    assert error["code"] == "knowledge-base"
    assert "graph.yaml:9:20: chunk_overlap, 11, is larger than chunk_size, 10" in error["message"]


@pytest.mark.parametrize("model", ["cohere:embed-v4", "small", "'openai:'"])
def test_other_clients_than_openai_are_refused(desk: Desk, model: str) -> None:
    desk.graph(model=model)
    error = error_of(desk.embedded())
    assert error["code"] == "embedding"
    assert "cannot be called: expected 'openai:NAME'" in error["message"]


ANSWERS = {
    "an error, without a key": (
        "status: 401, json: {error: {message: no key}}",
        "answered with status 401: no key (no key was sent: the scenario's env_passthrough does not hand on",
    ),
    "an error in text": ("status: 500, text: broken", "answered with status 500: broken"),
    "no JSON": ("text: hello", "answered without embeddings: the answer: Input should be"),
    "no numbers": (
        "json: {data: [{index: 0, embedding: [x]}]}",
        "data.0.embedding.0: Input should be a valid number",
    ),
    "an empty vector": ("json: {data: [{index: 0, embedding: []}]}", "data.0.embedding: List should have"),
    "too few": ("json: {data: []}", "was given 1 texts, and answered with 0 embeddings"),
    "one that was not asked for": (
        "json: {data: [{index: 1, embedding: [1]}]}",
        "was given 1 texts, and answered with 1 embeddings",
    ),
}


@pytest.mark.parametrize(("answer", "message"), ANSWERS.values(), ids=ANSWERS)
def test_a_response_without_a_vector_per_text_fails_the_run(desk: Desk, answer: str, message: str) -> None:
    error = error_of(desk.run(f"retrieval: {{recall: real}}\nhttp: [{{url: '{EMBEDDINGS}', {answer}}}]"))
    assert error["code"] == "embedding"
    assert message in error["message"]


def test_a_query_vector_of_another_length_fails_the_run(desk: Desk) -> None:
    stubs = f"""\
- {{url: '{EMBEDDINGS}', json: {{data: [{VECTOR}]}}}}
- {{url: '{EMBEDDINGS}', json: {{data: [{{index: 0, embedding: [1, 0, 0]}}]}}}}"""
    error = error_of(desk.run(f"retrieval: {{recall: real}}\nhttp:\n{stubs}"))
    assert "3 numbers for the query, and the vectors of the knowledge base have 2" in error["message"]


def test_a_base_without_text_finds_nothing_and_calls_no_model(desk: Desk) -> None:
    desk.write("mill.md", " \n")
    outcome = desk.run()
    assert (outcome.observed.output, http_calls(outcome)) == ("", [])
    assert (
        "agents/desk/graph.yaml:4:3: node 'recall': its knowledge base holds no text"
        in outcome.observed.warnings
    )


@pytest.mark.parametrize("package", ["bm25s", "langchain_text_splitters"])
def test_the_error_for_missing_libraries_names_the_extra(
    desk: Desk, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    error = error_of(desk.embedded())
    assert error["code"] == "extra-missing"
    assert 'pip install "agent-scenarios[rag]"' in error["message"]
