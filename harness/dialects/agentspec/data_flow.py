"""The data edges of a flow, and the values that its nodes get along them.

spec: "Data relationships", "Optionality of data relationships".
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from harness.dialects.agentspec.agents import AgenticComponent
from harness.dialects.agentspec.flows import NEXT, EndNode, Flow, Node
from harness.dialects.agentspec.properties import CastError, Property, as_text
from harness.dialects.kit.manifest import input_values, warn_dropped_inputs
from harness.engine.context import NodeContext, RunContext
from harness.engine.conversation import run_inside
from harness.errors import HarnessError
from harness.graph.messages import message_text, to_message, to_messages
from harness.graph.model import END, START, DataEdge, Graph, State

Outputs = Mapping[str, Mapping[str, Any]]
"""The outputs of the nodes that ran, by node name, in the order of their latest visits."""


class MissingValue(HarnessError):
    """An input or output that has neither a value nor a default."""

    code = "missing-value"


class UnfitValue(HarnessError):
    """A value that cannot be cast to the type of its property."""

    code = "unfit-value"


class NodeOutput(NamedTuple):
    """An output of a node that is connected to an input."""

    node: Node
    output: str


@dataclass(frozen=True)
class IncomingValue:
    """A value for an input, before it is cast. `source` is the output that it comes from; None for a default."""

    value: Any
    source: Property | None


class DataFlow:
    """The data edges of a flow: the declared ones, or, without `data_flow_connections`, those by name.

    The number of edges by name may be quadratic in the number of nodes, so `edges` generates them lazily.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._by_name = flow.data_flow_connections is None
        self._into: dict[tuple[Node, str], list[NodeOutput]] = {}
        self._by_title: dict[str, list[NodeOutput]] = {}
        for edge in flow.data_flow_connections or ():
            source = NodeOutput(edge.source_node, edge.source_output)
            self._into.setdefault((edge.destination_node, edge.destination_input), []).append(source)
        for node in _sources(flow) if self._by_name else ():
            for title in node.outputs:
                self._by_title.setdefault(title, []).append(NodeOutput(node, title))

    def edges(self, names: Mapping[Node, str]) -> Iterator[DataEdge]:
        """Yield all data edges, for drawings of the graph. `names` are the names of the nodes in the graph.

        spec: "by simply connecting all the outputs to all the inputs with the same name".
        """
        for edge in self._flow.data_flow_connections or ():
            source, target = names[edge.source_node], names[edge.destination_node]
            yield DataEdge(source, edge.source_output, target, edge.destination_input)
        for node in _sources(self._flow) if self._by_name else ():
            for title in node.outputs:
                for other in self._flow.nodes:
                    if title in other.inputs and other is not self._flow.start_node:
                        yield DataEdge(names[node], title, names[other], title)

    def sources(self, node: Node, title: str) -> Sequence[NodeOutput]:
        """Return the outputs that are connected to the input `title` of a node."""
        if self._by_name:
            return self._by_title.get(title, ()) if node is not self._flow.start_node else ()
        return self._into.get((node, title), ())

    def incoming(self, node: Node, names: Mapping[Node, str], outputs: Outputs) -> dict[str, IncomingValue]:
        """Return the value of each input of a node, defaults included. `names` are the node names in `outputs`.

        spec: "the last node that was executed and that has an output connected to the input will have the priority".

        Raises:
            MissingValue: an input has neither a value nor a default.
        """
        rank = {name: index for index, name in enumerate(outputs)}
        found = {}
        for title, item in node.inputs.items():
            ran = [
                source
                for source in self.sources(node, title)
                if source.output in outputs.get(names[source.node], ())
            ]
            if ran:
                # Of two outputs of one node, that of the edge written last wins.
                last = max(reversed(ran), key=lambda source: rank[names[source.node]])
                value = outputs[names[last.node]][last.output]
                found[title] = IncomingValue(value, last.node.outputs.get(last.output))
            elif item.has_default:
                found[title] = IncomingValue(item.default, None)
            else:
                raise MissingValue(f"{node}: no value has come to its input '{title}', which has no default")
        return found


def _sources(flow: Flow) -> Iterator[Node]:
    """Return the nodes whose outputs others can use: all but EndNodes, after which nothing runs."""
    return (node for node in flow.nodes if not isinstance(node, EndNode))


def cast_property(item: Property, value: Any, owner: str) -> Any:
    """Cast a value to the type of a property. `owner` is the description of the property in messages.

    Raises:
        UnfitValue: it cannot be cast.
    """
    try:
        return item.cast(value)
    except CastError as error:
        raise UnfitValue(f"{owner} '{item.title}': {error}") from None


