"""Replaces secrets in URLs and forms: logins, secret parameters, known values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote_plus, unquote, unquote_plus

from harness.secrets.encodings import utf8
from harness.secrets.known_values import KnownValues
from harness.secrets.placeholders import quoted_placeholder, quoted_placeholders
from harness.secrets.policy import looks_random, secret_parameter

URL: Final = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
WHOLE_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
# Punctuation that ends a sentence or a quotation does not belong to a URL's query.
_IN_TEXT: Final = re.compile(
    r"(\w[\w+.-]*://)(?:[^\s/?#]*@)?([^\s?#]*)(?:[?#]\S*?(?=[\"')\].,;:>]*(?:\s|$)))?"
)
# The maximal nesting of URLs in parameters of URLs.
_DEPTH: Final = 10

IsSecret = Callable[[str], bool]


class URLScrubber:
    """Scrubs URLs and forms. `inside` scrubs the decoded value of a parameter, which may be JSON or a URL."""

    def __init__(self, known: KnownValues, inside: Callable[[str], str]) -> None:
        self._known, self._inside = known, inside
        self._depth = 0

    def url(self, url: str, secret: IsSecret = secret_parameter) -> str:
        """Scrub a URL. `secret` returns True for the name of a parameter that holds a secret."""
        split = URL.fullmatch(url)
        if split is None:
            return self._known.scrub(url)
        scheme, authority, path, query, fragment = split.groups()
        userinfo, at, host = (authority or "").rpartition("@")
        if at and (":" in userinfo or looks_random(userinfo)):
            self._known.learn("userinfo", unquote(userinfo.partition(":")[2] or userinfo))
            authority = f"{quoted_placeholder('userinfo')}@{host}"
        if query:
            query = self._query(query, secret)
        if fragment and "=" in fragment:
            fragment = self._query(fragment, secret)
        parts = (
            "" if scheme is None else f"{scheme}:",
            "" if authority is None else f"//{authority}",
            path,
            "" if query is None else f"?{query}",
            "" if fragment is None else f"#{fragment}",
        )
        # Each part first: if the URL as a whole is a secret, its host may remain.
        scrubbed = "".join(self._known.scrub(part, quoted_placeholder) for part in parts)
        return quoted_placeholders(self._known.scrub(scrubbed, quoted_placeholder))

    def form(self, text: str) -> str:
        """Scrub a body of `application/x-www-form-urlencoded`."""
        return self._known.scrub(quoted_placeholders(self._query(text, secret_parameter)), quoted_placeholder)

    def _query(self, query: str, secret: IsSecret) -> str:
        return "&".join(self._parameter(pair, secret) for pair in query.split("&"))

    def _parameter(self, pair: str, secret: IsSecret) -> str:
        name, equals, value = pair.partition("=")
        plain = unquote_plus(name)
        if value and secret(plain):
            self._known.learn(plain, unquote_plus(value))
            return self._known.scrub(name, quoted_placeholder) + equals + quoted_placeholder(plain)
        scrubbed = self._known.scrub(pair, quoted_placeholder)
        if self._depth == _DEPTH:
            return scrubbed
        name, equals, value = scrubbed.partition("=")
        decoded = unquote_plus(value, errors="surrogateescape")
        self._depth += 1
        try:
            inside = self._inside(decoded)
        finally:
            self._depth -= 1
        return scrubbed if inside == decoded else name + equals + quote_plus(utf8(inside))


def bare_url(url: str) -> str:
    """Return a URL without user, password, query and fragment, which may hold unknown secrets."""
    split = URL.fullmatch(url)
    if split is None:
        return ""
    scheme, authority, path = split.group(1, 2, 3)
    start = "" if scheme is None else f"{scheme}:"
    return start + ("" if authority is None else f"//{authority.rpartition('@')[2]}") + path


def bare_urls(text: str) -> str:
    """Return a text with its URLs reduced as by `bare_url`."""
    return _IN_TEXT.sub(r"\1\2", text)
