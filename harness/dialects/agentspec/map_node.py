"""The MapNode: a flow applied to every element of its lists, and its outputs reduced. spec: MapNode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from harness.dialects.agentspec.data_flow import IncomingValue, MissingValue
from harness.dialects.agentspec.flows import COLLECTED, ITERATED, MapNode
from harness.dialects.agentspec.properties import Property
from harness.dialects.agentspec.types import is_list_of
from harness.dialects.agentspec.visit import NodeResult, Visit
from harness.errors import HarnessError
from harness.time.gather import staggered_gather


class UnequalLists(HarnessError):
    """spec: "all the input lists must have the same length, otherwise a runtime error will be thrown"."""

    code = "unequal-lengths"


class NothingToIterate(HarnessError):
    """No input is a list of the inner type."""

    code = "nothing-to-iterate"


async def run_map(visit: Visit) -> NodeResult:
    """Run the inner flow for each element, in the order of the list; runs that take time overlap.

    spec: "asynchronously map each value of a collection".
    """
    node = visit.node
    assert isinstance(node, MapNode)
    results = await staggered_gather(
        visit.run_inside(node.subflow, inputs, key=str(at))
        for at, inputs in enumerate(_run_inputs(node, visit))
    )
    outputs = {
        COLLECTED + title: _reduce(node, title, [result.outputs[title] for result in results])
        for title in node.output_reducers
    }
    return NodeResult(outputs, messages=[message for result in results for message in result.messages])


def _run_inputs(node: MapNode, visit: Visit) -> Sequence[Mapping[str, Any]]:
    """The inputs of each run of the inner flow: an element of each list of the inner type; the rest is repeated."""
    inner = {ITERATED + title: item for title, item in node.subflow.inputs.items()}
    if not inner:  # no list, no element
        return ()
    lists = {
        title: visit.inputs[title]
        for title in inner
        if _is_iterated(visit.incoming[title], inner[title])
        and isinstance(visit.inputs[title], list)  # the node may declare its input as something else
    }
    lengths = {title: len(value) for title, value in lists.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"'{title}' has {length}" for title, length in lengths.items())
        raise UnequalLists(f"{node}: its lists must have the same length; {counts}")
    if not lists:
        inputs = ", ".join(f"'{title}'" for title in inner)
        raise NothingToIterate(f"{node}: none of its inputs is a list to walk through (they are {inputs})")
    count = next(iter(lengths.values()))
    return [
        {
            title.removeprefix(ITERATED): lists[title][at] if title in lists else visit.inputs[title]
            for title in inner
        }
        for at in range(count)
    ]


def _is_iterated(incoming: IncomingValue, inner: Property) -> bool:
    """True if a value is a list whose source has the type list of the inner type, or such a default."""
    if not isinstance(incoming.value, list):
        return False
    if incoming.source is None:
        return inner.schema.get("type") != "array"
    return is_list_of(incoming.source.type, inner.type)


_REDUCERS: Final[Mapping[str, Callable[[Sequence[Any]], Any]]] = {
    "append": list,
    "sum": sum,
    "average": fmean,
    "max": max,
    "min": min,
}


def _reduce(node: MapNode, title: str, values: Sequence[Any]) -> Any:
    reducer = node.output_reducers[title]
    if not values and reducer in ("average", "max", "min"):
        collected = node.outputs[COLLECTED + title]
        if collected.has_default:
            return collected.default
        raise MissingValue(f"{node}: nothing to take the {reducer} of '{title}' of, as its list is empty")
    return _REDUCERS[reducer](values)
