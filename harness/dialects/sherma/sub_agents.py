"""Sub-agents: other agents that this one calls, as tools or from call_agent nodes. spec: "Multi-Agent".

Local agents (a manifest, a Python object) run for real, in the same world and clock, on a thread of their
own. Remote agents are called over HTTP unless the scenario answers for them. For agents of a registry it must
answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from langchain_core.messages import HumanMessage

from harness.dialects.kit.manifest import UnimportedObject
from harness.dialects.kit.tool_calls import BadArguments
from harness.dialects.request import LoadRequest
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.agent import SubAgent
from harness.dialects.sherma.tools import Arguments, Origin, Tool
from harness.engine.callables import call, contained
from harness.engine.context import NodeContext
from harness.engine.conversation import run_nested
from harness.errors import HarnessError, ManifestError, Problem, Span
from harness.graph.effects import AgentCall, HTTPCall, ToolSpec
from harness.graph.http_call import http_call
from harness.graph.messages import message_text
from harness.graph.model import Graph, NestedGraph

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
    calls = (_card_call(agent_id, url), _message_call(agent_id, url, {}))
    if not all(map(ctx.uses_backend, calls)):
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
    told = status.get("message", {})
    if status.get("state") == "failed":
        raise RemoteAgentError(_text_of_parts(told.get("parts", ())) or "the task failed")
    return _text_of_parts(next(iter(result.get("artifacts", ())), told).get("parts", ()))


def _text_of_parts(parts: Iterable[Mapping[str, Any]]) -> str | None:
    texts = [str(part["text"]) for part in parts if part.get("kind") == "text"]
    return " ".join(texts) if texts else None


Load = Callable[[LoadRequest], Graph]


class NotCallable(HarnessError):
    """An imported agent object has a type that cannot be run."""

    code = "agent-object"


def sub_agent(
    declared: doc.SubAgent, parent: LoadRequest, path: Path | None, imported: Any, where: Span, load: Load
) -> SubAgent:
    """Return a declared sub-agent.

    `path` is set for `yaml_path`, `imported` for `import_path`; `where` is the location for problems.
    """
    manifest = local_manifest(declared, parent, path, imported, where)

    @cache
    def graph() -> Graph:
        assert manifest is not None
        return load(manifest)

    async def nested(text: str, ctx: NodeContext) -> str | None:
        _report_manifest_warnings(graph(), ctx)
        ending = await run_nested(ctx, graph(), text)
        # A pause inside a sub-agent does not reach its caller.
        return None if ending.status == "interrupted" else _last_text(ending.state)

    async def ask(text: str, ctx: NodeContext) -> str | None:
        async def real() -> str | None:
            if manifest is not None:
                return await nested(text, ctx)
            if declared.url is not None:
                return await send_message(declared.id, declared.url, text, ctx)
            return await _call_object(imported, text, declared)

        has_source = manifest is not None or imported is not None or declared.url is not None
        effect = AgentCall(name=declared.id, args={"input": text}, real=real if has_source else None)
        answer = await ctx.perform(effect)
        return None if answer is None else str(answer)

    card = getattr(imported, "agent_card", None)
    return SubAgent(
        declared.id,
        declared.version,
        ask,
        declared.url,
        str(getattr(card, "description", None) or ""),
        inside=NestedGraph((manifest.path, manifest.agent, manifest.text), graph) if manifest else None,
        is_python=imported is not None and manifest is None,
        is_unimported=isinstance(imported, UnimportedObject),
    )


def _report_manifest_warnings(graph: Graph, ctx: NodeContext) -> None:
    """Report the warnings of a sub-agent's manifest, which is compiled at the first call, once per run."""
    simulation = ctx.run.simulation
    raised: set[Problem] = simulation.resources.setdefault(_REPORTED, set())
    for warning in graph.warnings:
        if warning not in raised:
            raised.add(warning)
            simulation.warn(replace(warning, span=None).one_line, warning.span)


_REPORTED: Final = "warnings of sub-agents' manifests"


def _last_text(state: Any) -> str | None:
    messages = state.get("messages") or ()
    return message_text(messages[-1]) if messages else None


