"""Remote agents over A2A: one JSON-RPC message, sent as an `http` effect. spec: `sub_agents`, url.

Stubs answer at the agent's URL. A real agent has a card below that URL, which names its endpoint and says
whether it streams. Source: Agent2Agent protocol 0.3, `message/send` and `message/stream`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import HTTPCall, http_call

_CARD: Final = "/.well-known/agent-card.json"


class RemoteAgentError(HarnessError):
    """A remote agent answered with an error, or not with an A2A response."""

    code = "remote-agent"


async def send_message(agent_id: str, url: str, text: str, ctx: NodeContext) -> str | None:
    """Send text to a remote agent; return the text of its answer, or None if that has none.

    Raises:
        RemoteAgentError: the agent failed.
    """
    message = {
        "kind": "message",
        "role": "user",
        "messageId": ctx.new_id("message"),
        "parts": [{"kind": "text", "text": text}],
    }
    call = _message_call(agent_id, url, message)
    if ctx.uses_backend(call):
        card = await _card(agent_id, url, ctx)
        capabilities = card.get("capabilities")
        streams = isinstance(capabilities, Mapping) and capabilities.get("streaming") is True
        call = _message_call(agent_id, str(card.get("url") or url), message, streams=streams)
    reply = await ctx.perform(call)
    answers = _parse_events(reply.text) if reply.json is None else [reply.json]
    if reply.status >= 400 or not answers or not all(isinstance(one, Mapping) for one in answers):
        raise RemoteAgentError(f"agent '{agent_id}' answers with status {reply.status}: {reply.text[:200]}")
    for one in answers:
        if "error" in one:
            error = one["error"]
            why = error.get("message", error) if isinstance(error, Mapping) else error
            raise RemoteAgentError(f"agent '{agent_id}': {why}")
    return _answer_text(_combined([one.get("result") for one in answers]))


async def description(agent_id: str, url: str, ctx: NodeContext) -> str:
    """Return the description in a remote agent's card, for models; "" if stubs answer for the agent.

    Raises:
        RemoteAgentError: it has no card.
    """
    if not ctx.uses_backend(_card_call(agent_id, url)) or not ctx.uses_backend(
        _message_call(agent_id, url, {})
    ):
        return ""
    return str((await _card(agent_id, url, ctx)).get("description") or "")


async def _card(agent_id: str, url: str, ctx: NodeContext) -> Mapping[str, Any]:
    """Return the agent's card, which is fetched once per run."""
    cards = ctx.run.resources.setdefault("agent cards", {})
    if url not in cards:
        reply = await ctx.perform(_card_call(agent_id, url))
        if reply.status >= 400 or not isinstance(reply.json, Mapping):
            found = f"status {reply.status}: {reply.text[:200]}"
            raise RemoteAgentError(f"agent '{agent_id}' has no card at {url}{_CARD}: {found}")
        cards[url] = reply.json
    card: Mapping[str, Any] = cards[url]
    return card


def _card_call(agent_id: str, url: str) -> HTTPCall:
    return http_call("GET", url.rstrip("/") + _CARD, hint=_hint(agent_id))


def _message_call(agent_id: str, url: str, message: Mapping[str, Any], *, streams: bool = False) -> HTTPCall:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/stream" if streams else "message/send",
        "params": {"configuration": {"acceptedOutputModes": [], "blocking": True}, "message": message},
    }
    headers = {"accept": "text/event-stream"} if streams else None
    return http_call("POST", url, json=request, headers=headers, hint=_hint(agent_id))


def _hint(agent_id: str) -> str:
    return f"or answer for the agent under `agents: {{{agent_id}: …}}`"


def _parse_events(text: str) -> list[Any]:
    """Return the JSON data of a server-sent event stream; other data is skipped."""
    found = []
    for event in text.replace("\r\n", "\n").split("\n\n"):
        data = [line.removeprefix("data:") for line in event.splitlines() if line.startswith("data:")]
        try:
            found += [json.loads("\n".join(data))] if data else []
        except (ValueError, RecursionError):
            continue
    return found


def _combined(results: list[Any]) -> Any:
    """Combine the results of a stream: a message, or a task with its updates applied."""
    first = results[0]
    if len(results) == 1 or not isinstance(first, Mapping) or first.get("kind") == "message":
        return first
    task: dict[str, Any] = {"kind": "task", "status": {}, "artifacts": []}
    for result in results:
        match result:
            case {"kind": "task"}:
                task.update(result)
            case {"kind": "status-update", "status": status}:
                task["status"] = status
            case {"kind": "artifact-update", "artifact": {} as artifact}:
                task["artifacts"] = _apply_artifact(task.get("artifacts") or [], artifact)
    return task


def _apply_artifact(artifacts: list[Any], new: Mapping[str, Any]) -> list[Any]:
    """Apply an artifact update: extend the artifact of the same id, or add a new one."""
    for at, old in enumerate(artifacts):
        if old.get("artifactId") == new.get("artifactId"):
            joined = {**old, "parts": [*old.get("parts", ()), *new.get("parts", ())]}
            return [*artifacts[:at], joined, *artifacts[at + 1 :]]
    return [*artifacts, new]


def _answer_text(result: Any) -> str | None:
    """Return the text of a message, or of a task: its first artifact, else its status message."""
    if not isinstance(result, Mapping):
        return None
    if result.get("kind") == "message":
        return _text_of_parts(result.get("parts", ()))
    status = result.get("status")
    if not isinstance(status, Mapping):
        raise RemoteAgentError(f"an answer that is neither a message nor a task: {result}")
    if status.get("state") == "failed":
        raise RemoteAgentError(
            _text_of_parts(status.get("message", {}).get("parts", ())) or "the task failed"
        )
    for artifact in result.get("artifacts", ()):
        return _text_of_parts(artifact.get("parts", ()))
    return _text_of_parts(status.get("message", {}).get("parts", ()))


def _text_of_parts(parts: Iterable[Mapping[str, Any]]) -> str | None:
    texts = [str(part["text"]) for part in parts if part.get("kind") == "text"]
    return " ".join(texts) if texts else None
