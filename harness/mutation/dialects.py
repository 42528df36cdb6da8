"""The places where the documents of each dialect say what the operators change (`harness.mutation.places`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from harness.mutation.operators import (
    change_default,
    drop,
    loosen,
    negate,
    other_model,
    put,
    raise_limit,
    rename,
    rename_key,
    reorder,
    swap,
    value_of,
)


class Row(NamedTuple):
    """An operator at the places of some patterns. `swap` takes all places of one node together."""

    operator: str
    variation: Callable[[Any], Any]
    patterns: Sequence[str]


def _below(prefix: str, *keys: str) -> list[str]:
    return [f"{prefix}/{key}" for key in keys]


_NODE, _EDGE = "agents/*/graph/nodes/*@name", "agents/*/graph/edges/*@source"
_SHERMA: Final = (
    Row("route", negate("!({})"), _below(_EDGE, "branches/*/condition")),
    Row("route", swap, _below(_EDGE, "branches/*/target", "default", "target")),
    Row("route", drop, [*_below(_EDGE, "branches/*", "default"), _EDGE]),
    Row("route", reorder, _below(_EDGE, "branches")),
    Row("state", drop, _below(_NODE, "args/state_updates/*", "args/values/*")),
    Row("state", change_default, ["agents/*/state/fields/*/default"]),
    Row("call", drop, _below(_NODE, "args/tools/*", "args/response_format", "args/llm")),
    Row(
        "call",
        drop,
        _below(_NODE, *(f"args/use_{each}" for each in ("tools_from_registry", "sub_agents_as_tools"))),
    ),
    Row("call", other_model, ["llms/*/model_name"]),
    Row("guard", drop, _below(_NODE, "on_error", "on_error/retry", "on_error/fallback")),
    Row("guard", raise_limit, _below(_NODE, "on_error/retry/max_attempts")),
    Row("guard", raise_limit, ["agents/*/langgraph_config/recursion_limit"]),
    Row("guard", put(type="set_state", args={"values": {}}), ["agents/*/graph/nodes/*[type=interrupt]@name"]),
    Row("output", loosen, ["agents/*/output_schema"]),
)

_TYPED: Final = "**[component_type={}]{}"
_AGENT, _BRANCHING = _TYPED.format("Agent", ""), _TYPED.format("BranchingNode", "@name")
_SWARM, _MANAGED = _TYPED.format("Swarm", ""), _TYPED.format("ManagerWorkers", "")
_CONTROL, _DATA = (
    _TYPED.format("ControlFlowEdge", "@from_node"),
    _TYPED.format("DataFlowEdge", "@destination_node"),
)
_AGENTSPEC: Final = (
    Row("route", swap, _below(_BRANCHING, "mapping/*")),
    Row("route", drop, _below(_BRANCHING, "mapping/*")),
    Row("route", swap, _below(_CONTROL, "to_node")),
    Row("route", drop, ["**/control_flow_connections/*@from_node"]),
    Row("state", drop, ["**/data_flow_connections/*@destination_node"]),
    Row("state", drop, _below(_TYPED.format("MapNode", "@name"), "reducers/*")),
    Row("state", change_default, ["**/inputs/*/default", "**/outputs/*/default"]),
    Row("call", drop, _below(_AGENT, "tools/*")),
    Row(
        "call",
        rename,
        [f"{_TYPED.format(kind, '')}/name" for kind in ("ServerTool", "ClientTool", "RemoteTool")],
    ),
    Row("call", other_model, ["**/model_id"]),
    Row("call", drop, ["**/default_generation_parameters/*"]),
    Row("route", drop, [*_below(_SWARM, "relationships/*"), *_below(_MANAGED, "workers/*")]),
    Row("route", value_of("never"), _below(_SWARM, "handoff")),
    Row("call", drop, _below(_AGENT, "toolboxes/*", "transforms/*")),
    Row("guard", drop, ["**/retry_policy", "**/requires_confirmation", "**/url_allow_list"]),
    Row("guard", raise_limit, ["**/retry_policy/max_attempts"]),
    Row(
        "output",
        drop,
        [*_below(_AGENT, "outputs/*"), *_below(_TYPED.format("EndNode", "@name"), "outputs/*")],
    ),
    Row("output", rename, _below(_AGENT, "outputs/*/title")),
    Row("output", rename, _below(_TYPED.format("EndNode", "@name"), "outputs/*/title")),
    Row("output", drop, _below(_AGENT, "outputs/*/type")),
)

_STEP, _LINK = "nodes/*@id", "edges/*@source"
_YAGRA: Final = (
    Row("route", swap, _below(_LINK, "target")),
    Row("route", drop, [_LINK, *_below(_LINK, "fan_out", "condition")]),
    Row("call", other_model, _below(_STEP, "params/model/name")),
    Row("call", drop, _below(_STEP, "params/model/kwargs/*", "params/schema_yaml")),
    Row("guard", drop, _below(_STEP, "retry", "timeout_seconds", "fallback")),
    Row("guard", raise_limit, _below(_STEP, "retry/max_attempts", "timeout_seconds")),
    Row("guard", drop, ["interrupt_before/*@.", "interrupt_after/*@."]),
    Row("output", rename, _below(_STEP, "params/output_key")),
    Row("output", drop, _below(_STEP, "params/output_key")),
)

_POINT: Final = "nodes/*@"
_LOKI: Final = (
    Row("route", swap, _below(_POINT, "routes/*", "on_other", "next")),
    Row("route", drop, _below(_POINT, "routes/*", "next", "next/*")),
    Row("state", value_of("overwrite"), ["reducers/*"]),
    Row("state", drop, _below(_POINT, "state_updates/*")),
    Row("state", change_default, ["initial_state/*", "variables/*/default"]),
    Row(
        "call",
        drop,
        [*_below(_POINT, "tools/*", "output_schema", "temperature", "top_p", "model", "enabled_skills/*")],
    ),
    Row("call", drop, ["global_tools/*", "mcp_servers/*", "temperature", "top_p"]),
    Row("call", other_model, ["model", *_below(_POINT, "model")]),
    Row("guard", drop, _below(_POINT, "fallback", "timeout", "validation", "default")),
    Row("guard", raise_limit, _below(_POINT, "max_attempts", "max_iterations", "timeout")),
    Row(
        "guard", raise_limit, ["settings/max_loop_iterations", "settings/timeout", "settings/max_concurrency"]
    ),
    Row("output", loosen, _below(_POINT, "output_schema")),
    Row("output", value_of(""), ["nodes/*[type=end]@/output"]),
)

_MEMBER: Final = "agents/*@"
_LEAFMESH: Final = (
    Row("route", negate("not ({})"), [*_below(_MEMBER, "can_call/*/condition"), "entry_points/*/condition"]),
    Row("route", swap, _below(_MEMBER, "can_call/*/agent")),
    Row("route", drop, _below(_MEMBER, "can_call/*", "can_call/*/condition", "wait_for")),
    Row("route", reorder, _below(_MEMBER, "can_call")),
    Row(
        "call",
        drop,
        _below(_MEMBER, "tools/*", "temperature", "max_tokens", "response_format", "tool_choice"),
    ),
    Row("call", other_model, [*_below(_MEMBER, "model"), "manager/model"]),
    Row("guard", drop, _below(_MEMBER, "wait_for_timeout", "fallback_response", "human_timeout_seconds")),
    Row("guard", drop, _below(_MEMBER, "tool_call_timeout", "enforce_yields", "require_human_confirmation")),
    Row("guard", raise_limit, _below(_MEMBER, "enforce_yields_retry", "max_tool_calls_per_message")),
    Row("guard", drop, ["manager/escalation", "manager/chain_completion_timeout"]),
    Row("output", drop, _below(_MEMBER, "yields/*")),
    Row("output", rename_key, _below(_MEMBER, "yields/*")),
)

DIALECTS: Final[Mapping[str, Sequence[Row]]] = {
    "sherma": _SHERMA,
    "agentspec": _AGENTSPEC,
    "yagra": _YAGRA,
    "loki": _LOKI,
    "leafmesh": _LEAFMESH,
}
"""By dialect, what is changed where."""
WRITES_KEYS: Final = frozenset({"sherma", "loki"})
"""The dialects whose documents say which keys of the state each node writes."""
FIELDS: Final = {"sherma": "agents/*/state/fields/*@name", "yagra": "state_schema/*@"}
"""The places where a document declares the fields of the state."""
NODES: Final = {"sherma": _NODE, "agentspec": "**@name", "yagra": _STEP, "loki": _POINT, "leafmesh": _MEMBER}
"""The places where a document declares the nodes."""
