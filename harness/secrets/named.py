"""Finds the secrets in a text without knowing their values: by the name before them, or by their own shape.

Each way of writing a name before a value is one pattern:

    assignment  `password: X`, `token=X`, `("authorization", "Bearer X")`, `password%3DX`, `X-Api-Key: X`
    element     `<password>X</password>`
    option      `--api-key X`
    netrc       `login me password X`
    login       `scheme://me:X@host`, `curl -u me:X`

`SHAPES` are those of credentials that show by themselves what they are: keys with the prefix of their issuer, PEM,
JWT. `may_hold_secrets` is a fast test for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from harness.secrets.encodings import PLACEHOLDER, Edit, placeholder
from harness.secrets.policy import (
    LAST_WORDS,
    MIN_LENGTH,
    SCHEMES,
    certain_name,
    holds_secret,
    is_common,
    is_reference,
    looks_random,
    secret_field,
    secret_header,
    secret_number,
)

Found = tuple[str, int, int]
"""The name of a secret, and its start and end in the text."""


@cache
def fast_pattern(source: str) -> Any:
    """Return a pattern of RE2 that ignores case. It searches bytes, one for each character."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.case_sensitive, options.encoding = False, re2.Options.Encoding.LATIN1
    return re2.compile(source.encode("latin-1"), options)


class Shape(NamedTuple):
    """A shape: the name of what has it, its pattern, and `sign`, a pattern for RE2 that is in every such text.

    If `sure` is false, a value is only a credential if it looks generated.
    """

    name: str
    pattern: str
    sign: str
    sure: bool = True


