"""HTTP requests that post messages to chat channels, for human agents and escalations. NOTES 10.2, 13.3.

spec: "ChannelConfig".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.dialects.leafmesh.document import Channel
from harness.graph.effects import HTTPCall, http_call

_ADDRESSES: Final = {
    "slack": "https://slack.com/api/chat.postMessage",
    "telegram": "https://api.telegram.org/bot/sendMessage",
    "discord": "https://discord.com/api/v10/channels/{to}/messages",
    "whatsapp": "https://graph.facebook.com/v19.0/{to}/messages",
    "teams": "https://smba.trafficmanager.net/teams/v3/conversations/{to}/activities",
}
"""The public API addresses of the providers. Tokens are sent in headers only, never in an address."""

_SCHEMES: Final = {"discord": "Bot"}


def message_call(provider: str, channel: Channel, to: str, body: Mapping[str, Any]) -> HTTPCall:
    """Return the request that posts `body` to the channel `to` of a provider."""
    headers = {}
    if channel.bot_token:
        headers["Authorization"] = f"{_SCHEMES.get(provider, 'Bearer')} {channel.bot_token}"
    json = {"channel": to, **body} if to else dict(body)
    return http_call("POST", _ADDRESSES[provider].format(to=to), json=json, headers=headers)
