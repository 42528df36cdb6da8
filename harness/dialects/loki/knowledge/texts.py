"""Extracting the text of a document: plain text, Markdown, HTML or PDF."""

from __future__ import annotations

from io import BytesIO

from harness.source.extras import import_extra

_PURPOSE = "to read documents"


class UnreadableDocument(Exception):
    """A document whose text cannot be read. The message completes a sentence that begins with its name."""


def extract_text(data: bytes, suffix: str) -> str:
    """Return the text of a file with this extension. Files other than PDF and HTML are read as UTF-8.

    Raises:
        UnreadableDocument: it is not text, or a PDF that cannot be read.
        ExtraMissing: the library that reads it is not installed.
    """
    if suffix.lower() == ".pdf":
        return _pdf_text(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UnreadableDocument("is not UTF-8 text: documents are text, Markdown, HTML and PDF")
    return html_text(text) if suffix.lower() in (".html", ".htm", ".xhtml") else text


def html_text(html: str) -> str:
    """Convert HTML to Markdown, without scripts and styles.

    Raises:
        UnreadableDocument: it is nested too deep.
        ExtraMissing: the library that converts it is not installed.
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
    except Exception as error:  # on damaged files pypdf raises more than its own errors
        raise UnreadableDocument(f"is a PDF that cannot be read: {error}") from None
    return "\n\n".join(pages)
