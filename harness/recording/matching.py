"""Matches requests with recorded ones: two requests match if they have the same canonical form.

Method, host, path, query and body are compared; headers, scheme and port are not. In a JSON body, the order of keys,
the spelling of numbers and ids that differ from run to run (`harness.recording.ids`) are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from harness.interception.messages import Request
from harness.recording.bodies import number, read_body
from harness.recording.ids import without_ids
from harness.source.display import nearest

FIELDS: Final = ("method", "host", "path", "query", "body")


class Matcher:
    """Compares requests.

    Args:
        ignore: the parts that are not compared: `method`, `host`, `path`, `query` or `body` as a whole, one parameter
            (`query.ts`), a value in the body (`body.metadata.user`, `body.messages.*.name`; `*` is any key or item, a
            number is the index of an item), or a value in the params of MCP requests (`mcp.arguments.session`).

    Raises:
        ValueError: an item of `ignore` has none of these forms.
    """

    def __init__(self, ignore: Sequence[str] = ()) -> None:
        paths = [_ignored(text) for text in ignore]
        self._whole = {path[0] for path in paths if len(path) == 1}
        self._query = {path[1] for path in paths if path[0] == "query" and len(path) == 2}
        self._body = [path[1:] for path in paths if path[0] == "body" and len(path) > 1]
        self._mcp = [path[1:] for path in paths if path[0] == "mcp"]

    def key(self, request: Request) -> str:
        """Return a hash of the request: equal for requests that match, and only for these."""
        canonical, kind = self._canonical(request)
        text = json.dumps([kind, canonical], sort_keys=True, separators=(",", ":"))
        return blake2b(text.encode("ascii"), digest_size=16).hexdigest()

    def canonical(self, request: Request) -> dict[str, Any]:
        """Return `{method, host, path, query, body}` as plain data.

        A part that is ignored is None; an ignored value inside the body is left out. `query` is a sorted list of
        `[name, value]`. `body` is JSON, a form as a mapping, the parts of a multipart body as a list, a text, or the
        number and hash of other bytes.
        """
        return self._canonical(request)[0]

    def params(self, params: Mapping[str, Any]) -> Any:
        """Return the canonical params of an MCP request, as JSON data: equal for requests that match."""
        try:
            text = json.dumps(params, default=str)
            value = json.loads(text, parse_float=number)
            for path in self._mcp:
                _remove(value, path)
            return without_ids(value, text.encode())
        except RecursionError:
            return repr(params)

    def _canonical(self, request: Request) -> tuple[dict[str, Any], str]:
        url = _split(request.url)
        query = sorted([name, value] for name, value in parse_qsl(url.query, keep_blank_values=True))
        kind, body = ("", None) if "body" in self._whole else self._read(request.body)
        canonical = {
            "method": request.method.upper(),
            "host": _host(url),
            "path": url.path or "/",
            "query": [pair for pair in query if pair[0] not in self._query],
            "body": body,
        }
        return canonical | dict.fromkeys(self._whole), kind

    def _read(self, body: bytes) -> tuple[str, Any]:
        kind, value = read_body(body)
        if kind not in ("json", "form"):
            return kind, value
        try:
            for path in self._body:
                _remove(value, path)
            if kind == "json":
                return kind, without_ids(value, body)
        except RecursionError:
            return "text", body.decode("utf-8", "replace")
        return kind, value


# ---------------------------------------------------------------- ignored parts

_IGNORABLE: Final = (
    "method",
    "host",
    "path",
    "query",
    "query.NAME",
    "body",
    "body.KEY",
    "body.LIST.*.KEY",
    "mcp.KEY",
)


def _ignored(text: str) -> tuple[str, ...]:
    field, dot, rest = text.partition(".")
    if field == "query" and dot and rest:
        return field, rest  # a parameter name may contain dots
    path = tuple(text.split("."))
    known = (*FIELDS, "mcp")
    if field not in known or not all(path) or (field not in ("body", "mcp") and dot) or path == ("mcp",):
        meant = nearest(field, known) if field not in known else None
        hint = f"did you mean '{meant}'?" if meant else f"known: {', '.join(_IGNORABLE)}"
        if field in ("header", "headers"):
            hint = "headers are never compared"
        raise ValueError(f"'{text}' is not a part of a request that can be ignored; {hint}")
    return path


def _remove(value: Any, path: Sequence[str]) -> None:
    """Remove the value at `path` from parsed data, in place. A list item becomes None, so that indices are kept."""
    step, rest = path[0], path[1:]
    if step == "*" and not rest and isinstance(value, dict | list):
        value.clear()
    elif isinstance(value, dict):
        for key in list(value) if step == "*" else [step]:
            if rest:
                _remove(value.get(key), rest)
            else:
                value.pop(key, None)
    elif isinstance(value, list):
        for at in range(len(value)) if step == "*" else _index(step, len(value)):
            if rest:
                _remove(value[at], rest)
            else:
                value[at] = None


def _index(step: str, length: int) -> Sequence[int]:
    return [int(step)] if step.isdecimal() and len(step) < 10 and int(step) < length else []


# ---------------------------------------------------------------- URLs


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # such as a bracket that is not closed
        return SplitResult("", "", url, "", "")


def _host(url: SplitResult) -> str:
    return (url.hostname or "").lower()
