"""The registries of a `node_execute` hook's context: models, tools, prompts, skills and agents.

spec: "node_execute", `NodeExecuteContext`. Models and agents answer from the world, like any node's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.dialects.sherma.agent import Agent, AgentSession
from harness.dialects.sherma.document import Prompt
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.source.suggest import did_you_mean

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class NotRegistered(HarnessError):
    """An id that a registry does not have."""

    code = "not-registered"


class Registry:
    """Items by id: `await registry.get(id)`."""

    def __init__(self, kind: str, items: Mapping[str, Any]) -> None:
        self._kind, self._items = kind, items

    async def get(self, id_: str, version: str = "*") -> Any:
        """The item of that id, whatever its version.

        Raises:
            NotRegistered: there is none.
        """
        del version
        if id_ not in self._items:
            hint = did_you_mean(id_, self._items)
            raise NotRegistered(f"no {self._kind} '{id_}' is registered" + (f" ({hint})" if hint else ""))
        return self._items[id_]


@dataclass(frozen=True)
class RegistryBundle:
    """spec: `ctx.registries`."""

    tool_registry: Registry
    llm_registry: Registry
    prompt_registry: Registry
    skill_registry: Registry
    agent_registry: Registry
    skill_card_registry: Registry
    chat_models: Mapping[str, BaseChatModel]
    tenant_id: str = "default"


def registries(session: AgentSession, ctx: NodeContext) -> RegistryBundle:
    """The registries of a run, for a hook of the node of this context."""
    from harness.dialects.sherma.chat_model import WorldChatModel

    agent = session.agent
    return RegistryBundle(
        tool_registry=Registry("tool", {tool.id: tool for tool in session.tools.all()}),
        llm_registry=Registry("llm", agent.llms),
        prompt_registry=Registry(
            "prompt", {prompt.id: _with_text(prompt, agent) for prompt in agent.manifest.prompts}
        ),
        skill_registry=Registry("skill", {skill.id: skill for skill in agent.skills.skills}),
        agent_registry=Registry("agent", agent.sub_agents),
        skill_card_registry=Registry("skill card", {skill.id: skill.card for skill in agent.skills.skills}),
        chat_models={
            id_: WorldChatModel(model_name=llm.model_name, provider=llm.provider).in_node(ctx)
            for id_, llm in agent.llms.items()
        },
    )


def _with_text(prompt: Prompt, agent: Agent) -> Prompt:
    """A prompt with its instructions, wherever they were written."""
    return prompt.model_copy(update=agent.variables["prompts"][prompt.id])
