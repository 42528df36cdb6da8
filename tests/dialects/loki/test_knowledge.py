"""Knowledge bases of rag nodes. spec: "rag", "Knowledge base lifecycle". More in `cases/rag.scenario.yaml`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.dialects.loki.document import RagNode
from harness.dialects.loki.knowledge import store
from harness.dialects.loki.knowledge.base import Chunk, KnowledgeBase, Vector
from harness.dialects.loki.knowledge.search import fused
from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.settings import RecordMode, load_settings
from tests.world.loopback import Asked, Loopback, Said, loopback

EMBEDDINGS = "https://api.openai.com/v1/embeddings"
GRAPH = """\
version: "1.0"
start: recall
nodes:
  recall:
    type: rag
    documents: {documents}
    embedding_model: {model}
    chunk_size: {size}
    chunk_overlap: {overlap}
    state_updates: {{context: "{{{{output.context}}}}", sources: "{{{{output.sources}}}}"}}
    next: done
  done: {{type: end, output: "{{{{context}}}}"}}
"""
VECTOR = "{index: 0, embedding: [1, 0]}"


class Desk:
    """The agent `desk`, with documents in its folder, and scenarios for it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.folder = self.project / "agents/desk"
        self.base = self.folder / "recall.yaml"
        self.write("../../pyproject.toml", "")
        self.graph()

    def write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def graph(
        self,
        documents: str = "[./mill.md]",
        model: str = "openai:small",
        size: int = 400,
        overlap: int = 40,
    ) -> None:
        self.write("graph.yaml", GRAPH.format(documents=documents, model=model, size=size, overlap=overlap))
        self.write("mill.md", "The mill closed in 1931.")

    def run(self, keys: str = "retrieval: {recall: real}", mode: RecordMode | None = None) -> Outcome:
        """A run with the input `mill`."""
        lines = "".join(f"  {line}\n" for line in keys.splitlines())
        file = self.project / "it.scenario.yaml"
        head = "harness: 1\nmanifest: agents/desk\nenv_passthrough: [OPENAI_BASE_URL, OPENAI_API_KEY]\n"
        file.write_text(f"{head}scenarios:\n- name: it\n  input: mill\n{lines}", encoding="utf-8")
        options = load_settings(self.project)
        options = replace(options, record_mode=mode) if mode is not None else options
        (outcome,) = run_scenario(load_file(file).scenarios[0], options)
        return outcome

    def embedded(self, data: str = VECTOR, more: str = "") -> Outcome:
        """A run in which each text is embedded as `data`; `more` are further stubs."""
        model = f"- {{url: '{EMBEDDINGS}', json: {{data: [{data}]}}, times: any}}"
        return self.run(f"retrieval: {{recall: real}}\nhttp:\n{model}\n{more}")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    made = Desk(tmp_path)
    monkeypatch.chdir(made.project)
    return made


def error_of(outcome: Outcome) -> dict[str, Any]:
    assert outcome.observed.status == "failed", outcome.observed
    assert outcome.observed.error is not None
    return outcome.observed.error


def http_calls(outcome: Outcome) -> list[str]:
    return [call["name"] for call in outcome.observed.calls if call["kind"] == "http"]


# ---------------------------------------------------------------- documents


def pdf(text: str) -> bytes:
    """A page with a line of text."""
    content = f"BT /F1 12 Tf 20 20 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 50]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    made, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(made))
        made += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return b"%sxref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        made,
        table,
        len(made),
    )


READ = {
    "text, whatever its name": ("notes", "Plain.", "Plain."),
    "a byte order mark is no text": ("a.txt", b"\xef\xbb\xbfMarked.", "Marked."),
    "HTML without scripts": (
        "a.html",
        "<html><script>no()</script><h1>Ferry</h1><p>At <b>noon</b></p></html>",
        "# Ferry\n\nAt **noon**",
    ),
    "PDF": ("a.pdf", pdf("The wheel was sold."), "The wheel was sold."),
}


@pytest.mark.parametrize(("name", "content", "text"), READ.values(), ids=READ)
def test_text_markdown_html_and_pdf_are_read(desk: Desk, name: str, content: str | bytes, text: str) -> None:
    desk.graph(f"[{name}]")
    desk.write(name, content)
    assert desk.embedded().observed.output == f"[Source: {name}]\n{text}"


