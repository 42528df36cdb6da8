"""The search space: the genes of a manifest, each with its value in the manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from harness.dialects.dialect import Prompt, Tunable
from harness.errors import Problem

Kind = Literal["prompt", "temperature", "tools"]
MUTATION_TYPES: Final[Mapping[str, Kind]] = {
    "prompt_variation": "prompt",
    "temperature_adjustment": "temperature",
    "tool_selection": "tools",
}


@dataclass(frozen=True)
class Space:
    """The genes of a manifest: prompts by id, temperatures and tools by agent or node.

    `places` are the locations of temperatures and tools in the manifest. Only genes of these `kinds` mutate.
    """

    prompts: Mapping[str, str]
    temperatures: Mapping[str, float | None] = field(default_factory=dict)
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: Mapping[tuple[Kind, str], Tunable] = field(default_factory=dict)
    kinds: Sequence[Kind] = ("prompt", "temperature", "tools")

    @property
    def genes(self) -> list[tuple[Kind, str]]:
        """The genes that may mutate, in a fixed order."""
        names: Mapping[Kind, Mapping[str, Any]] = {
            "prompt": self.prompts,
            "temperature": self.temperatures,
            "tools": self.tools,
        }
        return [(kind, name) for kind in self.kinds for name in names[kind]]

    def pool(self, name: str) -> Mapping[str, Any]:
        """Return the tools that an agent or node can have, by name, in the order of the manifest."""
        return self.places["tools", name].pool


def space_of(
    prompts: Sequence[Prompt], tunables: Sequence[Tunable], mutation_types: Sequence[str]
) -> tuple[Space, list[Problem]]:
    """Return the genes of a manifest with these prompts and tunables, and warnings about those left out.

    An id shared by different prompts is left out, since a variant would give all of them one text.
    """
    texts: dict[str, str] = {}
    problems = []
    for prompt in prompts:
        if texts.setdefault(prompt.id, prompt.text) != prompt.text:
            text = f"the prompt '{prompt.id}' is not varied: several prompts have this id"
            problems.append(Problem("ambiguous-prompt", text, prompt.where, severity="warning"))
    for problem in problems:
        texts.pop(problem.message.split("'")[1], None)
    kinds = [MUTATION_TYPES[each] for each in mutation_types]
    found = Space(
        {id_: text for id_, text in texts.items() if text.strip()},
        {each.owner: each.value for each in tunables if each.kind == "temperature"},
        {each.owner: tuple(each.value) for each in tunables if each.kind == "tools"},
        {(each.kind, each.owner): each for each in tunables},
        kinds,
    )
    has = {kind for kind, _ in found.genes}
    for name in mutation_types:
        if MUTATION_TYPES[name] not in has:
            text = f"{name} has nothing to change: the manifest has no {_NOUNS[MUTATION_TYPES[name]]}"
            problems.append(Problem("nothing-to-vary", text, severity="note"))
    return found, problems


_NOUNS: Final[Mapping[Kind, str]] = {
    "prompt": "prompts",
    "temperature": "temperatures that can be varied",
    "tools": "lists of tools that can be varied",
}
