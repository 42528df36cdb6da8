"""Where the inputs of a flow's nodes come from. spec: "Data relationships", "Optionality of data relationships"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class Source(NamedTuple):
    """An output of a node, as what feeds an input."""

    node: Node
    output: str


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
    """The data edges of a flow: those written, or, where there is no list of them, those by name.

    By name there may be as many as the square of the nodes, so they are made only for who asks for all of them.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._by_name = flow.data_flow_connections is None
        self._into: dict[tuple[Node, str], list[Source]] = {}
        self._giving: dict[str, list[Source]] = {}
        for edge in flow.data_flow_connections or ():
            source = Source(edge.source_node, edge.source_output)
            self._into.setdefault((edge.destination_node, edge.destination_input), []).append(source)
        for node in _feeding(flow) if self._by_name else ():
            for title in node.outputs:
                self._giving.setdefault(title, []).append(Source(node, title))

    def connections(self) -> Iterator[Connection]:
        """All data edges, made on the way."""
        return _by_name(self._flow) if self._by_name else _written(self._flow)

    def sources(self, node: Node, title: str) -> Sequence[Source]:
        """What feeds an input."""
        if self._by_name:
            return self._giving.get(title, ()) if node is not self._flow.start_node else ()
        return self._into.get((node, title), ())

    def arrived(self, node: Node, names: Mapping[Node, str], outputs: Outputs) -> dict[str, Arrived]:
        """What has come to each input of a node, defaults included. `names` are those in `outputs`.

        spec: "the last node that was executed and that has an output connected to the input will have the priority".

        Raises:
            MissingValue: nothing has come to an input without default.
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
                found[title] = Arrived(value, last.node.outputs.get(last.output))
            elif item.has_default:
                found[title] = Arrived(item.default, None)
            else:
                raise MissingValue(f"{node}: no value has come to its input '{title}', which has no default")
        return found


def _written(flow: Flow) -> Iterator[Connection]:
    for edge in flow.data_flow_connections or ():
        yield Connection(edge.source_node, edge.source_output, edge.destination_node, edge.destination_input)


def _by_name(flow: Flow) -> Iterator[Connection]:
    """spec: "by simply connecting all the outputs to all the inputs with the same name"."""
    for source in _feeding(flow):
        for title in source.outputs:
            for destination in flow.nodes:
                if title in destination.inputs and destination is not flow.start_node:
                    yield Connection(source, title, destination, title)


def _feeding(flow: Flow) -> Iterator[Node]:
    """The nodes that feed others. Nothing runs after an EndNode."""
    return (node for node in flow.nodes if not isinstance(node, EndNode))


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
