"""Show the trace of a run as a conversation: prompts, replies, calls, updates and routes, grouped by node.

`rows` turns events into rows of data; `print_rows` prints them on a terminal of any width. The wording comes from
`harness.graph.narration`. Nothing is shown twice: of the messages of a call only the new ones, of an update only the
fields that changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harness.graph.narration import role_of, route_text, sentence, status_text
from harness.graph.trace import Event
from harness.report.encoding import encode
from harness.report.formatting import hanging, plural, seconds
from harness.source.display import columns, printable

if TYPE_CHECKING:
    from rich.console import Console

_MARGIN: Final = 12
"""Columns for times."""
_LABEL: Final = 11
"""Columns for labels."""
_NARROW: Final = 60
"""A terminal with fewer columns gets less indentation."""
_MIN_WIDTH: Final = 24
_MAX_LENGTH: Final = 800
_MAX_LINES: Final = 12
_GAP: Final = "(not in the export)"
_WORTH_FOLDING: Final = 40
"""A text is only folded if that saves more characters than the note about it takes."""
_STYLES: Final = {"": "", "node": "bold", "call": "cyan", "route": "magenta", "failure": "red"}
_LABELS: Final = {"failure": "red"}


class Row(NamedTuple):
    """One row of the conversation.

    at      time of the event, in virtual seconds
    kind    node, call, route, failure, or "" for a detail of the row above
    depth   level of indentation
    label   kind of `text`: `user`, `reply`, the name of a field; or ""
    text    may have several lines
    """

    at: float
    kind: str
    depth: int
    label: str
    text: str


def rows(events: Sequence[Event], kinds: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of a trace, in order. `kinds` maps node names to their kinds."""
    narrator = _Narrator(kinds)
    for event in events:
        yield from narrator.rows(event)


