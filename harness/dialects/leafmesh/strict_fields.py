"""The fields that an agent may have, by its `agent_type` and by the `human_interface` of a human agent.

spec: "STRICT — fields by `agent_type`", "STRICT — `human_interface` rules"; NOTES 1.4, 1.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.dialects.leafmesh.document import AGENT_TYPES, Agent
from harness.dialects.leafmesh.path_patterns import EACH, matches
from harness.errors import Problem
from harness.source.document import Document, DocumentPath
from harness.source.models import keys_of

_UNIVERSAL: Final = frozenset(keys_of(Agent))
_OF_TYPE: Final[Mapping[str, list[str]]] = {
    name: [key for key in keys_of(model) if key not in _UNIVERSAL] for name, model in AGENT_TYPES.items()
}
_WEBHOOK_KEYS: Final = ("webhook_config", "channels")


def field_problems(document: Document) -> Iterator[Problem]:
    """Yield fields that an agent may not have, and `webhook` humans without an address."""
    for path, agent in matches(document.value, "agents", EACH):
        if isinstance(agent, dict) and (kind := agent_type(agent)) is not None:
            yield from _check_agent(document, path, agent, kind)


def agent_type(agent: Mapping[str, Any]) -> str | None:
    """Return the type of an agent in the raw file; None if it is invalid."""
    kind = agent.get("agent_type", "llm")
    return kind if isinstance(kind, str) and kind in AGENT_TYPES else None


def types_with_field(key: str) -> list[str]:
    """Return the agent types that have a field of their own with this name."""
    return [kind for kind, fields in _OF_TYPE.items() if key in fields]


def _check_agent(
    document: Document, path: DocumentPath, agent: Mapping[str, Any], kind: str
) -> Iterator[Problem]:
    name = path[-1]
    for key in agent:
        where = document.key_span((*path, key))
        if key in _UNIVERSAL or key in _OF_TYPE[kind]:
            continue
        if types_with_field(key):
            text = f"'{key}' of agent '{name}' is not a field of {kind} agents"
            hint = f"it belongs to agent_type {' or '.join(types_with_field(key))}"
            yield Problem("other-type", text, where, hint)
    if kind == "human":
        yield from _check_human(document, path, agent)
    if kind == "programmatic" and "connector_config" in agent and not agent.get("integration"):
        text = f"'connector_config' of agent '{name}' needs an 'integration' next to it"
        yield Problem("no-integration", text, document.key_span((*path, "connector_config")))


def _check_human(document: Document, path: DocumentPath, agent: Mapping[str, Any]) -> Iterator[Problem]:
    name, interface = path[-1], agent.get("human_interface", "api")
    if interface == "webhook":
        webhook = agent.get("webhook_config")
        if not (isinstance(webhook, dict) and webhook.get("outbound_url")) and not agent.get("channels"):
            needed = "human_interface: webhook needs webhook_config.outbound_url or channels"
            text = f"agent '{name}' has nowhere to send to: {needed}"
            yield Problem("nowhere-to-send", text, document.span((*path, "human_interface")))
    elif interface in ("default", "api", "custom"):
        for key in _WEBHOOK_KEYS:
            if agent.get(key) is not None:
                text = f"'{key}' of agent '{name}' does nothing with human_interface: {interface}"
                hint = "write human_interface: webhook, or leave it out"
                yield Problem("other-interface", text, document.key_span((*path, key)), hint)
