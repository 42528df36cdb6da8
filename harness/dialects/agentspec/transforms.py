"""Transforms of the messages that the model of an agent gets (26.1.2): long ones are replaced by summaries.

The summaries of a conversation are kept in the state of the agent, under `summaries`. The databases that datastores
name are not accessed.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import Field, field_validator, model_validator

from harness.dialects.agentspec.component import Component, ComponentField, OptionalComponentField
from harness.dialects.agentspec.connections import (
    Model,
    OracleConnection,
    PostgresConnection,
    perform_with_retries,
)
from harness.dialects.agentspec.properties import as_text, render
from harness.engine.context import NodeContext
from harness.graph.messages import message_text
from harness.graph.model import Channel
from harness.source.models import Mistake, describe, mistaken


class Datastore(Component, title="a datastore"):
    """Base class of datastores. `datastore_schema` has the schema of the entities of each collection."""

    datastore_schema: dict[str, dict[str, Any]]

    @field_validator("datastore_schema")
    @classmethod
    def _entities_are_objects(cls, schemas: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name, schema in schemas.items():
            if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
                text = f"expected an object with properties, found {describe(schema)}"
                raise mistaken(Mistake(text, (name,), code="bad-schema"))
        return schemas


class InMemoryCollectionDatastore(Datastore, title="an InMemoryCollectionDatastore"):
    """A datastore in memory."""


class OracleDatabaseDatastore(Datastore, title="an OracleDatabaseDatastore"):
    """A datastore in an Oracle database."""

    connection_config: Annotated[OracleConnection, ComponentField(OracleConnection)]


class PostgresDatabaseDatastore(Datastore, title="a PostgresDatabaseDatastore"):
    """A datastore in a Postgres database."""

    connection_config: Annotated[PostgresConnection, ComponentField(PostgresConnection)]


SUMMARIES: Final = Channel("summaries", operator.or_, dict)

Summaries = dict[str, Mapping[str, Any]]
"""By what they summarize: the text, the time when it was made, and the number of messages."""


_ENTITY: Final = {
    "cache_key": {"type": "string"},
    "cache_content": {"type": "string"},
    "prefix_size": {"type": "integer"},
    "created_at": {"type": "number"},
    "last_used_at": {"type": "number"},
}
"""The properties of a kept summary."""


def _in_memory(fields: Mapping[str, Any]) -> Datastore:
    """Return the datastore of a transform that names none."""
    collection = fields.get("cache_collection_name", "")
    schema = {collection: {"type": "object", "properties": dict(_ENTITY)}}
    return InMemoryCollectionDatastore(name="memory", datastore_schema=schema)


class MessageTransform(Component, title="a transform"):
    """Base class of transforms. Without a datastore, each call of the agent's model makes the summaries again."""

    llm: Annotated[Model, ComponentField(Model)]
    summarization_instructions: str
    max_cache_size: int | None = Field(10_000, gt=0)
    max_cache_lifetime: int | None = Field(4 * 3600, gt=0)
    cache_collection_name: str
    datastore: Annotated[Datastore | None, OptionalComponentField(Datastore)] = Field(
        default_factory=_in_memory
    )

    async def apply(
        self, messages: Sequence[BaseMessage], summaries: Summaries, ctx: NodeContext
    ) -> Sequence[BaseMessage]:
        """Return the messages with summaries. New ones are added to `summaries`."""
        raise NotImplementedError

    def kept(self, key: str, summaries: Summaries, ctx: NodeContext) -> Mapping[str, Any] | None:
        """Return a summary that is not too old; None without one."""
        found = summaries.get(key) if self.datastore else None
        if found is None or self.max_cache_lifetime is None:
            return found
        return found if ctx.run.now - found["made"] <= self.max_cache_lifetime else None

    async def summary(self, template: str, texts: Sequence[str], ctx: NodeContext) -> str:
        """Ask the model for a summary of texts."""
        prompt = "\n\n".join([self.summarization_instructions, *texts])
        call = self.llm.call([HumanMessage(content=prompt)])
        reply = await perform_with_retries(call, self.llm.retry_policy, ctx)
        return str(render(template, {"summary": reply.text}))


