"""The winner as a variants file for `harness score --variants`."""

from __future__ import annotations

from typing import Any, Final

import yaml

from harness.evolution.genome import Genome
from harness.evolution.space import Space
from harness.scenario.document import FORMAT_VERSION

VARIANTS: Final = "winner.yaml"
NAME: Final = "evolved"


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes texts so that YAML 1.1 and 1.2 read them as texts."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else '"')


_Dumper.add_representer(str, _text)


def variants_file(genome: Genome, space: Space) -> str:
    """Return a variants file with the genome as its only variant."""
    variant = genome.variant(space, NAME)
    written: dict[str, Any] = {"name": NAME}
    if variant.prompts:
        written["prompts"] = {id_: prompt.text for id_, prompt in variant.prompts.items()}
    if variant.edit:
        written["edit"] = [dict(operation) for operation in variant.edit]
    document = {"harness": FORMAT_VERSION, "variants": [written]}
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
