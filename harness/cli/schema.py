"""`harness schema`: the JSON Schema of scenario files."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import path_option
from harness.cli.output import deliver

_EDITORS = """\b
Editors with the YAML language server complete and check scenario files
whose first line names the schema:
  harness schema -o scenarios/scenario.schema.json
  # yaml-language-server: $schema=scenario.schema.json
"""


@click.command("schema", epilog=_EDITORS)
@path_option("-o", "--output", help="Write the schema to a file.")
def command(output: Path | None) -> None:
    """Print the JSON Schema (2020-12) of scenario files."""
    deliver(schema_text(), output)


def schema_text() -> str:
    """Return the JSON Schema as the text of a file."""
    import json

    from harness.scenario.schema import schema

    return json.dumps(schema(), indent=2) + "\n"
