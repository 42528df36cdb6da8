"""`harness schema`: the JSON Schemas of files."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from harness.cli.options import path_option
from harness.cli.output import deliver

_MODULES: Final = {
    "scenario": "harness.scenario.schema",
    "variants": "harness.variants.document",
    "gate": "harness.gate.policy",
}
"""For each kind of files, the module whose `schema` returns its schema."""

_EDITORS = """\b
Editors with the YAML language server complete and check files whose first
line names the schema:
  harness schema -o scenarios/scenario.schema.json
  # yaml-language-server: $schema=scenario.schema.json

\b
  harness schema --kind variants -o variants.schema.json
  harness schema --kind gate -o gate.schema.json
"""


@click.command("schema", epilog=_EDITORS)
@click.option(
    "--kind",
    type=click.Choice(list(_MODULES)),
    default="scenario",
    show_default=True,
    help="Scenario files, variants files, or policies of the gate.",
)
@path_option("-o", "--output", help="Write the schema to a file.")
def command(kind: str, output: Path | None) -> None:
    """Print the JSON Schema (2020-12) of scenario files, or of another kind of files."""
    deliver(schema_text(kind), output)


def schema_text(kind: str = "scenario") -> str:
    """Return the JSON Schema as the text of a file."""
    return json.dumps(import_module(_MODULES[kind]).schema(), indent=2) + "\n"
