"""The source of everything that is drawn in a run: texts, values of schemas, what a caller gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness.explore.mining import Mined, shape_schema, used_as
from harness.explore.values import Choose, instance
from harness.graph.model import Declared


@dataclass
class Draw:
    """The source of everything drawn in a run. `choose(n)` is a number below n, of which 0 is the simplest."""

    choose: Choose
    mined: Mined
    declared: Declared
    faults: Sequence[str] = ()

    def rarely(self, of: int) -> bool:
        """True once in `of` times."""
        return self.choose(of) == of - 1

    def one_of(self, items: Sequence[Any]) -> Any:
        """Return one of the items, of which the first is the simplest."""
        return items[self.choose(len(items))]

    def text(self) -> str:
        """Return a text: mostly one that the graph compares with, or that stands in the manifest."""
        words = self.mined.words or ("ok",)
        near = min(len(words), 12)
        kind = self.choose(12)
        if kind < 8:
            return str(words[self.choose(near)])
        if kind < 10:
            return str(words[self.choose(len(words))])
        return "" if kind == 10 else "lorem ipsum " * 40

    def value(self, schema: Mapping[str, Any]) -> Any:
        """Return an instance of a schema."""
        return instance(self._aimed(schema), self.choose, self.literals)

    def _aimed(self, schema: Any, name: str = "") -> Any:
        """Return a schema whose texts are mostly those that the graph compares with what has their name."""
        if not isinstance(schema, Mapping):
            return schema
        aimed = dict(schema)
        for key in ("properties", "$defs"):
            if isinstance(schema.get(key), Mapping):
                aimed[key] = {each: self._aimed(part, each) for each, part in schema[key].items()}
        if "items" in schema:
            aimed["items"] = self._aimed(schema["items"], name)
        texts = self.mined.texts.get(name) if schema.get("type") == "string" else None
        return {**aimed, "examples": texts} if texts else aimed

    def shape(self, *names: str) -> Mapping[str, Any]:
        """Return the schema of what is read of a result, by the name of what gives it, and what code calls it."""
        state = self.declared.state or {}
        return shape_schema(self.mined, *names, types=state.get("properties", {}))

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The texts of the manifest, and the numbers that it compares with."""
        return (*self.mined.words, *map(str, self.mined.numbers))


def inputs(draw: Draw) -> Iterator[Any]:
    """Yield what a caller gives, turn by turn: mostly one input."""
    yield _input(draw)
    if draw.declared.takes_text:
        for _ in range(max(0, draw.choose(6) - 3)):
            yield _input(draw)


def _input(draw: Draw) -> Any:
    declared = draw.declared
    if declared.takes_text and (declared.input is None or draw.choose(2) == 0):
        return draw.text()
    return draw.value(_of_caller(declared.input, draw.mined)) if declared.input is not None else {}


def _of_caller(schema: Mapping[str, Any], mined: Mined) -> Mapping[str, Any]:
    """Return a schema of inputs without what may be left out and the code of the agent writes, such as counters.

    What has no type is of that with which the agent uses it.
    """
    written = mined.written.difference(schema.get("required", ()))
    properties = {
        key: each or used_as(mined, key)
        for key, each in schema.get("properties", {}).items()
        if key not in written
    }
    return {**schema, "properties": properties} if "properties" in schema else schema
