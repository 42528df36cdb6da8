"""Takes secrets out of URLs and forms: logins, secret parameters, known values; or all that may hold any."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote_plus, unquote, unquote_plus

from harness.secrets.encodings import utf8
from harness.secrets.known_values import KnownValues
from harness.secrets.placeholders import quoted, quoted_placeholders
from harness.secrets.policy import looks_random, secret_parameter

URL: Final = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
WHOLE_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
# Punctuation that ends a sentence or a quotation does not belong to a URL's query.
_IN_TEXT: Final = re.compile(
    r"(\w[\w+.-]*://)(?:[^\s/?#]*@)?([^\s?#]*)(?:[?#]\S*?(?=[\"')\].,;:>]*(?:\s|$)))?"
)
# Of URLs in parameters of URLs: nobody goes deeper, and Python cannot without end.
_DEPTH: Final = 10

IsSecret = Callable[[str], bool]


class URLScrubber:
    """Scrubs URLs and forms. `inside` scrubs the decoded value of a parameter, which may be JSON or a URL."""

    def __init__(self, known: KnownValues, inside: Callable[[str], str]) -> None:
        self._known, self._inside = known, inside
        self._depth = 0

    def url(self, url: str, secret: IsSecret = secret_parameter) -> str:
        """A URL; `secret` tells the parameters that hold a secret."""
        split = URL.fullmatch(url)
        if split is None:
            return self._known.scrubbed(url)
        scheme, authority, path, query, fragment = split.groups()
        userinfo, at, host = (authority or "").rpartition("@")
        if at and (":" in userinfo or looks_random(userinfo)):
            self._known.learn("userinfo", unquote(userinfo.partition(":")[2] or userinfo))
            authority = f"{quoted('userinfo')}@{host}"
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
        # Part by part first: the host of a URL that is a secret as a whole may stay.
        scrubbed = "".join(self._known.scrubbed(part, quoted) for part in parts)
        return quoted_placeholders(self._known.scrubbed(scrubbed, quoted))

    def form(self, text: str) -> str:
        """A body of `application/x-www-form-urlencoded`."""
        return self._known.scrubbed(quoted_placeholders(self._query(text, secret_parameter)), quoted)

    def _query(self, query: str, secret: IsSecret) -> str:
        return "&".join(self._parameter(pair, secret) for pair in query.split("&"))

    def _parameter(self, pair: str, secret: IsSecret) -> str:
        name, equals, value = pair.partition("=")
        plain = unquote_plus(name)
        if value and secret(plain):
            self._known.learn(plain, unquote_plus(value))
            return self._known.scrubbed(name, quoted) + equals + quoted(plain)
        scrubbed = self._known.scrubbed(pair, quoted)
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
    """A URL without user, password, query and fragment, any of which may hold a secret that nobody knows."""
    split = URL.fullmatch(url)
    if split is None:
        return ""
    scheme, authority, path = split.group(1, 2, 3)
    start = "" if scheme is None else f"{scheme}:"
    return start + ("" if authority is None else f"//{authority.rpartition('@')[2]}") + path


def bare_urls(text: str) -> str:
    """The text with its URLs without user, password, query and fragment."""
    return _IN_TEXT.sub(r"\1\2", text)
