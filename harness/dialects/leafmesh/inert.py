"""What a mesh file says that changes nothing in a simulated run, for `harness validate` to tell. NOTES 17."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.dialects.leafmesh.path_patterns import EACH, Match, matches
from harness.errors import Problem
from harness.source.document import Document

_FIELDS: Final[Mapping[Sequence[Any], Sequence[str]]] = {
    (): ("debug", "log_level", "environment", "redis", "api", "mesh", "data_structures"),
    ("manager",): (
        "domain",
        "coordination_rules",
        "chain_completion_timeout",
        "health_check_interval",
        "knowledge",
        "human_input_rules",
        "timeout_rules",
        "workflow_pause_rules",
        "human_response_rules",
    ),
    ("agents", EACH): (
        "wake_up",
        "reasoning",
        "thinking",
        "thinking_budget",
        "enable_prompt_caching",
        "optimization_strategy",
        "human_context_template",
        "require_human_confirmation",
        "human_escalation_triggers",
        "operator_ids",
    ),
    ("agents", EACH, "memory"): ("cross_session",),
    ("agents", EACH, "webhook_config"): ("inbound_endpoint", "inbound_auth_token", "response_mapping"),
    ("agents", EACH, "connector_config"): ("poll_interval", "max_poll_seconds"),
}
_VALUES: Final[Mapping[Sequence[Any], Sequence[str]]] = {
    ("manager", "routing", "mode"): ("learning",),
    ("agents", EACH, "memory", "strategy"): ("relevance", "hybrid"),
}
"""Fields of which these values mean the same as the default."""
_NEEDED: Final[Mapping[str, tuple[str, Any, str]]] = {
    "max_concurrent": ("parallel", False, "parallel: true"),
    "wait_for_timeout": ("wait_for", None, "wait_for"),
    "enforce_yields": ("yields", None, "yields"),
    "enforce_yields_retry": ("enforce_yields", False, "enforce_yields: true"),
    "fallback_response": ("fallback_on_timeout", True, "fallback_on_timeout: true"),
    "memory_limit": ("memory", False, "memory"),
}
"""Fields of an agent that count only beside another: that one, its default, and how it is to be written."""


def inert_notes(document: Document) -> Iterator[Problem]:
    """A note for each such section and field, at its first place."""
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
                text = f"'{key}' of agent '{path[-1]}' changes nothing without `{written}`"
                yield Problem("no-effect", text, document.key_span((*path, key)), severity="note")


def _note(document: Document, found: Sequence[Match], value: str = "") -> Iterator[Problem]:
    if found:
        path = found[0].path
        names = [str(step) for step in path]
        shown = ".".join(names[2:] if names[0] == "agents" else names) + value
        others = f", here and at {len(found) - 1} more" if len(found) > 1 else ""
        text = f"'{shown}' changes nothing in a simulated run{others}"
        yield Problem("no-effect", text, document.key_span(path), severity="note")
