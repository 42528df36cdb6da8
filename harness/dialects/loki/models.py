"""The model that a node calls, and its parameters. spec: "llm", `model`, `temperature`, `top_p`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from langchain_core.messages import BaseMessage

from harness.graph.effects import ACTIVE, LLMCall, ToolSpec


class HasModel(Protocol):
    """The fields of agents, graphs and llm nodes that choose a model."""

    model: str | None
    temperature: float | None
    top_p: float | None


@dataclass(frozen=True)
class ModelSettings:
    """A model (`client:name`, or only a name) and its parameters."""

    model: str | None = None
    params: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, *owners: HasModel) -> ModelSettings:
        """Take each setting from the first owner that has it."""

        def first(name: str) -> float | None:
            return next((value for owner in owners if (value := getattr(owner, name)) is not None), None)

        given = {name: value for name in ("temperature", "top_p") if (value := first(name)) is not None}
        return cls(next((owner.model for owner in owners if owner.model is not None), None), given)

    @property
    def provider(self) -> str:
        """The client of the model; empty if none is named."""
        client, colon, _ = (self.model or ACTIVE).partition(":")
        return client if colon else ""

    @property
    def name(self) -> str:
        """The name of the model: the part after the first colon, such as `llama3.1:8b` of `ollama:llama3.1:8b`."""
        return (self.model or ACTIVE).removeprefix(f"{self.provider}:")

    def call(self, messages: Sequence[BaseMessage], tools: Sequence[ToolSpec] = ()) -> LLMCall:
        """Return the effect of one model call."""
        return LLMCall(
            name=self.name,
            provider=self.provider,
            params=self.params,
            messages=tuple(messages),
            tools=tuple(tools),
        )