_BEGIN: Final = "-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_ISSUER: Final = (
    "(?:[spr]k|gh[a-z]|github_pat|gl[a-z]{1,5}|hf|npm|pypi|xox[a-z]|xapp|lsv2|pcsk|gsk|xai|whsec|dop_v1"
    "|shp[a-z]{2})"
)
SHAPES: Final = (
    # sk-…, sk-proj-…, sk_live_…, ghp_…, github_pat_…, glpat-…, hf_…, npm_…, xoxb-…: an issuer, and the key.
    Shape(
        "api_key",
        rf"{_ISSUER}[_-](?:[a-z0-9]{{1,8}}[_-]){{0,3}}[A-Za-z0-9_-]{{16,512}}+",
        rf"{_ISSUER}[_-][a-z0-9_-]{{16}}",
        sure=False,
    ),
    Shape("access_key", r"A[A-Z]{2}A[A-Z0-9]{16}(?![A-Za-z0-9])", "a[a-z]{2}a[a-z0-9]{16}", sure=False),
    Shape("api_key", r"AIza[\w-]{35}", r"aiza[\w-]{35}"),
    Shape("access_token", r"ya29\.[\w-]{20,2048}+", r"ya29\.[\w-]{20}"),
    Shape("client_secret", r"GOCSPX-[\w-]{20,64}", r"gocspx-[\w-]{20}"),
    Shape("api_key", r"SG\.[\w-]{16,64}\.[\w-]{16,64}", r"sg\.[\w-]{16}"),
    Shape(
        "webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,200}+", r"hooks\.slack\.com/"
    ),
    Shape("jwt", r"eyJ[\w-]{10,4096}+\.eyJ[\w-]{4,65536}+\.[\w-]{0,4096}", r"eyj[\w-]{10}"),
    Shape(
        "private_key",
        rf"{_BEGIN}(?:(?!-----)[\s\S]){{0,20000}}+(?:-----END [A-Z ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----)?",
        "begin [a-z ]{0,40}private key",
    ),
    Shape("bearer", r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{8,4096}+=*", "bearer [a-z0-9._~+/-]{8}", sure=False),
)


def shapes_in(text: str, raw: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each credential in a text that has such a shape, and its start and end.

    `raw` has one byte for each character of the text.
    """
    for shape in SHAPES:
        if fast_pattern(shape.sign).search(raw):
            for found in re.compile(rf"(?<![A-Za-z0-9])(?:{shape.pattern})").finditer(text):
                if shape.sure or _is_generated(found[0]):
                    yield shape.name, *found.span()


def _is_generated(value: str) -> bool:
    return looks_random(value) and any(map(str.isdecimal, value)) and not is_reference(value)


_BLANK: Final = r"(?:\s|\\{1,9}[nrt])"
"""A blank or a line break, also one that is escaped for JSON or Python."""
_BARE_CHAR: Final = r"""[^\s&;,"'<>()\[\]{}\\%]|%(?!(?:25)*(?:26|3[bB]|2[0cC27]|0[aAdD]|[57][dD]))"""
_AFTER: Final = re.compile(
    r"(\\*[\"'])?\s{0,9}+(?:\\{1,9}[nrt]){0,9}+([=:,]|%(?:25){0,9}+3[aAdD])\s{0,9}+(?:\\{1,9}[nrt]\s{0,9}+){0,9}+"
    rf"(?:[bru]{{0,2}}(\\*)([\"'])|[|>][+-]?{_BLANK}{{1,40}}+)?"
)
"""The text between a name and its value: a quote that closes the name, a sign, a quote that opens the value."""
_ESCAPED: Final = re.compile(r"(?<=\\)[nrt]|(?<=%)(?:25){0,9}+[0-9A-Fa-f]{2}")
"""The part of an escape before a name that does not belong to the name: `\npassword=`, `%26password%3D`."""
_LONGEST_NAME: Final = 80
# Any name before a value: found faster, and most texts have few different ones.
_NAMES: Final = re.compile(r"(?<![\w.-])([\w.-]{2,80}+)(?:\\*[\"'])?\s*+(?:\\+[nrt])*+[=:,%]")
_BARE: Final = re.compile(rf"(?:{_BARE_CHAR}){{1,512}}+(?!\()")
_SCHEME: Final = re.compile(r"([A-Za-z][\w-]{0,40}+)\s+([^\s\"',;\\]{6,4096}+)")
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
    raw = _bytes(text)
    return bool(_any().search(raw)) and (bool(_other_signs().search(raw)) or _assigns_secret(text))


def _assigns_secret(text: str) -> bool:
    """True if a name before a value is one for secrets."""
    names = {*_NAMES.findall(text)}
    return any(map(secret_header, names)) or any(
        secret_header(name[1:]) for name in names if name[0] in "nrt" or name[0].isdecimal()
    )


def _bytes(text: str) -> bytes:
    """Return one byte for each character, so that places in both are the same. RE2 searches bytes the fastest."""
    return text.encode("latin-1", "replace")


_SIGNS: Final = "|".join(sorted(LAST_WORDS))
_SPACE: Final = r"(?:[\s\x0b\x1c-\x1f\x80-\xff?]|\\+[nrt])"
_ASSIGNED: Final = rf"""([\w.-]*(?:{_SIGNS})[\d_.-]*)\\*(?:["']?{_SPACE}*[=:,]|%(?:25)*3[ad])"""
_OTHERS: Final = "|".join(
    [
        rf"(?:<|&lt;|:)(?:[\w.-]*[^a-z])?(?:{_SIGNS})(?:>|&gt;|\s[^<>]*>[^<>]*</)",
        rf"-[\w-]*(?:{_SIGNS}){_SPACE}",
        rf"(?:machine|login|user|account){_SPACE}+\S+{_SPACE}+passw(?:or)?d{_SPACE}",
        r"""(?:-u|-user)[\s=,"'\\]+[^\s:"'\\]+:""",
        *(shape.sign for shape in SHAPES),
    ]
)


@cache
def _any() -> Any:
    return fast_pattern(f"{_ASSIGNED}|{_OTHERS}")


@cache
def _assigned_signs() -> Any:
    return fast_pattern(_ASSIGNED)


@cache
def _other_signs() -> Any:
    return fast_pattern(_OTHERS)


def signs_of_secrets(text: str) -> bool:
    """False if `secrets_in` and `shaped_in` find nothing in a text; the fastest test, which most texts pass."""
    return _any().search(_bytes(text)) is not None or ("@" in text and "://" in text)


def secrets_in(text: str) -> Iterator[tuple[str, str, Edit]]:
    """Yield the name and value of each secret after its name in a text, with the edit that replaces it."""
    raw = _bytes(text)
    found = [*_assigned(text, raw)]
    if "@" in text and "://" in text:
        found += (("userinfo", *login.span()) for login in _LOGIN.finditer(text))
    if _other_signs().search(raw):
        found += _elsewhere(text)
    yield from _edits(text, found)


def shaped_in(text: str) -> Iterator[tuple[str, str, Edit]]:
    """Yield the same for each secret in a text that shows by its own shape what it is."""
    raw = _bytes(text)
    if _other_signs().search(raw):
        yield from _edits(text, [*shapes_in(text, raw)])


def _edits(text: str, found: list[Found]) -> Iterator[tuple[str, str, Edit]]:
    """Yield what is found, in order, without what overlaps what is before, or is replaced already."""
    end = 0
    for name, start, after in sorted(found, key=lambda one: one[1:]):
        if start >= end and not PLACEHOLDER.fullmatch(text, start, after):
            end = after
            yield name, text[start:after], (start, after, placeholder(name))


def _elsewhere(text: str) -> Iterator[Found]:
    for pattern in (_ELEMENT, _OPTION, _NETRC):
        yield from _after_name(pattern, text)
    for user in _USER.finditer(text):
        if _is_value("password", user[1]):
            yield "userinfo", *user.span(1)


def _after_name(pattern: re.Pattern[str], text: str) -> Iterator[Found]:
    """Yield the secrets of a pattern with two groups: a name and its value."""
    for found in pattern.finditer(text):
        if secret_field(found[1]) and _is_value(found[1], found[2]):
            yield found[1], *found.span(2)


def _assigned(text: str, raw: bytes) -> Iterator[Found]:
    at = 0
    for found in _assigned_signs().finditer(raw):
        start, end = found.span(1)
        if start < at or end - start > _LONGEST_NAME:  # inside a value
            continue
        name = _name_at(text, start, end)
        if not secret_header(name) or (after := _AFTER.match(text, end)) is None:
            continue
        if name == "secret" and (mark := PLACEHOLDER.match(text, start - 1)):
            at = mark.end()
        elif after[4] and not after[1] and text[start - 1 : start] == after[4]:
            continue  # the quote ends a text, a prompt: "Password: "
        elif value := _value_after(name, after, text):
            at, is_secret = value[1:]
            if is_secret:
                yield name, *value[:2]
            elif after[2] == ",":  # the text after a comma may be a name, too
                at = after.end()


def _name_at(text: str, start: int, end: int) -> str:
    """Return a name without the escape before it."""
    escape = _ESCAPED.match(text, start)
    if escape is None or (len(escape[0]) == 1 and secret_header(text[start:end])):
        return text[start:end]
    return text[escape.end() : end]


def _value_after(name: str, after: re.Match[str], text: str) -> tuple[int, int, bool] | None:
    """Return the start and end of the value after a name, and whether it is a secret; None if there is no value."""
    closes, sign, escape, quote = after.groups()
    start = after.end()
    if quote:
        end = _end_of(text, start, escape + quote)
        if sign == ",":
            is_item = bool(closes) and (name[0] == "-" or _PAIR_ENDS.match(text, end) is not None)
            return start, end, is_item and _is_item(text[start:end])
        return start, end, _is_quoted(name, text[start:end], is_closed=bool(closes))
    if sign == ",":
        return None
    if not closes and sign == ":" and (given := _in_header(name, text, start)):
        return *given, True
    bare = _BARE.match(text, start) if secret_field(name) else None
    return (*bare.span(), _is_bare(name, bare[0], is_json=bool(closes), sign=sign)) if bare else None


_PAIR_ENDS: Final = re.compile(r"\\*[\"']\s{0,9}[)\]]")


def _is_item(value: str) -> bool:
    """True if the item after a name in a pair is a secret. In a list of names, it is one, too."""
    last = value.split()[-1:]
    return any(looks_random(one) and any(map(str.isdecimal, one)) for one in last)


def _is_quoted(name: str, value: str, *, is_closed: bool) -> bool:
    """True if a value in quotes is a secret."""
    if not value or not secret_field(name):
        return False
    return (is_closed or not _is_word(value)) and holds_secret(name, value, {})


def _in_header(name: str, text: str, start: int) -> tuple[int, int] | None:
    """Return the span of the secret in the value of a header: X in `Bearer X`, all cookies."""
    if name.lower().endswith("cookie"):
        cookies = _COOKIES.match(text, start)
        return cookies.span() if cookies else None
    given = _SCHEME.match(text, start)
    if given is None or (given[1].lower() not in SCHEMES and not name.lower().endswith("authorization")):
        return None
    return given.span(2) if looks_random(given[2]) or given[1].lower() in SCHEMES else None


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
    if not holds_secret(name, value, {}):
        return False
    return _is_value(name, value) or (sign == "=" and looks_random(value) and not _is_word(value))


def _is_value(name: str, value: str) -> bool:
    """True if a text after the name of a secret is its value, and not a word, a name of code or a number."""
    if (
        value.isdecimal()
        or (value.isalpha() and value.islower())
        or _is_word(value)
        or PLACEHOLDER.search(value)
    ):
        return False
    has_digit = len(value) >= MIN_LENGTH and any(map(str.isdecimal, value))
    is_strange = len(value) >= MIN_LENGTH and _STRANGE.fullmatch(value) is not None
    return has_digit or (is_strange and certain_name(name))
