"""The documents of a knowledge base: texts, pages, PDFs, folders and addresses. spec: "rag"."""

from __future__ import annotations

import json

import pytest

from tests.dialects.loki.knowledge.desk import EMBEDDINGS, VECTOR, Desk, error_of


def pdf(text: str) -> bytes:
    """Return a page with a line of text."""
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


def test_a_folder_stands_for_its_files_except_hidden_ones(desk: Desk) -> None:
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
def test_a_page_is_read_by_its_content_type(desk: Desk, answer: str, text: str) -> None:
    desk.graph('["https://archive.example/index"]')
    outcome = desk.embedded(more=f'- {{url: "https://archive.example/index", {answer}}}')
    assert outcome.observed.output == f"[Source: https://archive.example/index]\n{text}"


PAGE = '- {{url: "https://archive.example/a", {}}}'
REFUSED = {
    "a loader protocol": ("git:repo", "", "document", "'git:repo': loader-protocol paths are not supported"),
    "a picture": ("a.png", "", "document", "'a.png' is not UTF-8 text: documents are text, Markdown"),
    "a damaged PDF": ("broken.pdf", "", "document", "'broken.pdf' is a PDF that cannot be read"),
    "HTML nested too deep": ("deep.html", "", "document", "'deep.html' is HTML that is nested too deep"),
    "a file that is not there": ("gone.md", "", "missing-file", "file 'gone.md' does not exist"),
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
def test_an_unreadable_document_fails_the_run_with_its_location(
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
