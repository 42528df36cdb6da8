"""Detects requests to models: by the addresses of the providers, and the wire format of each path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from harness.world.providers.access import base_urls
from harness.world.wire import anthropic_messages, openai_chat, openai_responses
from harness.world.wire.format import WireFormat

PATHS: Final[Mapping[str, Mapping[str, WireFormat]]] = {
    "openai": {"/chat/completions": openai_chat, "/responses": openai_responses},
    "anthropic": {"/v1/messages": anthropic_messages},
}


def format_at(url: str, environment: Mapping[str, str]) -> WireFormat | None:
    """Return the wire format of the models at a URL; None if it is not the URL of a model provider.

    `environment` has the variables with addresses of providers, such as OPENAI_BASE_URL.
    """
    address = url.partition("?")[0]
    return next((wire for known, wire in _addresses(environment) if known == address), None)


def _addresses(environment: Mapping[str, str]) -> Iterator[tuple[str, WireFormat]]:
    for protocol, base_url in base_urls(environment):
        for path, wire in PATHS[protocol].items():
            yield f"{base_url.rstrip('/')}{path}", wire
