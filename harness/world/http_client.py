"""The client for real HTTP requests of agents."""

from __future__ import annotations

from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Final

from harness.graph.effects import HTTPCall, HTTPReply
from harness.graph.to_json import from_json

if TYPE_CHECKING:
    import ssl

    import httpx

TIMEOUT_S: Final = 60.0


class HTTPClient:
    """Sends the HTTP requests of one run. It belongs to one event loop and must be closed there.

    Redirects are returned and not followed, cookies are not stored, and the time limit is 60 s. Proxies are taken
    from the environment.
    """

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    async def send(self, call: HTTPCall, timeout_s: float = TIMEOUT_S) -> HTTPReply:
        """Send a request and return the answer, whatever its status.

        A body without a content-type header gets one, of JSON or of a form.

        Raises:
            httpx.HTTPError: no answer was received.
            httpx.InvalidURL: the URL has no host.
        """
        args = call.args
        response = await self._open().request(
            args["method"],
            args["url"],
            params=args["query"] or None,
            headers=_headers(args),
            content=args["text"].encode() or None,
            timeout=timeout_s,
        )
        return HTTPReply(
            status=response.status_code,
            text=response.text,
            json=from_json(response.text),
            headers=dict(response.headers.items()),
        )

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _open(self) -> httpx.AsyncClient:
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=TIMEOUT_S,
                follow_redirects=False,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                verify=_certificates(),
            )
        return self._client


@cache
def _certificates() -> ssl.SSLContext:
    """Load the trusted certificates, once: that takes longer than many a request."""
    import httpx

    return httpx.create_ssl_context()


def _headers(args: Any) -> dict[str, str]:
    headers = dict(args["headers"])
    if args["text"]:
        is_json = args["json"] is not None
        headers.setdefault(
            "content-type", "application/json" if is_json else "application/x-www-form-urlencoded"
        )
    return headers
