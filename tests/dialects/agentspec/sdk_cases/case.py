"""Cases: a component made with the official SDK, and scenarios of what it does; and short words for the SDK's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyagentspec.agenticcomponent import AgenticComponent
from pyagentspec.component import Component
from pyagentspec.flows.edges import ControlFlowEdge, DataFlowEdge
from pyagentspec.flows.flow import Flow
from pyagentspec.flows.node import Node
from pyagentspec.llms import (
    LlmGenerationConfig,
    OpenAiConfig,
)
from pyagentspec.property import (
    IntegerProperty,
    ListProperty,
    NumberProperty,
    StringProperty,
)


@dataclass(frozen=True)
class Case:
    """A component, and what is to be seen when it runs: scenarios as they stand in a scenario file.

    `apart` stands in a document of its own; so does `supplied`, values the SDK never writes, by their keys.
    """

    component: AgenticComponent
    scenarios: str
    apart: Sequence[Component | tuple[Component, str]] = ()
    supplied: Mapping[str, Any] = field(default_factory=dict)


CASES: dict[str, Callable[[], Case]] = {}


def case(build: Callable[[], Case]) -> Callable[[], Case]:
    CASES[build.__name__] = build
    return build


# ------------------------------------------------------------------ words for what the SDK says at length


def flow(name: str, nodes: Sequence[Node], control: str, data: str | None = None, **more: Any) -> Flow:
    """A flow that begins with its first node.

    `control` has lines like `ask -> end` and `check.yes -> end`, `data` has lines like `ask.answer -> end.reply`.
    """
    by_name = {node.name: node for node in nodes}

    def control_edge(line: str) -> ControlFlowEdge:
        left, right = line.split(" -> ")
        source, _, branch = left.partition(".")
        return ControlFlowEdge(
            name=line, from_node=by_name[source], from_branch=branch or None, to_node=by_name[right]
        )

    def data_edge(line: str) -> DataFlowEdge:
        (source, output), (destination, input_) = (side.split(".") for side in line.split(" -> "))
        return DataFlowEdge(
            name=line,
            source_node=by_name[source],
            source_output=output,
            destination_node=by_name[destination],
            destination_input=input_,
        )

    return Flow(
        name=name,
        start_node=nodes[0],
        nodes=list(nodes),
        control_flow_connections=[control_edge(line) for line in _lines(control)],
        data_flow_connections=None if data is None else [data_edge(line) for line in _lines(data)],
        **more,
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def in_a_row(name: str, nodes: Sequence[Node], data: str | None = None, **more: Any) -> Flow:
    """A flow whose nodes run one after another."""
    control = "\n".join(f"{one.name} -> {other.name}" for one, other in pairwise(nodes))
    return flow(name, nodes, control, data, **more)


def text(title: str, **more: Any) -> StringProperty:
    return StringProperty(title=title, **more)


def integer(title: str, **more: Any) -> IntegerProperty:
    return IntegerProperty(title=title, **more)


def number(title: str) -> NumberProperty:
    return NumberProperty(title=title)


def texts(title: str, **more: Any) -> ListProperty:
    return ListProperty(title=title, item_type=StringProperty(), **more)


def openai() -> OpenAiConfig:
    more: dict[str, Any] = {"seed": 7, "stop": ["END"]}
    parameters = LlmGenerationConfig(max_tokens=200, temperature=0.25, top_p=0.5, **more)
    return OpenAiConfig(name="model", model_id="gpt-4o-mini", default_generation_parameters=parameters)
