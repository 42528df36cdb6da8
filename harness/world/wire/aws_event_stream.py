"""The framing of streamed answers of AWS: binary messages with lengths, headers and checksums.

A message is here an object with one field: the type of the event, with its payload.
Source: https://smithy.io/2.0/aws/amazon-eventstream.html
"""

from __future__ import annotations

import json
from struct import pack, unpack
from typing import Final
from zlib import crc32

from harness.world.wire.format import Framing, Json, compact

_PRELUDE: Final = 12
_CHECKSUM: Final = 4
_TEXT: Final = 7
"""The type of a header whose value is a text."""


def message(kind: str, payload: Json) -> bytes:
    """Return a message with an event."""
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        pack(">B", len(name)) + name.encode() + pack(">BH", _TEXT, len(value)) + value.encode()
        for name, value in named.items()
    )
    body = compact(payload).encode()
    lengths = pack(">II", _PRELUDE + len(headers) + len(body) + _CHECKSUM, len(headers))
    written = lengths + pack(">I", crc32(lengths)) + headers + body
    return written + pack(">I", crc32(written))


def _messages(stream: bytes) -> list[Json]:
    """Return the messages of a stream; an empty list for any other body."""
    found: list[Json] = []
    while len(stream) > _PRELUDE:
        total, size, checksum = unpack(">III", stream[:_PRELUDE])
        if checksum != crc32(stream[:8]):
            break
        headers, body = stream[_PRELUDE : _PRELUDE + size], stream[_PRELUDE + size : total - _CHECKSUM]
        named = _headers(headers)
        kind = named.get(":event-type") or named.get(":exception-type")
        if kind is not None:
            found.append({kind: json.loads(body)})
        stream = stream[total:]
    return found


def _headers(written: bytes) -> dict[str, str]:
    """Return the headers whose value is a text, up to the first other one."""
    named: dict[str, str] = {}
    while written:
        start = 1 + written[0]
        name, kind = written[1:start].decode(), written[start]
        if kind != _TEXT:
            break
        (size,) = unpack(">H", written[start + 1 : start + 3])
        named[name] = written[start + 3 : start + 3 + size].decode()
        written = written[start + 3 + size :]
    return named


def _damaged(part: bytes) -> bytes:
    """Return a message whose checksum is wrong."""
    return part[:-1] + bytes([part[-1] ^ 1])


AWS_EVENTS: Final = Framing("application/vnd.amazon.eventstream", _messages, _damaged)
