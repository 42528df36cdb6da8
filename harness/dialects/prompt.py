"""A prompt of a manifest, as data."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import Span


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text that a manifest gives to language models.

    id     how variants name it; each dialect says how ids are made
    kind   what the text is, in the word of the dialect's document, such as `system_prompt`
    text   as it is written: neither variables nor placeholders are filled in
    where  where the text stands, in the manifest or in a file of its own
    """

    id: str
    kind: str
    text: str
    where: Span
