"""The connectors of external agents and of programmatic agents with an integration. NOTES 1.7.

spec: "connector_config fields per framework".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, get_args

from harness.dialects.kit.manifest import Problems, warning
from harness.dialects.leafmesh.document import AGENT_TYPES, Agent
from harness.dialects.leafmesh.fields import (
    CONNECTORS,
    MCP,
    Connector,
    Framework,
    Integration,
    Section,
    fallbacks_of,
    required_fields,
    with_fallbacks,
)
from harness.dialects.leafmesh.path_patterns import EACH, matches
from harness.errors import Problem
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath
from harness.source.keys import models_at
from harness.source.models import keys_of, validate

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
        if key not in _UNIVERSAL and key not in _OF_TYPE[kind] and (owners := types_with_field(key)):
            text = f"'{key}' of agent '{name}' is not a field of {kind} agents"
            hint = f"it belongs to agent_type {' or '.join(owners)}"
            yield Problem("other-type", text, document.key_span((*path, key)), hint)
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


Steps = tuple[tuple[bool, str | int], ...]


def unknown_keys(model: type[Section], document: Document, path: DocumentPath = ()) -> Iterator[Problem]:
    """Yield a problem for each unknown key in the section at `path` and in the sections inside it."""
    yield from _walk(document.at(path).value, [model], (), document, path)


def _walk(
    value: Any, sections: Sequence[type[Section]], steps: Steps, document: Document, path: DocumentPath
) -> Iterator[Problem]:
    """Yield the problems of a value; `steps` lead to it from one of these sections."""
    if not isinstance(value, dict | list):
        return
    if isinstance(value, dict) and (found := _sections_at(value, sections, steps, path)):
        yield from _check_section(value, found, document, path)
        sections, steps = found, ()
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        step = (True, key if isinstance(key, str) else 0)  # all items of a list have the same model
        yield from _walk(item, sections, (*steps, step), document, (*path, key))


def _sections_at(
    value: dict[str, Any], sections: Sequence[type[Section]], steps: Steps, path: DocumentPath
) -> list[type[Section]]:
    """Return the models of a mapping; empty if it is not a section."""
    if len(path) == 2 and path[0] == "agents":
        kind = agent_type(value)
        return [AGENT_TYPES[kind]] if kind else []
    return list(dict.fromkeys(at for section in sections for at in _sections_of(section, steps)))


@lru_cache(maxsize=1024)
def _sections_of(section: type[Section], steps: Steps) -> list[type[Section]]:
    return [model for model in models_at(section, steps) if issubclass(model, Section)]


def _check_section(
    value: dict[str, Any], models: Sequence[type[Section]], document: Document, path: DocumentPath
) -> Iterator[Problem]:
    if any(model.allows_any_key or model.model_config.get("extra") == "forbid" for model in models):
        return
    known = [key for model in models for key in keys_of(model)]
    elsewhere: Mapping[str, str] = getattr(models[0], "elsewhere", {})
    of_agent = models[0] in AGENT_TYPES.values()
    for key in value:
        if key in known or (of_agent and types_with_field(key)):
            continue
        text = f"unknown key '{key}' in {models[0].model_config.get('title')}"
        where = document.key_span((*path, key))
        hint = elsewhere.get(key) or did_you_mean(key, known, listing=False)
        if hint and any(model.refuses_misspellings for model in models):
            yield Problem("unknown-key", text, where, hint)
        else:
            yield warning("unknown-key", f"{text}: it is ignored", where, hint)


CONFIG: Final = "connector_config"


def read_connectors(document: Document, env: Mapping[str, str]) -> tuple[dict[str, Connector], list[Problem]]:
    """Return the connectors by agent, and their errors and warnings. Fallback variables come from `env`."""
    found: dict[str, Connector] = {}
    problems = Problems()
    for path, agent in matches(document.value, "agents", EACH):
        kind = _framework(agent)
        if kind is None or not isinstance(agent.get(CONFIG, {}), dict):  # a problem of the agent itself
            continue
        name, model = str(path[-1]), CONNECTORS[kind]
        if CONFIG in agent:
            problems.add(unknown_keys(model, document, (*path, CONFIG)))
        with problems.collecting():
            written = validate(model, document, (*path, CONFIG)) if CONFIG in agent else model()
            found[name] = with_fallbacks(written, env)
            problems.add(_missing_fields(found[name], name, kind, document, path))
    return found, [*problems.errors, *problems.warnings]


def _framework(agent: Any) -> str | None:
    """Return the framework of an external agent, the integration of a programmatic one; else None."""
    match agent:
        case {"agent_type": "external", "framework": str(kind)} if kind in get_args(Framework):
            return kind
        case {"agent_type": "programmatic", "integration": str(kind)} if kind in get_args(Integration):
            return kind
        case _:
            return None


def _missing_fields(
    connector: Connector, name: str, kind: str, document: Document, path: DocumentPath
) -> Iterator[Problem]:
    """Yield an error for each required field that is empty after the fallbacks."""
    where = document.key_span((*path, CONFIG))
    for needed in required_fields(connector):
        if not any(getattr(connector, field) for field in needed):
            variables = [name for field in needed for name in fallbacks_of(type(connector), field)]
            text = f"{CONFIG} of agent '{name}' needs {' or '.join(map(repr, needed))}: it is a connector for {kind}"
            given = f"give it here, or as {' or '.join(variables)} under 'env' in the scenario"
            hint = given if variables else ""
            if isinstance(connector, MCP) and "command" in needed and connector.url:
                hint = "for a server at a url write `transport: http`; the default is stdio"
            yield Problem("missing-key", text, where, hint)
