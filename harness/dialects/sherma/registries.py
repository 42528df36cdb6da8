"""The registries in the context of a `node_execute` hook: models, tools, prompts, skills and agents.

spec: "node_execute", `NodeExecuteContext`. Models and agents are answered by the world, as for any node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool, StructuredTool

from harness.dialects.sherma.agent import AgentSession
from harness.dialects.sherma.tools import Tool, resolve_version
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.source.display import did_you_mean

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class NotRegistered(HarnessError):
    """A registry has no item with this id or version."""

    code = "not-registered"


class Registry:
    """Items by id and version: `await registry.get(id)`, `await registry.get(id, "1.0.0")`.

    Each of `given` has an id and a version; `item` returns what the registry holds for it, by default itself.
    """

    def __init__(
        self, kind: str, given: Iterable[Any], item: Callable[[Any], Any] = lambda each: each
    ) -> None:
        self._kind = kind
        self._items: dict[str, dict[str, Any]] = {}
        for each in given:
            self._items.setdefault(each.id, {})[each.version] = item(each)

    async def get(self, id_: str, version: str = "*") -> Any:
        """Return the item with this id and version; `*` is the latest.

        Raises:
            NotRegistered: there is none.
        """
        if id_ not in self._items:
            hint = did_you_mean(id_, self._items)
            raise NotRegistered(f"no {self._kind} '{id_}' is registered" + (f" ({hint})" if hint else ""))
        versions = self._items[id_]
        wanted = version.removeprefix("==")
        found = resolve_version(versions, wanted)
        if found is None:
            known = ", ".join(versions)
            raise NotRegistered(f"{self._kind} '{id_}' has no version '{wanted}' (it has {known})")
        return versions[found]


class RegisteredTool:
    """A tool for a hook: `await tool.function.ainvoke({…})`. It is answered as in a tool node."""

    def __init__(self, tool: Tool, ctx: NodeContext) -> None:
        self.id, self.version = tool.id, tool.version
        self.name, self.description = tool.name, tool.description
        self._tool, self._ctx = tool, ctx

    @cached_property
    def function(self) -> BaseTool:
        """The LangChain tool. Asynchronous only."""

        async def call(**args: Any) -> Any:
            return await self._tool.call(args, self._ctx)

        schema = dict(self._tool.spec.schema)
        return StructuredTool(
            name=self.name, description=self.description, args_schema=schema, coroutine=call
        )


@dataclass(frozen=True)
class RegistryBundle:
    """The value of `ctx.registries`."""

    tool_registry: Registry
    llm_registry: Registry
    prompt_registry: Registry
    skill_registry: Registry
    agent_registry: Registry
    skill_card_registry: Registry
    chat_models: Mapping[str, BaseChatModel]
    tenant_id: str = "default"


def registries(session: AgentSession, ctx: NodeContext) -> RegistryBundle:
    """Return the registries of a run for a hook; calls are made by the node of `ctx`."""
    # With LangChain's chat models, which take long to import.
    from harness.dialects.sherma.chat_model import WorldChatModel

    agent, skills = session.agent, session.agent.skills.skills
    instructions = agent.variables["prompts"]  # also those from files
    return RegistryBundle(
        tool_registry=Registry("tool", session.tools.all(), lambda tool: RegisteredTool(tool, ctx)),
        llm_registry=Registry("llm", agent.manifest.llms),
        prompt_registry=Registry(
            "prompt", agent.manifest.prompts, lambda prompt: prompt.model_copy(update=instructions[prompt.id])
        ),
        skill_registry=Registry("skill", skills),
        agent_registry=Registry("agent", agent.sub_agents),
        skill_card_registry=Registry("skill card", skills, attrgetter("card")),
        chat_models={id_: WorldChatModel.of(session, llm, ctx) for id_, llm in agent.llms.items()},
    )
