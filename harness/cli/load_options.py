"""Options of commands that read manifests, and the load requests made from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from harness.cli import completion
from harness.cli.options import env_option, pairs, path_option
from harness.cli.output import secrets_of
from harness.dialects.request import LoadRequest
from harness.errors import Problem
from harness.scenario.model import Scenario
from harness.settings import Projects
from harness.source.document import real_path
from harness.variants.application import main_manifest


@dataclass
class LoadOptions:
    """The settings for loading manifests, from the command line and from the scenarios that use them.

    `parts` are the documents that a manifest draws components from, `components` the ids that some of them stand for;
    without any, those of the first scenario that runs the manifest are used. With `imports` false, Python objects are
    looked up but not imported.
    """

    projects: Projects
    dialect: str | None = None
    agent: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Path, ...] = ()
    imports: bool = True
    users: dict[Path, list[Scenario]] = field(default_factory=dict)
    components: Mapping[str, str] = field(default_factory=dict)

    def add_user(self, scenario: Scenario) -> None:
        """Register a scenario: its manifests are loaded with its `env`, its hooks and the modules of its folder."""
        secrets_of(click.get_current_context()).add(scenario.env)
        for path in scenario.manifests:
            self.users.setdefault(main_manifest(path, scenario.dialect), []).append(scenario)

    def request(self, path: Path, agent: str | None) -> LoadRequest:
        """Return the request to load a manifest. Values of the command line override those of scenarios."""
        real = real_path(path)
        users = self.users.get(real, [])
        settings = self.projects.of(users[0].file if users else path)
        env = {name: value for user in users for name, value in user.env.items()}
        known = {real_path(user.file.parent) for users in self.users.values() for user in users}
        above = sorted(folder for folder in known if real.is_relative_to(folder))
        suites = (user.file.parent for user in users)
        beside = (path.parent, *suites, *settings.pythonpath, *above, Path.cwd())
        folders = tuple(dict.fromkeys(map(real_path, beside)))
        first = next((user for user in users if real_path(user.manifests[0]) == real), None)
        parts = self.parts or (first.manifests[1:] if first else ())
        hooks = tuple(dict.fromkeys(hook for user in users for hook in user.world.hooks))
        return LoadRequest(
            (path, *parts),
            agent,
            {**settings.env, **env, **self.env},
            folders,
            hooks,
            settings.allow_paths,
            imports=self.imports,
            components=self.components or (first.components if first else {}),
        )


agent_option = click.option(
    "--agent",
    metavar="NAME",
    shell_complete=completion.agents,
    help="The agent inside the manifest (default: all).",
)


def load_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that read manifests to a command, passed as the one argument `options`."""

    @wraps(command)
    def with_options(
        *args: Any,
        dialect: str | None,
        parts: tuple[Path, ...],
        components: dict[str, str],
        env: dict[str, str],
        passed: tuple[str, ...],
        agent: str | None = None,
        **others: Any,
    ) -> Any:
        given = {name: os.environ[name] for name in passed if name in os.environ} | env
        secrets_of(click.get_current_context()).add(given)
        options = LoadOptions(Projects(given_env=given), dialect, agent, given, parts, components=components)
        return command(*args, options=options, **others)

    decorated: Callable[..., Any] = with_options
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def with_env_option(problem: Problem) -> Problem:
    """Return the problem; if a variable has no value, with a hint at `--env`."""
    if problem.code != "missing-variable" or not problem.hint:
        return problem
    return replace(problem, hint=f"{problem.hint}; here with --env NAME=value")


_OPTIONS: Final = (
    click.option(
        "--dialect",
        metavar="NAME",
        shell_complete=completion.dialects,
        help="Dialect of the manifest (default: detected from its content).",
    ),
    path_option("--with", "parts", multiple=True, help="A document that the manifest takes components from."),
    click.option(
        "--component",
        "components",
        multiple=True,
        metavar="ID=KEY",
        callback=pairs,
        help="A reference to ID is one to the component KEY.",
    ),
    env_option,
    click.option(
        "--env-passthrough",
        "passed",
        multiple=True,
        metavar="NAME",
        help="Take ${NAME} from the environment; no other ${…} of the manifest is. Python code sees all variables.",
    ),
)
