"""The shapes of credentials that show by themselves what they are: keys with the prefix of their issuer, PEM, JWT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from harness.secrets.policy import is_reference, looks_random


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