def test_a_folder_stands_for_its_files_by_path_without_hidden_ones(desk: Desk) -> None:
    desk.graph("[./papers]")
    for name in ("papers/b.md", "papers/a/c.txt", "papers/.hidden"):
        desk.write(name, "mill " + name)
    both = "{index: 0, embedding: [1, 0]}, {index: 1, embedding: [1, 0]}"
    stubs = f"- {{url: '{EMBEDDINGS}', when: 'size(request.json.input) == 2', json: {{data: [{both}]}}}}\n"
    one = f"- {{url: '{EMBEDDINGS}', json: {{data: [{VECTOR}]}}}}"
    outcome = desk.run(f"retrieval: {{recall: real}}\nhttp:\n{stubs}{one}")
    assert json.loads(outcome.observed.state["sources"]) == ["./papers/a/c.txt", "./papers/b.md"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("text: <p>Boats</p>, headers: {content-type: text/html; charset=utf-8}", "Boats"),
        ("text: <p>Boats</p>", "<p>Boats</p>"),
        ("json: {boats: 2}, headers: {content-type: application/json}", '{"boats":2}'),
    ],
)
def test_an_address_is_read_as_its_answer_says(desk: Desk, answer: str, text: str) -> None:
    desk.graph('["https://archive.example/index"]')
    outcome = desk.embedded(more=f'- {{url: "https://archive.example/index", {answer}}}')
    assert outcome.observed.output == f"[Source: https://archive.example/index]\n{text}"


PAGE = '- {{url: "https://archive.example/a", {}}}'
REFUSED = {
    "a loader protocol": ("git:repo", "", "document", "'git:repo': loader-protocol paths are not supported"),
    "a picture": ("a.png", "", "document", "'a.png' is no text in UTF-8: documents are text, Markdown"),
    "a damaged PDF": ("broken.pdf", "", "document", "'broken.pdf' is a PDF that cannot be read"),
    "HTML nested too deep": ("deep.html", "", "document", "'deep.html' is HTML that is nested too deep"),
    "a file that is not there": ("gone.md", "", "missing-file", "file 'gone.md' is not there"),
    "a file outside": (
        "../../../outside.md",
        "",
        "path-outside",
        "is outside the folders a manifest may read",
    ),
    "a folder outside": ("/", "", "path-outside", "'/' is outside the folders"),
    "an address without a page": (
        "https://archive.example/a",
        PAGE.format("status: 404"),
        "document",
        "'https://archive.example/a' answers with status 404",
    ),
    "an address that leads elsewhere": (
        "https://archive.example/a",
        PAGE.format("status: 301, headers: {location: /b}"),
        "document",
        "answers with status 301, and leads to /b",
    ),
    "a picture at an address": (
        "https://archive.example/a",
        PAGE.format("text: x, headers: {content-type: image/png}"),
        "document",
        "is image/png: documents at addresses are text, Markdown and HTML",
    ),
    "a PDF at an address": (
        "https://archive.example/a",
        PAGE.format("text: x, headers: {content-type: application/pdf}"),
        "document",
        "is a PDF: it is read from a file only",
    ),
}