class _Narrator:
    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._speaker = ""
        self._calls: dict[int, Event] = {}
        self._shown: dict[int, Any] = {}
        self._known_texts: dict[str, str] = {}
        self._failure = ""
        self._state: dict[tuple[str, str], str] = {}

    def rows(self, event: Event) -> Iterator[Row]:
        """Yield the rows of one event."""
        at, text = event["at"], sentence(event, self._kinds)
        match event["event"]:
            case "input" | "resume" if event["graph"] == "":
                yield Row(at, "", 0, event["event"], _as_text(event["value"]) if "value" in event else _GAP)
            case "node_start" | "node_resume":
                self._speaker = event["graph"] + event["node"]
                yield Row(at, "node", 0, "", f"▸ {text or f'{self._speaker} (resumed)'}")
            case "call":
                yield from self._call(event, text)
            case "answer":
                yield from self._answer(event)
            case "node_end":
                yield from self._update(event)
            case "node_pause":
                yield from self._heading(event["graph"] + event["node"], at)
                values = [_as_text(value) for value in event["values"] if value is not None]
                asks = _GAP if "gap" in event else "and waits for an answer"
                yield Row(at, "", 1, "pauses", "\n".join(values) or asks)
            case "because" if not self._failure.endswith(event["message"]):  # else the row above says so
                yield from self._heading(event["graph"] + event["node"], at)
                yield Row(at, "failure", 1, event["then"], event["message"])
            case "end" if event["graph"] == "":
                yield from _end(event)
            case _:
                yield from _between_nodes(event, text)

    def _heading(self, node: str, at: float) -> Iterator[Row]:
        """Yield a heading if the previous row was of another node."""
        if node != self._speaker:
            self._speaker = node
            yield Row(at, "node", 0, "", f"▸ {node} (goes on)")

    def _call(self, event: Event, text: str) -> Iterator[Row]:
        request, at = event["request"], event["at"]
        yield from self._heading(event["node"], at)
        self._calls[event["call"]] = event
        yield Row(at, "call", 1, "", f"▸ {text}")
        yield from self._messages(request.get("messages", ()), at)
        args = request.get("args")
        if event["kind"] == "http" and isinstance(args, Mapping):  # `text` repeats `json`
            args = {
                key: value
                for key, value in args.items()
                if value and not (key == "text" and args.get("json"))
            }
        if args:
            yield Row(at, "", 2, "with", _as_text(args))
        if "gap" in event:
            yield Row(at, "", 2, "prompt" if event["kind"] == "llm" else "with", _GAP)
        if request.get("response_format") is not None:
            yield Row(at, "", 2, "format", _as_text(request["response_format"]))

    def _messages(self, messages: Sequence[Any], at: float) -> Iterator[Row]:
        """Yield the messages that were not shown yet, and the number of those that were."""
        known = 0
        for message in [*messages, None]:
            if message is not None and id(message) in self._shown:
                known += 1
                continue
            if known:
                yield Row(at, "", 2, "", f"… {plural(known, 'message')} as before")
                known = 0
            if message is not None:
                self._shown[id(message)] = message
                yield from self._message(message, at)

    def _message(self, message: Any, at: float) -> Iterator[Row]:
        if not _is_message(message):
            yield Row(at, "", 2, "message", _as_text(message))
            return
        role = role_of(message)
        texts = _message_texts(_content(message.get("content")), message.get("tool_calls") or ())
        said = {self._known_texts.get(text, "") for text in texts} if role in ("assistant", "tool") else {""}
        if len(said) == 1 and "" not in said:
            texts = [f"(the {said.pop()})"]
        yield from (Row(at, "", 2, role, text) for text in texts)

    def _answer(self, event: Event) -> Iterator[Row]:
        at, call = event["at"], self._calls.pop(event["call"], None)
        if call is not None:
            yield from self._heading(call["node"], at)
        took = f"  ({seconds(event['latency'])})" if event["latency"] else ""
        if "error" in event:
            label = "refused" if event.get("refused") else "failed"
            self._failure = _error(event["error"])
            yield Row(at, "failure", 1, label, f"{self._failure}{took}")
            return
        if "value" not in event:
            yield Row(at, "", 1, "reply" if call and call["kind"] == "llm" else "result", f"{_GAP}{took}")
            return
        value = event["value"]
        if call is None or call["kind"] != "llm" or not isinstance(value, Mapping):
            kind, label = ("", "result") if event["ok"] else ("failure", "failed")
            self._known_texts[_as_text(value)] = label
            yield Row(at, kind, 1, label, f"{_as_text(value).rstrip()}{took}")
            return
        usage = event.get("usage") or {}
        if usage.get("input_tokens") or usage.get("output_tokens"):
            took += f"  {usage.get('input_tokens', 0)} tokens in, {usage.get('output_tokens', 0)} out"
        texts = _message_texts(str(value.get("text", "")), value.get("tool_calls") or ())
        self._known_texts |= dict.fromkeys(texts, "reply")
        for number, text in enumerate(texts, start=1):
            yield Row(at, "", 1, "reply", text.rstrip() + (took if number == len(texts) else ""))

    def _update(self, event: Event) -> Iterator[Row]:
        """Yield the fields that a node changed; fields it wrote with an unchanged value are left out."""
        at, update, label = event["at"], event["update"], "sets"
        if update is None:
            return
        for key, value in update.items() if isinstance(update, Mapping) else [("", update)]:
            new = _as_text(value)
            if self._state.get((event["graph"], key)) == new:
                continue
            self._state[event["graph"], key] = new
            yield from self._heading(event["graph"] + event["node"], at)
            if isinstance(value, list) and value and all(map(_is_message, value)):
                yield Row(at, "", 1, label, f"{key} =")
                yield from self._messages(value, at)
            else:
                yield Row(at, "", 1, label, f"{key} = {new}" if key else new)
            label = " "


def _between_nodes(event: Event, text: str) -> Iterator[Row]:
    """Yield the rows of routes, pauses, errors and warnings."""
    at = event["at"]
    match event["event"]:
        case "route":
            yield Row(at, "route", 0, "", route_text(event))
        case "reroute":
            instead = plural(event["instead_of"], "route")
            yield Row(at, "route", 0, "", f"the state was updated; instead of the last {instead}:")
        case "pause":
            yield Row(at, "node", 0, "", f"paused {event['when']} {', '.join(event['nodes'])}")
        case "node_error":
            yield Row(at, "failure", 0, "", f"{text}  ({event['type']})")
        case "join_timeout":
            yield Row(at, "failure", 0, "", f"{event['node']}: {event['message'] or event['type']}")
        case "warning":
            yield Row(at, "failure", 0, "", text)


