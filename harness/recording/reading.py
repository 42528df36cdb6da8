"""Reads the files of a recording into a `Recording`: their models first. Errors have the location in the file.

http.yaml may also be a cassette of plain vcrpy, without meta.yaml: its interactions then take no time and answer in
any turn.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import date
from typing import Annotated, Any, Final, NoReturn, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, JsonValue, model_validator

from harness.errors import CassetteBroken, SourceError
from harness.interception.messages import Request, Response
from harness.interception.patches import kept_response_headers
from harness.recording.files import HTTP, MCP, META, Format
from harness.recording.interactions import (
    Exchange,
    HumanReply,
    Interaction,
    Recording,
    RecordingMetadata,
)
from harness.source.display import clip, printable
from harness.source.document import Document, DocumentPath
from harness.source.models import validate
from harness.units import parse_instant

MAX_BYTES: Final = 100 * 1024 * 1024


class _Entry(BaseModel, extra="forbid", defer_build=True):
    """The base of the models of files."""


def _as_text(value: Any) -> Any:
    """Convert bytes and numbers to text: cassettes written by hand have unquoted numbers."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _from_base64(text: Any) -> Any:
    return binascii.a2b_base64(text) if isinstance(text, str) else text


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(f"recorded must be a day such as 2026-01-31, not '{text}'") from None


def _instant(text: str) -> str:
    parse_instant(text)
    return text


_Text = Annotated[str, BeforeValidator(_as_text)]
_Headers = Annotated[
    dict[str, Annotated[list[_Text], BeforeValidator(_as_list)]], BeforeValidator(lambda value: value or {})
]
_Seconds = Annotated[float, Field(strict=True, ge=0, lt=1e12)]
_Turn = Annotated[int, Field(strict=True, ge=1, lt=10**9)] | None


def _known_version(version: int | None) -> int | None:
    if version not in (None, 1):
        raise ValueError(f"a cassette of version {version}, not 1")
    return version


_Version = Annotated[int | None, AfterValidator(_known_version)]


class _Body(_Entry, title="a body"):
    """A body as vcrpy writes it (`string`), as VCR for Ruby does (`base64_string`), or as the bare value."""

    string: str | bytes | None = None
    base64_string: Annotated[bytes, BeforeValidator(_from_base64)] | None = None
    encoding: str = "utf-8"

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"string": value}

    @property
    def is_text(self) -> bool:
        return self.base64_string is None and not isinstance(self.string, bytes)

    def content(self) -> bytes:
        if self.base64_string is not None:
            return self.base64_string
        if isinstance(self.string, bytes):
            return self.string
        is_latin = self.encoding.lower() in ("iso-8859-1", "latin-1", "ascii-8bit")
        return (self.string or "").encode("latin-1" if is_latin else "utf-8", "replace")


class RequestEntry(_Entry, title="a request"):
    """A request in http.yaml or meta.yaml."""

    method: _Text
    uri: _Text
    body: _Body = _Body()
    headers: _Headers = {}

    def to_request(self) -> Request:
        """Return the `Request`, with the first value of each repeated header."""
        headers = {name.lower(): values[0] for name, values in reversed(self.headers.items()) if values}
        return Request(self.method, self.uri, headers, self.body.content())


class _Status(BaseModel):
    code: int = Field(strict=True, ge=100, lt=10**9)
    message: _Text | None = None


class ResponseEntry(_Entry, title="a response"):
    """A response in http.yaml."""

    status: _Status
    headers: _Headers
    body: _Body = _Body()
    # vcrpy writes these for some clients; they are not used.
    protocol: Any = None
    version: Any = None
    url: Any = None

    @model_validator(mode="before")
    @classmethod
    def _of_older_httpx(cls, value: Any) -> Any:
        if not isinstance(value, dict) or "status_code" not in value:
            return value
        status = {"code": value["status_code"]}
        return {"status": status, "headers": value.get("headers"), "body": value.get("content")}

    def to_response(self) -> Response:
        """Return the `Response`, its body decompressed.

        Raises:
            ValueError: the body cannot be decompressed.
        """
        headers = [(name.lower(), value) for name, values in self.headers.items() for value in values]
        content = self.body.content()
        if not self.body.is_text and content:
            content = _decompress(content, dict(headers).get("content-encoding", ""))
        return Response(self.status.code, self.status.message or "", kept_response_headers(headers), content)


class InteractionEntry(_Entry, title="an interaction"):
    """An answered request in http.yaml."""

    request: RequestEntry
    response: ResponseEntry
    recorded_at: Any = None


class HTTPFile(_Entry, title="http.yaml"):
    """http.yaml, a cassette of vcrpy. One without `version` was truncated, or written by hand."""

    interactions: list[InteractionEntry]
    version: _Version = None
    metadata: Any = None
    recorded_with: Any = None


class ExchangeEntry(_Entry, title="an exchange"):
    """A message to an MCP server in mcp.yaml, and the messages received for it."""

    sent: dict[str, JsonValue]
    received: list[dict[str, JsonValue]] = []


class MCPFile(_Entry, title="mcp.yaml"):
    """mcp.yaml: exchanges by server."""

    servers: dict[str, list[ExchangeEntry]]
    version: _Version = None


class TimedEntry(_Entry, title="an entry of mcp"):
    """Turn and duration, in seconds, of an exchange in mcp.yaml; an entry of meta.yaml."""

    duration_s: _Seconds
    turn: _Turn = None


class TimedHTTPEntry(TimedEntry, title="an entry of http"):
    """Timing of an interaction in http.yaml, or with `request` an interaction without a response."""

    chunks_s: list[_Seconds] = []
    failure: str = ""
    request: RequestEntry | None = None