def cast_values(properties: Mapping[str, Property], values: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Return a value for each property: the given one, cast to its type, else the default. Others are dropped.

    Raises:
        MissingValue: a property has neither a value nor a default.
        UnfitValue: a value cannot be cast.
    """
    found = {}
    for title, item in properties.items():
        if title in values:
            found[title] = cast_property(item, values[title], owner)
        elif item.has_default:
            found[title] = item.default
        else:
            raise MissingValue(f"{owner} '{title}' has no value, and no default")
    return found


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


Properties = Mapping[str, Property]

_DEFINITIONS: Final = "#/$defs/"


def is_single(kind: str, properties: Properties) -> bool:
    """True if there is one output, of this type. A string is a reply's text; an object may be the reply itself."""
    return [item.schema.get("type") for item in properties.values()] == [kind]


def schema_of(properties: Properties) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties. Those without a default are required.

    The `$defs` of a property move to the top, prefixed with its name, and references to them are rewritten.
    """
    definitions = {
        f"{title}.{name}": _relocate_references(definition, title)
        for title, item in properties.items()
        for name, definition in item.schema.get("$defs", {}).items()
    }
    required = [title for title, item in properties.items() if not item.has_default]
    return {
        "type": "object",
        "properties": {
            title: _relocate_references(
                {key: value for key, value in item.schema.items() if key != "$defs"}, title
            )
            for title, item in properties.items()
        },
        **({"required": required} if required else {}),
        **({"$defs": definitions} if definitions else {}),
    }


def _relocate_references(schema: Any, title: str) -> Any:
    """Return a part of a property's schema with references rewritten to the moved definitions."""
    if isinstance(schema, list):
        return [_relocate_references(item, title) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    moved = {key: _relocate_references(value, title) for key, value in schema.items()}
    reference = moved.get("$ref")
    if isinstance(reference, str) and reference.startswith(_DEFINITIONS):
        moved["$ref"] = f"{_DEFINITIONS}{title}.{reference.removeprefix(_DEFINITIONS)}"
    return moved


def outputs_from_reply(text: str, properties: Properties, owner: str) -> Mapping[str, Any]:
    """Return the outputs in a model's reply: its text for a single string, else the values of a JSON object.

    The reply may also be the bare value of a single output: JSON that is not an object, or the object itself.

    Raises:
        UnfitValue: the reply is no such JSON.
    """
    if is_single("string", properties):
        return dict.fromkeys(properties, text)
    if not properties:
        return {}
    found = parse_json(text, _NO_JSON)
    if isinstance(found, dict):
        is_value = found and is_single("object", properties) and not properties.keys() & found.keys()
    else:
        is_value = found is not _NO_JSON and len(properties) == 1
        if not is_value:
            wanted = ", ".join(properties)
            raise UnfitValue(f"{owner}: expected a JSON object with {wanted}, found the reply {text[:200]!r}")
    return dict.fromkeys(properties, found) if is_value else found


_NO_JSON: Final = object()


def parse_json(text: str, otherwise: Any) -> Any:
    """Parse a text as JSON; return `otherwise` if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def outputs_from_tool(returned: Any, properties: Properties, owner: str) -> Mapping[str, Any]:
    """Return the outputs in the result of a tool.

    spec: with several, "the expected return value of the tool is a dictionary".

    Raises:
        UnfitValue: there are several outputs, and the result is not a mapping.
    """
    if not properties:
        return {}
    if len(properties) > 1:
        if not isinstance(returned, Mapping):
            text = f"{owner}: expected a mapping with {', '.join(properties)}, found {returned!r}"
            raise UnfitValue(text[:400])
        return returned
    (title,) = properties
    if isinstance(returned, Mapping) and set(returned) == {title}:
        return returned
    return {title: returned}


GraphOf = Callable[[AgenticComponent], Graph]


@dataclass(frozen=True)
class NodeResult:
    """The result of a node: the values of its outputs, its outgoing branch, and messages for the conversation."""

    outputs: Mapping[str, Any] = field(default_factory=dict)
    branch: str = NEXT
    messages: Sequence[BaseMessage] = ()


@dataclass(frozen=True)
class Visit:
    """A visit of a node.

    node      the node, of the type that its body runs
    inputs    the values of its inputs, cast to their types
    incoming  the same before they are cast, with their sources
    state     the state of the flow
    ctx       the context of the visit
    graph_of  compiles a flow or an agent
    """

    node: Any
    inputs: Mapping[str, Any]
    incoming: Mapping[str, IncomingValue]
    state: State
    ctx: NodeContext
    graph_of: GraphOf

    async def run_inside(
        self, component: AgenticComponent, inputs: Mapping[str, Any], *, key: str = ""
    ) -> NodeResult:
        """Run a flow or an agent in this conversation. An agent's calls are attributed to the node.

        Returns its outputs, the branch name of the EndNode that it reached, and the messages that it added.
        """

        def added(state: State) -> Sequence[BaseMessage]:
            messages: Sequence[BaseMessage] = state["messages"][len(self.state["messages"]) :]
            return messages

        ending = await run_inside(
            self.ctx,
            self.graph_of(component),
            Handoff(inputs, self.state["messages"]),
            key=key,
            attribute_to_caller=not isinstance(component, Flow),
            partial_update=lambda state: {"messages": added(state)},
        )
        outputs = ending.output if component.outputs else {}
        return NodeResult(outputs, ending.state.get("left_by", NEXT), added(ending.state))


Body = Callable[[Visit], Awaitable[NodeResult]]


def first_update(component: AgenticComponent, value: Any, run: RunContext) -> dict[str, Any]:
    """Return the first state update for an input: the values of the component's inputs, if any, and the messages.

    Text is the user's message. In a mapping the key `message` is the message, unless it names an input. Other keys
    are dropped with a warning.

    Raises:
        BadInput: the value is neither text nor a mapping.
    """
    if isinstance(value, Handoff):
        return {"inputs": value.inputs, "messages": value.messages}
    inputs: dict[str, Any] = {}
    text: str | None = value
    if not isinstance(value, str):
        expected = f"an input is the user's message or a mapping of the {component}'s inputs"
        rest = dict(input_values(value, "message", expected))
        inputs = {title: rest.pop(title) for title in list(rest) if title in component.inputs}
        message = rest.pop("message", None)
        text = None if message is None else message_text(to_message(message))
        warn_dropped_inputs(rest, component.inputs, f"{component} has no such input", run)
    update: dict[str, Any] = {"inputs": inputs} if inputs else {}
    if text is not None:
        update["messages"] = [user_message(text, component.name)]
    return update


def unique_name(name: str, taken: Collection[str] = ()) -> str:
    """Return the name, with a number appended if it is taken or reserved by graphs."""
    found, number = name, 1
    while found in taken or found in (START, END):
        number += 1
        found = f"{name} ({number})"
    return found
