"""`harness init`: write an agent and two scenarios, to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from harness.cli.options import PATH
from harness.cli.output import unwritable
from harness.cli.schema import schema_text
from harness.errors import FormatError, Problem
from harness.source.document import shown_path
from harness.source.project import PYPROJECT, marked_root

_TEMPLATES: Final = {
    "sherma": {
        "agents/shop.yaml": "shop.yaml.txt",
        "agents/shop_tools.py": "shop_tools.py.txt",
        "scenarios/shop.scenario.yaml": "shop.scenario.yaml.txt",
    },
    "agentspec": {
        "agents/shop.yaml": "agentspec/shop.yaml.txt",
        "agents/orders.py": "agentspec/orders.py.txt",
        "scenarios/shop.scenario.yaml": "agentspec/shop.scenario.yaml.txt",
    },
    "yagra": {
        "agents/shop.yaml": "yagra/shop.yaml.txt",
        "agents/prompts.yaml": "yagra/prompts.yaml.txt",
        "agents/shop_handlers.py": "yagra/shop_handlers.py.txt",
        "scenarios/shop.scenario.yaml": "yagra/shop.scenario.yaml.txt",
    },
    "loki": {
        "agents/shop/graph.yaml": "loki/graph.yaml.txt",
        "agents/shop/scripts/route.py": "loki/route.py.txt",
        "scenarios/shop.scenario.yaml": "loki/shop.scenario.yaml.txt",
    },
    "leafmesh": {
        "configs/config.yaml": "leafmesh/config.yaml.txt",
        "agency/shop_agents.py": "leafmesh/shop_agents.py.txt",
        "scenarios/shop.scenario.yaml": "leafmesh/shop.scenario.yaml.txt",
    },
}
"""The files of the example in each dialect, the manifest first: target path to name of the template."""
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
    type=click.Choice(list(_TEMPLATES)),
    default="sherma",
    show_default=True,
    help="Dialect of the example: a sherma or Agent Spec agent with a tool, a Yagra workflow with handlers, a Loki "
    "graph agent with a script, a LeafMesh mesh.",
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
    if file := next((each for each in folders if each.exists() and not each.is_dir()), None):
        message = f"{shown_path(file)} is a file, where the example needs a folder"
        raise FormatError(Problem("file-exists", message, hint="nothing was written; name another folder"))
    there = [shown_path(path) for path in texts if path.exists()]
    if there:
        message = f"already there: {', '.join(there)}"
        raise FormatError(Problem("file-exists", message, hint="nothing was written; name another folder"))
    for path, text in texts.items():
        _write(path, text)
        click.echo(f"wrote {shown_path(path)}")
    _ignore((project or folder) / ".gitignore")
    scenarios, agent = shown_path(folder / "scenarios"), shown_path(folder / next(iter(_TEMPLATES[dialect])))
    click.echo(f"\nNext:\n  harness run {scenarios}\n  harness show {agent}\n  pytest {scenarios}")


def example(dialect: str = "sherma") -> dict[str, str]:
    """Return the files of the example in a dialect, path to text."""
    folder = files("harness.cli") / "templates"
    texts = {name: (folder / file).read_text(encoding="utf-8") for name, file in _TEMPLATES[dialect].items()}
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
