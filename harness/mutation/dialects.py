"""The places where the documents of each dialect say what the operators change (`harness.mutation.places`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from harness.mutation import operators as to
from harness.mutation.operators import swap
from harness.mutation.places import Place, places
from harness.source.document import Document


class Row(NamedTuple):
    """An operator at places: those below `at` that the patterns in `tails` lead to; `.` is `at` itself.

    `swap` takes all places of one node together.
    """

    operator: str
    variation: Callable[[Any], Any]
    at: str
    tails: str

    @property
    def patterns(self) -> list[str]:
        """The patterns of its places."""
        return [
            "/".join(part for part in (self.at, tail) if part not in ("", ".")) for tail in self.tails.split()
        ]


_NODE, _EDGE = "agents/*/graph/nodes/*@name", "agents/*/graph/edges/*@source"
_SHERMA: Final = (
    Row("route", partial(to.negate, "!({})"), _EDGE, "branches/*/condition"),
    Row("route", swap, _EDGE, "branches/*/target default target"),
    Row("route", to.drop, _EDGE, "branches/* default ."),
    Row("route", to.reorder, _EDGE, "branches"),
    Row("state", to.drop, _NODE, "args/state_updates/* args/values/*"),
    Row("state", to.change_default, "agents/*/state/fields/*", "default"),
    Row("call", to.drop, _NODE, "args/tools/* args/response_format args/llm"),
    Row("call", to.drop, _NODE, "args/use_tools_from_registry args/use_sub_agents_as_tools"),
    Row("call", to.other_model, "llms/*", "model_name"),
    Row("guard", to.drop, _NODE, "on_error on_error/retry on_error/fallback"),
    Row("guard", to.raise_limit, _NODE, "on_error/retry/max_attempts"),
    Row("guard", to.raise_limit, "agents/*/langgraph_config", "recursion_limit"),
    Row("guard", to.pass_on, "agents/*/graph/nodes/*[type=interrupt]@name", "."),
    Row("output", to.loosen, "agents/*", "output_schema"),
)

_TYPED: Final = "**[component_type={}]{}"
_AGENT, _END = _TYPED.format("Agent", ""), _TYPED.format("EndNode", "@name")
_SWARM, _MANAGED = _TYPED.format("Swarm", ""), _TYPED.format("ManagerWorkers", "")
_BRANCHING = _TYPED.format("BranchingNode", "@name")
_TOOLS: Final = " ".join(
    f"{_TYPED.format(kind, '')}/name" for kind in ("ServerTool", "ClientTool", "RemoteTool")
)
_AGENTSPEC: Final = (
    Row("route", swap, _BRANCHING, "mapping/*"),
    Row("route", to.drop, _BRANCHING, "mapping/*"),
    Row("route", swap, _TYPED.format("ControlFlowEdge", "@from_node"), "to_node"),
    Row("route", to.drop, "**", "control_flow_connections/*@from_node"),
    Row("route", to.drop, _SWARM, "relationships/*"),
    Row("route", to.drop, _MANAGED, "workers/*"),
    Row("route", partial(to.write, "never"), _SWARM, "handoff"),
    Row("state", to.drop, "**", "data_flow_connections/*@destination_node"),
    Row("state", to.drop, _TYPED.format("MapNode", "@name"), "reducers/*"),
    Row("state", to.change_default, "**", "inputs/*/default outputs/*/default"),
    Row("call", to.drop, _AGENT, "tools/* toolboxes/* transforms/*"),
    Row("call", to.rename, "", _TOOLS),
    Row("call", to.other_model, "**", "model_id"),
    Row("call", to.drop, "**", "default_generation_parameters/*"),
    Row("guard", to.drop, "**", "retry_policy requires_confirmation url_allow_list"),
    Row("guard", to.raise_limit, "**", "retry_policy/max_attempts"),
    Row("output", to.drop, _AGENT, "outputs/* outputs/*/type"),
    Row("output", to.drop, _END, "outputs/*"),
    Row("output", to.rename, _AGENT, "outputs/*/title"),
    Row("output", to.rename, _END, "outputs/*/title"),
)

_STEP, _LINK = "nodes/*@id", "edges/*@source"
_YAGRA: Final = (
    Row("route", swap, _LINK, "target"),
    Row("route", to.drop, _LINK, ". fan_out condition"),
    Row("call", to.other_model, _STEP, "params/model/name"),
    Row("call", to.drop, _STEP, "params/model/kwargs/* params/schema_yaml"),
    Row("guard", to.drop, _STEP, "retry timeout_seconds fallback"),
    Row("guard", to.raise_limit, _STEP, "retry/max_attempts timeout_seconds"),
    Row("guard", to.drop, "", "interrupt_before/*@. interrupt_after/*@."),
    Row("output", to.rename, _STEP, "params/output_key"),
    Row("output", to.drop, _STEP, "params/output_key"),
)

_POINT: Final = "nodes/*@"
_LOKI: Final = (
    Row("route", swap, _POINT, "routes/* on_other next"),
    Row("route", to.drop, _POINT, "routes/* next next/*"),
    Row("state", partial(to.write, "overwrite"), "reducers", "*"),
    Row("state", to.drop, _POINT, "state_updates/*"),
    Row("state", to.change_default, "", "initial_state/* variables/*/default"),
    Row("call", to.drop, _POINT, "tools/* output_schema temperature top_p model enabled_skills/*"),
    Row("call", to.drop, "", "global_tools/* mcp_servers/* temperature top_p"),
    Row("call", to.other_model, "", f"model {_POINT}/model"),
    Row("guard", to.drop, _POINT, "fallback timeout validation default"),
    Row("guard", to.raise_limit, _POINT, "max_attempts max_iterations timeout"),
    Row("guard", to.raise_limit, "settings", "max_loop_iterations timeout max_concurrency"),
    Row("output", to.loosen, _POINT, "output_schema"),
    Row("output", partial(to.write, ""), "nodes/*[type=end]@", "output"),
)

_MEMBER: Final = "agents/*@"
_LEAFMESH: Final = (
    Row(
        "route",
        partial(to.negate, "not ({})"),
        "",
        f"{_MEMBER}/can_call/*/condition entry_points/*/condition",
    ),
    Row("route", swap, _MEMBER, "can_call/*/agent"),
    Row("route", to.drop, _MEMBER, "can_call/* can_call/*/condition wait_for"),
    Row("route", to.reorder, _MEMBER, "can_call"),
    Row("call", to.drop, _MEMBER, "tools/* temperature max_tokens response_format tool_choice"),
    Row("call", to.other_model, "", f"{_MEMBER}/model manager/model"),
    Row(
        "guard",
        to.drop,
        _MEMBER,
        "wait_for_timeout fallback_response human_timeout_seconds tool_call_timeout",
    ),
    Row("guard", to.drop, _MEMBER, "enforce_yields require_human_confirmation"),
    Row("guard", to.raise_limit, _MEMBER, "enforce_yields_retry max_tool_calls_per_message"),
    Row("guard", to.drop, "manager", "escalation chain_completion_timeout"),
    Row("output", to.drop, _MEMBER, "yields/*"),
    Row("output", to.rename_key, _MEMBER, "yields/*"),
)

DIALECTS: Final[Mapping[str, Sequence[Row]]] = {
    "sherma": _SHERMA,
    "agentspec": _AGENTSPEC,
    "yagra": _YAGRA,
    "loki": _LOKI,
    "leafmesh": _LEAFMESH,
}
"""By dialect, what is changed where."""
EDGES: Final = frozenset({"edges", "control_flow_connections"})
"""The lists of a document that become the edges of the graph, and nothing else."""
WRITES_KEYS: Final = frozenset({"sherma", "loki"})
"""The dialects whose documents say which keys of the state each node writes."""
FIELDS: Final = {"sherma": "agents/*/state/fields/*@name", "yagra": "state_schema/*@"}
"""The places where a document declares the fields of the state."""
NODES: Final = {"sherma": _NODE, "agentspec": "**@name", "yagra": _STEP, "loki": _POINT, "leafmesh": _MEMBER}
"""The places where a document declares the nodes."""


def changes_of(document: Document, dialect: str) -> Iterator[tuple[str, Place, to.Change]]:
    """Yield what can be changed in a document: the operator, the place and the change."""
    for row in DIALECTS[dialect]:
        found = [place for pattern in row.patterns for place in places(document, pattern)]
        if row.variation is not swap:
            yield from ((row.operator, place, change) for place in found for change in row.variation(place))
            continue
        for owner in dict.fromkeys(place.owner for place in found):
            siblings = [place for place in found if place.owner == owner]
            yield from ((row.operator, place, change) for place, change in swap(siblings))
