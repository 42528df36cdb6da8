"""Finds secrets in prose by the name before them: `password='x'` in a log, `"token": "x` in truncated JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from harness.secrets.encodings import Edit
from harness.secrets.placeholders import PLACEHOLDER, placeholder
from harness.secrets.policy import (
    holds_secret,
    is_common,
    is_reference,
    looks_random,
    may_name_secrets,
    secret_field,
    secret_header,
    secret_number,
)

# Patterns are only tried at the start of a word or after a name, so that the search is fast for any text.
_NAME: Final = re.compile(
    r"(?<![\w.-])([\w.-]{2,80}+)(\\*[\"'])?\s{0,9}+([=:])\s{0,9}+(?:[bru]{0,2}(\\*)([\"']))?"
)
_BARE: Final = re.compile(r"[^\s&;,\"'<>()\[\]{}\\]{1,512}+(?!\()")
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token)\s+([A-Za-z0-9._~+/=-]{6,4096}+)", re.IGNORECASE)
_LOGIN: Final = re.compile(r"(?<=://)[^\s/?#@\"'<>:]*+:[^\s/?#@\"'<>]{1,400}+(?=@)")
_LONGEST: Final = 4096
_HEADERS: Final = ("authorization", "cookie")


def secrets_in(text: str) -> Iterator[tuple[str, str, Edit]]:
    """Yield the name and value of each secret after its name in a text, with the edit that replaces it."""
    for found in _found(text):
        name, start, end = found
        if not PLACEHOLDER.fullmatch(text, start, end):
            yield name, text[start:end], (start, end, placeholder(name))


def _found(text: str) -> Iterator[tuple[str, int, int]]:
    if "://" in text:
        yield from (("userinfo", *login.span()) for login in _LOGIN.finditer(text))
    if not may_name_secrets(text):
        return
    at = 0
    for head in _NAME.finditer(text):
        if head.start() < at:  # inside a value
            continue
        name, closes, sign, escape, quote = head.groups()
        is_header = sign == ":" and not closes and not quote
        if is_header and secret_header(name) and (given := _SCHEME.match(text, head.end())):
            at = given.end()
            yield name, *given.span(1)
        elif not secret_field(name):
            continue
        elif quote:
            at = end = _end_of(text, head.end(), escape + quote)
            value = text[head.end() : end]
            if value and (closes or not _is_word(value)) and holds_secret(name, value, {}):
                yield name, head.end(), end
        elif bare := _BARE.match(text, head.end()):
            at = bare.end()
            if _is_bare(name, bare[0], is_json=bool(closes), sign=sign):
                yield name, *bare.span()


def _end_of(text: str, start: int, quote: str) -> int:
    """Return the end of a quoted value: the next quote with the same escapes, else the end of the line or text."""
    at = start
    while (at := text.find(quote, at, start + _LONGEST)) >= 0:
        if text[at - 1] != "\\" or at == start:
            return at
        at += 1
    end = text.find("\n", start, start + _LONGEST)
    return end if end >= 0 else min(len(text), start + _LONGEST)


def _is_word(value: str) -> bool:
    return is_common(value) or is_reference(value)


def _is_bare(name: str, value: str, *, is_json: bool, sign: str) -> bool:
    """True if a value without quotes is a secret, and not a number, a call or a word of a sentence."""
    if value.isdecimal():
        return is_json and secret_number(name, value)
    if is_json or _is_word(value):
        return False
    if sign == ":":
        return looks_random(value) and ("-" in name or name.lower() in _HEADERS)
    return looks_random(value) or (len(value) >= 6 and any(map(str.isdecimal, value)))
