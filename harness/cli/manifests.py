"""Manifests as commands are given them: the options that say how to read one, and where they lie in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from harness.dialects.dialect import Dialect
from harness.dialects.registry import detected, dialect_named, dialect_of, manifest_at, names
from harness.errors import ManifestError, Problem
from harness.source.document import read, shown_path

_SUFFIXES: Final = (".yaml", ".yml", ".json")

F = TypeVar("F", bound=Callable[..., Any])


def reading_options(command: F) -> F:
    """The options of a command that reads manifests: which part, what dialect, and what belongs to it."""
    for option in reversed(
        (
            click.option("--agent", metavar="NAME", help="The agent inside the manifest (default: all)."),
            click.option(
                "--dialect", metavar="NAME", help="The manifest's dialect (default: by its content)."
            ),
            click.option(
                "--with",
                "parts",
                multiple=True,
                metavar="FILE",
                type=click.Path(path_type=Path),
                help="A document the manifest draws components from.",
            ),
            click.option(
                "--env", "env", multiple=True, metavar="K=V", callback=_pairs, help="A value for ${K}."
            ),
            click.option(
                "--env-passthrough",
                "passed",
                multiple=True,
                metavar="NAME",
                help="Take ${NAME} from the environment; nothing else is looked up there.",
            ),
        )
    ):
        command = option(command)
    return command


def _pairs(_ctx: click.Context, _option: click.Parameter, written: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in written]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise click.BadParameter(f"'{name}' is not NAME=value")
    return {name: value for name, _, value in pairs}


def environment(env: dict[str, str], passed: Sequence[str]) -> dict[str, str]:
    """The values of `${VAR}`: those of the process that were named, then those that were given."""
    return {name: os.environ[name] for name in passed if name in os.environ} | env


def agents_of(path: Path, dialect: str | None) -> tuple[Dialect, list[str]]:
    """A manifest's dialect and the agents it defines, in order; none where its sections are not as they should be.

    Raises:
        ManifestError: it cannot be read, or is no manifest.
    """
    found = dialect_named(dialect) if dialect else dialect_of(path)
    return found, list(found.agents(read(manifest_at(path, found), yaml=found.yaml)))


def wanted(agents: Sequence[str], asked: str | None) -> list[str | None]:
    """The agents a command is about: the one that was asked for, else all; one without a name where none is known."""
    return [asked] if asked else [*agents] or [None]


class Found(NamedTuple):
    """What a folder has: manifests, and a warning for each file that could be one but cannot be read."""

    manifests: list[Path]
    unreadable: list[Problem]


def manifests_below(folder: Path, dialect: str | None) -> Found:
    """The manifests in a folder and its folders, hidden ones left out, in order: what a dialect detects."""
    dialects = [dialect_named(name) for name in ([dialect] if dialect else names())]
    found = Found([], [])
    for path in _candidates(folder):
        try:
            of_dialect, _ = detected(path, dialects)
        except ManifestError as error:
            first = error.problems[0]
            text = f"{shown_path(path)} is left out, as it cannot be read: {first.message}"
            found.unreadable.append(replace(first, message=text, severity="warning"))
            continue
        if of_dialect is not None:
            found.manifests.append(path)
    return found


def _candidates(folder: Path) -> Iterator[Path]:
    from harness.scenario.load import SUFFIXES

    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(_SUFFIXES) and not name.endswith(SUFFIXES):
                yield Path(root, name)
