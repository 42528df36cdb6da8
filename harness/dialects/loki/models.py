"""Models: which one a node calls, and with which parameters. spec: "llm", `model`, `temperature`, `top_p`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from langchain_core.messages import BaseMessage

from harness.graph.effects import LLMCall, ToolSpec

ACTIVE: Final = "active"
"""The name of the model where neither the node nor the agent names one: Loki asks the one that is active then."""


class HasModel(Protocol):
    """The three fields of agents, graphs and llm nodes that choose a model."""

    model: str | None
    temperature: float | None
    top_p: float | None


@dataclass(frozen=True)
class ModelSettings:
    """A model, `client:name` or only a name, and its parameters."""

    model: str | None = None
    params: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, *owners: HasModel) -> ModelSettings:
        """The settings of the first owner that has each."""

        def first(name: str) -> float | None:
            return next((value for owner in owners if (value := getattr(owner, name)) is not None), None)

        given = {name: value for name in ("temperature", "top_p") if (value := first(name)) is not None}
        return cls(next((owner.model for owner in owners if owner.model is not None), None), given)

    @property
    def provider(self) -> str:
        """The client of the model, or nothing."""
        client, colon, _ = (self.model or ACTIVE).partition(":")
        return client if colon else ""

    @property
    def name(self) -> str:
        """The name of the model without its client: all after the first colon, as in `ollama:llama3.1:8b`."""
        return (self.model or ACTIVE).removeprefix(f"{self.provider}:")

    def call(self, messages: Sequence[BaseMessage], tools: Sequence[ToolSpec] = ()) -> LLMCall:
        """The effect of one turn of the model."""
        return LLMCall(
            name=self.name,
            provider=self.provider,
            params=self.params,
            messages=tuple(messages),
            tools=tuple(tools),
        )
