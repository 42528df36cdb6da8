"""The requests by which clients let a provider count the tokens of a request before they send it.

No stub says how many there are, and none is needed: offline, the number is estimated from the length of the texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.graph.effects import HTTPCall, HTTPReply
from harness.graph.to_json import to_json
from harness.world.wire.format import compact

_CHARACTERS: Final = 4.0
"""The characters of a token, on average."""
_ADDRESSES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "/responses/input_tokens": ("input_tokens", {"object": "response.input_tokens"}),
    "/v1/messages/count_tokens": ("input_tokens", {}),
    ":countTokens": ("totalTokens", {}),
}
"""By the end of the address: the key of the number in the answer, and what else is in it."""


def token_count(call: HTTPCall) -> HTTPReply | None:
    """Return the estimated number of tokens, as the provider would; None for any other request."""
    found = next((answer for end, answer in _ADDRESSES.items() if call.name.endswith(end)), None)
    if found is None or call.args["method"] != "POST":
        return None
    key, rest = found
    number = math.ceil(sum(map(len, _texts(call.args["json"]))) / _CHARACTERS)
    value = to_json({**rest, key: number})
    return HTTPReply(status=200, text=compact(value), json=value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)
