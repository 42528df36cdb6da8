"""The connectors of external agents and of programmatic agents with an integration. NOTES 1.7.

spec: "connector_config fields per framework".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from harness.dialects.kit.manifest import Problems
from harness.dialects.leafmesh.connector_document import (
    CONNECTORS,
    MCP,
    Connector,
    Framework,
    Integration,
    Zapier,
)
from harness.dialects.leafmesh.fields import Fallback, with_fallbacks
from harness.dialects.leafmesh.path_patterns import EACH, matches
from harness.dialects.leafmesh.unknown_keys import unknown_keys
from harness.errors import Problem
from harness.source.document import Document, DocumentPath
from harness.source.models import validate

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
            variables = [f for field in needed for f in _fallbacks(type(connector), field)]
            text = f"{CONFIG} of agent '{name}' needs {' or '.join(map(repr, needed))}: it is a connector for {kind}"
            hint = (
                f"give it here, or as {' or '.join(variables)} under 'env' in the scenario"
                if variables
                else ""
            )
            if isinstance(connector, MCP) and "command" in needed and connector.url:
                hint = "for a server at a url write `transport: http`; the default is stdio"
            yield Problem("missing-key", text, where, hint)


def required_fields(connector: Connector) -> Iterator[tuple[str, ...]]:
    """Yield the fields that a connector needs for sending; one field of each tuple is enough."""
    for field in connector.required:
        yield (field,)
    if isinstance(connector, MCP):
        yield ("command",) if connector.transport == "stdio" else ("url",)
    if isinstance(connector, Zapier):
        yield ("connection", "action")


def _fallbacks(model: type[Connector], field: str) -> Iterator[str]:
    for item in model.model_fields[field].metadata:
        if isinstance(item, Fallback):
            yield from item.names
