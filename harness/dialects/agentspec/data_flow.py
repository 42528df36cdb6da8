"""Where the inputs of a flow's nodes come from. spec: "Data relationships", "Optionality of data relationships"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.dialects.agentspec.casts import CastError
from harness.dialects.agentspec.flows import EndNode, Flow, Node
from harness.dialects.agentspec.properties import Property
from harness.errors import HarnessError

Outputs = Mapping[str, Mapping[str, Any]]
"""The outputs of the nodes that ran, by node name; the node that ran last comes last."""


class MissingValue(HarnessError):
    """No value came to an input or an output, and it has no default."""

    code = "missing-value"


class UnfitValue(HarnessError):
    """A value cannot become what a property says."""

    code = "unfit-value"


@dataclass(frozen=True)
class Connection:
    """An output of one node that feeds an input of another."""

    source: Node
    output: str
    destination: Node
    input: str


@dataclass(frozen=True)
class Arrived:
    """A value for an input, as its source gave it; `source` is None for a default."""

    value: Any
    source: Property | None


class DataFlow:
    """The data edges of a flow: those written, or, where there is no list of them, those by name."""

    def __init__(self, flow: Flow) -> None:
        self.connections = list(_written(flow) if flow.data_flow_connections is not None else _by_name(flow))
        self._into: dict[Node, dict[str, list[Connection]]] = {}
        for item in self.connections:
            self._into.setdefault(item.destination, {}).setdefault(item.input, []).append(item)

    def sources(self, node: Node, title: str) -> Sequence[Connection]:
        """What feeds an input."""
        return self._into.get(node, {}).get(title, ())

    def arrived(self, node: Node, names: Mapping[Node, str], outputs: Outputs) -> dict[str, Arrived]:
        """What has come to each input of a node, defaults included. `names` are those in `outputs`.

        spec: "the last node that was executed and that has an output connected to the input will have the priority".

        Raises:
            MissingValue: nothing has come to an input without default.
        """
        rank = {name: at for at, name in enumerate(outputs)}
        found = {}
        for title, item in node.takes.items():
            ran = [
                connection
                for connection in self.sources(node, title)
                if connection.output in outputs.get(names[connection.source], ())
            ]
            if ran:
                # Of two outputs of one node the edge written last wins.
                last = max(reversed(ran), key=lambda connection: rank[names[connection.source]])
                value = outputs[names[last.source]][last.output]
                found[title] = Arrived(value, last.source.gives.get(last.output))
            elif item.has_default:
                found[title] = Arrived(item.default, None)
            else:
                raise MissingValue(f"{node}: no value has come to its input '{title}', which has no default")
        return found


def _written(flow: Flow) -> Iterator[Connection]:
    for edge in flow.data_flow_connections or ():
        yield Connection(edge.source_node, edge.source_output, edge.destination_node, edge.destination_input)


def _by_name(flow: Flow) -> Iterator[Connection]:
    """spec: "by simply connecting all the outputs to all the inputs with the same name".

    Nothing runs after an EndNode, so it feeds nothing.
    """
    for source in (node for node in flow.nodes if not isinstance(node, EndNode)):
        for title in source.gives:
            for destination in flow.nodes:
                if title in destination.takes and destination is not flow.start_node:
                    yield Connection(source, title, destination, title)


def cast_to(item: Property, value: Any, owner: str) -> Any:
    """A value as a property wants it. `owner` says whose property it is, for the message.

    Raises:
        UnfitValue: it cannot be cast.
    """
    try:
        return item.cast(value)
    except CastError as error:
        raise UnfitValue(f"{owner} '{item.title}': {error}") from None


def filled(properties: Mapping[str, Property], values: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """A value for each property: the one given, cast to its type, else the default. Others are dropped.

    Raises:
        MissingValue: neither is there.
        UnfitValue: a value cannot be cast.
    """
    found = {}
    for title, item in properties.items():
        if title in values:
            found[title] = cast_to(item, values[title], owner)
        elif item.has_default:
            found[title] = item.default
        else:
            raise MissingValue(f"{owner} '{title}' has no value, and no default")
    return found
