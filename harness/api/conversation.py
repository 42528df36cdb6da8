"""A conversation with an agent as Python gives it: its scenario so far, and the callables that answer in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.api.keys import RunKeys, World
from harness.errors import FormatError, Problem

if TYPE_CHECKING:
    from harness.api.callables import Callables
    from harness.scenario.model import Scenario
    from harness.settings import Settings

_NOT_WRITTEN: Final = ("hooks", "record_mode")
"""Keys of a run that are written elsewhere in a scenario, or not at all."""
_SCENARIO_KEYS: Final = tuple(
    key for key in RunKeys.__annotations__ if key not in World.__annotations__ and key not in _NOT_WRITTEN
)


@dataclass(frozen=True)
class Beginning:
    """The beginning of a conversation: the scenario as it is written so far, and who answers.

    Attributes:
        manifest: a path, or an object.
        keys: the scenario, with placeholders for callables.
        turns: the turns, each with its input or answer and its own world.
        callables: those of the scenario, and of each turn.
        file: the file that the scenario is of, on which ids and imports depend.
        settings: those of its project.
    """

    manifest: Any
    keys: Mapping[str, Any]
    turns: Sequence[Mapping[str, Any]]
    callables: Sequence[Callables]
    file: Path
    settings: Settings

    def scenario(self, expect: Mapping[str, Any], manifest: str = "") -> Scenario:
        """Return the scenario with these expectations, without its callables.

        Raises:
            FormatError: a key or a value is wrong.
        """
        from harness.graph.to_json import to_json
        from harness.scenario.load import load_file
        from harness.source.document import shown_path, unwritten

        keys = {**self.keys, **(self.turns[0] if len(self.turns) == 1 else {"turns": self.turns})}
        keys |= {"expect": to_json(dict(expect))} if expect else {}
        head = {"harness": 1, "manifest": manifest or str(self.manifest)}
        try:
            document = unwritten({**head, "scenarios": [keys]}, file=shown_path(self.file))
        except (TypeError, UnicodeEncodeError) as error:
            hint = "a callable stands for a whole stub, and hooks are dotted paths"
            raise FormatError(Problem("wrong-type", f"a value is no data: {error}", hint=hint)) from None
        try:
            [found] = load_file(self.file, self.settings, document=document).scenarios
        except FormatError as error:
            raise self._told(head, keys) or error from None
        return found

    def _told(self, head: Mapping[str, Any], keys: Mapping[str, Any]) -> FormatError | None:
        """Return the error of a wrong scenario with what is written there, in place of where."""
        from harness.authoring.writer import file_text
        from harness.scenario.load import load_file
        from harness.source.document import parse, shown_path

        text = file_text(head, [keys])
        try:
            document = parse(text, file=shown_path(self.file), yaml="1.2", error=FormatError)
            load_file(self.file, self.settings, document=document)
        except FormatError as error:
            return FormatError([_in_no_file(problem, text.splitlines()) for problem in error.problems])
        return None

    @contextmanager
    def loaded(self) -> Iterator[Scenario]:
        """Yield the scenario, ready to run: its callables answer, and its manifest can be imported."""
        from harness.api.callables import place_callables
        from harness.api.given import manifest_of

        with manifest_of(self.manifest) as named:
            scenario = self.scenario({}, named)
            if scenario.agent is not None:
                _refuse_other_agent(scenario, self.settings)
            in_process = not isinstance(self.manifest, str | Path) or any(self.callables)
            worlds = [scenario.world, *(turn.world for turn in scenario.turns[1:])]
            for world, callables in zip(worlds, self.callables, strict=True):
                place_callables(world, callables)
            for stub in (stub for world in worlds for stub in world.stubs()):
                stub.place(None)  # it is written nowhere
            mentions = tuple(replace(each, span=None) for each in scenario.mentions)
            yield replace(scenario, in_process=in_process, warnings=(), manifest_span=None, mentions=mentions)

    def next_turn(self, kind: str, value: Any, world: Mapping[str, Any]) -> Beginning:
        """Return the conversation with one more turn. What was answered is answered again."""
        from harness.api.callables import without_callables
        from harness.graph.to_json import to_json

        written, found = without_callables(world)
        known = [{path: each.again() for path, each in callables.items()} for callables in self.callables]
        return replace(
            self, turns=[*self.turns, {kind: to_json(value), **written}], callables=[*known, found]
        )


def beginning_of(
    manifest: Any,
    input: Any,
    given: Mapping[str, Any],
    file: Path,
    name: str,
    settings: Settings | None = None,
) -> Beginning:
    """Return the beginning of a conversation, for the arguments of `run`. Raises as that does."""
    from harness.api.callables import WORLD_KEYS, without_callables
    from harness.dialects.langgraph.dialect import is_object
    from harness.graph.to_json import to_json
    from harness.settings import Projects, RecordMode
    from harness.source.display import did_you_mean

    known = (*_SCENARIO_KEYS, *WORLD_KEYS, *_NOT_WRITTEN)
    for key in given:
        if key not in known:
            text = f"'{key}' is no key of a run"
            raise FormatError(Problem("unknown-key", text, hint=did_you_mean(key, known)))
    world, callables = without_callables({key: given[key] for key in (*WORLD_KEYS, "hooks") if key in given})
    keys = {key: to_json(given[key]) for key in _SCENARIO_KEYS if given.get(key) is not None}
    if settings is None:
        mode = given.get("record_mode") or "none"
        if mode not in (modes := [each.value for each in RecordMode]):
            text = f"record_mode: expected one of {', '.join(modes)}, found {mode!r}"
            raise FormatError(Problem("wrong-type", text))
        settings = Projects(record_mode=RecordMode(mode)).around(Path.cwd())
    if isinstance(manifest, str | Path):
        manifest = _located(Path(manifest), file)
    if keys.get("agent") and (not isinstance(manifest, str) or is_object(Path(manifest))):
        text = f"there is no agent '{keys['agent']}': an object is one agent, which has no name"
        raise FormatError(Problem("unknown-agent", text, hint="leave `agent` out"))
    turn = {} if input is None else {"input": to_json(input)}
    return Beginning(manifest, {"name": name, **keys, **world}, [turn], [callables], file, settings)


def _located(manifest: Path, file: Path) -> str:
    """Return the path of a manifest from the folder of a file; it was given from the current one, or from there.

    Raises:
        FormatError: there is no such file or folder, nor a module for an object.
    """
    from harness.dialects.langgraph.dialect import is_object
    from harness.source.document import hint_for_missing, shown_path

    for found in (manifest, file.parent / manifest):
        written = Path(str(found).rpartition(":")[0]) if is_object(found) else found
        if written.exists() or (is_object(found) and written.suffix != ".py"):
            return os.path.relpath(found, file.parent)
    text = f"manifest {shown_path(manifest)}: no such file"
    raise FormatError(Problem("missing-file", text, hint=hint_for_missing(manifest)))


def _refuse_other_agent(scenario: Scenario, settings: Settings) -> None:
    """Refuse an agent that the manifest has not, if its dialect would run another one and only warn of it.

    Raises:
        FormatError: there is no such agent.
    """
    from harness.dialects.load import load_graph
    from harness.errors import SourceError
    from harness.scenario.app_process import is_app
    from harness.scenario.model import load_request
    from harness.source.display import did_you_mean
    from harness.source.document import shown_path

    if is_app(scenario.manifests[0], scenario.dialect):  # these refuse it themselves
        return
    try:
        graph = load_graph(load_request(scenario, settings, {}), scenario.dialect)
    except SourceError:  # which the run tells
        return
    for warning in graph.warnings:
        if warning.code == "other-agent":
            text = f"{shown_path(scenario.manifests[0])} has no agent '{scenario.agent}'"
            hint = did_you_mean(str(scenario.agent), [graph.name])
            raise FormatError(Problem("unknown-agent", text, hint=hint))


def _in_no_file(problem: Problem, lines: Sequence[str]) -> Problem:
    """Return a problem of a scenario that is in no file: with what is written there, in place of where."""
    line = problem.span.line if problem.span is not None else 0
    written = f": {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""
    return replace(problem, message=f"{problem.message}{written}", span=None)
