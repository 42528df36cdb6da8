"""Loads the scenario to serve, and adapts its worlds to requests whose node is unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.errors import FormatError, Problem
from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.settings import load_settings
from harness.source.display import nearest_names
from harness.source.document import shown_path
from harness.world.spec import MCPServerSpec, Stub, WorldSpec

_SCHEME_AND_HOST: Final = re.compile(r"[^/]*://[^/]*")
_HOST: Final = re.compile(r"[^/]*[.:][^/]*(?=/)")


def load_scenario(target: str | Path) -> Scenario:
    """Return the scenario `FILE::NAME`, or the only one in `FILE`.

    Raises:
        FormatError: the file cannot be used, it has no scenario NAME (`unknown-scenario`), or it has several and
            none is named (`which-scenario`).
    """
    file, named, name = str(target).partition("::")
    loaded = load_file(Path(file), load_settings(Path(file).parent))
    scenarios = {scenario.name: scenario for scenario in loaded.scenarios}
    if named and name in scenarios:
        return scenarios[name].whole()
    if named:
        message = f"no scenario '{name}' in {shown_path(file)}"
        raise FormatError(Problem("unknown-scenario", message, hint=nearest_names(name, scenarios)))
    if len(scenarios) > 1:
        message = f"{shown_path(file)} has {len(scenarios)} scenarios, and one is served"
        listed = "\n    ".join(f"{shown_path(file)}::{known}" for known in scenarios)
        raise FormatError(Problem("which-scenario", message, hint=f"name it:\n    {listed}"))
    return next(iter(scenarios.values())).whole()


def without_nodes(world: WorldSpec) -> WorldSpec:
    """Return the world for requests whose node is unknown, and whose host is the server.

    Node matchers of stubs and faults are removed, and the `url` of an HTTP stub is reduced to its path.
    """
    return WorldSpec(
        llm=_nodeless(world.llm),
        http=tuple(_by_path(stub) for stub in _nodeless(world.http)),
        mcp=_nodeless_servers(world.mcp),
        faults=tuple(replace(fault, node=None) for fault in world.faults),
    )


def _by_path(stub: Stub) -> Stub:
    """`https://shop.example/items/*` becomes `/items/*`."""
    if stub.url is None:
        return stub
    found = _SCHEME_AND_HOST.match(stub.url) or _HOST.match(stub.url)
    if found is None:
        return stub
    path = stub.url[found.end() :]
    return replace(stub, url=path or ("*" if stub.url.endswith("*") else "/"))


def _nodeless(stubs: Iterable[Stub]) -> tuple[Stub, ...]:
    return tuple(replace(stub, nodes=()) for stub in stubs)


def _nodeless_servers(servers: Mapping[str, MCPServerSpec]) -> dict[str, MCPServerSpec]:
    return {
        name: replace(
            server, tools=tuple(replace(tool, stubs=_nodeless(tool.stubs)) for tool in server.tools)
        )
        for name, server in servers.items()
    }
