"""`harness init`: write an agent and two scenarios, to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from harness.cli.options import PATH
from harness.cli.output import unwritable
from harness.cli.schema import schema_text
from harness.errors import FormatError, Problem
from harness.source.document import shown_path
from harness.source.project import PYPROJECT, marked_root

_TEMPLATES: Final = Path(__file__).with_name("templates")
_MANIFESTS: Final = {
    "langgraph": "langgraph.json",
    "sherma": "agents/shop.yaml",
    "agentspec": "agents/shop.yaml",
    "yagra": "agents/shop.yaml",
    "loki": "agents/shop/graph.yaml",
    "leafmesh": "configs/config.yaml",
}
"""The manifest of the example in each dialect. Its files lie in `templates/DIALECT`, each with `.txt` added."""
_SCHEMA: Final = "scenarios/scenario.schema.json"
_SETTINGS: Final = """\
[tool.harness]
# This folder is the project: recordings go to `cassettes`, results to `reports/latest`.
"""
_IGNORED: Final = ("reports/", "__pycache__/", ".pytest_cache/")


@click.command("init")
@click.argument("folder", default=".", metavar="[DIR]", type=PATH)
@click.option(
    "--dialect",
    type=click.Choice(list(_MANIFESTS)),
    default="sherma",
    show_default=True,
    help="Dialect of the example: a LangGraph app, a sherma or Agent Spec agent with a tool, a Yagra workflow "
    "with handlers, a Loki graph agent with a script, a LeafMesh mesh.",
)
def command(folder: Path, dialect: str) -> None:
    """Write a small working example, to start from.

    It has an agent, two scenarios, and the JSON Schema with which editors check scenario files. Existing files
    are never overwritten: if one is in the way, nothing is written. If DIR is not inside a project (a
    pyproject.toml or a repository), it becomes one. The project's .gitignore gets the paths that runs write to.
    """
    texts = {folder / name: text for name, text in example(dialect).items()}
    project = marked_root(folder)
    if project is None:
        texts[folder / PYPROJECT] = _SETTINGS
    folders = dict.fromkeys(parent for path in texts for parent in path.parents)
    there = [shown_path(path) for path in texts if path.exists()]
    message = f"already there: {', '.join(there)}" if there else ""
    if file := next((each for each in folders if each.exists() and not each.is_dir()), None):
        message = f"{shown_path(file)} is a file, where the example needs a folder"
    if message:
        raise FormatError(Problem("file-exists", message, hint="nothing was written; name another folder"))
    for path, text in texts.items():
        _write(path, text)
        click.echo(f"wrote {shown_path(path)}")
    _ignore((project or folder) / ".gitignore")
    scenarios, agent = shown_path(folder / "scenarios"), shown_path(folder / _MANIFESTS[dialect])
    click.echo(f"\nNext:\n  harness run {scenarios}\n  harness show {agent}\n  pytest {scenarios}")


def example(dialect: str = "sherma") -> dict[str, str]:
    """Return the files of the example in a dialect, path to text, the manifest first."""
    folder = _TEMPLATES / dialect
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.txt"))
    names.sort(key=lambda name: name != f"{_MANIFESTS[dialect]}.txt")
    texts = {name.removesuffix(".txt"): (folder / name).read_text(encoding="utf-8") for name in names}
    return {**texts, _SCHEMA: schema_text()}


def _ignore(path: Path) -> None:
    """Add the paths that runs write to to a .gitignore, unless they are there."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        known = {line.strip().strip("/").removesuffix("/*") for line in text.splitlines()}
        added = [line for line in _IGNORED if line.strip("/") not in known]
        if not added:
            return
        gap = "\n" if text and not text.endswith("\n") else ""
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(gap + "".join(f"{line}\n" for line in added))
    except (OSError, UnicodeDecodeError) as error:
        raise unwritable(path, error) from None
    click.echo(f"added {', '.join(added)} to {shown_path(path)}" if text else f"wrote {shown_path(path)}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise unwritable(path, error) from None
