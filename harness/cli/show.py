"""`harness show`: draw the graph of a manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import click

from harness.cli.load_options import LoadOptions, agent_option, load_options, with_env_option
from harness.cli.options import PATH, flag, path_option
from harness.cli.output import deliver, print_problems
from harness.cli.selection import agents_to_load, check_not_a_scenario
from harness.dialects.load import load_graph
from harness.dialects.registry import agents_of
from harness.draw.diagram import Form, picture
from harness.errors import FormatError, ManifestError, Problem
from harness.scenario.graph_warnings import warnings_alone
from harness.source.document import shown_path
from harness.units import DEFAULT_NOW

_TITLES: Final[Mapping[str, Callable[[str], str]]] = {
    "text": lambda name: f"{name}\n{'=' * len(name)}\n\n",
    "mermaid": lambda name: f"%% {name}\n",
}


def _as_for_a_run() -> AbstractContextManager[None]:
    from harness.scenario.app_server import conditions_of_imports

    return conditions_of_imports(DEFAULT_NOW)


@click.command("show")
@click.argument("manifest", type=PATH)
@agent_option
@load_options
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "svg"]),
    default="text",
    show_default=True,
    help="Format of the drawing.",
)
@flag("--data", help="Also draw data edges: which output feeds which input.")
@path_option("-o", "--output", help="Write the drawing to a file.")
def command(
    manifest: Path,
    options: LoadOptions,
    form: Form,
    data: bool,
    output: Path | None,
) -> None:
    """Draw the graph of a manifest: as text, as a mermaid flowchart, or as an SVG picture.

    If there are several agents, all are drawn, one after the other; agents with the same graph are drawn once. An
    SVG shows one agent.
    """
    check_not_a_scenario(manifest)
    found, agents = agents_of(manifest, options.dialect)
    try:
        with _as_for_a_run() if hasattr(found, "preload") else nullcontext():
            graphs = {
                name: load_graph(options.request(manifest, name), found.name)
                for name in agents_to_load(agents, options.agent)
            }
    except ManifestError as error:
        raise ManifestError([with_env_option(problem) for problem in error.problems]) from None
    print_problems(dict.fromkeys(found for graph in graphs.values() for found in warnings_alone(graph)))
    pictures: dict[tuple[str, str], str] = {}
    for name, graph in graphs.items():
        pictures.setdefault((graph.name, picture(graph, form, data=data)), str(name))
    if form == "svg" and len(pictures) > 1:
        message = f"{shown_path(manifest)} has several agents, and an SVG shows one"
        raise FormatError(Problem("which-agent", message, hint=f"--agent, one of: {', '.join(agents)}"))
    titled = len(pictures) > 1
    drawn = [(_TITLES[form](name) if titled else "") + drawing for (_, drawing), name in pictures.items()]
    deliver("\n".join(drawn), output)
