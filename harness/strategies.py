"""Hypothesis strategies of what a world answers, for `@given` tests: valid replies, and calls of tools.

They need Hypothesis: `pip install "agent-scenarios[explore]"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.source.imports import import_extra

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from harness.api.run import Run
    from harness.explore.subject import Subject
    from harness.explore.values import Choose

__all__ = ["World", "replies", "tool_calls", "worlds"]

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


class World:
    """An input, and the answers of models, tools, people and services, drawn while the agent runs."""

    def __init__(self, subject: Subject, faults: Sequence[str], choose: Choose) -> None:
        self._subject, self._faults, self._choose = subject, faults, choose

    def run(self) -> Run:
        """Run the agent in this world. A failing example of a `@given` test prints the scenario file that repeats it.

        Raises:
            harness.FormatError: something is called that cannot be drawn.
        """
        import hypothesis

        import harness
        from harness.authoring.writer import file_text
        from harness.explore.attempt import Attempts, Plan
        from harness.explore.written import keys_of

        subject = self._subject
        plan = Plan(1, None, 0, self._faults, faults_given=True)
        made = Attempts(subject.scenario, subject.settings, subject.graph, plan).make(self._choose)
        keys = keys_of(made.material, subject.scenario, subject.world)
        text = file_text(subject.head(subject.scenario.file), [{"name": "found", **subject.keys, **keys}])
        hypothesis.note(f"the scenario file that repeats this run:\n\n{text}")
        turns = keys.pop("turns", None) or [{"input": keys.pop("input", None)}]
        run = harness.run(subject.manifest, turns[0].get("input"), **{**subject.keys, **keys})
        for turn in turns[1:]:
            run = run.send(turn.get("input"))
        return run


def worlds(
    manifest: str | Path, *, agent: str | None = None, faults: Sequence[str] = ()
) -> SearchStrategy[World]:
    """Return a strategy of worlds for an agent, as `harness explore` draws them.

    Args:
        manifest: the manifest.
        agent: the agent inside of it, if it has several.
        faults: the kinds of faults that are drawn, such as `rate_limit` and `malformed`; by default none.

    Raises:
        harness.errors.ExtraMissing: Hypothesis is not installed.
        harness.errors.SourceError: the manifest is not valid, or has no such agent.
    """
    strategies = import_extra("hypothesis.strategies", "explore", "to draw worlds")
    from harness.explore.subject import of_manifest
    from harness.settings import Projects

    subject = next(of_manifest(Path(manifest), agent, Projects()))

    def drawn(draw: Callable[[Any], Any]) -> World:
        data = draw(strategies.data())
        return World(subject, faults, lambda below: data.conjecture_data.draw_integer(0, below - 1))

    strategy: SearchStrategy[World] = strategies.composite(drawn)()
    return strategy