class ReplyEntry(_Entry, title="an entry of human"):
    """A person's reply in meta.yaml."""

    node: _Text
    asked: JsonValue
    reply: JsonValue
    turn: _Turn = None


class MetaFile(_Entry, title="meta.yaml"):
    """meta.yaml: the data that vcrpy's format has no fields for."""

    format: Format
    scenario: str = ""
    recorded: Annotated[str, AfterValidator(_day)] = ""
    now: Annotated[str, AfterValidator(_instant)] = ""
    imported: Annotated[str, AfterValidator(_instant)] = ""
    manifests: dict[str, _Text] = {}
    versions: dict[str, _Text] = {}
    environment: dict[str, _Text] = {}
    http: list[TimedHTTPEntry] = []
    mcp: dict[str, list[TimedEntry]] = {}
    human: list[ReplyEntry] = []


def _decompress(body: bytes, encoding: str) -> bytes:
    """Decompress a body; return it unchanged if it is not compressed.

    Raises:
        ValueError: the encoding is not supported, or the body is too large.
    """
    encoding = encoding.strip().lower()
    if encoding in ("br", "zstd", "compress"):
        text = f"the body is compressed ('{encoding}'): record it with decode_compressed_response=True"
        raise ValueError(text)
    for bits in {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}.get(encoding, ()):
        inflater = zlib.decompressobj(bits)
        try:
            found = inflater.decompress(body, MAX_BYTES)
        except zlib.error:
            continue
        if inflater.unconsumed_tail:
            raise ValueError(f"the body is larger than {MAX_BYTES // 1024**2} MiB")
        return found
    return body


_M = TypeVar("_M", bound=BaseModel)


def read(files: Mapping[str, Document]) -> Recording:
    """Return the recording in these files, given by file name.

    Raises:
        CassetteBroken: a file is not valid, or the files do not belong together.
    """
    http = _validate(HTTPFile, files[HTTP]) if HTTP in files else None
    answered = [
        _interaction(one, files[HTTP], number) for number, one in enumerate(http.interactions if http else ())
    ]
    mcp = _validate(MCPFile, files[MCP]) if MCP in files else None
    servers = {
        name: tuple(_exchange(one, files[MCP], name, number) for number, one in enumerate(exchanges))
        for name, exchanges in (mcp.servers if mcp else {}).items()
    }
    if META not in files:
        return Recording(tuple(answered), servers)
    meta = _validate(MetaFile, files[META])
    timed = _timed_http(meta, files[META], answered)
    for name, file in ((HTTP, http), (MCP, mcp)):
        if file is not None and file.version is None:
            # A truncated file may be valid YAML. `version` is written last, so it shows that the file is complete.
            _refuse(files[name], (), "'version', the last key, is missing: is the file cut off?")
    return Recording(
        timed,
        _timed_mcp(meta, files[META], servers),
        tuple(HumanReply(one.node, one.asked, one.reply, one.turn) for one in meta.human),
        RecordingMetadata(**{one.name: getattr(meta, one.name) for one in fields(RecordingMetadata)}),
    )


def broken(error: SourceError) -> CassetteBroken:
    """Return the error for a file of a cassette: its first three problems, at the location of the first."""
    texts = [f"{one.message} ({one.hint})" if one.hint else one.message for one in error.problems[:3]]
    return CassetteBroken(printable(clip("; ".join(texts), 400)), error.problems[0].span)


def _validate(model: type[_M], document: Document) -> _M:
    try:
        return validate(model, document, error=SourceError)
    except SourceError as error:
        raise broken(error) from None


def _refuse(document: Document, path: DocumentPath, message: str) -> NoReturn:
    raise CassetteBroken(printable(clip(message, 400)), document.span(path))


def _interaction(one: InteractionEntry, document: Document, number: int) -> Interaction:
    path = ("interactions", number)
    try:
        return Interaction(
            one.request.to_request(), one.response.to_response(), line=document.span(path).line
        )
    except ValueError as error:
        _refuse(document, (*path, "response"), str(error))


def _exchange(one: ExchangeEntry, document: Document, server: str, number: int) -> Exchange:
    line = document.span(("servers", server, number)).line
    return Exchange(one.sent, tuple(one.received), line=line)


def _timed_http(
    meta: MetaFile, document: Document, answered: Sequence[Interaction]
) -> tuple[Interaction, ...]:
    """Return the interactions with their timing from meta.yaml, and the requests without a response from there."""
    expected = sum(entry.request is None for entry in meta.http)
    _check_count(document, ("http",), HTTP, len(answered), expected)
    left = iter(answered)
    return tuple(
        replace(
            next(left) if entry.request is None else Interaction(entry.request.to_request(), None),
            turn=entry.turn,
            duration_s=entry.duration_s,
            chunks_s=tuple(entry.chunks_s),
            failure=entry.failure,
        )
        for entry in meta.http
    )


def _timed_mcp(
    meta: MetaFile, document: Document, servers: Mapping[str, Sequence[Exchange]]
) -> dict[str, tuple[Exchange, ...]]:
    for name in meta.mcp:
        if name not in servers:
            _refuse(document, ("mcp", name), f"{MCP} has no server '{name}'")
    found = {}
    for name, exchanges in servers.items():
        times = meta.mcp.get(name, [])
        _check_count(document, ("mcp", name), MCP, len(exchanges), len(times))
        found[name] = tuple(
            replace(one, turn=time.turn, duration_s=time.duration_s)
            for one, time in zip(exchanges, times, strict=True)
        )
    return found


def _check_count(document: Document, path: tuple[str, ...], file: str, there: int, expected: int) -> None:
    """Raise CassetteBroken unless meta.yaml and the other file have the same number of entries."""
    if there != expected:
        key = ".".join(path)
        text = f"'{key}' has {expected} entries, but {file} has {there} (record it again)"
        _refuse(document, path, text)
