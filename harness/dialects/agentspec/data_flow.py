"""The data edges of a flow, and the values that its nodes get along them.

spec: "Data relationships", "Optionality of data relationships".
"""

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
"""The outputs of the nodes that ran, by node name, in the order of their latest visits."""


class MissingValue(HarnessError):
    """An input or output that has neither a value nor a default."""

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
    """A value for an input, before it is cast. `source` is the output that it comes from; None for a default."""

    value: Any
    source: Property | None


class DataFlow:
    """The data edges of a flow: the declared ones, or, without `data_flow_connections`, those by name.

    The number of edges by name may be quadratic in the number of nodes, so `edges` generates them lazily.
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
        """Yield all data edges, for drawings of the graph. `names` are the names of the nodes in the graph.

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
        """Return the outputs that are connected to the input `title` of a node."""
        if self._by_name:
            return self._by_title.get(title, ()) if node is not self._flow.start_node else ()
        return self._into.get((node, title), ())

    def incoming(self, node: Node, names: Mapping[Node, str], outputs: Outputs) -> dict[str, IncomingValue]:
        """Return the value of each input of a node, defaults included. `names` are the node names in `outputs`.

        spec: "the last node that was executed and that has an output connected to the input will have the priority".

        Raises:
            MissingValue: an input has neither a value nor a default.
        """
        rank = {name: index for index, name in enumerate(outputs)}
        found = {}
        for title, item in node.inputs.items():
            ran = [
                source
                for source in self.sources(node, title)
                if source.output in outputs.get(names[source.node], ())
            ]
            if ran:
                # Of two outputs of one node, that of the edge written last wins.
                last = max(reversed(ran), key=lambda source: rank[names[source.node]])
                value = outputs[names[last.node]][last.output]
                found[title] = IncomingValue(value, last.node.outputs.get(last.output))
            elif item.has_default:
                found[title] = IncomingValue(item.default, None)
            else:
                raise MissingValue(f"{node}: no value has come to its input '{title}', which has no default")
        return found


def _sources(flow: Flow) -> Iterator[Node]:
    """Return the nodes whose outputs others can use: all but EndNodes, after which nothing runs."""
    return (node for node in flow.nodes if not isinstance(node, EndNode))


def cast_property(item: Property, value: Any, owner: str) -> Any:
    """Cast a value to the type of a property. `owner` is the description of the property in messages.

    Raises:
        UnfitValue: it cannot be cast.
    """
    try:
        return item.cast(value)
    except CastError as error:
        raise UnfitValue(f"{owner} '{item.title}': {error}") from None


def cast_values(properties: Mapping[str, Property], values: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Return a value for each property: the given one, cast to its type, else the default. Others are dropped.

    Raises:
        MissingValue: a property has neither a value nor a default.
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