async def _call_object(imported: Any, text: str, declared: doc.SubAgent) -> str | None:
    """Call an imported object: an agent of sherma, a LangGraph graph, or a function that takes the text."""
    what = f"agent '{declared.id}' ({declared.import_path})"
    otherwise = "answer for it under `agents:` in the scenario"
    if hasattr(imported, "yaml_content"):
        raise NotCallable(f"{what} has no manifest: give it yaml_path or yaml_content, or {otherwise}")
    if hasattr(imported, "send_message"):
        return await contained(_send_message(imported, text))
    if hasattr(imported, "ainvoke"):
        return _last_text(await imported.ainvoke({"messages": [HumanMessage(content=text)]}))
    if callable(imported):
        answer = await call(imported, text)
        return None if answer is None else str(answer)
    raise NotCallable(f"{what} is of type {type(imported).__name__}, which cannot be run here: {otherwise}")


async def _send_message(agent: Any, text: str) -> str | None:
    """Send text to an agent of the package sherma, as its call_agent nodes do; None if no message ends the answer."""
    from a2a.types import Message, Part, Role, TextPart

    request = Message(message_id="message", role=Role.user, parts=[Part(root=TextPart(text=text))])
    events = [event async for event in agent.send_message(request)]
    if not events or not isinstance(events[-1], Message):
        return None
    return " ".join(part.root.text for part in events[-1].parts if part.root.kind == "text")


def local_manifest(
    declared: doc.SubAgent, parent: LoadRequest, path: Path | None, imported: Any, where: Span
) -> LoadRequest | None:
    """Return the request for a local sub-agent's manifest: a file, or that of a `DeclarativeAgent`; else None.

    Variables, import folders and readable folders are those of the parent. Problems without a place in the
    manifest, such as a missing file or a bad hook object, are located at `where`.
    """
    if path is not None:
        return parent.for_manifest(path, declared.id)
    yaml_path, text = getattr(imported, "yaml_path", None), getattr(imported, "yaml_content", None)
    config = getattr(imported, "config", None) if hasattr(imported, "yaml_content") else None
    if config is not None:
        yaml_path, text = None, _text_of(config, where)
    if yaml_path is None and text is None:
        return None
    base = getattr(imported, "base_path", None)
    return replace(
        parent.for_manifest(Path(yaml_path or declared.id), getattr(imported, "id", declared.id)),
        hooks=tuple(getattr(imported, "hooks", ())),
        named_at=where,
        text=None if yaml_path is not None else text,
        base=Path(base) if base is not None else None,
    )


def _text_of(config: Any, where: Span) -> str:
    """Return the manifest that sherma has parsed. Its variables are substituted, so each `$` stands for itself.

    Raises:
        ManifestError: it contains values that YAML has not.
    """
    try:
        written = _escaped(config.model_dump(by_alias=True, exclude_unset=True))
        return str(yaml.safe_dump(written, sort_keys=False, allow_unicode=True))
    except yaml.YAMLError as error:
        text = f"the config of this agent cannot be written as YAML: {error}"
        raise ManifestError(Problem("agent-object", text, where)) from None


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    return value.replace("$", "$$") if isinstance(value, str) else value


def sub_agent_tool(agent: SubAgent) -> Tool:
    """Return the tool that calls a sub-agent, which has no version: of several versions, the last is bound.

    Its one argument is `request`; no answer becomes "".
    """
    schema = {
        "type": "object",
        "required": ["request"],
        "properties": {"request": {"type": "string", "description": "Natural language request to the agent"}},
    }

    async def call(args: Arguments, ctx: NodeContext) -> str:
        request = args.get("request")
        if not isinstance(request, str):
            why = "request: must be a text" if "request" in args else "request: Field required"
            raise BadArguments(why, AgentCall(name=agent.id, args=args))
        return await agent.call(request, ctx) or ""

    spec = ToolSpec(agent.id, agent.description or f"Invoke agent: {agent.id}", schema)
    return Tool(agent.id, "*", spec, call, Origin.SUB_AGENT)
