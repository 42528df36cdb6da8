"""The MapNode, which runs a flow for every element of its input lists and reduces the outputs. spec: MapNode."""

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
    """Iterated lists of different lengths.

    spec: "all the input lists must have the same length, otherwise a runtime error will be thrown".
    """

    code = "unequal-lengths"


class NothingToIterate(HarnessError):
    """A MapNode of which no input is a list of the type of the subflow's input."""

    code = "nothing-to-iterate"


async def run_map(visit: Visit) -> NodeResult:
    """Run the subflow for each element. The runs start in the order of the list and overlap while they wait.

    spec: "asynchronously map each value of a collection".
    """
    node = visit.node
    assert isinstance(node, MapNode)
    results = await staggered_gather(
        visit.run_inside(node.subflow, inputs, key=str(index))
        for index, inputs in enumerate(_run_inputs(node, visit))
    )
    outputs = {
        COLLECTED + title: _reduce(node, title, [result.outputs[title] for result in results])
        for title in node.output_reducers
    }
    return NodeResult(outputs, messages=[message for result in results for message in result.messages])


def _run_inputs(node: MapNode, visit: Visit) -> Sequence[Mapping[str, Any]]:
    """Return the inputs of each run of the subflow: an element of each iterated list; other inputs are repeated."""
    inner = {ITERATED + title: item for title, item in node.subflow.inputs.items()}
    if not inner:
        return ()
    lists = {
        title: visit.inputs[title]
        for title in inner
        if _is_iterated(visit.incoming[title], inner[title])
        and isinstance(visit.inputs[title], list)  # the value may have been cast to another declared type
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
            title.removeprefix(ITERATED): lists[title][index] if title in lists else visit.inputs[title]
            for title in inner
        }
        for index in range(count)
    ]


def _is_iterated(incoming: IncomingValue, inner: Property) -> bool:
    """True if a value is a list of elements for the subflow's input, by the type of its source.

    A default that is a list is iterated unless the subflow's input is an array itself.
    """
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
        raise MissingValue(f"{node}: cannot take the {reducer} of '{title}', because its list is empty")
    return _REDUCERS[reducer](values)
