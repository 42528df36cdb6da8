"""Rules for the fields of a mesh file: those of other types of agents, unknown keys, the connectors of agents, fields
without effect in a simulated run, and the names that conditions read. NOTES 1.7, 17.

spec: "connector_config fields per framework".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, get_args

from harness.dialects.kit.manifest import Problems
from harness.dialects.kit.rules import warning
from harness.dialects.leafmesh import conditions, fields
from harness.dialects.leafmesh.agents import output_of
from harness.dialects.leafmesh.conditions import INPUT, OUTPUT, Condition
from harness.dialects.leafmesh.dialect import EACH, Match, matches
from harness.dialects.leafmesh.document import AGENT_TYPES, Agent, HumanAgent, LLMAgent, Mesh
from harness.dialects.leafmesh.llm_agent import schema_of
from harness.dialects.leafmesh.routing import reads_narrations
from harness.errors import Problem, Span
from harness.source.display import did_you_mean, nearest
from harness.source.document import Document, DocumentPath
from harness.source.keys import models_at
from harness.source.models import keys_of, validate

_UNIVERSAL: Final = frozenset(keys_of(Agent))
_OF_TYPE: Final[Mapping[str, list[str]]] = {
    name: [key for key in keys_of(model) if key not in _UNIVERSAL] for name, model in AGENT_TYPES.items()
}
CONFIG: Final = "connector_config"


def field_problems(document: Document) -> Iterator[Problem]:
    """Yield fields that an agent may not have, and `webhook` humans without an address."""
    for path, agent in matches(document.value, "agents", EACH):
        if isinstance(agent, dict) and (kind := agent_type(agent)) is not None:
            yield from _check_agent(document.at(path), path[-1], kind)


def agent_type(agent: Mapping[str, Any]) -> str | None:
    """Return the type of an agent in the raw file; None if it is invalid."""
    kind = agent.get("agent_type", "llm")
    return kind if isinstance(kind, str) and kind in AGENT_TYPES else None


def types_with_field(key: str) -> list[str]:
    """Return the agent types that have a field of their own with this name."""
    return [kind for kind, own in _OF_TYPE.items() if key in own]


def _check_agent(agent: Document, name: str | int, kind: str) -> Iterator[Problem]:
    for key in agent.value:
        if key not in _UNIVERSAL and key not in _OF_TYPE[kind] and (owners := types_with_field(key)):
            text = f"'{key}' of agent '{name}' is not a field of {kind} agents"
            hint = f"it belongs to agent_type {' or '.join(owners)}"
            yield Problem("other-type", text, agent.key_span((key,)), hint)
    if kind == "human":
        yield from _check_human(agent, name)
    if kind == "programmatic" and CONFIG in agent.value and not agent.value.get("integration"):
        text = f"'connector_config' of agent '{name}' needs an 'integration' next to it"
        yield Problem("no-integration", text, agent.key_span((CONFIG,)))


def _check_human(agent: Document, name: str | int) -> Iterator[Problem]:
    interface = agent.value.get("human_interface", "api")
    if interface == "webhook":
        webhook, channels = agent.value.get("webhook_config"), agent.value.get("channels")
        if not (isinstance(webhook, dict) and webhook.get("outbound_url")) and not channels:
            needed = "human_interface: webhook needs webhook_config.outbound_url or channels"
            text = f"agent '{name}' has nowhere to send to: {needed}"
            yield Problem("nowhere-to-send", text, agent.span(("human_interface",)))
    elif interface in ("default", "api", "custom"):
        for key in ("webhook_config", "channels"):
            if agent.value.get(key) is not None:
                text = f"'{key}' of agent '{name}' does nothing with human_interface: {interface}"
                hint = "write human_interface: webhook, or leave it out"
                yield Problem("other-interface", text, agent.key_span((key,)), hint)


Steps = tuple[tuple[bool, str | int], ...]


def unknown_keys(
    model: type[fields.Section], document: Document, path: DocumentPath = ()
) -> Iterator[Problem]:
    """Yield a problem for each unknown key in the section at `path` and in the sections inside it."""
    yield from _walk(document.at(path).value, [model], (), document, path)


def _walk(
    value: Any, sections: Sequence[type[fields.Section]], steps: Steps, document: Document, path: DocumentPath
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
    value: dict[str, Any], sections: Sequence[type[fields.Section]], steps: Steps, path: DocumentPath
) -> list[type[fields.Section]]:
    """Return the models of a mapping; empty if it is not a section."""
    if len(path) == 2 and path[0] == "agents":
        kind = agent_type(value)
        return [AGENT_TYPES[kind]] if kind else []
    return list(dict.fromkeys(at for section in sections for at in _sections_of(section, steps)))


@lru_cache(maxsize=1024)
def _sections_of(section: type[fields.Section], steps: Steps) -> list[type[fields.Section]]:
    return [model for model in models_at(section, steps) if issubclass(model, fields.Section)]


def _check_section(
    value: dict[str, Any], models: Sequence[type[fields.Section]], document: Document, path: DocumentPath
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


def read_connectors(
    document: Document, env: Mapping[str, str], problems: Problems
) -> dict[str, fields.Connector]:
    """Return the connectors by agent; their errors and warnings are added. Fallback variables come from `env`."""
    found: dict[str, fields.Connector] = {}
    for path, agent in matches(document.value, "agents", EACH):
        kind = _framework(agent)
        if kind is None or not isinstance(agent.get(CONFIG, {}), dict):  # a problem of the agent itself
            continue
        name, model = str(path[-1]), fields.CONNECTORS[kind]
        if CONFIG in agent:
            problems.add(unknown_keys(model, document, (*path, CONFIG)))
        with problems.collecting():
            written = validate(model, document, (*path, CONFIG)) if CONFIG in agent else model()
            found[name] = fields.with_fallbacks(written, env)
            problems.add(_missing_fields(found[name], name, kind, document.key_span((*path, CONFIG))))
    return found


def _framework(agent: Any) -> str | None:
    """Return the framework of an external agent, the integration of a programmatic one; else None."""
    match agent:
        case {"agent_type": "external", "framework": str(kind)} if kind in get_args(fields.Framework):
            return kind
        case {"agent_type": "programmatic", "integration": str(kind)} if kind in get_args(fields.Integration):
            return kind
        case _:
            return None


def _missing_fields(connector: fields.Connector, name: str, kind: str, where: Span) -> Iterator[Problem]:
    """Yield an error for each required field that is empty after the fallbacks."""
    for needed in fields.required_fields(connector):
        if not any(getattr(connector, field) for field in needed):
            variables = [each for field in needed for each in fields.fallbacks_of(type(connector), field)]
            text = f"{CONFIG} of agent '{name}' needs {' or '.join(map(repr, needed))}: it is a connector for {kind}"
            given = f"give it here, or as {' or '.join(variables)} under 'env' in the scenario"
            hint = given if variables else ""
            if isinstance(connector, fields.MCP) and "command" in needed and connector.url:
                hint = "for a server at a url write `transport: http`; the default is stdio"
            yield Problem("missing-key", text, where, hint)


_FIELDS: Final[Mapping[Sequence[Any], Sequence[str]]] = {
    (): ("debug", "log_level", "environment", "redis", "api", "mesh", "data_structures"),
    ("manager",): (
        *("domain", "coordination_rules", "chain_completion_timeout", "health_check_interval", "knowledge"),
        *("human_input_rules", "timeout_rules", "workflow_pause_rules", "human_response_rules"),
    ),
    ("agents", EACH): (
        *("wake_up", "reasoning", "thinking", "thinking_budget", "enable_prompt_caching"),
        *("optimization_strategy", "human_context_template", "require_human_confirmation"),
        *("human_escalation_triggers", "operator_ids", "is_human_powered"),
    ),
    ("agents", EACH, "memory"): ("cross_session",),
    ("agents", EACH, "webhook_config"): ("inbound_endpoint", "inbound_auth_token", "response_mapping"),
    ("agents", EACH, "connector_config"): ("poll_interval", "max_poll_seconds"),
}
_VALUES: Final[Mapping[Sequence[Any], Sequence[str]]] = {
    ("manager", "routing", "mode"): ("learning",),
    ("agents", EACH, "memory", "strategy"): ("relevance", "hybrid"),
}
"""Fields for which these values behave like the default."""
_NEEDED: Final[Mapping[str, tuple[str, Any, str]]] = {
    "max_concurrent": ("parallel", False, "parallel: true"),
    "wait_for_timeout": ("wait_for", None, "wait_for"),
    "enforce_yields": ("yields", None, "yields"),
    "enforce_yields_retry": ("enforce_yields", False, "enforce_yields: true"),
    "fallback_response": ("fallback_on_timeout", True, "fallback_on_timeout: true"),
    "memory_limit": ("memory", False, "memory"),
}
"""Agent fields that count only together with another: its name, its default, and the required setting."""


def no_effect_notes(mesh: Mesh, document: Document) -> Iterator[Problem]:
    """Yield a note for each section and field without effect, at its first occurrence."""
    for section, keys in _FIELDS.items():
        for key in keys:
            yield from _note(document, [p for p in matches(document.value, *section, key) if p.value])
    for pattern, values in _VALUES.items():
        for value in values:
            found = [p for p in matches(document.value, *pattern) if p.value == value]
            yield from _note(document, found, f": {value}")
    for path, agent in matches(document.value, "agents", EACH):
        for key, (needed, default, written) in _NEEDED.items() if isinstance(agent, dict) else ():
            if agent.get(key) and not agent.get(needed, default):
                yield _no_effect(document, (*path, key), f"without `{written}`")
    for path, config in matches(document.value, "agents", EACH, "connector_config"):
        yield from _connector_notes(document, path, config)
    yield from _manager_notes(mesh, document)
    for name, one in mesh.agents.items():
        if one.enabled_knowledge is not None and not isinstance(one, LLMAgent):
            why = "in a simulated run: only llm agents look it up"
            yield _no_effect(document, ("agents", name, "knowledge"), why)


def _connector_notes(document: Document, path: DocumentPath, config: Any) -> Iterator[Problem]:
    """Yield notes for keys of the other mode or transport. spec: "Common connector_config fields", "mcp"."""
    if not isinstance(config, dict):
        return
    needed = {"callback_timeout": ("mode", "sync", "callback")}
    if "tool_name" in config:
        needed |= dict.fromkeys(("url", "auth_token"), ("transport", "stdio", "http"))
        needed |= dict.fromkeys(("command", "args", "env"), ("transport", "stdio", "stdio"))
    for key, (field, default, value) in needed.items():
        if key in config and config.get(field, default) != value:
            yield _no_effect(document, (*path, key), f"without `{field}: {value}`")


def _manager_notes(mesh: Mesh, document: Document) -> Iterator[Problem]:
    """Yield notes for keys that need an enabled manager or its Summarizer. spec: "Narration Routing"."""
    narrating = [("agents", name, "narration") for name, agent in mesh.agents.items() if agent.narration]
    if not reads_narrations(mesh):
        needed = "manager.can_intervene" if mesh.manager.enabled else "manager.enabled"
        yield from (_no_effect(document, path, f"without `{needed}: true`") for path in narrating)
    if not mesh.manager.enabled and mesh.manager.escalation is not None:
        yield _no_effect(document, ("manager", "escalation"), "without `manager.enabled: true`")
    if not narrating or not reads_narrations(mesh):
        for key in ("prompt", "model"):
            if key in mesh.manager.model_fields_set:
                why = "without a `narration` of an agent for it to read"
                yield _no_effect(document, ("manager", key), why)


def _no_effect(document: Document, path: DocumentPath, why: str) -> Problem:
    what = f"'{path[-1]}' of agent '{path[1]}'" if path[0] == "agents" else f"'{path[0]}.{path[-1]}'"
    return Problem("no-effect", f"{what} changes nothing {why}", document.key_span(path), severity="note")


def _note(document: Document, found: Sequence[Match], value: str = "") -> Iterator[Problem]:
    if found:
        path = found[0].path
        names = [str(step) for step in path]
        shown = ".".join(names[2:] if names[0] == "agents" else names) + value
        others = f", here and at {len(found) - 1} more" if len(found) > 1 else ""
        text = f"'{shown}' changes nothing in a simulated run{others}"
        yield Problem("no-effect", text, document.key_span(path), severity="note")


_NEAR: Final = 0.8
_LIKE_ELSE: Final = ("else", "otherwise", "default")


def condition_warnings(mesh: Mesh, document: Document) -> Iterator[Problem]:
    """Yield a warning for each suspicious name in a condition."""
    for name, agent in mesh.agents.items():
        for at, call in enumerate(agent.can_call):
            condition = conditions.parse(call.condition)
            where = document.span(("agents", name, "can_call", at, "condition"))
            yield from _warnings_of(condition, (OUTPUT,), _declared_output(agent), where)
            yield from _type_warnings(condition, agent.yields, where)
    for at, entry in enumerate(mesh.entry_points):
        condition = conditions.parse(entry.condition, of_input=True)
        where = document.span(("entry_points", at, "condition"))
        inputs = mesh.agents[entry.target].inputs
        yield from _warnings_of(condition, (OUTPUT, INPUT), inputs, where)
        yield from _type_warnings(condition, inputs, where)


_TYPES_OF: Final = {str: "string", int: "number", float: "number", bool: "boolean"}
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")


def _type_warnings(condition: Condition, declared: Mapping[str, Any], where: Span) -> Iterator[Problem]:
    """Yield a warning for each comparison of a field with a value of another type, which is not converted."""
    for (field, *rest), sign, value in condition.tests:
        type_, found = declared.get(field), _TYPES_OF.get(type(value))
        if rest or found is None:
            continue
        is_order = sign not in ("==", "!=")
        if type_ in _TYPES_OF.values() and type_ != found:
            always = "true" if sign == "!=" else "false"
            text = f"the condition compares '{field}', a {type_}, with {value!r}, a {found}: it is always {always}"
        elif type_ is None and is_order and found == "string" and _NUMBER.fullmatch(value):
            text = f"the condition compares '{field}' with the text {value!r}: it is false for every number"
        else:
            continue
        hint = f"write {value} without quotes" if found == "string" and _NUMBER.fullmatch(value) else ""
        yield warning("other-type", text, where, hint)


def _declared_output(agent: Agent) -> list[str]:
    """Return the output fields of an agent that are known before it runs."""
    known = list(agent.yields)
    if isinstance(agent, HumanAgent):
        known += output_of({}, "", "")
    if isinstance(agent, LLMAgent) and agent.response_format is not None:
        properties = schema_of(agent.response_format).get("properties")
        known += properties if isinstance(properties, dict) else []
    return known


def _warnings_of(
    condition: Condition, roots: Collection[str], known: Collection[str], where: Span
) -> Iterator[Problem]:
    """Yield the warnings for one condition.

    `roots` are the names that stand for the whole output or input, `known` are its declared fields.
    """
    for first, *rest in condition.paths:
        if first in known:
            continue
        near_root = nearest(first, roots, cutoff=_NEAR) if rest else None
        if meant := near_root or nearest(first, known, cutoff=_NEAR):
            text = f"the condition reads a field '{first}', which nothing declares"
            yield warning("unknown-name", text, where, f"did you mean '{meant}'?")
        elif first in condition.words and (known or any(root in str(condition.text) for root in roots)):
            text = f"the condition compares with a field '{first}', which nothing declares"
            yield warning("unknown-name", text, where, f"text is written in quotes: '{first}'")
        elif condition.text in _LIKE_ELSE:
            text = f"the condition `{condition.text}` reads a field of that name, which nothing declares"
            hint = "every entry whose condition holds is called; one without a condition always is"
            yield warning("unknown-name", text, where, hint)
