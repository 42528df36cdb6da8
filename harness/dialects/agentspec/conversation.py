"""Messages of the conversation that a flow shares with the flows and agents in it. spec: "Conversation"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from harness.dialects.agentspec.casts import as_text
from harness.graph.messages import message_text, to_messages

USER: Final = "user"
RUNTIME: Final = "runtime"


@dataclass(frozen=True)
class Handoff:
    """The input of a nested flow or agent: the values of its inputs, and the conversation so far."""

    inputs: Mapping[str, Any]
    messages: Sequence[BaseMessage]

    def recorded(self) -> Mapping[str, Any]:
        """Return the form of the input in the trace, which has only the length of the conversation."""
        return {"inputs": self.inputs, "messages": len(self.messages)}


Message = TypeVar("Message", bound=BaseMessage)


def addressed(message: Message, sender: str, recipient: str) -> Message:
    """Give a message its sender and recipient. spec: "a type …, content, the sender, and the recipient"."""
    message.additional_kwargs.update(sender=sender, recipient=recipient)
    return message


def agent_message(text: str, sender: str) -> AIMessage:
    """Return a message to the user."""
    return addressed(AIMessage(content=text), sender, USER)


def user_message(text: str, recipient: str) -> HumanMessage:
    """Return a message from the user."""
    return addressed(HumanMessage(content=text), USER, recipient)


def runtime_message(text: str, recipient: str) -> HumanMessage:
    """Return a message from the runtime, which corrects outputs that do not fit."""
    return addressed(HumanMessage(content=text), RUNTIME, recipient)


def answer_text(answer: Any) -> str:
    """Return the text of an answer to an interrupt, which is text, `{messages: …}`, empty, or another value."""
    if answer is None or answer == {}:
        return ""
    if isinstance(answer, Mapping) and set(answer) == {"messages"}:
        return "\n".join(message_text(message) for message in to_messages(answer["messages"]))
    return as_text(answer)