class MessageSummarizationTransform(MessageTransform, title="a MessageSummarizationTransform"):
    """Each message of more than `max_message_size` characters is replaced by a summary."""

    max_message_size: int = Field(20_000, gt=0)
    summarization_instructions: str = (
        "Please make a summary of this message. Include relevant information and keep it short. "
        "Your response will replace the message, so just output the summary directly, no introduction needed."
    )
    summarized_message_template: str = "Summarized message: {{summary}}"
    cache_collection_name: str = "summarized_messages_cache"

    async def apply(
        self, messages: Sequence[BaseMessage], summaries: Summaries, ctx: NodeContext
    ) -> Sequence[BaseMessage]:
        found = list(messages)
        for index in reversed(range(len(found))):
            text = message_text(found[index])
            if len(text) > self.max_message_size:
                key = f"{self.cache_collection_name} {index}"
                kept = self.kept(key, summaries, ctx)
                if kept is None:
                    made = await self.summary(self.summarized_message_template, [text], ctx)
                    kept = summaries[key] = {"text": made, "made": ctx.run.now}
                found[index] = found[index].model_copy(update={"content": kept["text"]})
        return found


class ConversationSummarizationTransform(MessageTransform, title="a ConversationSummarizationTransform"):
    """The older messages of a conversation that is too long are replaced by a summary."""

    max_num_messages: int | None = Field(50, gt=0)
    max_num_characters: int | None = Field(None, gt=0)
    min_num_messages: int = Field(10, gt=0)
    summarization_instructions: str = (
        "Please make a summary of this conversation. Include relevant information and keep it short. "
        "Your response will replace the messages, so just output the summary directly, no introduction needed."
    )
    summarized_conversation_template: str = "Summarized conversation: {{summary}}"
    cache_collection_name: str = "summarized_conversations_cache"

    @model_validator(mode="after")
    def _has_one_limit(self) -> ConversationSummarizationTransform:
        if (self.max_num_messages is None) == (self.max_num_characters is None):
            text = "either max_num_messages or max_num_characters is needed, and the other is null"
            raise mistaken(Mistake(text, code="bad-value"))
        if self.max_num_messages is not None and self.min_num_messages >= self.max_num_messages:
            text = f"min_num_messages is not less than the {self.max_num_messages} of max_num_messages"
            raise mistaken(Mistake(text, ("min_num_messages",), code="bad-value"))
        return self

    def _is_too_long(self, messages: Sequence[BaseMessage]) -> bool:
        if self.max_num_messages is not None:
            return len(messages) > self.max_num_messages
        assert self.max_num_characters is not None
        return sum(map(_size, messages)) > self.max_num_characters

    async def apply(
        self, messages: Sequence[BaseMessage], summaries: Summaries, ctx: NodeContext
    ) -> Sequence[BaseMessage]:
        if not self._is_too_long(messages):
            return messages
        key = self.cache_collection_name
        before = self.kept(key, summaries, ctx)
        summarized = [HumanMessage(content=before["text"])] if before else []
        current = [*summarized, *messages[before["size"] if before else 0 :]]
        if not self._is_too_long(current):
            return current
        kept = _from_a_call(current, len(current) - self.min_num_messages)
        old = current[: len(current) - len(kept)]
        if not old:
            return current
        texts = [
            message_text(message) if message in summarized else f"{message.type}:\n{message_text(message)}"
            for message in old
        ]
        made = await self.summary(self.summarized_conversation_template, texts, ctx)
        summaries[key] = {"text": made, "made": ctx.run.now, "size": len(messages) - len(kept)}
        return [HumanMessage(content=made), *kept]


def _size(message: BaseMessage) -> int:
    """Return the number of characters of a message, with those of its tool calls."""
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return len(message_text(message)) + sum(len(call["name"]) + len(as_text(call["args"])) for call in calls)


def _from_a_call(messages: Sequence[BaseMessage], start: int) -> Sequence[BaseMessage]:
    """Return the messages from an index on, with the tool calls that are answered in them."""
    start = max(start, 0)
    answered = {message.tool_call_id for message in messages[start:] if isinstance(message, ToolMessage)}
    for index, message in enumerate(messages[:start]):
        if isinstance(message, AIMessage) and any(call["id"] in answered for call in message.tool_calls):
            return messages[index:]
    return messages[start:]
