"""Hypothesis strategies of what a world answers, for `@given` tests: valid replies, and calls of tools.

They need Hypothesis: `pip install "agent-scenarios[explore]"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.source.imports import import_extra

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from harness.explore.values import Choose

__all__ = ["replies", "tool_calls"]

MOST_CALLS: Final = 3
"""The number of tools that one reply calls at most."""


def replies(schema: Mapping[str, Any], *, words: Sequence[str] = ()) -> SearchStrategy[Any]:
    """Return a strategy of values that are valid under a JSON Schema, such as that of `Model.model_json_schema()`.

    Edges are likely: bounds, empty and long lists and texts, null, absent keys. The simplest value has none of them
    that it need not have.

    Args:
        schema: the JSON Schema (2020-12).
        words: texts that the agent compares with, for example. Two thirds of all texts are taken from them.

    Raises:
        harness.errors.ExtraMissing: Hypothesis is not installed.
        harness.explore.values.NotDrawable: no value was found that is valid under the schema.
    """
    from harness.explore.values import instance

    instance(schema, lambda count: 0, words)
    return _strategy(lambda choose: instance(schema, choose, words))


def tool_calls(tools: Sequence[Any], *, words: Sequence[str] = ()) -> SearchStrategy[list[dict[str, Any]]]:
    """Return a strategy of one to three calls of tools, with valid arguments, each `{"name": …, "args": {…}}`.

    So a list is the value of `tool_calls` in a stub of a model.

    Args:
        tools: at least one: functions, tools of LangChain, Pydantic models, or definitions, as for `bind_tools`.
        words: as for `replies`.

    Raises:
        harness.errors.ExtraMissing: Hypothesis is not installed.
        harness.explore.values.NotDrawable: no arguments were found that are valid for a tool.
    """
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from harness.explore.values import arguments
    from harness.graph.effects import ToolSpec

    functions = [convert_to_openai_tool(tool)["function"] for tool in tools]
    specs = [
        ToolSpec(each["name"], each.get("description", ""), each.get("parameters", {})) for each in functions
    ]
    for spec in specs:
        arguments(spec, lambda count: 0, words)

    def draw(choose: Choose) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []
        while not calls or (len(calls) < MOST_CALLS and choose(2)):
            spec = specs[choose(len(specs))]
            calls.append({"name": spec.name, "args": arguments(spec, choose, words)})
        return calls

    return _strategy(draw)


def _strategy(draw_with: Callable[[Choose], Any]) -> SearchStrategy[Any]:
    strategies = import_extra("hypothesis.strategies", "explore", "to draw values")

    def drawn(draw: Callable[[Any], Any]) -> Any:
        return draw_with(lambda count: draw(strategies.integers(0, count - 1)))

    strategy: SearchStrategy[Any] = strategies.composite(drawn)()
    return strategy
