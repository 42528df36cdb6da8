"""`harness show`: the graph of a manifest, drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import click

from harness.cli.load_options import LoadOptions, agent_option, load_options
from harness.cli.manifests import agents_of, agents_to_load, check_not_a_scenario
from harness.cli.output import deliver
from harness.dialects.load import load_graph
from harness.draw import diagram
from harness.errors import FormatError, Problem
from harness.graph.model import Graph
from harness.graph.observe import implied_ends
from harness.source.document import shown_path

_TITLES: Final[Mapping[str, Callable[[str], str]]] = {
    "text": lambda name: f"{name}\n{'=' * len(name)}\n\n",
    "mermaid": lambda name: f"%% {name}\n",
}


MOST_DRAWN: Final = 2000
"""Data edges in a picture; more of them take too long to lay out, and show nothing."""


@click.command("show")
@click.argument("manifest", type=click.Path(path_type=Path))
@agent_option
@load_options
@click.option("-f", "--format", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text")
@click.option("--data", is_flag=True, help="Draw also which output feeds which input (data edges).")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write it to a file.")
def command(
    manifest: Path,
    options: LoadOptions,
    form: str,
    data: bool,
    output: Path | None,
) -> None:
    """Draw the graph of a manifest: as text, as a mermaid flowchart, or as an SVG picture.

    Of several agents all are drawn, one after the other; an SVG shows one.
    """
    check_not_a_scenario(manifest)
    found, agents = agents_of(manifest, options.dialect)
    if form == "svg" and len(agents) > 1 and options.agent is None:
        message = f"{shown_path(manifest)} has several agents, and an SVG shows one"
        raise FormatError(Problem("which-agent", message, hint=f"--agent, one of: {', '.join(agents)}"))
    graphs = {
        name: load_graph(options.request(manifest, name), found.name)
        for name in agents_to_load(agents, options.agent)
    }
    titled = len(graphs) > 1
    drawn = [
        (_TITLES[form](str(name)) if titled else "") + _draw(graph, form, data)
        for name, graph in graphs.items()
    ]
    deliver("\n".join(drawn), output)


def _draw(graph: Graph, form: str, data: bool) -> str:
    nodes = [(node.name, node.kind) for node in graph.nodes]
    edges = [(edge.source, edge.target, edge.label) for edge in (*graph.edges, *implied_ends(graph))]
    data_edges = graph.data_edges() if data else ()
    if form == "svg":
        if len(data_edges) > MOST_DRAWN:
            message = (
                f"an SVG shows at most {MOST_DRAWN:,} data edges, and '{graph.name}' has {len(data_edges):,}"
            )
            hint = "--format text or mermaid, or no --data"
            raise FormatError(Problem("too-much-to-draw", message, hint=hint))
        # character references: right in whatever encoding standard output has
        return diagram.svg(nodes, edges, data=data_edges).encode("ascii", "xmlcharrefreplace").decode()
    if form == "mermaid":
        return diagram.mermaid(nodes, edges, data_edges)
    return diagram.text(nodes, edges, data_edges if data else None)
