"""The HTTP requests of ApiNodes and RemoteTools. spec: "Remote Tools", ApiNode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.dialects.agentspec.placeholders import render
from harness.dialects.agentspec.tools import RemoteCall
from harness.engine.context import NodeContext
from harness.graph.effects import HTTPCall, HTTPReply, http_call

_FORM: Final = "application/x-www-form-urlencoded"


def request(component: RemoteCall, values: Mapping[str, Any]) -> HTTPCall:
    """Return the request with placeholders filled.

    The body is sent as text if it is text, as a form if the Content-Type says so, else as JSON.
    """
    headers = {str(name): str(value) for name, value in render(component.headers, values).items()}
    data = render(component.data, values) or None
    types = [value for name, value in headers.items() if name.lower() == "content-type"]
    is_form = isinstance(data, Mapping) and any(_FORM in value.lower() for value in types)
    return http_call(
        str(render(component.http_method, values)).upper(),
        str(render(component.url, values)),
        json=None if is_form or isinstance(data, str) else data,
        form=data if is_form else None,
        text=data if isinstance(data, str) else "",
        query=render(component.query_params, values),
        headers=headers,
    )


async def perform(component: RemoteCall, values: Mapping[str, Any], ctx: NodeContext) -> Any:
    """Send the request, and return the JSON of the response, else its text. An error status is a warning."""
    call = request(component, values)
    reply: HTTPReply = await ctx.perform(call)
    if reply.status >= 400:
        ctx.warn(f"{component}: {call.args['method']} {call.name} answered {reply.status}")
    return reply.text if reply.json is None else reply.json
