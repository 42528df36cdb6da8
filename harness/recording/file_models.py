"""Pydantic models of the files of a recording: http.yaml, mcp.yaml and meta.yaml.

http.yaml may have been written by any version of vcrpy, for any client that it records.
"""

from __future__ import annotations

import binascii
import zlib
from datetime import date
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from harness.interception.messages import Request, Response
from harness.interception.patches import kept_response_headers
from harness.recording.files import Format
from harness.units import parse_instant

MAX_BYTES: Final = 100 * 1024 * 1024


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)


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


class _Body(_Entry):
    """A body as vcrpy writes it (`string`), as VCR for Ruby does (`base64_string`), or as the bare value."""

    model_config = ConfigDict(title="a body")
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


class RequestEntry(_Entry):
    """A request in http.yaml or meta.yaml."""

    model_config = ConfigDict(title="a request")
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


class ResponseEntry(_Entry):
    """A response in http.yaml."""

    model_config = ConfigDict(title="a response")
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


class InteractionEntry(_Entry):
    """An answered request in http.yaml."""

    model_config = ConfigDict(title="an interaction")
    request: RequestEntry
    response: ResponseEntry
    recorded_at: Any = None


class HTTPFile(_Entry):
    """http.yaml, a cassette of vcrpy. One without `version` was truncated, or written by hand."""

    model_config = ConfigDict(title="http.yaml")
    interactions: list[InteractionEntry]
    version: _Version = None
    metadata: Any = None
    recorded_with: Any = None


class ExchangeEntry(_Entry):
    """A message to an MCP server in mcp.yaml, and the messages received for it."""

    model_config = ConfigDict(title="an exchange")
    sent: dict[str, JsonValue]
    received: list[dict[str, JsonValue]] = []


class MCPFile(_Entry):
    """mcp.yaml: exchanges by server."""

    model_config = ConfigDict(title="mcp.yaml")
    servers: dict[str, list[ExchangeEntry]]
    version: _Version = None


class TimedEntry(_Entry):
    """Turn and duration, in seconds, of an exchange in mcp.yaml; an entry of meta.yaml."""

    model_config = ConfigDict(title="an entry of mcp")
    duration_s: _Seconds
    turn: _Turn = None


class TimedHTTPEntry(TimedEntry):
    """Timing of an interaction in http.yaml, or with `request` an interaction without a response."""

    model_config = ConfigDict(title="an entry of http")
    chunks_s: list[_Seconds] = []
    failure: str = ""
    request: RequestEntry | None = None


class ReplyEntry(_Entry):
    """A person's reply in meta.yaml."""

    model_config = ConfigDict(title="an entry of human")
    node: _Text
    asked: JsonValue
    reply: JsonValue
    turn: _Turn = None


class MetaFile(_Entry):
    """meta.yaml: the data that vcrpy's format has no fields for."""

    model_config = ConfigDict(title="meta.yaml")
    format: Format
    scenario: str = ""
    recorded: Annotated[str, AfterValidator(_day)] = ""
    now: Annotated[str, AfterValidator(_instant)] = ""
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
