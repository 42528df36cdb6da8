"""Reads the files of a recording. What does not fit is refused, with its place.

http.yaml may also be a cassette that vcrpy recorded alone, without meta.yaml: its interactions then took no time and
answer in any turn.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, Final, NoReturn, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from harness.errors import CassetteBroken, SourceError
from harness.interception.headers import kept_response_headers
from harness.interception.messages import Request, Response
from harness.recording.files import HTTP, MCP, META, Format
from harness.recording.interactions import (
    About,
    Exchange,
    HumanReply,
    Interaction,
    Recording,
)
from harness.source.display import clip, printable
from harness.source.document import Document, DocumentPath
from harness.source.models import validate

MAX_BYTES: Final = 100 * 1024 * 1024
_M = TypeVar("_M", bound=BaseModel)


def read(files: Mapping[str, Document]) -> Recording:
    """The recording in these files, by name.

    Raises:
        CassetteBroken: they do not hold one.
    """
    http = _checked(_HTTPFile, files[HTTP]) if HTTP in files else None
    answered = (
        []
        if http is None
        else [_interaction(one, files[HTTP], number) for number, one in enumerate(http.interactions)]
    )
    mcp = _checked(_MCPFile, files[MCP]) if MCP in files else None
    servers = (
        {}
        if mcp is None
        else {
            name: [_exchange(one, files[MCP], name, number) for number, one in enumerate(exchanges)]
            for name, exchanges in mcp.servers.items()
        }
    )
    if META not in files:
        return Recording(tuple(answered), {name: tuple(exchanges) for name, exchanges in servers.items()})
    meta = _checked(_Meta, files[META])
    timed = _timed_http(meta, files[META], answered)
    for name, file in ((HTTP, http), (MCP, mcp)):
        if file is not None and file.version is None:
            # The last text of a file that is cut off may look whole; what stands at the end tells.
            _refuse(files[name], (), "'version' is missing, which stands at the end: is the file cut off?")
    return Recording(
        timed,
        _timed_mcp(meta, files[META], servers),
        tuple(HumanReply(one.node, one.asked, one.reply, one.turn) for one in meta.human),
        About(meta.scenario, meta.recorded, meta.manifests, meta.versions, meta.environment),
    )


def broken(error: SourceError) -> CassetteBroken:
    """The error of a cassette one of whose files cannot be used: the first problems, at the place of the first."""
    texts = [f"{one.message} ({one.hint})" if one.hint else one.message for one in error.problems[:3]]
    return CassetteBroken(printable(clip("; ".join(texts), 400)), error.problems[0].span)


def _checked(model: type[_M], document: Document) -> _M:
    try:
        return validate(model, document, error=SourceError)
    except SourceError as error:
        raise broken(error) from None


def _refuse(document: Document, path: DocumentPath, message: str) -> NoReturn:
    raise CassetteBroken(printable(clip(message, 400)), document.span(path))


# ---------------------------------------------------------------- what the files may hold


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _as_text(value: Any) -> Any:
    """Numbers as text, as cassettes written by hand have them."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(f"recorded must be a day such as 2026-01-31, not '{text}'") from None


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
    """A body, as vcrpy writes it (`string`), as VCR for Ruby does (`base64_string`), or bare."""

    model_config = ConfigDict(title="a body")
    string: str | bytes | None = None
    base64_string: str | None = None
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
            return binascii.a2b_base64(self.base64_string)
        if isinstance(self.string, bytes):
            return self.string
        is_latin = self.encoding.lower() in ("iso-8859-1", "latin-1", "ascii-8bit")
        return (self.string or "").encode("latin-1" if is_latin else "utf-8", "replace")


class _Request(_Entry):
    model_config = ConfigDict(title="a request")
    method: _Text
    uri: _Text
    body: _Body = _Body()
    headers: _Headers = {}

    def data(self) -> Request:
        headers = {name.lower(): values[0] for name, values in reversed(self.headers.items()) if values}
        return Request(self.method, self.uri, headers, self.body.content())


