"""Makes HTTP requests of all dialects alike, so that the same stubs match them."""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from harness.graph.effects import HTTPCall


def http_call(
    method: str,
    url: str,
    *,
    json: Any = None,
    form: Mapping[str, Any] | None = None,
    text: str = "",
    query: Mapping[str, Any] | None = None,
    headers: Mapping[str, Any] | None = None,
    hint: str = "",
) -> HTTPCall:
    """Return an HTTP request with the complete `args` that scenarios match.

    Args:
        method: the HTTP method.
        url: the URL. Its query string is moved to `query`.
        json: the body as JSON data.
        form: the body as a form: it is urlencoded into `text`, and `json` is None.
        text: the body as text. Only one of `json`, `form` and `text` is given.
        query: query parameters, which override those of the URL. A value is a text, or a list of texts if the key is
            repeated in the URL or has a list here.
        headers: headers; names are put in lower case, and no content-type is added for a body.
        hint: see `Effect`.

    Values of `form`, `query` and `headers` become texts: a bool is `true` or `false`, and None is empty.
    """
    parts = urlsplit(url)
    address = parts._replace(query="", fragment="").geturl()
    if form is not None:
        text = urlencode(_texts(form), doseq=True)
    elif json is not None:
        text = dumps(json, ensure_ascii=False)
    args = {
        "method": method,
        "url": address,
        "query": {**query_of(parts.query), **_texts(query or {})},
        "json": json,
        "headers": {name.lower(): _text(value) for name, value in (headers or {}).items()},
        "text": text,
    }
    return HTTPCall(name=address, args=args, hint=hint)


def query_of(query: str) -> dict[str, str | list[str]]:
    """Return the parameters of a query: a text for each, or a list of texts if it is repeated."""
    values = parse_qs(query, keep_blank_values=True)
    return {key: found if len(found) > 1 else found[0] for key, found in values.items()}


def _texts(values: Mapping[str, Any]) -> dict[str, str | list[str]]:
    return {
        str(key): [_text(item) for item in value] if isinstance(value, (list, tuple)) else _text(value)
        for key, value in values.items()
    }


def _text(value: Any) -> str:
    """Return a value as HTTP clients write it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
