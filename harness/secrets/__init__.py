"""Secrets are replaced by placeholders, `<secret:OPENAI_API_KEY>`, before anything is written or compared.

Two kinds are found: values that are known, of environment variables and from fields found before, wherever and
however encoded they stand; and whatever stands in a field, header or parameter that is for secrets. Those get a
placeholder that depends on the name alone, so that a request with another key, or none, is still the same request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from harness.secrets.encodings import utf8
from harness.secrets.environment import add_variables
from harness.secrets.known_values import KnownValues
from harness.secrets.placeholders import placeholder
from harness.secrets.policy import is_named, secret_by_name, secret_header
from harness.secrets.scrub_bodies import BodyScrubber
from harness.secrets.scrub_json import JSONScrubber
from harness.secrets.scrub_urls import WHOLE_URL, bare_url, bare_urls

__all__ = ["Secrets", "bare_url", "bare_urls", "placeholder", "secret_header"]

JSON = Any
T = TypeVar("T")

_URL_HEADERS: Final = frozenset({"location", "content-location", "referer"})


class Secrets:
    """Replaces secrets in texts, JSON, headers, URLs and bodies.

    A secret found in a field, header or parameter is known from then on. It may stand in what was scrubbed before:
    scrub everything twice and keep the second result, or `learn` it first.

    `named` adds variables by name or pattern (`ACME_*`); they are replaced from 3 characters on, others from 6.
    Nothing here raises for any text, bytes or JSON, and scrubbing twice changes nothing more.
    """

    def __init__(self, environment: Mapping[str, str], named: Sequence[str] = ()) -> None:
        self._known = KnownValues()
        self._named = tuple(named)
        self._values = JSONScrubber(self._known)
        self._bodies = BodyScrubber(self._known, self._values)
        add_variables(self._known, environment, self._named)

    def learn(self, name: str, value: str) -> None:
        """Search everywhere for what a field, header or parameter held, unless other texts may have it too.

        Of `Bearer X` that is X, of `Basic X` the password, of cookies their values.
        """
        self._known.learn(name, value)

    def text(self, text: str) -> str:
        """The text with each known value replaced, also where it is URL-encoded, JSON-escaped, in base64 or hex."""
        return self._known.scrubbed(text)

    def data(self, value: JSON) -> JSON:
        """JSON data, its strings, keys and secret fields scrubbed; JSON and URLs in strings are looked into."""
        return self._settled(lambda: self._values.data(value))

    def variable(self, name: str, value: str) -> str:
        """The value of an environment variable, where the variable itself is written.

        By its name alone it is a secret, however short or common the value. Of others only what is secret in them
        is replaced.
        """
        if value and (is_named(name, self._named) or secret_by_name(name, value)):
            return placeholder(name)
        return self.url(value) if WHOLE_URL.fullmatch(value) else self.data(value)

    def header(self, name: str, value: str) -> str:
        """The value of a header."""
        if value and secret_header(name):
            self.learn(name.lower(), value)
            return placeholder(name.lower())
        return self.url(value) if name.lower() in _URL_HEADERS else self.text(value)

    def headers(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """All headers, names as they are."""
        pairs = list(headers)
        return self._settled(lambda: [(name, self.header(name, value)) for name, value in pairs])

    def url(self, url: str) -> str:
        """A URL, its userinfo and secret parameters replaced; placeholders in it are percent-encoded."""
        return self._settled(lambda: self._values.urls.url(url))

    def body(self, body: bytes, content_type: str) -> bytes:
        """The body of a request or response, not compressed: the same bytes but for what is replaced."""
        text = body.decode("utf-8", "surrogateescape")
        scrubbed = self._settled(lambda: self._bodies.body(text, content_type))
        return body if scrubbed == text else utf8(scrubbed)

    def _settled(self, scrub: Callable[[], T]) -> T:
        """The result once nothing more is learned."""
        while True:
            before = len(self._known)
            scrubbed = scrub()
            if len(self._known) == before:
                return scrubbed
