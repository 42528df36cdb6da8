"""The scenario of a run with drawn answers: the shortest that shows the same, as a person would write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, Final, NamedTuple

from harness.authoring.from_trace import with_entries
from harness.authoring.setting import answers
from harness.authoring.world import exchanges, given_in, world_of
from harness.errors import SourceError
from harness.explore.values import LEFT_OUT, changed, paths
from harness.graph.effects import EFFECTS
from harness.graph.model import Declared
from harness.graph.trace import Event
from harness.scenario.model import Scenario

_MOST_TRIALS: Final = 200

Keys = dict[str, Any]
"""A scenario, as it is written."""


class Material(NamedTuple):
    """The material of a scenario: a run.

    Attributes:
        events: its trace, as JSON data.
        unreal: see `harness.explore.drawn.Drawn`.
        context: the context that was drawn; None if none was.
    """

    events: list[Event]
    unreal: Set[tuple[str, str]]
    context: Mapping[str, Any] | None = None


def keys_of(run: Material, origin: Scenario, real: Mapping[str, Any]) -> Keys:
    """Return the input and the world of a run. What ran for real, as what would run for real again, is left out.

    What runs for real has no stubs in the scenario `origin`, and was not drawn. `real` has the entries that are real,
    and the tools of MCP servers.
    """

    def is_real(each: Any) -> bool:
        key, *names = each.entry
        named = names and isinstance(real.get(key, {}).get(names[0]), str)
        may_run = EFFECTS[each.kind].stubs == "name" and (each.kind, each.call["name"]) not in run.unreal
        return bool(named or (may_run and not answers(origin, each)))

    world = world_of(exchanges(run.events), is_real, by_node=True)
    world = {**world, **{key: with_entries(world.get(key), entries) for key, entries in real.items()}}
    context = {"context": dict(run.context)} if run.context is not None else {}
    return {**given_in(run.events), **context, **world}


def forever(keys: Keys, only_last: bool) -> Keys:
    """Return a scenario in which the last answer of each list is given for ever; `only_last`: and no other is."""
    found = dict(keys)
    for effect in EFFECTS.values():
        entries = found.get(effect.key)
        if isinstance(entries, Mapping):
            found[effect.key] = {name: _forever(stubs, only_last) for name, stubs in entries.items()}
        elif isinstance(entries, list):
            found[effect.key] = _forever(entries, only_last)
    return found


def _forever(stubs: Any, only_last: bool) -> Any:
    if not isinstance(stubs, list) or not stubs:
        return stubs
    last = stubs[-1] if isinstance(stubs[-1], Mapping) else {"reply": stubs[-1]}
    return [*(() if only_last else stubs[:-1]), {**last, "times": "any"}]


def shortened(keys: Keys, declared: Declared, is_same: Callable[[Keys], bool]) -> Keys:
    """Return a scenario without any part that can be left out while it still shows the same.

    Values with a declared schema stay whole: without a part, they would be answers that the world does not give.
    """
    trials, at = 0, 0
    while trials < _MOST_TRIALS:
        parts = list(_parts(keys, declared))
        if at >= len(parts):
            break
        shorter = changed(keys, parts[at], LEFT_OUT)
        trials += 1
        try:
            found = is_same(shorter)
        except SourceError:  # without the part, it is no valid scenario
            found = False
        keys, at = (shorter, at) if found else (keys, at + 1)
    return keys


Path = tuple[Any, ...]


def _parts(keys: Keys, declared: Declared) -> Iterator[Path]:
    """Yield the path of each part that might be left out, the largest first."""
    for at in reversed(range(1, len(keys.get("turns", ())))):
        yield ("turns", at)
    if "context" in keys:
        yield ("context",)
    for _, path in _of_names(keys):
        if path[-1] in ("args", "times") and "return" not in path:
            yield path
    for effect in EFFECTS.values():
        entries = keys.get(effect.key)
        if not entries:
            continue
        yield (effect.key,)
        for name in entries if isinstance(entries, Mapping) else ():
            yield (effect.key, name)
        yield from _stubs((effect.key,), entries)
    if declared.input is None:
        yield from (("input", *path) for path in paths(keys.get("input")))
    for kind, path in _of_names(keys):
        if "return" in path[:-1] and (kind, path[1]) not in declared.results:
            yield path


def _of_names(keys: Keys) -> Iterator[tuple[str, Path]]:
    """Yield the paths of all keys in the stubs of tools and the like, each with its kind of call."""
    for effect in EFFECTS.values():
        for path in paths(keys.get(effect.key)) if effect.stubs == "name" else ():
            yield effect.kind, (effect.key, *path)


def _stubs(path: Path, value: Any) -> Iterator[Path]:
    """Yield the paths of the single stubs of lists, the last first."""
    if isinstance(value, list) and len(value) > 1:
        yield from ((*path, at) for at in reversed(range(len(value))))
    elif isinstance(value, Mapping):
        for name, below in value.items():
            yield from _stubs((*path, name), below)
