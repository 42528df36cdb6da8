"""Takes secrets out of the bodies of requests and responses: JSON, event streams, forms, multipart, text."""

from __future__ import annotations

import re
from typing import Final

from harness.secrets.encodings import cut
from harness.secrets.event_stream import EventStream
from harness.secrets.known_values import KnownValues
from harness.secrets.multipart import Part, parts
from harness.secrets.placeholders import placeholder
from harness.secrets.policy import secret_parameter
from harness.secrets.scrub_json import JSONScrubber, is_json

_JSON_LINES: Final = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"}
)


class BodyScrubber:
    """Scrubs bodies, as text."""

    def __init__(self, known: KnownValues, values: JSONScrubber) -> None:
        self._known, self._values = known, values

    def body(self, text: str, content_type: str, *, is_part: bool = False) -> str:
        """The body with its secrets replaced and all else unchanged."""
        media_type = content_type.partition(";")[0].strip().lower()
        if media_type == "text/event-stream":
            return self._events(text)
        if media_type == "application/x-www-form-urlencoded":
            return self._values.urls.form(text)
        if media_type.startswith("multipart/") and not is_part:
            return self._known.scrubbed("".join(map(self._part, parts(text, content_type))))
        if media_type in _JSON_LINES:
            return "".join(self._streamed(re.split(r"(?<=\n)", text)))
        if "json" in media_type and is_json(text):
            return self._values.json_texts([text])[0]
        return self._values.string(text)

    def _part(self, part: Part) -> str:
        name = part.name
        head = self._known.scrubbed(part.lines)
        if part.body and name and secret_parameter(name):
            self._known.learn(name, part.body)
            return head + placeholder(name)
        return head + self.body(part.body, part.headers.get("content-type", ""), is_part=True)

    def _events(self, text: str) -> str:
        stream = EventStream(text)
        data = [stream.data(event) for event in stream.events]
        for event, scrubbed in zip(stream.events, self._streamed(data), strict=True):
            stream.write_data(event, scrubbed)
        for number in stream.rest:
            stream.write(number, self._known.scrubbed(stream.line(number)))
        return str(stream)

    def _streamed(self, texts: list[str]) -> list[str]:
        """Texts that came one after the other: JSON, or parts of one other text."""
        scrubbed = list(texts)
        whole = [number for number, text in enumerate(texts) if is_json(text)]
        as_json = self._values.json_texts([texts[number] for number in whole], streamed=True)
        for number, text in zip(whole, as_json, strict=True):
            scrubbed[number] = text
        others = sorted(set(range(len(texts))).difference(whole))
        lines = [texts[number] for number in others]
        for number, text in zip(others, cut(lines, self._known.edits("".join(lines))), strict=True):
            scrubbed[number] = text
        return scrubbed
