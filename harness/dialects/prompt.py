"""A prompt of a manifest, as data."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import Span


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text that a manifest gives to language models.

    id     the name by which variants refer to it; its form depends on the dialect
    kind   the dialect's term for the text, such as `system_prompt`
    text   the text as written, without variables or placeholders filled in
    where  the location of the text, in the manifest or in a file of its own
    """

    id: str
    kind: str
    text: str
    where: Span
