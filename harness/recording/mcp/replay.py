"""Finds the recorded exchange that answers a message to an MCP server, and makes the error if none does."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import CassetteError, CassetteMismatch, CassetteMissing
from harness.recording.difference import differences, similarity
from harness.recording.interactions import Exchange
from harness.recording.matching import Matcher
from harness.secrets.encodings import match_placeholders
from harness.world.mcp.wire import Message, handshake_versions, is_request, is_response

# Versions of the SDK differ in how often they send these requests.
_REPEATABLE = frozenset({"initialize", "tools/list"})


class RecordedExchanges:
    """The recorded exchanges with a server. Each answers once, except handshakes and lists of tools."""

    def __init__(
        self, exchanges: Sequence[Exchange], server: str, hint: str, file: str, matcher: Matcher
    ) -> None:
        self.exchanges, self.matcher = exchanges, matcher
        self.server, self.hint, self.file = server, hint, file
        self._used: set[int] = set()
        self._by_key: defaultdict[str, list[int]] = defaultdict(list)
        for index, exchange in enumerate(exchanges):
            self._by_key[message_key(exchange.sent, matcher)].append(index)

    def consume(self, message: Message, turn: int) -> tuple[Exchange | None, dict[str, str]]:
        """Consume the exchange of this turn that answers a message, if placeholders of secrets match any text.

        Returns:
            The exchange, None if there is none, and the texts at its placeholders by the names of the secrets.
        """
        index, secrets = self._find(message, turn)
        if index is None:
            return None, {}
        self._used.add(index)
        return self.exchanges[index], secrets

    def _find(self, message: Message, turn: int) -> tuple[int | None, dict[str, str]]:
        matches = self._by_key.get(message_key(message, self.matcher), [])
        for index in matches:
            if self._is_free(index, turn):
                return index, {}
        if matches and message.get("method") in _REPEATABLE:
            return matches[-1], {}
        for index, exchange in enumerate(self.exchanges):
            if self._is_free(index, turn) and exchange.sent.get("method") == message.get("method"):
                found = match_placeholders(_params(exchange.sent), _params(message))
                if found is not None:
                    return index, found
        return None, {}

    def _is_free(self, index: int, turn: int) -> bool:
        return index not in self._used and self.exchanges[index].turn in (None, turn)

    def unused(self) -> list[Exchange]:
        """Return the recorded requests that were not replayed."""
        return [e for i, e in enumerate(self.exchanges) if i not in self._used and is_request(e.sent)]

    def mismatch_error(self, request: Message, turn: int) -> CassetteError:
        """Return the error for a request that no exchange answers, with the nearest one and the differences."""
        if not self.exchanges:
            return CassetteMissing(self._text(f"nothing was recorded of MCP server {self.server!r}", []))
        asked = f"nothing recorded of MCP server {self.server!r} answers {_describe(request)} in turn {turn}"
        near = self._nearest(request, turn)
        if near is None:
            return CassetteMismatch(self._text(asked, [self._known_methods(request)]))
        exchange = self.exchanges[near]
        line, file = exchange.line, self.file
        place = "" if not line else f" ({file}:{line})" if file else f", line {line}"
        recorded = f"nearest recorded: {_describe(exchange.sent)}{place}"
        reasons = differences(_params(exchange.sent), _params(request)) or [self._unavailable_reason(near)]
        return CassetteMismatch(self._text(asked, [recorded, *(f"  - {reason}" for reason in reasons)]))

    def _text(self, asked: str, lines: list[str]) -> str:
        return "\n".join([asked, *(f"  {line}" for line in [*lines, self.hint] if line)])

    def _nearest(self, request: Message, turn: int) -> int | None:
        """Return the index of the most similar recorded request of this method, of the same tool if there is one."""
        asked = self._params_text(request)

        def rank(index: int) -> tuple[bool, float, bool, bool]:
            exchange = self.exchanges[index]
            alike = similarity(self._params_text(exchange.sent), asked)
            is_of_turn = exchange.turn in (None, turn)
            return _tool(exchange.sent) == _tool(request), alike, is_of_turn, index not in self._used

        requests = ((index, e.sent) for index, e in enumerate(self.exchanges) if is_request(e.sent))
        candidates = [index for index, sent in requests if sent["method"] == request["method"]]
        return max(candidates, key=rank, default=None)

    def _unavailable_reason(self, index: int) -> str:
        """Return the reason why an exchange with an equal request does not answer."""
        if index in self._used:
            times = len(self._by_key[message_key(self.exchanges[index].sent, self.matcher)])
            return f"it was recorded {'once' if times == 1 else f'{times} times'}, and is asked once more"
        return f"it was recorded in turn {self.exchanges[index].turn}"

    def _params_text(self, request: Message) -> str:
        return _sorted_json(self.matcher.params(_params(request)))

    def _known_methods(self, request: Message) -> str:
        methods = dict.fromkeys(str(e.sent["method"]) for e in self.exchanges if is_request(e.sent))
        return f"no {request['method']} was recorded, but {', '.join(methods)}"


def message_key(message: Message, matcher: Matcher) -> str:
    """Return a text that is equal for messages that match, whatever their ids."""
    if is_response(message):
        return _sorted_json([message.get("result"), message.get("error")])
    if message["method"] == "initialize":
        return "initialize"
    return _sorted_json([message["method"], is_request(message), matcher.params(_params(message))])


def _sorted_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)


def adapted_answer(exchange: Exchange, asked: Message) -> list[Message]:
    """Return the received messages of an exchange as answers to `asked`: with its id, progress token and version."""
    return [_adapted(message, exchange.sent, asked) for message in exchange.received]


def _adapted(message: Message, sent: Message, asked: Message) -> Message:
    if is_response(message):
        answer = {**message, "id": asked.get("id")}
        result = message.get("result")
        if asked.get("method") == "initialize" and isinstance(result, Mapping):
            version = result.get("protocolVersion")
            if version not in handshake_versions():
                version = _mapping(asked, "params").get("protocolVersion")
            answer["result"] = {**result, "protocolVersion": version}
        return answer
    token = progress_token(asked)
    params = _mapping(message, "params")
    if token is not None and params.get("progressToken") == progress_token(sent) is not None:
        return {**message, "params": {**params, "progressToken": token}}
    return message


def progress_token(request: Message) -> Any:
    """Return the token by which a server reports progress with a request; None if it was not asked to."""
    return _mapping(_mapping(request, "params"), "_meta").get("progressToken")


def _params(message: Message) -> dict[str, Any]:
    return {key: value for key, value in _mapping(message, "params").items() if key != "_meta"}


def _mapping(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = of.get(key)
    return value if isinstance(value, Mapping) else {}


def _tool(request: Message) -> Any:
    return _params(request).get("name")


def _describe(request: Message) -> str:
    tool = _tool(request) if request["method"] == "tools/call" else None
    return str(request["method"]) if tool is None else f"{request['method']} of {tool!r}"
