"""`harness prompts`: list the prompts of a manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent

import click

from harness.cli.load_options import LoadOptions, load_options
from harness.cli.options import PATH, flag
from harness.cli.output import print_problems
from harness.cli.selection import check_not_a_scenario
from harness.dialects.dialect import Prompt
from harness.dialects.load import load_prompts
from harness.errors import Problem
from harness.report.formatting import plural
from harness.source.display import printable


@click.command("prompts")
@click.argument("manifest", type=PATH)
@load_options
@flag("--json", "json_", help="Print a JSON list of {id, kind, text, where}.")
def command(manifest: Path, options: LoadOptions, json_: bool) -> None:
    """List the prompts of a manifest: id, kind, location and text of each.

    Texts are printed as they are written; ${VAR} and placeholders are not filled in. Prompts in separate files, and
    those of manifests that are part of this one, are listed too. It warns of ids that several prompts share.
    """
    check_not_a_scenario(manifest)
    found = load_prompts(options.request(manifest, None), options.dialect)
    print_problems(_ambiguous(found))
    if json_:
        listed = [
            {"id": prompt.id, "kind": prompt.kind, "text": prompt.text, "where": str(prompt.where)}
            for prompt in found
        ]
        click.echo(json.dumps(listed, indent=2, ensure_ascii=False))
    else:
        click.echo("\n\n".join(map(_shown, found)) or "no prompts")


def _ambiguous(prompts: Sequence[Prompt]) -> Iterator[Problem]:
    """Yield a warning for each id that several prompts have."""
    places: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        places.setdefault(prompt.id, []).append(prompt)
    for id_, same in places.items():
        if len(same) > 1:
            where = ", ".join(str(prompt.where) for prompt in same)
            text = f"the id '{id_}' is ambiguous: {plural(len(same), 'prompt')} have it: {where}"
            yield Problem("ambiguous-prompt", text, same[1].where, severity="warning")


def _shown(prompt: Prompt) -> str:
    """Return a prompt as text for a terminal, its control characters escaped."""
    head = printable(f"{prompt.id}  {prompt.kind}  {prompt.where}")
    body = printable(prompt.text.rstrip("\n"), keep_newlines=True)
    return f"{head}\n{indent(body, '    ')}"
