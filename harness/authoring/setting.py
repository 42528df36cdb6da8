"""The setting of a scenario from a trace, besides inputs and world: the agent, its variables, seed and time.

A trace of this project names the scenario that it is of. What that scenario says and a trace does not hold, such as
variables or the functions that are called for real, is taken from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.authoring.trial import Place
from harness.authoring.world import Exchange
from harness.dialects.registry import agents_of
from harness.errors import SourceError
from harness.graph.effects import EFFECTS
from harness.report.traces import RunTrace
from harness.scenario.app_process import is_app
from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.settings import Projects
from harness.units import DEFAULT_NOW, instant_text
from harness.world.spec import ScriptedMCPServer

IsReal = Callable[[Exchange], bool]
Way = tuple[IsReal, bool]
"""A way to answer: which calls are real, and whether the answers of models are listed by node."""


@dataclass(frozen=True)
class Setting:
    """The keys of a scenario besides inputs and world, and its world so far.

    Attributes:
        manifests: the manifest, and the documents that it draws components from.
        keys: other keys, such as `agent` and `env`.
        world: entries that are real, hooks.
        origin: the scenario that the trace is of; None if it is not at hand.
        place: where the run of the trace was; None if it was not a run of the harness.
    """

    manifests: tuple[Path, ...]
    keys: Mapping[str, Any]
    world: Mapping[str, Mapping[str, Any]]
    origin: Scenario | None
    place: Place | None = None

    def manifest_from(self, folder: Path) -> Any:
        """Return the value of `manifest` in a file of this folder."""
        names = [os.path.relpath(path, folder) for path in self.manifests]
        return names[0] if len(names) == 1 else names


def setting_of(trace: RunTrace, manifest: Path | None, folder: Path, projects: Projects) -> Setting | None:
    """Return the setting of a trace; None if nothing says which manifest it is of.

    Args:
        trace: the trace.
        manifest: the manifest, if it was given.
        folder: the folder of the trace, or the project.
        projects: the settings.
    """
    project = projects.around(folder.resolve()).project
    origin = _origin(trace, project, projects) if manifest is None else None
    suite, name = trace.head.get("suite"), trace.head.get("scenario")
    place = (project / str(suite), str(name)) if suite and name else None
    if origin is not None:
        return Setting(origin.manifests, _keys(origin, trace), world_of_scenario(origin), origin, place)
    named = trace.head.get("manifest")
    if manifest is None and not named:
        return None
    path = manifest or project / str(named)
    keys = keys_of_agent(path, trace.head.get("agent"))
    return Setting((path,), keys | _seed_and_time(trace, None), {}, None, place)


def keys_of_agent(manifest: Path, agent: str | None) -> dict[str, Any]:
    """Return the key that names the agent; none where there is nothing to choose."""
    return {"agent": agent} if agent and len(_agents(manifest)) > 1 else {}


def _origin(trace: RunTrace, project: Path, projects: Projects) -> Scenario | None:
    """Return the scenario that a trace of this project is of."""
    file = project / str(trace.head.get("suite") or "")
    if not file.is_file():
        return None
    try:
        found = load_file(file, projects.of(file)).scenarios
        return next((each.whole() for each in found if each.name == trace.head.get("scenario")), None)
    except SourceError:
        return None


def _agents(manifest: Path) -> list[str]:
    try:
        return agents_of(manifest, None)[1]
    except SourceError:  # running it reports this
        return []


def _keys(origin: Scenario, trace: RunTrace) -> dict[str, Any]:
    return keys_of_scenario(origin) | _seed_and_time(trace, origin)


def keys_of_scenario(origin: Scenario) -> dict[str, Any]:
    """Return the keys of a scenario besides inputs, world, seed and time."""
    found: dict[str, Any] = {
        "dialect": origin.dialect,
        "agent": origin.agent,
        "components": dict(origin.components),
        "env": dict(origin.env),
        "env_passthrough": list(origin.env_passthrough),
        "timeout": origin.timeout_s if origin.timeout_s != 30 else None,
    }
    if origin.native is not None:
        found["config"], found["context"] = dict(origin.native.config), origin.native.context
        found["store"] = [
            {"namespace": list(item.namespace), "key": item.key, "value": item.value}
            for item in origin.native.store
        ]
    return {key: value for key, value in found.items() if value or (key == "context" and value is not None)}


def _seed_and_time(trace: RunTrace, origin: Scenario | None) -> dict[str, Any]:
    found: dict[str, Any] = {"seed": trace.head["seed"]} if trace.head.get("seed") else {}
    now = trace.head.get("now")
    given = origin.now if origin is not None else None
    if given is not None or (origin is None and now and now != instant_text(DEFAULT_NOW)):
        found["now"] = now or instant_text(given or DEFAULT_NOW)
    return found


def world_of_scenario(origin: Scenario) -> dict[str, Any]:
    """Return the entries that are real, and the hooks."""
    found: dict[str, Any] = {}
    for world in origin.worlds:
        for (key, name), entry in world.real():
            found.setdefault(str(key), {})[name] = entry.real
        if world.mcp:
            found.setdefault("mcp", {}).update({name: _server(server) for name, server in world.mcp.items()})
        if world.hooks:
            found["hooks"] = list(world.hooks)
    return found


def _server(server: ScriptedMCPServer) -> Any:
    """Return a server with the definitions of its tools, which models read, and without answers."""
    if server.real:
        return "real"
    written = server.model_dump(exclude_unset=True, by_alias=True)
    tools = [
        {key: value for key, value in tool.items() if key != "stubs"} for tool in written.get("tools", ())
    ]
    return {"tools": tools} | ({"error": written["error"]} if "error" in written else {})


def ways_to_answer(setting: Setting) -> list[Way]:
    """Return the ways to answer, in the order to try them.

    What the scenario of the trace does not answer is real again; without it, what would run for real if nothing
    answered it. Of a foreign trace, stubs answer everything if they can, and its nodes may be of another level.
    """
    app = is_app(setting.manifests[0], setting.keys.get("dialect"))

    def by_default(each: Exchange) -> bool:
        kind = EFFECTS[each.kind]
        if only_entries(each):
            return True
        if setting.origin is not None and kind.stubs == "name":
            return not answers(setting.origin, each)
        return kind.real_by_default or (app and each.kind == "tool")

    def only_entries(each: Exchange) -> bool:
        key, *names = each.entry
        return bool(names) and isinstance(setting.world.get(key, {}).get(names[0]), str)

    if setting.place is not None:
        return [(by_default, True), (only_entries, True)]
    return [(is_real, by_node) for by_node in (True, False) for is_real in (only_entries, by_default)]


def answers(origin: Scenario, each: Exchange) -> bool:
    """True if the scenario has stubs for calls of this name."""
    key, name = each.entry
    names = {name, name.rpartition("/")[2]} if EFFECTS[each.kind].named_in_parts else {name}
    return any(names & getattr(world, key).keys() for world in origin.worlds)
