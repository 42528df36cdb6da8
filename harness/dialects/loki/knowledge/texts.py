"""The text of a document, by the kind of its file: plain text, Markdown, HTML or PDF."""

from __future__ import annotations

from io import BytesIO

from harness.source.extras import import_extra

_PURPOSE = "to read documents"


class UnreadableDocument(Exception):
    """A document without a text that can be read. The text says what it is."""


def text_of(data: bytes, suffix: str) -> str:
    """The text of a file whose name ends in `suffix`; any text in UTF-8 will do.

    Raises:
        UnreadableDocument: it has none.
        ExtraMissing: the library that reads it is not installed.
    """
    if suffix.lower() == ".pdf":
        return _pdf_text(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UnreadableDocument("is no text in UTF-8: documents are text, Markdown, HTML and PDF")
    return html_text(text) if suffix.lower() in (".html", ".htm", ".xhtml") else text


def html_text(html: str) -> str:
    """A page as Markdown, without its scripts and styles.

    Raises:
        UnreadableDocument: it is nested too deep.
        ExtraMissing: the library that reads it is not installed.
    """
    markdownify = import_extra("markdownify", "rag", _PURPOSE)
    try:
        text: str = markdownify.markdownify(html, heading_style=markdownify.ATX)
    except RecursionError:
        raise UnreadableDocument("is HTML that is nested too deep") from None
    return text.strip()


def _pdf_text(data: bytes) -> str:
    pypdf = import_extra("pypdf", "rag", _PURPOSE)
    try:
        pages = [page.extract_text() for page in pypdf.PdfReader(BytesIO(data)).pages]
    except Exception as error:  # what a damaged file makes of it is not limited to the library's own errors
        raise UnreadableDocument(f"is a PDF that cannot be read: {error}") from None
    return "\n\n".join(pages)
