"""The sources of the inputs of a flow's nodes. spec: "Data relationships", "Optionality of data relationships"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.dialects.agentspec.casts import CastError
from harness.dialects.agentspec.flows import EndNode, Flow, Node
from harness.dialects.agentspec.properties import Property
from harness.errors import HarnessError
from harness.graph.model import DataEdge

Outputs = Mapping[str, Mapping[str, Any]]
"""The outputs of the nodes that ran, by node name, in the order of their last runs."""


class MissingValue(HarnessError):
    """An input or an output without a value and without a default."""

    code = "missing-value"


class UnfitValue(HarnessError):
    """A value that cannot be cast to the type of its property."""

    code = "unfit-value"


class NodeOutput(NamedTuple):
    """An output of a node that is connected to an input."""

    node: Node
    output: str


@dataclass(frozen=True)
class IncomingValue:
    """A value for an input, not cast yet. `source` is the output it comes from, None for a default."""

    value: Any
    source: Property | None


class DataFlow:
    """The data edges of a flow: those declared, or, without a list of them, those by name.

    By name there may be as many as the square of the nodes, so `edges` makes them one by one.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._by_name = flow.data_flow_connections is None
        self._into: dict[tuple[Node, str], list[NodeOutput]] = {}
        self._by_title: dict[str, list[NodeOutput]] = {}
        for edge in flow.data_flow_connections or ():
            source = NodeOutput(edge.source_node, edge.source_output)
            self._into.setdefault((edge.destination_node, edge.destination_input), []).append(source)
        for node in _sources(flow) if self._by_name else ():
            for title in node.outputs:
                self._by_title.setdefault(title, []).append(NodeOutput(node, title))

    def edges(self, names: Mapping[Node, str]) -> Iterator[DataEdge]:
        """All data edges, for pictures; `names` are those of the nodes in the graph.

        spec: "by simply connecting all the outputs to all the inputs with the same name".
        """
        for edge in self._flow.data_flow_connections or ():
            source, target = names[edge.source_node], names[edge.destination_node]
            yield DataEdge(source, edge.source_output, target, edge.destination_input)
        for node in _sources(self._flow) if self._by_name else ():
            for title in node.outputs:
                for other in self._flow.nodes:
                    if title in other.inputs and other is not self._flow.start_node:
                        yield DataEdge(names[node], title, names[other], title)

    def sources(self, node: Node, title: str) -> Sequence[NodeOutput]:
        """The outputs that are connected to an input."""
        if self._by_name:
            return self._by_title.get(title, ()) if node is not self._flow.start_node else ()
        return self._into.get((node, title), ())

    def incoming(self, node: Node, names: Mapping[Node, str], outputs: Outputs) -> dict[str, IncomingValue]:
        """The value of each input of a node, defaults included. `names` are the node names in `outputs`.

        spec: "the last node that was executed and that has an output connected to the input will have the priority".

        Raises:
            MissingValue: an input has neither a value nor a default.
        """
        rank = {name: at for at, name in enumerate(outputs)}
        found = {}
        for title, item in node.inputs.items():
            ran = [
                source
                for source in self.sources(node, title)
                if source.output in outputs.get(names[source.node], ())
            ]
            if ran:
                # Of two outputs of one node the edge written last wins.
                last = max(reversed(ran), key=lambda source: rank[names[source.node]])
                value = outputs[names[last.node]][last.output]
                found[title] = IncomingValue(value, last.node.outputs.get(last.output))
            elif item.has_default:
                found[title] = IncomingValue(item.default, None)
            else:
                raise MissingValue(f"{node}: no value has come to its input '{title}', which has no default")
        return found


def _sources(flow: Flow) -> Iterator[Node]:
    """The nodes whose outputs others can use. Nothing runs after an EndNode."""
    return (node for node in flow.nodes if not isinstance(node, EndNode))


def cast_property(item: Property, value: Any, owner: str) -> Any:
    """A value, cast to the type of a property. `owner` names the property's owner in messages.

    Raises:
        UnfitValue: it cannot be cast.
    """
    try:
        return item.cast(value)
    except CastError as error:
        raise UnfitValue(f"{owner} '{item.title}': {error}") from None


def cast_values(properties: Mapping[str, Property], values: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """A value for each property: the given one, cast to its type, else the default. Others are dropped.

    Raises:
        MissingValue: neither is there.
        UnfitValue: a value cannot be cast.
    """
    found = {}
    for title, item in properties.items():
        if title in values:
            found[title] = cast_property(item, values[title], owner)
        elif item.has_default:
            found[title] = item.default
        else:
            raise MissingValue(f"{owner} '{title}' has no value, and no default")
    return found
