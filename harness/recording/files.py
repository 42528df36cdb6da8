"""Writes the files of a recording: http.yaml (a vcrpy cassette), mcp.yaml, and meta.yaml for all other data.

Everything that differs between two recordings of the same traffic, such as durations and dates, is in meta.yaml.
`harness.recording.reading` reads these files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import yaml
from yaml.emitter import ScalarAnalysis

from harness.errors import CassetteError
from harness.interception.messages import Request, Response
from harness.interception.patches import grouped, kept_request_headers, kept_response_headers
from harness.recording.interactions import Exchange, Interaction, Recording
from harness.source.location import MAX_DEPTH

_HIDDEN: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff"
_NO_BLOCK: Final = re.compile(rf"[{_HIDDEN}]|[ \t](?:\n|\Z)|\A\t|\A\n*\Z")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Block(str):
    """A text that is written as a literal block, even if it is one line."""

    __slots__ = ()


class FlowSequence(tuple[Any, ...]):
    """A list of numbers that is written on one line."""

    __slots__ = ()


def dump(value: Mapping[str, Any]) -> bytes:
    """Return the mapping as a YAML document in UTF-8. Keys keep their order.

    Values may be JSON data, bytes, `Block` and `FlowSequence`. Lone surrogates, which UTF-8 cannot encode, become
    U+FFFD.

    Raises:
        ValueError: nested more deeply than documents may be, or a value has another type.
    """
    _check_depth(value, 1)
    try:
        return yaml.dump(
            value, Dumper=_Dumper, encoding="utf-8", allow_unicode=True, sort_keys=False, width=_NO_WRAPPING
        )
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


_NO_WRAPPING: Final = 2**31  # with wrapping, one changed word would move all lines after it


def _check_depth(value: Any, depth: int) -> None:
    if isinstance(value, Mapping | list | tuple):
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
        for item in value.values() if isinstance(value, Mapping) else value:
            _check_depth(item, depth + 1)


class _Dumper(yaml.SafeDumper):
    """The pure-Python dumper (libyaml's escapes emoji), without aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        # PyYAML would not write a text with tabs as a block, and its analysis of long texts is slow.
        if getattr(self.event, "style", None) == "|":
            return ScalarAnalysis(scalar, False, True, False, False, False, True, True)
        return super().analyze_scalar(scalar)


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    style = None if "\n" not in text and not isinstance(text, Block) else "|"
    if _NO_BLOCK.search(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(Block, _represent_text)
_Dumper.add_representer(
    FlowSequence,
    lambda dumper, numbers: dumper.represent_sequence("tag:yaml.org,2002:seq", numbers, flow_style=True),
)


HTTP: Final = "http.yaml"
MCP: Final = "mcp.yaml"
META: Final = "meta.yaml"
NAMES: Final = (HTTP, MCP, META)
Format = Literal["harness-cassette/1"]
FORMAT: Final[Format] = "harness-cassette/1"


def write(recording: Recording) -> dict[str, bytes]:
    """Return the content of a recording's files by file name, without files that would be empty.

    Raises:
        CassetteError: a value cannot be written, such as JSON that is nested too deeply.
    """
    answered = [one for one in recording.http if one.response is not None]
    servers = {name: list(recording.mcp[name]) for name in sorted(recording.mcp) if recording.mcp[name]}
    files: dict[str, Mapping[str, Any]] = {}
    if answered:
        files[HTTP] = {"interactions": [_interaction(one) for one in answered], "version": 1}
    if servers:
        entries = {
            name: [{"sent": one.sent, "received": list(one.received)} for one in exchanges]
            for name, exchanges in servers.items()
        }
        files[MCP] = {"servers": entries, "version": 1}
    files[META] = _meta(recording, servers)
    try:
        return {name: dump(content) for name, content in files.items()}
    except ValueError as error:
        raise CassetteError(f"the recording cannot be written: {error}") from None


# ---------------------------------------------------------------- http.yaml


def _interaction(one: Interaction) -> dict[str, Any]:
    request, response = one.request, one.response or Response(0)
    headers = kept_request_headers(request.headers)
    return {
        "request": _request(request) | {"headers": {name: [value] for name, value in headers.items()}},
        "response": {
            "status": {"code": response.status, "message": response.reason},
            "headers": grouped(kept_response_headers(response.headers)),
            "body": {"string": _text(response.body)},
        },
    }


def _request(request: Request) -> dict[str, Any]:
    return {"method": request.method, "uri": request.url, "body": _indented(_text(request.body))}


def _text(body: bytes) -> Block | bytes:
    try:
        return Block(body.decode("utf-8"))
    except UnicodeDecodeError:
        return body


_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def _indented(body: Block | bytes) -> Block | bytes:
    """Indent a JSON body, so that a changed prompt is a changed line; return any other body unchanged."""
    if not isinstance(body, str) or not body.lstrip().startswith(("{", "[")):
        return body
    try:
        value = json.loads(body, object_pairs_hook=_unique)
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return body
    return Block(_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


# ---------------------------------------------------------------- meta.yaml


def _meta(recording: Recording, servers: Mapping[str, list[Exchange]]) -> dict[str, Any]:
    metadata = recording.metadata
    meta = {
        "format": FORMAT,
        "scenario": metadata.scenario,
        "recorded": metadata.recorded,
        "now": metadata.now,
        "imported": metadata.imported,
        "manifests": dict(sorted(metadata.manifests.items())),
        "versions": dict(sorted(metadata.versions.items())),
        "environment": dict(sorted(metadata.environment.items())),
        "http": [_entry(one) for one in recording.http],
        "mcp": {name: [_timed(one) for one in exchanges] for name, exchanges in servers.items()},
        "human": [
            _turn(one.turn) | {"node": one.node, "asked": one.asked, "reply": one.reply}
            for one in recording.human
        ],
    }
    return {key: value for key, value in meta.items() if value}


def _entry(one: Interaction) -> dict[str, Any]:
    entry = _timed(one)
    if one.chunks_s:
        entry["chunks_s"] = FlowSequence(one.chunks_s)
    if one.failure or one.response is None:
        entry["failure"] = one.failure
    if one.response is None:
        entry["request"] = _request(one.request)
    return entry


def _timed(one: Interaction | Exchange) -> dict[str, Any]:
    return _turn(one.turn) | {"duration_s": one.duration_s}


def _turn(turn: int | None) -> dict[str, Any]:
    return {} if turn is None else {"turn": turn}