@pytest.mark.parametrize(("name", "stub", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_a_document_that_cannot_be_read_fails_the_run_where_it_is_named(
    desk: Desk, name: str, stub: str, code: str, message: str
) -> None:
    desk.graph(f'["{name}"]')
    desk.write("a.png", b"\x89PNG\0")
    desk.write("broken.pdf", b"%PDF-1.4 and no more")
    desk.write("deep.html", "<div>" * 5000)
    desk.write("../../../outside.md", "no")
    error = error_of(desk.embedded(more=stub))
    assert (error["code"], error["node"]) == (code, "recall")
    assert message in error["message"]
    assert "agents/desk/graph.yaml:6:17" in error["message"]


# ---------------------------------------------------------------- chunks and vectors


def test_chunks_are_of_chunk_size_and_share_chunk_overlap(desk: Desk) -> None:
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
    assert "cannot be asked: supported is 'openai:NAME'" in error["message"]


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
def test_an_answer_without_a_vector_for_each_text_fails_the_run(
    desk: Desk, answer: str, message: str
) -> None:
    error = error_of(desk.run(f"retrieval: {{recall: real}}\nhttp: [{{url: '{EMBEDDINGS}', {answer}}}]"))
    assert error["code"] == "embedding"
    assert message in error["message"]


def test_a_question_with_a_vector_of_another_length_fails_the_run(desk: Desk) -> None:
    stubs = f"""\
- {{url: '{EMBEDDINGS}', json: {{data: [{VECTOR}]}}}}
- {{url: '{EMBEDDINGS}', json: {{data: [{{index: 0, embedding: [1, 0, 0]}}]}}}}"""
    error = error_of(desk.run(f"retrieval: {{recall: real}}\nhttp:\n{stubs}"))
    assert "3 numbers for the query, and the vectors of the knowledge base have 2" in error["message"]


def test_documents_without_text_find_nothing_and_ask_no_model(desk: Desk) -> None:
    desk.write("mill.md", " \n")
    outcome = desk.run()
    assert (outcome.observed.output, http_calls(outcome)) == ("", [])
    assert "node 'recall': its knowledge base holds no text" in outcome.observed.warnings


@pytest.mark.parametrize("package", ["bm25s", "langchain_text_splitters"])
def test_without_the_libraries_the_extra_is_named(
    desk: Desk, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    error = error_of(desk.embedded())
    assert error["code"] == "extra-missing"
    assert 'pip install "agent-scenarios[rag]"' in error["message"]


# ---------------------------------------------------------------- who answers, and what is kept


def embedding_server(asked: Asked) -> Said:
    """Vectors of the number of letters and of words."""
    rows = [
        {"index": at, "embedding": [len(text), text.count(" ")]}
        for at, text in enumerate(asked.json["input"])
    ]
    return Said(json={"data": rows})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(
        Loopback, "answer", lambda self, asked: self.asked.append(asked) or embedding_server(asked)
    )
    with loopback(Said()) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-4711")
        yield running


def inputs(server: Loopback) -> list[list[str]]:
    return [asked.json["input"] for asked in server.asked]


def test_a_stub_of_the_retrieval_builds_nothing(desk: Desk) -> None:
    desk.graph("[gone.md]")
    outcome = desk.run("retrieval: {recall: {return: {context: stubbed, sources: []}}}")
    assert (outcome.observed.output, http_calls(outcome)) == ("stubbed", [])
    assert not desk.base.exists()


def test_without_an_answer_the_message_says_how_to_search_for_real(desk: Desk) -> None:
    error = desk.run("").observed.error
    assert error is not None
    assert error["code"] == "unscripted-call"
    assert "or `recall: real`, which searches its knowledge base" in error["message"]


def test_a_base_built_from_stubs_is_not_kept(desk: Desk) -> None:
    assert desk.embedded().observed.output == "[Source: ./mill.md]\nThe mill closed in 1931."
    assert not desk.base.exists()


def test_a_base_built_live_is_kept_and_loaded_from_then_on(desk: Desk, server: Loopback) -> None:
    first = desk.run("", RecordMode.LIVE)
    assert inputs(server) == [["The mill closed in 1931."], ["mill"]]
    assert server.asked[0].headers["authorization"] == "Bearer sk-planted-4711"
    assert sorted(path.name for path in desk.folder.iterdir()) == ["graph.yaml", "mill.md", "recall.yaml"]
    assert "sk-planted" not in desk.base.read_text(encoding="utf-8")

    desk.write("mill.md", "It was changed, which does not matter.")
    second = desk.run("", RecordMode.LIVE)
    assert inputs(server)[2:] == [["mill"]]
    assert second.observed.output == first.observed.output == "[Source: ./mill.md]\nThe mill closed in 1931."


def test_a_base_of_a_stubbed_document_is_not_kept_even_live(desk: Desk, server: Loopback) -> None:
    desk.graph('["https://archive.example/a"]')
    outcome = desk.run("http: [{url: 'https://archive.example/a', text: Boats}]", RecordMode.LIVE)
    assert outcome.observed.output == "[Source: https://archive.example/a]\nBoats"
    assert not desk.base.exists()


def test_building_and_asking_are_recorded_and_replayed(
    desk: Desk, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = "cassette: it"
    recorded = desk.run(keys, RecordMode.REWRITE)
    assert recorded.passed, recorded.observed.error
    asked = len(server.asked)
    cassette = "".join(path.read_text("utf-8") for path in (desk.project / "cassettes").rglob("*.yaml"))
    assert "The mill closed in 1931." in cassette
    assert "sk-planted" not in cassette

    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    replayed = desk.run(keys)
    assert len(server.asked) == asked
    assert replayed.digest == recorded.digest
    assert replayed.observed.output == "[Source: ./mill.md]\nThe mill closed in 1931."
    assert replayed.observed.warnings == []
    assert not desk.base.exists()


def test_real_is_answered_from_the_recording_too(desk: Desk, server: Loopback) -> None:
    keys = "cassette: it\nretrieval: {recall: real}"
    desk.run(keys, RecordMode.REWRITE)
    asked = len(server.asked)
    assert desk.run(keys).observed.status == "completed"
    assert len(server.asked) == asked == 2


def test_a_base_that_cannot_be_kept_is_told(
    desk: Desk, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.dialects.loki.knowledge.store.os.replace", full)
    outcome = desk.run("expect: {status: completed}", RecordMode.LIVE)
    assert outcome.verdict == "passed"
    assert outcome.observed.warnings == [
        "node 'recall': its knowledge base cannot be kept: No space left on device"
    ]
    assert sorted(path.name for path in desk.folder.iterdir()) == ["graph.yaml", "mill.md"]


# ---------------------------------------------------------------- the file


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
        "the vector '0-1' has 1 numbers, and the first has another",
    ),
    "a vector too many": (
        kept(f"{{0-0: {TWO}, 0-1: {TWO}, 7-0: {TWO}}}"),
        "recall.yaml:3:49: the vector '7-0' belongs to no document of the knowledge base",
    ),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_fails_the_run_at_the_place(desk: Desk, text: str, message: str) -> None:
    desk.write("recall.yaml", text)
    assert message in error_of(desk.embedded())["message"]


def test_a_file_that_was_mended_is_read_again(desk: Desk) -> None:
    desk.write("recall.yaml", kept(f"{{0-0: {TWO}}}"))
    error_of(desk.embedded())
    desk.write("recall.yaml", kept(f"{{0-0: {TWO}, 0-1: {TWO}}}"))
    assert desk.embedded().observed.output == "[Source: a.md]\nmill\n\n[Source: a.md]\nwheel"


NODE = RagNode(type="rag", documents=["a.md"], embedding_model="openai:small", chunk_size=9, chunk_overlap=0)
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1)
NUMBERS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3)


@settings(max_examples=25)
@given(parts=st.lists(st.tuples(TEXTS, TEXTS, NUMBERS), max_size=5))
def test_what_is_kept_is_read_back(parts: list[tuple[str, str, list[float]]], tmp_path_factory: Any) -> None:
    parts = sorted(parts, key=lambda part: [other[0] for other in parts].index(part[0]))  # by document
    base = KnowledgeBase(
        "openai:small",
        [Chunk(source, text) for source, text, _ in parts],
        [Vector("f", numbers) for _, _, numbers in parts],
    )
    path = tmp_path_factory.getbasetemp() / "recall.yaml"
    store.save(path, NODE, base)
    assert store.load(path) == base


# ---------------------------------------------------------------- search

RANKINGS = st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=3)


@given(RANKINGS)
def test_fusion_ranks_everything_once_and_no_worse_than_all_rankings_do(rankings: list[list[int]]) -> None:
    hits = fused(rankings)
    order = [hit.at for hit in hits]
    assert sorted(order) == sorted({at for ranking in rankings for at in ranking})
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert fused([rankings[0], rankings[0]]) == fused(2 * [rankings[0]])
    assert [hit.at for hit in fused([rankings[0]])] == rankings[0]
    for first, second in pairwise(order):
        places = [
            (r.index(first) if first in r else 99, r.index(second) if second in r else 99) for r in rankings
        ]
        assert any(a < b for a, b in places) or first < second
