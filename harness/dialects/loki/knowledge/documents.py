"""Reading the documents of a rag node: files, folders and addresses. spec: "rag", `documents`."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext
from harness.errors import ManifestError, Problem, Span
from harness.graph.effects import HTTPCall, HTTPReply, http_call
from harness.source.imports import import_extra

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


class HTTPClient:
    """An HTTP client for one visit of a node. `all_live`: no request was answered by a stub or recorded."""

    def __init__(self, ctx: NodeContext) -> None:
        self._ctx = ctx
        self.all_live = True

    async def send(self, call: HTTPCall) -> HTTPReply:
        """Send a request and return the response, whatever its status.

        Raises:
            Exception: the request failed without a response.
        """
        self.all_live = self.all_live and self._ctx.asks_live(call)
        reply: HTTPReply = await self._ctx.perform(call)
        return reply


MAX_BYTES: Final = 100 * 1024 * 1024

_PROTOCOL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HINT: Final = "documents are files, folders, and addresses with http or https"


@dataclass(frozen=True)
class Source:
    """The text of one document. `path` is its citation: the path as written, extended below a folder."""

    path: str
    text: str


def has_protocol(written: str) -> bool:
    """True if a document is an address or a loader-protocol path, and not a file or folder."""
    return _PROTOCOL.match(written) is not None


async def read_documents(
    written: list[str], spans: list[Span], request: LoadRequest, http: HTTPClient
) -> list[Source]:
    """Read documents in the order in which they are named, those of a folder sorted by path; each once.

    Args:
        written: the documents as written in the node.
        spans: the location of each.
        request: the request that loads the agent.
        http: sends the requests for addresses.

    Raises:
        ManifestError: a document cannot be read. The error has its location.
    """
    found: dict[str, Source] = {}
    for name, where in zip(written, spans, strict=True):
        try:
            async for source in _sources(name, where, request, http):
                found.setdefault(source.path, source)
        except UnreadableDocument as error:
            raise _refusal(str(error), where) from None
    return list(found.values())


async def _sources(
    written: str, where: Span, request: LoadRequest, http: HTTPClient
) -> AsyncIterator[Source]:
    protocol = _PROTOCOL.match(written)
    if protocol is not None and protocol[1].lower() in ("http", "https"):
        yield Source(written, await _fetch(written, http))
    elif protocol is not None:
        raise _refusal(f"'{written}': loader-protocol paths are not supported", where, _HINT)
    elif os.path.isdir((request.base_path or Path()) / written):
        folder = request.resolve_folder(written, where)
        for path in folder.files:
            cited = f"{written.rstrip('/') or '/'}/{path.relative_to(folder.path).as_posix()}"
            yield Source(cited, _file_text(path, cited))
    else:
        yield Source(written, _file_text(request.resolve(written, where), written))


def _file_text(path: Path, cited: str) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableDocument(f"'{cited}' cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise UnreadableDocument(f"'{cited}' is larger than {MAX_BYTES // 1024**2} MiB")
    try:
        return extract_text(data, path.suffix)
    except UnreadableDocument as error:
        raise UnreadableDocument(f"'{cited}' {error}") from None


async def _fetch(url: str, http: HTTPClient) -> str:
    """Fetch the text at an address. It is HTML by its content type, or else by its extension."""
    hint = f"or name a file instead of {url}"
    reply = await http.send(http_call("GET", url, hint=hint))
    if not 200 <= reply.status < 300:
        leads = f", and leads to {reply.headers['location']}" if "location" in reply.headers else ""
        raise UnreadableDocument(f"'{url}' answers with status {reply.status}{leads}")
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    suffix = PurePosixPath(urlsplit(url).path).suffix.lower()
    if kind == "application/pdf" or suffix == ".pdf":
        raise UnreadableDocument(f"'{url}' is a PDF: it is read from a file only")
    is_html = kind in ("text/html", "application/xhtml+xml") or (not kind and suffix in (".html", ".htm"))
    if kind and not is_html and not kind.startswith("text/") and not kind.endswith(("json", "xml", "yaml")):
        raise UnreadableDocument(f"'{url}' is {kind}: documents at addresses are text, Markdown and HTML")
    return html_text(reply.text) if is_html else reply.text


def _refusal(text: str, where: Span, hint: str = "") -> ManifestError:
    return ManifestError(Problem("document", text, where, hint))
