"""Variation of a prompt without a model: sentences are dropped, moved, or taken from other prompts of the manifest.

Recombination cannot find a sentence that is in no prompt of the manifest.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from typing import Final

from harness.evolution.placeholders import placeholder_difference, placeholders

_PIECE: Final = re.compile(r"\n+|(?<=[.!?…])[ \t]+")
_TRIES: Final = 8


def split_sentences(text: str) -> list[tuple[str, str]]:
    """Split a text into sentences and lines, each with the whitespace that follows it."""
    found, start = [], 0
    for gap in _PIECE.finditer(text):
        found.append((text[start : gap.start()], gap[0]))
        start = gap.end()
    found.append((text[start:], ""))
    return [(piece, gap) for piece, gap in found if piece.strip()]


def recombine(text: str, others: Iterable[str], draw: random.Random) -> str | None:
    """Return the text with one sentence dropped, moved, inserted or replaced; None if no change was found.

    Sentences are taken from the texts `others`. Placeholders are kept.
    """
    own = split_sentences(text)
    known = {piece for piece, _ in own}
    material = list(
        dict.fromkeys(
            piece
            for other in others
            for piece, _ in split_sentences(other)
            if piece not in known and not placeholders(piece)
        )
    )
    for _ in range(_TRIES):
        made = _joined(_recombine_once(own, material, draw))
        if made.strip() and made != text and not placeholder_difference(text, made):
            return made
    return None


def _recombine_once(
    own: Sequence[tuple[str, str]], material: Sequence[str], draw: random.Random
) -> list[tuple[str, str]]:
    found = list(own)
    operations = ["insert", "insert", "replace"] if material else []
    operations += ["drop", "move"] if len(found) > 1 else []
    operation = draw.choice(operations) if operations else ""
    at = draw.randrange(len(found)) if found else 0
    if operation == "insert":
        at = draw.randint(0, len(found))
        found.insert(at, (draw.choice(material), " "))
    elif operation == "replace" and found:
        found[at] = (draw.choice(material), found[at][1])
    elif operation == "drop":
        del found[at]
    elif operation == "move":
        found.insert(draw.randrange(len(found)), found.pop(at))
    return found


def _joined(parts: Sequence[tuple[str, str]]) -> str:
    texts = [piece + (gap or " ") for piece, gap in parts[:-1]]
    return "".join([*texts, *(piece + (gap if gap.startswith("\n") else "") for piece, gap in parts[-1:])])
