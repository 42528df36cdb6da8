"""Matches requests with recorded ones: two requests match if they have the same canonical form.

Method, host, path, query and body are compared; headers, scheme and port are not. In a JSON body, the order of keys,
the spelling of numbers and ids that differ from run to run are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, parse_qsl, urlsplit

from harness.interception.messages import Request
from harness.source.display import nearest


def read_body(body: bytes) -> tuple[str, Any]:
    """Return the kind of a body and its parsed value.

    The kinds are `empty`, `json`, `form` (a mapping), `multipart` (a list of parts), `text`, and `bytes` (the value
    is a text with their number and hash).
    """
    readings = ((kind, read(body)) for kind, read in _READERS)
    return next(found for found in readings if found[1] is not None)


def _json(body: bytes) -> Any:
    if body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(body, parse_float=number)
    except (ValueError, RecursionError):
        return None


def number(text: str) -> int | float:
    """Parse a JSON number, so that `1`, `1.0` and `1e0` are equal."""
    number = float(text)
    return int(number) if number.is_integer() else number


_BOUNDARY: Final = re.compile(rb"--([!-~][ -~]{0,69})\r\n")


def _multipart(body: bytes) -> list[dict[str, Any]] | None:
    """Return the parts with their headers and contents; None if the body is not multipart."""
    found = _BOUNDARY.match(body)
    if found is None or not body.rstrip(b"\r\n").endswith(b"\r\n--" + found[1] + b"--"):
        return None
    parts = (b"\r\n" + body).split(b"\r\n--" + found[1])[1:-1]
    return [_part(part.removeprefix(b"\r\n")) for part in parts]


def _part(part: bytes) -> dict[str, Any]:
    head, _, content = (b"\r\n" + part).partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines)
    headers = sorted([name.strip().lower(), value.strip()] for name, _, value in pairs)
    text = _text(content)
    return {"headers": headers, "content": _digest(content) if text is None else text}


_FORM: Final = re.compile(
    rb"[\w.*+%~!$'(),;:@/?\[\]-]+=[\w.*+%~!$'(),;:@/?\[\]=-]*(?:&[\w.*+%~!$'(),;:@/?\[\]=-]*)*"
)


def _form(body: bytes) -> dict[str, Any] | None:
    if not _FORM.fullmatch(body):
        return None
    try:
        form = parse_qs(body.decode("ascii"), keep_blank_values=True)
    except ValueError:
        return None
    return {name: values[0] if len(values) == 1 else values for name, values in form.items()}


def _text(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _digest(body: bytes) -> str:
    return f"{len(body)} bytes, BLAKE2 {blake2b(body, digest_size=16).hexdigest()}"


_READERS: Final[Sequence[tuple[str, Callable[[bytes], Any]]]] = (
    ("empty", lambda body: None if body else ""),
    ("json", _json),
    ("multipart", _multipart),
    ("form", _form),
    ("text", _text),
    ("bytes", _digest),
)


_MAX_DEPTH: Final = 200  # deeper JSON is compared as text

_HEX: Final = "[0-9a-fA-F]"
_UUID: Final = re.compile(rf"(?<![0-9A-Za-z]){_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?![0-9A-Za-z])")
_LIKE_UUID: Final = re.compile(rf"-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}")
_LIKE_UUID_BYTES: Final = re.compile(_LIKE_UUID.pattern.encode())

_WORDS: Final = ("tool_call", "call", "tool_use", "request", "client_request", "trace", "span", "message")
_ALWAYS: Final = frozenset(
    [f"{word}_id" for word in _WORDS]
    + ["toolCallId", "callId", "toolUseId", "requestId", "traceId", "spanId", "messageId"]
)
_GENERATED: Final = re.compile(r"(?:call|toolu|chatcmpl|msg|resp|fc|rs|run|lc_run)[_-][\w-]{6,}")
_CONVERSATION: Final = re.compile("function|tool|call|message|reasoning|item", re.IGNORECASE)


# Top-level keys that only conversations and JSON-RPC have.
_CONVERSATION_KEYS: Final = frozenset({"messages", "input", "contents", "prompt", "jsonrpc"})
_TRACE_KEYS: Final = frozenset(
    ["request_id", "client_request_id", "trace_id", "span_id", "requestId", "traceId", "spanId"]
)


def without_ids(value: Any, body: bytes) -> Any:
    """Return parsed JSON with its variable ids replaced. Lists and mappings are changed in place.

    Args:
        value: the parsed JSON.
        body: its text.

    Raises:
        RecursionError: nested more than 200 levels deep.
    """
    if isinstance(value, dict) and _CONVERSATION_KEYS.intersection(value):
        return _IdReplacer(_is_id, has_uuids=_LIKE_UUID_BYTES.search(body) is not None).replace(value)
    return _IdReplacer(lambda key, item, _: key in _TRACE_KEYS and isinstance(item, str)).replace(value)


class _IdReplacer:
    """Replaces ids by `<id 1>`, `<id 2>` …, in the order of appearance with keys sorted."""

    def __init__(self, is_id: Callable[[str, Any, dict[str, Any]], bool], *, has_uuids: bool = False) -> None:
        self._is_id = is_id
        self._seen: dict[Any, str] = {}
        self._has_uuids = has_uuids

    def replace(self, value: Any, depth: int = 0) -> Any:
        """Return the value with its ids replaced. Lists and mappings are changed in place."""
        if depth > _MAX_DEPTH:
            raise RecursionError
        if isinstance(value, str):
            return self._without_uuids(value) if self._has_uuids and len(value) >= 36 else value
        if isinstance(value, list):
            for at, item in enumerate(value):
                if not isinstance(item, int):
                    value[at] = self.replace(item, depth + 1)
        elif isinstance(value, dict):
            for key in sorted(value):
                item = value[key]
                is_id = self._is_id(key, item, value)
                value[key] = self._ordinal(item) if is_id else self.replace(item, depth + 1)
        return value

    def _ordinal(self, given: Any) -> str:
        return self._seen.setdefault(given, f"<id {len(self._seen) + 1}>")

    def _without_uuids(self, text: str) -> str:
        if _LIKE_UUID.search(text) is None:  # much faster than the substitution
            return text
        return _UUID.sub(lambda found: self._ordinal(found[0].lower()), text)


def _is_id(key: str, value: Any, holder: dict[str, Any]) -> bool:
    """Return True if `holder[key]` is an id that may differ from run to run.

    A value under `id` may also be part of the question, as in `{"id": 42}` for a customer. It is an id if the other
    keys are those of a message or of JSON-RPC, or if it looks generated.
    """
    if key in _ALWAYS:
        return isinstance(value, str) and bool(value)
    if key != "id":
        return False
    if "jsonrpc" in holder:
        return isinstance(value, str | int)
    if not isinstance(value, str) or not value:
        return False
    kind = holder.get("type", holder.get("kind"))
    return (
        "role" in holder
        or "function" in holder
        or (isinstance(kind, str) and _CONVERSATION.search(kind) is not None)
        or _GENERATED.fullmatch(value) is not None
        or _UUID.fullmatch(value) is not None
    )


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
            "host": (url.hostname or "").lower(),
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

_IGNORABLE: Final = "method, host, path, query, query.NAME, body, body.KEY, body.LIST.*.KEY, mcp.KEY"


def _ignored(text: str) -> tuple[str, ...]:
    field, dot, rest = text.partition(".")
    if field == "query" and dot and rest:
        return field, rest  # a parameter name may contain dots
    path = tuple(text.split("."))
    known = (*FIELDS, "mcp")
    if field not in known or not all(path) or (field not in ("body", "mcp") and dot) or path == ("mcp",):
        meant = nearest(field, known) if field not in known else None
        hint = f"did you mean '{meant}'?" if meant else f"known: {_IGNORABLE}"
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