def _end(event: Event) -> Iterator[Row]:
    at = event["at"]
    yield Row(
        at, "node" if event["status"] == "completed" else "failure", 0, "", f"graph {status_text(event)}"
    )
    if event.get("error"):
        in_node = f"  (in {event['node']})" if event.get("node") else ""
        yield Row(at, "failure", 1, "error", f"{_error(event['error'])}{in_node}")
    if event.get("output") is not None:
        yield Row(at, "", 1, "output", _as_text(event["output"]))


def _error(error: Any) -> str:
    if not isinstance(error, Mapping):
        return _as_text(error)
    return f"{error.get('type')}: {error.get('message')}" if error.get("message") else str(error.get("type"))


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and "content" in value and ("type" in value or "role" in value)


def _message_texts(text: str, tool_calls: Sequence[Any]) -> list[str]:
    """Return the text of a model message, and a text for each tool call it asks for."""
    asked = [f"asks for {_tool_call_text(call)}" for call in tool_calls]
    return [text, *asked] if text or not asked else asked


def _tool_call_text(call: Any) -> str:
    if not isinstance(call, Mapping):
        return _as_text(call)
    args = call.get("args")
    if not isinstance(args, Mapping):
        return f"{call.get('name')}({_as_text(args) if args else ''})"
    return f"{call.get('name')}({', '.join(f'{key}={encode(value)}' for key, value in args.items())})"


def _content(content: Any) -> str:
    """Return the text of message content. In a list of blocks, those without text become JSON."""
    if not isinstance(content, list):
        return _as_text(content)
    return "\n".join(
        str(block["text"]) if isinstance(block, Mapping) and "text" in block else _as_text(block)
        for block in content
    )


def _as_text(value: Any) -> str:
    """Return a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else encode(value)


def print_rows(found: Iterable[Row], console: Console, width: int | None, *, whole: bool = False) -> None:
    """Print rows with their times in the margin. Long texts are folded unless `whole` is true.

    `width` is the number of columns to wrap at; None wraps nothing.
    """
    from rich.text import Text

    is_narrow = width is not None and width < _NARROW
    at: float | None = None
    for row in found:
        time = "" if row.at == at else seconds(row.at)
        at = row.at
        margin = f"{time:>{_MARGIN - 2}}  " + (" " if is_narrow else "  ") * row.depth
        label = _label(row.label, 0 if is_narrow else _LABEL)
        text = printable(row.text.rstrip() if whole else folded(row.text.rstrip()), keep_newlines=True)
        room = None if width is None else max(width - len(margin) - len(label), _MIN_WIDTH)
        for line in _lines(text, room):
            shown = Text.assemble(
                (margin, "dim"), (label, _LABELS.get(row.kind, "dim")), (line, _STYLES[row.kind])
            )
            shown.rstrip()
            console.print(shown, soft_wrap=True)
            margin, label = " " * len(margin), " " * columns(label)


def folded(text: str) -> str:
    """Return the beginning of a long text, and how many characters were left out."""
    lines = text.split("\n")
    kept = "\n".join(lines[:_MAX_LINES])
    kept = kept if len(kept) <= _MAX_LENGTH else kept[:_MAX_LENGTH]
    left = len(text) - len(kept)
    return text if left < _WORTH_FOLDING else f"{kept.rstrip()}\n… {left:,} more characters"


def _label(name: str, width: int) -> str:
    """Return a label padded to `width`; a label of spaces leaves the column blank."""
    if not name:
        return ""
    shown = f"{printable(name)}: " if name.strip() else ""
    return f"{shown:<{width}}"


def _lines(text: str, room: int | None) -> Iterator[str]:
    for line in text.split("\n"):
        yield from [line] if room is None or len(line) <= room else hanging(line, room)
