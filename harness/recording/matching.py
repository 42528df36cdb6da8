"""When a request is a recorded one: both have the same canonical form.

Compared are method, host, path, query and body; a header, the scheme and the port never matter. In a JSON body
the order of keys, the spelling of numbers and ids that differ from run to run do not matter either: ids become
ordinals by first appearance, so that which reply belongs to which call still counts. In conversations with models and
in JSON-RPC these are all ids of calls and messages, and UUIDs; in other bodies, where an id may be what is asked for,
only those of requests and traces.

How a body is read shows in the body itself, not in a header: JSON, multipart, a form, text, or bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, parse_qsl, urlsplit

from harness.interception.messages import Request
from harness.source.suggest import nearest

FIELDS: Final = ("method", "host", "path", "query", "body")


class Matcher:
    """Tells equal requests from different ones.

    `ignore` names what does not count: `host`, `query.ts`, `body.metadata.user`, `body.messages.*.name` (`*` is any
    key or item, a number is an item), or all of `method`, `path`, `query` or `body`; of the params of MCP requests
    `mcp.arguments.session`.

    Raises:
        ValueError: something in `ignore` is none of these.
    """

    def __init__(self, ignore: Sequence[str] = ()) -> None:
        paths = [_ignored(text) for text in ignore]
        self._whole = {path[0] for path in paths if len(path) == 1}
        self._query = {path[1] for path in paths if path[0] == "query" and len(path) == 2}
        self._body = [path[1:] for path in paths if path[0] == "body" and len(path) > 1]
        self._mcp = [path[1:] for path in paths if path[0] == "mcp"]

    def key(self, request: Request) -> str:
        """A short text that is the same for requests that match, and for no others."""
        canonical, kind = self._canonical(request)
        text = json.dumps([kind, canonical], sort_keys=True, separators=(",", ":"))
        return blake2b(text.encode("ascii"), digest_size=16).hexdigest()

    def canonical(self, request: Request) -> dict[str, Any]:
        """`{method, host, path, query, body}` as plain data; what is ignored is None, or left out inside the body.

        `query` is a list of sorted `[name, value]`. `body` is JSON, a form as a mapping, the parts of a multipart
        body as a list, a text, or of other bytes their number and hash.
        """
        return self._canonical(request)[0]

    def params(self, params: Mapping[str, Any]) -> Any:
        """The params of an MCP request as they are compared: JSON, equal for those that match."""
        try:
            text = json.dumps(params, default=str)
            value = json.loads(text, parse_float=_number)
            for path in self._mcp:
                _remove(value, path)
            return _without_ids(value, text.encode())
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
        readings = ((kind, read(body)) for kind, read in _READERS)
        kind, value = next(found for found in readings if found[1] is not None)
        if kind not in ("json", "form"):
            return kind, value
        try:
            for path in self._body:
                _remove(value, path)
            if kind == "json":
                return kind, _without_ids(value, body)
        except RecursionError:
            return "text", body.decode("utf-8", "replace")
        return kind, value


# ---------------------------------------------------------------- what is ignored

_FORMS: Final = (
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
        return field, rest  # the name of a parameter may have dots
    path = tuple(text.split("."))
    known = (*FIELDS, "mcp")
    if field not in known or not all(path) or (field not in ("body", "mcp") and dot) or path == ("mcp",):
        meant = nearest(field, known) if field not in known else None
        hint = f"did you mean '{meant}'?" if meant else f"known: {', '.join(_FORMS)}"
        if field in ("header", "headers"):
            hint = "headers never matter"
        raise ValueError(f"'{text}' is not a part of a request that can be ignored; {hint}")
    return path


def _remove(value: Any, path: Sequence[str]) -> None:
    """Take what is at `path` out of parsed data, in place. An item of a list becomes null: the others keep theirs."""
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


# ---------------------------------------------------------------- bodies


def _empty(body: bytes) -> str | None:
    return None if body else ""


def _json(body: bytes) -> Any:
    if body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(body, parse_float=_number)
    except (ValueError, RecursionError):
        return None


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


_BOUNDARY: Final = re.compile(rb"--([!-~][ -~]{0,69})\r\n")


def _multipart(body: bytes) -> list[dict[str, Any]] | None:
    """The parts, each with its headers and content; None when this is no multipart body."""
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
    ("empty", _empty),
    ("json", _json),
    ("multipart", _multipart),
    ("form", _form),
    ("text", _text),
    ("bytes", _digest),
)


# ---------------------------------------------------------------- ids

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


# What only the bodies of conversations have at the top.
_OF_CONVERSATIONS: Final = frozenset({"messages", "input", "contents", "prompt", "jsonrpc"})
_OF_TRACES: Final = frozenset(
    ["request_id", "client_request_id", "trace_id", "span_id", "requestId", "traceId", "spanId"]
)


def _without_ids(value: Any, body: bytes) -> Any:
    """JSON without the ids that differ from run to run. Changed in place."""
    if isinstance(value, dict) and _OF_CONVERSATIONS.intersection(value):
        return _Ids(_is_id, has_uuids=_LIKE_UUID_BYTES.search(body) is not None).hidden(value)
    return _Ids(lambda key, item, _: key in _OF_TRACES and isinstance(item, str)).hidden(value)


class _Ids:
    """Puts ordinals in the place of ids: `<id 1>` for the first that comes, keys in alphabetical order."""

    def __init__(self, is_id: Callable[[str, Any, dict[str, Any]], bool], *, has_uuids: bool = False) -> None:
        self._is_id = is_id
        self._seen: dict[Any, str] = {}
        self._has_uuids = has_uuids

    def hidden(self, value: Any, depth: int = 0) -> Any:
        """The value without its ids. Lists and mappings are changed in place."""
        if depth > _MAX_DEPTH:
            raise RecursionError
        if isinstance(value, str):
            return self._without_uuids(value) if self._has_uuids and len(value) >= 36 else value
        if isinstance(value, list):
            for at, item in enumerate(value):
                if not isinstance(item, int):
                    value[at] = self.hidden(item, depth + 1)
        elif isinstance(value, dict):
            for key in sorted(value):
                item = value[key]
                if self._is_id(key, item, value):
                    value[key] = self._ordinal(item)
                else:
                    value[key] = self.hidden(item, depth + 1)
        return value

    def _ordinal(self, given: Any) -> str:
        return self._seen.setdefault(given, f"<id {len(self._seen) + 1}>")

    def _without_uuids(self, text: str) -> str:
        if _LIKE_UUID.search(text) is None:  # much faster than the substitution
            return text
        return _UUID.sub(lambda found: self._ordinal(found[0].lower()), text)


def _is_id(key: str, value: Any, holder: dict[str, Any]) -> bool:
    """Whether the value is an id that may differ from run to run.

    What stands under `id` may also be what is asked for (`{"id": 42}`, a customer's number): it counts as such unless
    its neighbours show a piece of a conversation or of JSON-RPC, or it looks generated.
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
