"""A genome: a manifest with changed prompts, temperatures and tools, stored as the differences from the manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.errors import Span
from harness.evolution.space import Kind, Space
from harness.source.document import DocumentPath
from harness.variants.document import BASELINE, Prompt, Variant

_NOWHERE: Final = Span("genomes.jsonl", 1, 1)


@dataclass(frozen=True)
class Genome:
    """Differences from the manifest: prompts by id, temperatures and tools by agent or node."""

    prompts: Mapping[str, str] = field(default_factory=dict)
    temperatures: Mapping[str, float] = field(default_factory=dict)
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_baseline(self) -> bool:
        """True if the genome is the unchanged manifest."""
        return not (self.prompts or self.temperatures or self.tools)

    @property
    def key(self) -> str:
        """A text that is equal for equal genomes, whatever the order of their genes."""
        return json.dumps(self.as_json(), sort_keys=True, ensure_ascii=False)

    def as_json(self) -> dict[str, Any]:
        """Return the genome as written to genomes.jsonl."""
        return {
            "prompts": dict(self.prompts),
            "temperatures": dict(self.temperatures),
            "tools": {name: list(tools) for name, tools in self.tools.items()},
        }

    def gene(self, space: Space, kind: Kind, name: str) -> Any:
        """Return the value of a gene, from the manifest if the genome does not change it."""
        own, manifests = self._parts(space)[kind]
        return own[name] if name in own else manifests[name]

    def with_gene(self, space: Space, kind: Kind, name: str, value: Any) -> Genome:
        """Return this genome with another value of a gene. A value equal to the manifest's is no difference."""
        parts = {each: dict(own) for each, (own, _) in self._parts(space).items()}
        parts[kind].pop(name, None)
        if value != self._parts(space)[kind][1][name]:
            parts[kind][name] = value
        return Genome(parts["prompt"], parts["temperature"], parts["tools"])

    def _parts(self, space: Space) -> Mapping[Kind, tuple[Mapping[str, Any], Mapping[str, Any]]]:
        return {
            "prompt": (self.prompts, space.prompts),
            "temperature": (self.temperatures, space.temperatures),
            "tools": (self.tools, space.tools),
        }

    def variant(self, space: Space, name: str = "") -> Variant:
        """Return the genome as a variant. Without `name`, it is named by a hash that equal genomes share."""
        if self.is_baseline:
            return Variant(BASELINE, _NOWHERE)
        name = name or f"genome-{hashlib.sha256(self.key.encode()).hexdigest()[:12]}"
        spans = {f"prompts.{id_}": _NOWHERE for id_ in self.prompts} | {"edit": _NOWHERE}
        prompts = {id_: Prompt(text, _NOWHERE) for id_, text in self.prompts.items()}
        edit = tuple(
            {"op": "add" if kind == "temperature" else "replace", "path": _pointer(path), "value": value}
            for kind, path, value in self.values(space)
        )
        return Variant(name, _NOWHERE, prompts=prompts, edit=edit, spans=spans)

    def values(self, space: Space) -> Iterator[tuple[Kind, DocumentPath, Any]]:
        """Yield the temperatures and tool lists that differ: kind, path in the manifest, and new value."""
        for owner, temperature in self.temperatures.items():
            yield "temperature", space.places["temperature", owner].path, temperature
        for owner, tools in self.tools.items():
            place = space.places["tools", owner]
            yield "tools", place.path, [place.pool[name] for name in tools]


def _pointer(path: DocumentPath) -> str:
    """Return a path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
