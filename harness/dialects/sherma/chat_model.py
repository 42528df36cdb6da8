"""LangChain's chat model for a hook, answered by the world of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool

from harness.dialects.kit.tool_calls import to_ai_message
from harness.dialects.sherma.agent import AgentSession
from harness.dialects.sherma.call_llm import model_call
from harness.dialects.sherma.document import LLM
from harness.engine.context import NodeContext
from harness.graph.effects import ToolSpec


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