class _Status(BaseModel):
    code: int = Field(strict=True, ge=100, lt=10**9)
    message: _Text | None = None


class _Response(_Entry):
    model_config = ConfigDict(title="a response")
    status: _Status
    headers: _Headers
    body: _Body = _Body()
    # Of vcrpy's cassettes of other clients.
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

    def data(self) -> Response:
        headers = [(name.lower(), value) for name, values in self.headers.items() for value in values]
        content = self.body.content()
        if not self.body.is_text and content:
            content = _decompressed(content, dict(headers).get("content-encoding", ""))
        return Response(self.status.code, self.status.message or "", kept_response_headers(headers), content)


class _Interaction(_Entry):
    model_config = ConfigDict(title="an interaction")
    request: _Request
    response: _Response
    recorded_at: Any = None


class _HTTPFile(_Entry):
    model_config = ConfigDict(title="http.yaml")
    interactions: list[_Interaction]
    version: _Version = None
    metadata: Any = None
    recorded_with: Any = None


class _Exchange(_Entry):
    model_config = ConfigDict(title="an exchange")
    sent: dict[str, JsonValue]
    received: list[dict[str, JsonValue]] = []


class _MCPFile(_Entry):
    model_config = ConfigDict(title="mcp.yaml")
    servers: dict[str, list[_Exchange]]
    version: _Version = None


class _Timed(_Entry):
    model_config = ConfigDict(title="an entry of mcp")
    duration_s: _Seconds
    turn: _Turn = None


class _TimedHTTP(_Timed):
    model_config = ConfigDict(title="an entry of http")
    chunks_s: list[_Seconds] = []
    failure: str = ""
    request: _Request | None = None


class _Reply(_Entry):
    model_config = ConfigDict(title="an entry of human")
    node: _Text
    asked: JsonValue
    reply: JsonValue
    turn: _Turn = None


class _Meta(_Entry):
    model_config = ConfigDict(title="meta.yaml")
    format: Format
    scenario: str = ""
    recorded: Annotated[str, AfterValidator(_day)] = ""
    manifests: dict[str, _Text] = {}
    versions: dict[str, _Text] = {}
    environment: dict[str, _Text] = {}
    http: list[_TimedHTTP] = []
    mcp: dict[str, list[_Timed]] = {}
    human: list[_Reply] = []


def _decompressed(body: bytes, encoding: str) -> bytes:
    """The body without its compression; as it is when it turns out to have none."""
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


# ---------------------------------------------------------------- from the files to the data


def _interaction(one: _Interaction, document: Document, number: int) -> Interaction:
    path = ("interactions", number)
    try:
        return Interaction(one.request.data(), one.response.data(), line=document.span(path).line)
    except ValueError as error:
        _refuse(document, (*path, "response"), str(error))


def _exchange(one: _Exchange, document: Document, server: str, number: int) -> Exchange:
    line = document.span(("servers", server, number)).line
    return Exchange(one.sent, tuple(one.received), line=line)


def _timed_http(meta: _Meta, document: Document, answered: Sequence[Interaction]) -> tuple[Interaction, ...]:
    """The interactions with what meta.yaml tells of them, among them requests that nothing answered."""
    told = sum(entry.request is None for entry in meta.http)
    _check_count(document, ("http",), HTTP, len(answered), told)
    left = iter(answered)
    return tuple(
        replace(
            next(left) if entry.request is None else Interaction(entry.request.data(), None),
            turn=entry.turn,
            duration_s=entry.duration_s,
            chunks_s=tuple(entry.chunks_s),
            failure=entry.failure,
        )
        for entry in meta.http
    )


def _timed_mcp(
    meta: _Meta, document: Document, servers: Mapping[str, Sequence[Exchange]]
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


def _check_count(document: Document, path: tuple[str, ...], file: str, there: int, told: int) -> None:
    """Both files tell of the same messages."""
    if there != told:
        key = ".".join(path)
        text = f"'{key}' tells of {told} of what {file} holds, which is {there} (record it again)"
        _refuse(document, path, text)
