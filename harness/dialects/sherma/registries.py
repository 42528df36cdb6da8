"""The registries in the context of a `node_execute` hook: models, tools, prompts, skills and agents.

spec: "node_execute", `NodeExecuteContext`. Models and agents are answered by the world, as for any node.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from harness.dialects.kit.tool_calls import to_ai_message
from harness.dialects.sherma.agent import AgentSession
from harness.dialects.sherma.call_llm import model_call
from harness.dialects.sherma.document import LLM
from harness.dialects.sherma.tools import Tool, resolve_version
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import ToolSpec
from harness.source.display import did_you_mean


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


class WorldChatModel(BaseChatModel):
    """A LangChain chat model that is answered by the world of a run. Asynchronous only."""

    model_name: str = ""
    _made_with: tuple[AgentSession, LLM, NodeContext] | None = None

    @classmethod
    def of(cls, session: AgentSession, llm: LLM, ctx: NodeContext) -> WorldChatModel:
        """Return a declared model for a run; its calls are made by the node of `ctx`."""
        model = cls(model_name=model_call(session, llm, (), ()).name)
        model._made_with = (session, llm, ctx)
        return model

    @property
    def _llm_type(self) -> str:
        return "harness-world"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        del tool_choice
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[Any, Any]:
        """Return a model whose answer is JSON of this schema: an instance of its class, or a mapping."""
        del kwargs  # `method` and the like concern providers only

        async def parsed(message: AIMessage) -> Any:
            try:
                value = message.tool_calls[0]["args"] if message.tool_calls else json.loads(message.text)
                value = schema.model_validate(value) if hasattr(schema, "model_validate") else value
            except ValueError as error:
                if not include_raw:
                    raise
                return {"raw": message, "parsed": None, "parsing_error": error}
            return {"raw": message, "parsed": value, "parsing_error": None} if include_raw else value

        name, description, parameters = _described(convert_to_openai_tool(schema))
        response_format = {"name": name, "description": description, "schema": parameters}
        return self.bind(response_format=response_format) | RunnableLambda(parsed)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        raise NotImplementedError("in a hook, use the model's asynchronous methods: await model.ainvoke(…)")

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        if self._made_with is None:
            raise NotImplementedError("a model that was not created for a node cannot be called")
        session, llm, ctx = self._made_with
        tools = [ToolSpec(*_described(tool)) for tool in kwargs.get("tools", ())]
        call = model_call(session, llm, messages, tools, kwargs.get("response_format"))
        message = to_ai_message(await ctx.perform(call), ctx.new_id)
        message.id = ctx.new_id("message")  # LangChain would generate a random one
        return ChatResult(generations=[ChatGeneration(message=message)])


def _described(tool: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return name, description and parameters of a tool in the format of OpenAI."""
    function = tool["function"]
    return function["name"], function.get("description", ""), function.get("parameters", {})
