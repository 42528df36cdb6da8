"""Finds the secrets in a text without knowing their values: by the name before them, or by their own shape.

Each way of writing a name before a value is one pattern:

    assignment  `password: X`, `token=X`, `("authorization", "Bearer X")`, `password%3DX`, `X-Api-Key: X`
    element     `<password>X</password>`
    option      `--api-key X`
    netrc       `login me password X`
    login       `scheme://me:X@host`, `curl -u me:X`

`shapes.py` has the shapes. `may_hold_secrets` is a fast test for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from harness.secrets.encodings import PLACEHOLDER, Edit, placeholder, utf8
from harness.secrets.policy import (
    LAST_WORDS,
    certain_name,
    holds_secret,
    is_common,
    is_reference,
    looks_random,
    secret_field,
    secret_header,
    secret_number,
)
from harness.secrets.shapes import SHAPES, shapes_in

Found = tuple[str, int, int]
"""The name of a secret, and its start and end in the text."""

_BLANK: Final = r"(?:\s|\\{1,9}[nrt])"
"""A blank or a line break, also one that is escaped for JSON or Python."""
_BARE_CHAR: Final = r"""[^\s&;,"'<>()\[\]{}\\%]|%(?!(?:25)*(?:26|3[bB]|2[0cC27]|0[aAdD]|[57][dD]))"""
# Patterns are only tried at the start of a word or after a name, so that the search is fast for any text.
_NAME: Final = re.compile(
    r"(?<![\w.-])(?:(?<=%)(?:25){0,9}+(?:26|3[fF]|2[02]|0[aA]))?"
    rf"([\w.-]{{2,80}}+)(\\*[\"'])?{_BLANK}{{0,9}}+([=:,]|%(?:25){{0,9}}+3[aAdD]){_BLANK}{{0,9}}+"
    rf"(?:[bru]{{0,2}}(\\*)([\"'])|[|>][+-]?{_BLANK}{{1,40}}+)?"
)
# Any name before a value: found faster, and most texts have few different ones.
_NAMES: Final = re.compile(rf"(?<![\w.-])([\w.-]{{2,80}}+)(?:\\*[\"'])?{_BLANK}{{0,9}}+[=:,%]")
_BARE: Final = re.compile(rf"(?:{_BARE_CHAR}){{1,512}}+(?!\()")
_SCHEME: Final = re.compile(r"(?!\S*[=:;])[A-Za-z][\w-]{0,40}+\s+([^\s\"',;\\]{6,4096}+)")
_COOKIES: Final = re.compile(r"[^\s\"'=;\\]{1,80}=[^\r\n\"'\\]{1,4096}")
_LONGEST: Final = 4096
_HEADERS: Final = ("authorization", "cookie")

_ELEMENT: Final = re.compile(
    r"(?:<|&lt;)(?:[\w.-]{1,80}:)?([\w.-]{2,80}+)(?:\s[^<>]{0,400}?)?(?:>|&gt;)\s*([^\s<>&][^<>]{0,4096}?)\s*(?:<|&lt;)/"
)
_OPTION: Final = re.compile(
    rf"(?<![\w-])--?([\w-]{{2,80}}+){_BLANK}{{1,9}}+[\"']?([^\s\"'\\-][^\s\"'\\]{{0,512}}+)"
)
_NETRC: Final = re.compile(
    rf"(?:machine|login|user|account){_BLANK}+[^\s\\]{{1,200}}+{_BLANK}+(passw(?:or)?d){_BLANK}+([^\s\"'\\]{{1,512}}+)"
)
_LOGIN: Final = re.compile(r"(?<=://)[^\s/?#@\"'<>:]*+:[^\s/?#@\"'<>]{1,400}+(?=@)")
_USER: Final = re.compile(
    r"(?<![\w-])(?:-[uU]|--(?:proxy-)?user)(?:[\s=,]|\\*[\"'])+[^\s:\"'\\]{1,200}+:([^\s\"'\\]{1,400}+)"
)


def may_hold_secrets(text: str) -> bool:
    """False if a text has neither the name of a secret before a value, nor the shape of one; a fast test."""
    raw = utf8(text)
    return _signs(assigned=True).search(raw) is not None and (
        _signs().search(raw) is not None or _assigns_secret(text)
    )


def _assigns_secret(text: str) -> bool:
    """True if a name before a value is one for secrets. A name after `\\n` begins with a letter too many."""
    names = {*_NAMES.findall(text)}
    return any(map(secret_header, names)) or any(
        secret_header(name[1:]) for name in names if name[0] in "nrt" or name[0].isdecimal()
    )


@cache
def _signs(*, assigned: bool = False) -> Any:
    """Return a pattern for what is in each text with a secret: all of them, or those that are no assignments."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.case_sensitive, options.encoding = False, re2.Options.Encoding.LATIN1
    names = "|".join(sorted(LAST_WORDS))
    blank = r"(?:[\s\x0b\x1c-\x1f\x80-\xff]|\\+[nrt])"
    others = [
        rf"(?:<|&lt;|:)(?:[\w.-]*[^a-z])?(?:{names})(?:>|&gt;|\s[^<>]*>[^<>]*</)",
        rf"-(?:{names}){blank}",
        rf"passw(?:or)?d{blank}+\S",
        r"""(?:-u|-user)[\s=,"'\\]+[^\s:"'\\]+:""",
        *(shape.sign for shape in SHAPES),
    ]
    named = [rf"""(?:{names})[\d_.-]*\\*(?:["']?{blank}*[=:,]|%(?:25)*3[ad])"""] if assigned else []
    return re2.compile("|".join(named + others).encode("latin-1"), options)


def secrets_in(text: str) -> Iterator[tuple[str, str, Edit]]:
    """Yield the name and value of each secret in a text, with the edit that replaces it. None overlap."""
    end = 0
    for name, start, after in sorted(_found(text), key=lambda found: found[1:]):
        if start >= end and not PLACEHOLDER.fullmatch(text, start, after):
            end = after
            yield name, text[start:after], (start, after, placeholder(name))


def _found(text: str) -> Iterator[Found]:
    if "://" in text and "@" in text:
        yield from (("userinfo", *login.span()) for login in _LOGIN.finditer(text))
    if not may_hold_secrets(text):
        return
    yield from _assigned(text)
    yield from shapes_in(text)
    if "</" in text or "&lt;/" in text:
        yield from _after_name(_ELEMENT, text)
    if "-" in text:
        yield from _after_name(_OPTION, text)
        for user in _USER.finditer(text):
            if _is_value("password", user[1]):
                yield "userinfo", *user.span(1)
    if "passw" in text:
        yield from _after_name(_NETRC, text)


def _after_name(pattern: re.Pattern[str], text: str) -> Iterator[Found]:
    """Yield the secrets of a pattern with two groups: a name and its value."""
    for found in pattern.finditer(text):
        if secret_field(found[1]) and _is_value(found[1], found[2]):
            yield found[1], *found.span(2)


def _assigned(text: str) -> Iterator[Found]:
    at = 0
    for head in _NAME.finditer(text):
        if head.start() < at:  # inside a value
            continue
        name, closes, sign, escape, quote = head.groups()
        name = _without_escape(text, head.start(1), name)
        if name == "secret" and (mark := PLACEHOLDER.match(text, head.start(1) - 1)):
            at = mark.end()
        elif sign == ",":
            at = max(at, head.end(1))  # what follows may be a name, too
            if closes and quote and (secret_field(name) or secret_header(name)):
                end = _end_of(text, head.end(), escape + quote)
                value = text[head.end() : end]
                if name[0] == "-" or (value and looks_random(value.split()[-1])):
                    yield name, head.end(), end
        elif (
            not closes and not quote and secret_header(name) and (given := _in_header(name, text, head.end()))
        ):
            at = given[2]
            yield given
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


def _without_escape(text: str, start: int, name: str) -> str:
    r"""Return a name without the `n` of `\\n` before it."""
    escaped = name[0] in "nrt" and text[start - 1 : start] == "\\" and not secret_header(name)
    return name[1:] if escaped else name


def _in_header(name: str, text: str, start: int) -> Found | None:
    """Return the secret in the value of a header: X in `Bearer X`, all cookies."""
    if name.lower().endswith("cookie"):
        cookies = _COOKIES.match(text, start)
        return (name, *cookies.span()) if cookies else None
    given = _SCHEME.match(text, start)
    return (name, *given.span(1)) if given and looks_random(given[1]) else None


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


_STRANGE: Final = re.compile(r"[\w.-]*[!@#$^&+~|][^\s]*\w|[\w.-]+[!@#$^&+~|]+")
"""A value with a character that is in no word and no expression: `hunter!Two`."""


def _is_bare(name: str, value: str, *, is_json: bool, sign: str) -> bool:
    """True if a value without quotes is a secret, and not a number, a call or a word of a sentence."""
    if value.isdecimal():
        return is_json and secret_number(name, value)
    if is_json:
        return False
    if sign == ":" and not certain_name(name):  # a word before a colon in prose
        return looks_random(value) and ("-" in name or name.lower() in _HEADERS) and not _is_word(value)
    return _is_value(name, value) and holds_secret(name, value, {})


def _is_value(name: str, value: str) -> bool:
    """True if a text after the name of a secret is its value, and not a word or a number."""
    if _is_word(value) or value.isdecimal() or PLACEHOLDER.search(value):
        return False
    has_digit = len(value) >= 6 and any(map(str.isdecimal, value))
    return (
        looks_random(value)
        or has_digit
        or (len(value) >= 6 and certain_name(name) and bool(_STRANGE.fullmatch(value)))
    )
