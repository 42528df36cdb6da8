"""Remote agents over A2A: one JSON-RPC message to the agent's URL, as an `http` effect. spec: `sub_agents`, url.

Source: Agent2Agent protocol 0.3, `message/send`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.errors import HarnessError
from harness.graph.context import NodeContext
from harness.graph.effects import http_call


class RemoteAgentError(HarnessError):
    """A remote agent answered with an error, or with something that is no A2A answer."""

    code = "remote-agent"


async def ask(agent_id: str, url: str, text: str, ctx: NodeContext) -> str | None:
    """The text a remote agent answers, None when it has none (it asks for input, say).

    Raises:
        RemoteAgentError: the agent failed.
    """
    message = {
        "kind": "message",
        "role": "user",
        "messageId": ctx.new_id("message"),
        "parts": [{"kind": "text", "text": text}],
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    hint = f"or answer for the agent under `agents: {{{agent_id}: …}}`"
    call = http_call("POST", url, json=request, hint=hint)
    reply = await ctx.perform(call)
    if reply.status >= 400 or not isinstance(reply.json, Mapping):
        raise RemoteAgentError(f"agent '{agent_id}' answers with status {reply.status}: {reply.text[:200]}")
    if "error" in reply.json:
        error = reply.json["error"]
        raise RemoteAgentError(f"agent '{agent_id}': {error.get('message', error)}")
    return _text(reply.json.get("result"))


def _text(result: Any) -> str | None:
    """The text of a message, or of a finished task: its artifacts, else its status message."""
    if not isinstance(result, Mapping):
        return None
    if result.get("kind") == "message":
        return _joined(result.get("parts", ()))
    status = result.get("status")
    if not isinstance(status, Mapping):
        raise RemoteAgentError(f"an answer that is neither a message nor a task: {result}")
    if status.get("state") == "failed":
        raise RemoteAgentError(_joined(status.get("message", {}).get("parts", ())) or "the task failed")
    for artifact in result.get("artifacts", ()):
        return _joined(artifact.get("parts", ()))
    return _joined(status.get("message", {}).get("parts", ()))


def _joined(parts: Iterable[Mapping[str, Any]]) -> str | None:
    texts = [str(part["text"]) for part in parts if part.get("kind") == "text"]
    return " ".join(texts) if texts else None
