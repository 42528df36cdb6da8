"""The rules for data in flows: the sources of inputs, and the outputs of a flow. spec: "Data relationships", "Flow".

Each rule is a function that yields the problems of one flow, whose nodes and edges were all read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from harness.dialects.agentspec.data_flow import DataFlow, NodeOutput
from harness.dialects.agentspec.flows import BranchingNode, EndNode, Flow, Node, StartNode
from harness.dialects.agentspec.properties import PLACEHOLDER, CastError, Property, fits
from harness.dialects.agentspec.types import castable, same_type
from harness.dialects.kit.rules import reachable
from harness.errors import Problem, Span
from harness.graph.to_json import from_json
from harness.source.display import did_you_mean, nearest


def quoted_list(names: Iterable[str]) -> str:
    """Return names in quotes, separated by commas; "none" if there are none."""
    return ", ".join(f"'{name}'" for name in names) or "none"


def none_suffix(known: Collection[str]) -> str:
    """Return the end of a message if there is nothing to suggest, else ""."""
    return "" if known else ", as it has none"


_KINDS: Final = ("Node", "Tool", "Config", "Transport", "Agent", "Edge")
_MISSPELLING_CUTOFF: Final = 0.8


def nearest_type(word: str, known: Sequence[str]) -> str:
    """Return a hint for an unknown component type: a similar one, else all of its kind."""
    kind = next((kind for kind in _KINDS if word.endswith(kind)), "")
    return did_you_mean(word, [name for name in known if name.endswith(kind)], cutoff=_MISSPELLING_CUTOFF)


def reachable_nodes(flow: Flow) -> set[Node]:
    """Return the nodes that control edges lead to from the StartNode."""
    return reachable(
        flow.start_node, ((edge.from_node, edge.to_node) for edge in flow.control_flow_connections)
    )


def data_edges_fit(flow: Flow) -> Iterator[Problem]:
    """Data edges connect existing properties of compatible types.

    spec: "the output type must be compatible with the input type".
    """
    for edge in flow.data_flow_connections or ():
        source, target = edge.source_node.outputs, edge.destination_node.inputs
        for node, side, known, field in (
            (edge.source_node, "output", source, "source_output"),
            (edge.destination_node, "input", target, "destination_input"),
        ):
            title = getattr(edge, field)
            if title not in known:
                text = f"{edge}: the {node} has no {side} '{title}'" + none_suffix(known)
                yield Problem("unknown-property", text, edge.span(field), did_you_mean(title, known))
        if edge.source_output in source and edge.destination_input in target:
            given, wanted = source[edge.source_output], target[edge.destination_input]
            if not castable(given.type, wanted.type):
                text = (
                    f"{edge}: output '{given.title}' of the {edge.source_node} is {given.type}, which cannot "
                    f"be converted to input '{wanted.title}' of the {edge.destination_node}, {wanted.type}"
                )
                yield Problem("property-type", text, edge.span("destination_input"))


def data_edges_have_effect(flow: Flow) -> Iterator[Problem]:
    """Warn of data edges into a StartNode, which has the inputs of the flow, and from an EndNode."""
    for edge in flow.data_flow_connections or ():
        if isinstance(edge.destination_node, StartNode):
            text = f"{edge} leads to the {edge.destination_node}, whose values are the flow's inputs; it is ignored"
            yield Problem("start-node", text, edge.span("destination_node"), severity="warning")
        if isinstance(edge.source_node, EndNode):
            text = f"{edge} comes from the {edge.source_node}, after which nothing runs; it is ignored"
            yield Problem("end-node", text, edge.span("source_node"), severity="warning")


def outputs_fit_inputs_by_name(flow: Flow) -> Iterator[Problem]:
    """Without `data_flow_connections`, one of the outputs with the name of an input fits that input.

    spec: "all the outputs to all the inputs with the same name". Not every output must fit, because it may never
    reach the input in a run.
    """
    if flow.data_flow_connections is not None:
        return
    data = DataFlow(flow)
    kinds: dict[str, list[NodeOutput]] = {}  # by title, an output of each type
    for node in flow.nodes:
        for title, wanted in () if node is flow.start_node else node.inputs.items():
            if title not in kinds:
                outputs = data.sources(node, title)
                kinds[title] = list(
                    {repr(_property(output).type): output for output in reversed(outputs)}.values()
                )
            given = [_property(output).type for output in kinds[title]]
            if not given or any(kind.anything or castable(kind, wanted.type) for kind in given):
                continue
            source = kinds[title][-1]
            text = (
                f"{flow}: by name, output '{title}' of the {source.node} is {_property(source).type}, "
                f"which cannot be converted to that input of the {node}, {wanted.type}"
            )
            yield Problem("property-type", text, _location_of_input(node, title))


def _property(source: NodeOutput) -> Property:
    return source.node.outputs[source.output]


def inputs_have_sources(flow: Flow) -> Iterator[Problem]:
    """Warn of inputs with neither a source nor a default. A run fails only if it visits their node.

    spec: "Sources (inputs) can be connected to outputs of another node, or to static values".
    """
    data = DataFlow(flow)
    reached = reachable_nodes(flow)
    for node in flow.nodes:
        if node is flow.start_node or node not in reached:
            continue
        inferred = {item.title for item in node.inferred_inputs()}
        for title, item in node.inputs.items():
            if title in inferred and not item.has_default and not data.sources(node, title):
                text = f"{flow}: input '{title}' of the {node} has neither a source nor a default"
                place, hint = _location_of_input(node, title), _source_hint(flow, node, title)
                yield Problem("no-source", text, place, hint, severity="warning")


def _location_of_input(node: Node, title: str) -> Span:
    """Return the location of an input, else of its placeholder, else of the node."""
    for index, item in enumerate(node.declared_inputs or ()):
        if item.title == title:
            return node.span("inputs", index)
    for name in type(node).model_fields:
        text = getattr(node, name)
        for found in PLACEHOLDER.finditer(text) if isinstance(text, str) else ():
            if found[1] == title:
                return node.span_in_text(name, found.start(), len(found[0]))
    return node.span()


def _source_hint(flow: Flow, node: Node, title: str) -> str:
    """Return a hint for an input without a source, with an output of a similar name if there is one."""
    outputs = [
        output
        for other in flow.nodes
        if other is not node and not isinstance(other, EndNode)
        for output in other.outputs
    ]
    near = nearest(title, outputs)
    guess = f"did you mean '{near}'? Otherwise " if near not in (None, title) else ""
    return f"{guess}connect an output to it, or give it a default"


def mapping_keys_may_match(flow: Flow) -> Iterator[Problem]:
    """Warn of keys in the mapping of a BranchingNode that its input never equals. Keys are text.

    spec: BranchingNode, "the input does not match any key in the mapping".
    """
    data = DataFlow(flow)
    # A source of each type and default. By name, thousands of inputs may share one list of sources.
    kinds: dict[int, Sequence[Property]] = {}
    for node in flow.nodes:
        if not isinstance(node, BranchingNode) or not node.inputs:
            continue
        wanted = next(iter(node.inputs.values()))
        outputs = data.sources(node, wanted.title)
        if id(outputs) not in kinds:
            given = map(_property, outputs)
            by_kind = {repr((item.type, item.schema.get("default"))): item for item in given}
            kinds[id(outputs)] = list(by_kind.values())
        sources = kinds[id(outputs)]
        for key in node.mapping:
            if not any(_may_become(key, source, wanted) for source in sources or [wanted]):
                text = f"{node}: key '{key}' of its mapping never matches {_input_text(wanted, sources)}"
                place, hint = node.span("mapping", key), _matching_key_hint(key, sources, wanted)
                yield Problem("unmatched-key", text, place, hint, severity="warning")


def _may_become(text: str, source: Property, wanted: Property) -> bool:
    """True if a value of the type `source`, or a default, becomes this text when it is cast to the type `wanted`."""
    values = [value for value in (text, from_json(text)) if fits(value, source.type)]
    defaults = [item.default for item in (source, wanted) if item.has_default]
    found = [_cast_along(value, source, wanted) for value in values]
    return text in (*found, *(_cast_along(default, wanted) for default in defaults))


def _cast_along(value: Any, *properties: Property) -> Any:
    """Cast a value to the type of one property after the other; None if it cannot be."""
    try:
        for item in properties:
            value = item.cast(value)
    except CastError:
        return None
    return value


def _input_text(wanted: Property, sources: Sequence[Property]) -> str:
    """Return a description of an input, with the types that it has or gets."""
    takes_text = wanted.type.anything or any(kind.name == "string" for kind in wanted.type.alternatives)
    verb, given = ("gets", sources) if takes_text and sources else ("is", [wanted])
    kinds = dict.fromkeys(str(item.type) for item in given)
    return f"its input '{wanted.title}', which {verb} {' or '.join(kinds)}"


def _matching_key_hint(key: str, sources: Sequence[Property], wanted: Property) -> str:
    """Return a hint for a key that never matches: the text that the meant value becomes, or to declare a string."""
    value = from_json(key.lower())
    found = [_cast_along(value, source, wanted) for source in sources if fits(value, source.type)]
    if any(isinstance(text, str) for text in found):
        return f"write '{next(text for text in found if isinstance(text, str))}'"
    is_text = [kind.name for kind in wanted.type.alternatives] == ["string"]
    return "" if is_text or wanted.type.anything else f"declare '{wanted.title}' as a string"


def end_nodes_agree(flow: Flow) -> Iterator[Problem]:
    """An output has the same type in all EndNodes.

    spec: "It is not possible to define two outputs with the same name and different types in two … EndNodes".
    """
    seen: dict[str, tuple[EndNode, Property]] = {}
    for end in flow.end_nodes:
        for title, item in end.outputs.items():
            other, first = seen.setdefault(title, (end, item))
            if not same_type(first.type, item.type):
                text = (
                    f"{flow}: output '{title}' is {first.type} in the {other}, and {item.type} in the {end}"
                )
                yield Problem("property-type", text, end.span("outputs"))


def outputs_come_from_end_nodes(flow: Flow) -> Iterator[Problem]:
    """The outputs of a flow have the types of the EndNodes' outputs, and a default if an EndNode lacks them.

    spec: an output that does not "have a corresponding output … in every EndNode" needs a default.
    """
    for index, item in enumerate(flow.declared_outputs or ()):
        span = flow.span("outputs", index)
        having = [end for end in flow.end_nodes if item.title in end.outputs]
        if flow.end_nodes and not having:
            known = [title for end in flow.end_nodes for title in end.outputs]
            text = f"{flow}: no EndNode has an output '{item.title}'"
            hint = did_you_mean(item.title, known)
            yield Problem("output-of-no-end", text, span, hint, "warning" if item.has_default else "error")
            continue
        for end in having:
            kind = end.outputs[item.title]
            fits = castable if item.has_default else same_type
            if not fits(kind.type, item.type):
                text = f"{flow}: output '{item.title}' is {kind.type} in the {end}, not {item.type}"
                yield Problem("property-type", text, span)
                break
        lacking = [end.name for end in flow.end_nodes if end not in having]
        if lacking and not item.has_default:
            text = f"{flow}: output '{item.title}' needs a default, as the EndNode {quoted_list(lacking)} lacks it"
            yield Problem("missing-default", text, span)


DATA_RULES: Final[Sequence[Callable[[Flow], Iterator[Problem]]]] = (
    data_edges_fit,
    data_edges_have_effect,
    outputs_fit_inputs_by_name,
    inputs_have_sources,
    mapping_keys_may_match,
    end_nodes_agree,
    outputs_come_from_end_nodes,
)
