"""Reads the files of a recording. What does not fit is refused, with its place.

http.yaml may also be a cassette that vcrpy recorded alone, without meta.yaml: its interactions then took no time and
answer in any turn.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final

from harness.interception.headers import kept_response_headers
from harness.interception.messages import Request, Response
from harness.recording.files import FORMAT, HTTP, MCP, META
from harness.recording.interactions import About, Exchange, HumanReply, Interaction, Recording
from harness.recording.yaml_nodes import Node, parse

MAX_BYTES: Final = 100 * 1024 * 1024


def read(files: Mapping[str, bytes], shown: Callable[[str], str]) -> Recording:
    """The recording in these files, by name. `shown` is what messages call a file.

    Raises:
        CassetteBroken: they do not hold one.
    """
    nodes = {name: parse(data, shown(name)) for name, data in files.items()}
    answered = _http(nodes[HTTP]) if HTTP in nodes else []
    servers = _mcp(nodes[MCP]) if MCP in nodes else {}
    if META not in nodes:
        return Recording(tuple(answered), servers)
    meta = nodes[META].mapping("meta.yaml", _META_KEYS, need=["format"])
    if meta["format"].text("format") != FORMAT:
        meta["format"].refuse(f"a format that is not known here: '{meta['format'].value}', not '{FORMAT}'")
    timed = _timed_http(nodes[META], answered)
    for name in (HTTP, MCP):
        if name in nodes and "version" not in nodes[name].mapping(name):
            # The last text of a file that is cut off may look whole; what stands at the end tells.
            nodes[name].refuse("'version' is missing, which stands at the end: is the file cut off?")
    return Recording(
        timed,
        _timed_mcp(nodes[META], servers),
        tuple(_reply(node) for node in _list(nodes[META], "human")),
        _about(meta),
    )


# ---------------------------------------------------------------- http.yaml

_CASSETTE_KEYS: Final = ("interactions", "version", "metadata", "recorded_with")
_INTERACTION_KEYS: Final = ("request", "response", "recorded_at")
_REQUEST_KEYS: Final = ("method", "uri", "body", "headers")
# The second line is of vcrpy's cassettes of aiohttp and of httpx before 8.
_RESPONSE_KEYS: Final = ("status", "headers", "body", "protocol", "version",
                         "url", "status_code", "http_version", "content")  # fmt: skip
_BODY_KEYS: Final = ("string", "base64_string", "encoding")


def _http(root: Node) -> list[Interaction]:
    cassette = root.mapping("http.yaml", _CASSETTE_KEYS, need=["interactions"])
    if "version" in cassette and cassette["version"].data() != 1:
        cassette["version"].refuse(f"a cassette of version {cassette['version'].data()!r}, not 1")
    return [_interaction(node) for node in cassette["interactions"].items("interactions")]


def _interaction(node: Node) -> Interaction:
    parts = node.mapping("an interaction", _INTERACTION_KEYS, need=["request", "response"])
    return Interaction(_request(parts["request"]), _response(parts["response"]), line=node.line)


def _request(node: Node) -> Request:
    parts = node.mapping("a request", _REQUEST_KEYS, need=["method", "uri"])
    headers: dict[str, str] = {}
    for name, value in _headers(parts.get("headers")):
        headers.setdefault(name, value)
    body = _body(parts["body"])[0] if "body" in parts else b""
    return Request(parts["method"].text("the method"), parts["uri"].text("the URL"), headers, body)


def _response(node: Node) -> Response:
    parts = node.mapping("a response", _RESPONSE_KEYS, need=["headers"])
    if "status" in parts:
        status = parts["status"].mapping("the status", need=["code"])
        code, message = status["code"], status.get("message")
    elif "status_code" in parts:
        code, message = parts["status_code"], None
    else:
        node.refuse("a response lacks 'status'")
    reason = "" if message is None or message.is_null else message.text("the message of the status")
    body = parts.get("body", parts.get("content"))
    content, is_text = (b"", False) if body is None else _body(body)
    headers = _headers(parts["headers"])
    if not is_text and content:
        content = _decompressed(content, dict(headers).get("content-encoding", ""), node)
    return Response(code.whole("the status", 100), reason, kept_response_headers(headers), content)


def _headers(node: Node | None) -> list[tuple[str, str]]:
    """Names in lower case; a header that came more than once has a list of values."""
    if node is None or node.is_null:
        return []
    return [
        (name.lower(), _header(value))
        for name, values in node.mapping("the headers").items()
        for value in (values.value if isinstance(values.value, list) else [values])
    ]


def _header(node: Node) -> str:
    return node.content("a header").decode("utf-8" if node.tag != "binary" else "latin-1")


def _body(node: Node) -> tuple[bytes, bool]:
    """The bytes of a body, and whether they stand there as text."""
    if not isinstance(node.value, dict):
        return node.content("a body"), node.tag != "binary"
    parts = node.mapping("a body", _BODY_KEYS)
    if "base64_string" in parts:
        text = parts["base64_string"]
        try:
            return binascii.a2b_base64(text.content("base64_string")), False
        except ValueError as error:
            text.refuse(f"this is not base64: {error}")
    if "string" not in parts:
        node.refuse("a body lacks 'string'")
    string = parts["string"]
    content, is_text = string.content("a body"), string.tag != "binary"
    encoding = parts["encoding"].text("the encoding").lower() if "encoding" in parts else "utf-8"
    if is_text and encoding in ("iso-8859-1", "latin-1", "ascii-8bit"):
        content = content.decode("utf-8").encode("latin-1", "replace")
    return content, is_text


def _decompressed(body: bytes, encoding: str, node: Node) -> bytes:
    """The body without its compression; as it is when it turns out to have none."""
    encoding = encoding.strip().lower()
    if encoding in ("br", "zstd", "compress"):
        node.refuse(
            f"the body is compressed ('{encoding}')", "record it with decode_compressed_response=True"
        )
    for bits in {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}.get(encoding, ()):
        inflater = zlib.decompressobj(bits)
        try:
            found = inflater.decompress(body, MAX_BYTES)
        except zlib.error:
            continue
        if inflater.unconsumed_tail:
            node.refuse(f"the body is larger than {MAX_BYTES // 1024**2} MiB")
        return found
    return body


# ---------------------------------------------------------------- mcp.yaml


def _mcp(root: Node) -> dict[str, tuple[Exchange, ...]]:
    servers = root.mapping("mcp.yaml", ["servers", "version"], need=["servers"])["servers"].mapping("servers")
    return {
        name: tuple(_exchange(one) for one in node.items(f"the messages of '{name}'"))
        for name, node in servers.items()
    }


def _exchange(node: Node) -> Exchange:
    parts = node.mapping("an exchange", ["sent", "received"], need=["sent"])
    received = parts["received"].items("received") if "received" in parts else []
    return Exchange(_message(parts["sent"]), tuple(_message(one) for one in received), line=node.line)


def _message(node: Node) -> dict[str, Any]:
    node.mapping("a message")
    message: dict[str, Any] = node.data()
    return message


# ---------------------------------------------------------------- meta.yaml

_META_KEYS: Final = (
    "format", "scenario", "recorded", "manifests", "versions", "environment", "http", "mcp", "human"
)  # fmt: skip
_TIME_KEYS: Final = ("turn", "duration_s")
_HTTP_KEYS: Final = (*_TIME_KEYS, "chunks_s", "failure", "request")


def _timed_http(root: Node, answered: Sequence[Interaction]) -> tuple[Interaction, ...]:
    """The interactions with what meta.yaml tells of them, among them requests that nothing answered."""
    entries = [
        (node, node.mapping("an entry of http", _HTTP_KEYS, need=["duration_s"]))
        for node in _list(root, "http")
    ]
    _even(root, "http", HTTP, len(answered), sum("request" not in parts for _, parts in entries))
    left = iter(answered)
    return tuple(_told(node, parts, left) for node, parts in entries)


def _told(node: Node, parts: Mapping[str, Node], left: Iterator[Interaction]) -> Interaction:
    one = Interaction(_request(parts["request"]), None) if "request" in parts else next(left)
    return replace(
        one,
        turn=_turn(parts),
        duration_s=parts["duration_s"].number("a duration"),
        chunks_s=tuple(at.number("a part's time") for at in _list(node, "chunks_s")),
        failure=parts["failure"].text("the failure") if "failure" in parts else "",
    )


def _timed_mcp(root: Node, servers: Mapping[str, tuple[Exchange, ...]]) -> dict[str, tuple[Exchange, ...]]:
    meta = root.mapping("meta.yaml")
    entries = meta["mcp"].mapping("mcp.yaml", servers) if "mcp" in meta else {}
    found: dict[str, tuple[Exchange, ...]] = {}
    for name, exchanges in servers.items():
        told = entries[name].items(name) if name in entries else []
        _even(entries.get(name, root), f"mcp.{name}", MCP, len(exchanges), len(told))
        times = [node.mapping("an entry of mcp", _TIME_KEYS, need=["duration_s"]) for node in told]
        found[name] = tuple(
            replace(one, turn=_turn(parts), duration_s=parts["duration_s"].number("a duration"))
            for one, parts in zip(exchanges, times, strict=True)
        )
    return found


def _even(node: Node, key: str, file: str, there: int, told: int) -> None:
    """Both files tell of the same messages."""
    if there != told:
        if isinstance(node.value, dict) and key in node.value:
            node = node.value[key]
        node.refuse(f"'{key}' tells of {told} of what {file} holds, which is {there}", "record it again")


def _turn(parts: Mapping[str, Node]) -> int | None:
    return None if "turn" not in parts or parts["turn"].is_null else parts["turn"].whole("the turn", 1)


def _reply(node: Node) -> HumanReply:
    parts = node.mapping(
        "an entry of human", ["turn", "node", "asked", "reply"], need=["node", "asked", "reply"]
    )
    return HumanReply(
        parts["node"].text("the node"), parts["asked"].data(), parts["reply"].data(), _turn(parts)
    )


def _about(meta: Mapping[str, Node]) -> About:
    return About(
        meta["scenario"].text("scenario") if "scenario" in meta else "",
        _day(meta["recorded"]) if "recorded" in meta else "",
        *(_texts(meta, key) for key in ("manifests", "versions", "environment")),
    )


def _day(node: Node) -> str:
    text = node.text("recorded")
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        node.refuse(f"recorded must be a day such as 2026-01-31, not '{text}'")


def _texts(meta: Mapping[str, Node], key: str) -> dict[str, str]:
    entries = meta[key].mapping(key) if key in meta else {}
    return {name: node.text(f"{key}.{name}") for name, node in entries.items()}


def _list(node: Node, key: str) -> Sequence[Node]:
    """The items under a key of a mapping, none when it is not there."""
    return node.value[key].items(key) if isinstance(node.value, dict) and key in node.value else ()
