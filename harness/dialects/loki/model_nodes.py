"""The nodes that call models: the llm node, and the agent node with ordinary agents. spec: "llm", "agent".

One attempt of an llm node is the whole tool-call loop of the model. An agent node spawns a child agent from a sibling
folder. A child with a `graph.yaml` runs its graph with a state of its own, in the same world and time. A child with a
`config.yaml` is an ordinary agent. A child without a `model` uses that of its parent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.kit.attempts import with_retries, with_timeout
from harness.dialects.kit.manifest import strip_code_fence
from harness.dialects.kit.tool_calls import ToolReportedError, answer_call, to_ai_message
from harness.dialects.loki.dialect import MANIFEST
from harness.dialects.loki.document import INITIAL_PROMPT, AgentConfig, AgentFile, AgentNode, LLMNode
from harness.dialects.loki.routing import exit_after_failure, exit_update
from harness.dialects.loki.templates import Written, apply_state_updates, parse_json, render, text_of, written
from harness.dialects.loki.tool_universe import Skills, Tool, ToolUniverse, warn_once
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext, RunContext
from harness.engine.conversation import run_inside
from harness.errors import HarnessError, ManifestError, Problem
from harness.graph.effects import ACTIVE, AgentCall, LLMCall, LLMReply, ToolSpec
from harness.graph.model import (
    END,
    START,
    Edge,
    Graph,
    Lifecycle,
    NestedGraph,
    Node,
    State,
    Update,
    Vocabulary,
)
from harness.graph.to_json import error_text
from harness.source.display import nearest
from harness.source.document import Document
from harness.source.models import keys_of, validate


@dataclass(frozen=True)
class ModelSettings:
    """A model (`client:name`, or only a name) and its parameters."""

    model: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, *owners: AgentFile | LLMNode) -> ModelSettings:
        """Take each setting from the first owner that has it."""
        given = {
            name: value
            for name in ("model", "temperature", "top_p", "reasoning_effort")
            for owner in reversed(owners)
            if (value := getattr(owner, name, None)) is not None
        }
        return cls(given.pop("model", None), given)

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


_HINT: Final = """\
Respond with a JSON object that matches this schema. Output ONLY the JSON
object with no surrounding prose or markdown fences.

Schema:
{schema}"""

_EXTRACT: Final = """\
Extract a JSON object that matches this schema from the text that the user gives you. Output ONLY the JSON object, \
without surrounding prose or markdown fences.

Schema:
{schema}"""

_EXTRACTOR_CALLS: Final = 2  # the second is the repair


class ExtractionFailed(HarnessError):
    """An output that is not JSON, and from which the extractor made no JSON either."""

    code = "extraction"


async def parse_structured_output(text: str, schema: Any, model: ModelSettings, ctx: NodeContext) -> Any:
    """Parse an output as JSON. If it is not JSON, let the extractor, a call of `model`, extract JSON from it.

    The value is not checked against the schema.

    Raises:
        ExtractionFailed: both replies of the extractor are not JSON.
        Exception: the error of a call of the extractor.
    """
    system = SystemMessage(content=_EXTRACT.format(schema=_shown(schema)))
    why = ""
    for calls_left in range(_EXTRACTOR_CALLS, -1, -1):
        try:
            return parse_json(strip_code_fence(text))
        except ValueError as error:
            why = str(error)
        if calls_left:
            reply: LLMReply = await ctx.perform(model.call((system, HumanMessage(content=text))))
            text = reply.text
    raise ExtractionFailed(
        f"the output does not match output_schema: it is not JSON, and neither are the answers of "
        f"{_EXTRACTOR_CALLS} calls that were to extract it ({why})"
    )


def merge_output(state: Mapping[str, Any], value: Any) -> Written:
    """Return the state with the top-level keys of a structured output merged in. Only objects have keys."""
    return written(state, value if isinstance(value, Mapping) else {})


def _shown(schema: Any) -> str:
    return json.dumps(schema, ensure_ascii=False, indent=2)


class TooManyIterations(HarnessError):
    """A model that still requests tools in the last permitted call."""

    code = "max-iterations"


async def tool_loop(
    model: ModelSettings,
    messages: Sequence[BaseMessage],
    tools: Sequence[Tool],
    max_iterations: int,
    ctx: NodeContext,
) -> str:
    """Run the tool-call loop and return the texts of all replies, joined by newlines.

    The tools of one reply run one after the other. The failure of a tool is sent to the model as its result.

    Args:
        model: the model.
        messages: the first messages of the conversation.
        tools: the tools of the model.
        max_iterations: the maximum number of model calls.
        ctx: the context of the visit.

    Raises:
        TooManyIterations: the reply of the last call requests tools.
        Exception: the error of a model call.
    """

    async def use(tool: Tool, args: Mapping[str, Any]) -> str:
        try:
            return await tool.call(args, ctx)
        except Exception as error:
            if ctx.is_fatal(error) or isinstance(error, ToolReportedError):
                raise
            raise ToolReportedError(error_text(error)) from error

    conversation = list(messages)
    specs, by_name = [tool.spec for tool in tools], {tool.spec.name: tool for tool in tools}
    texts: list[str] = []
    for _ in range(max_iterations):
        reply: LLMReply = await ctx.perform(model.call(conversation, specs))
        texts += [reply.text] if reply.text else []
        if not reply.tool_calls:
            return "\n".join(texts)
        message = to_ai_message(reply, ctx.new_id)
        conversation.append(message)
        for call in message.tool_calls:
            conversation.append(await answer_call(call, by_name, use, ctx))
    raise TooManyIterations(f"the model still asks for tools after max_iterations={max_iterations} calls")


TRANSIENT: Final = (
    "timed out",
    "rate limit",
    "429",
    "Connection reset",
    "Connection refused",
    "produced no output",
)
"""Errors whose messages contain one of these texts are retried. spec: "Retries"."""


async def call_llm(
    node: LLMNode,
    node_model: ModelSettings,
    agent_model: ModelSettings,
    tools: ToolUniverse,
    skills: Skills,
    state: State,
    ctx: NodeContext,
) -> Update:
    """Call the model and update the state with its output; after a failure, with a text that describes the error.

    Args:
        node: the node.
        node_model: the model of the node.
        agent_model: the model of the agent, which extracts structured output.
        tools: the tools of the agent, from which the node's whitelist selects.
        skills: the skills of the node.
        state: the state.
        ctx: the context of the visit.

    Raises:
        Exception: the node failed and has neither `fallback` nor `next`.
    """

    async def body() -> tuple[dict[str, Any], Any]:
        messages = _messages(node, skills, state)
        selected = [*await tools.select(node.tools, ctx.run), *skills.tools(tools.env)]
        text = await with_retries(
            lambda: tool_loop(node_model, messages, selected, node.max_iterations, ctx),
            ctx,
            attempts=node.max_attempts,
            delay_s=lambda _failures: 0.0,
            only=lambda error: any(text in error_text(error) for text in TRANSIENT),
        )
        if node.output_schema is None:
            return dict(state), text
        value = await parse_structured_output(text, node.output_schema, agent_model, ctx)
        return merge_output(state, value), value

    try:
        after, output = await with_timeout(body, ctx, node.timeout, f"node '{ctx.name}'")
    except Exception as error:
        exit_ = exit_after_failure(node, error, ctx)
        failure = f"LLM node failed: {error_text(error)}"
        return exit_update(apply_state_updates(state, node, failure), exit_)
    return exit_update(apply_state_updates(after, node, output))


def _messages(node: LLMNode, skills: Skills, state: State) -> list[BaseMessage]:
    """Return a system message, if there are instructions, and a user message.

    Raises:
        MissingPath: a template has a path that the state does not have.
    """
    system = None if node.instructions is None else render(node.instructions, state)
    if skills.hint:
        system = "\n\n".join(filter(None, [system, skills.hint]))
    prompt = render(node.prompt, state)
    if node.output_schema is not None:
        hint = _HINT.format(schema=_shown(node.output_schema))  # spec: "schema-hint injection"
        if system is None:
            prompt = f"{prompt}\n\n{hint}"
        else:
            system = f"{system}\n\n{hint}"
    front: list[BaseMessage] = [] if system is None else [SystemMessage(content=system)]
    return [*front, HumanMessage(content=prompt)]


MAX_MODEL_CALLS: Final = 1000
"""The maximum number of model calls in one run. Loki has no limit."""

_ANSWER: Final = "answer"

_UNSUPPORTED: Final = ("can_spawn_agents", "documents", "variables")
"""Keys of a `config.yaml` that have an effect in Loki and none here."""

_MISSPELLING_CUTOFF: Final = 0.85
"""The similarity from which a key counts as a misspelling. It is high, since Loki has keys that are unknown here."""


def ordinary_graph(name: str, request: LoadRequest, inherited: str | None) -> Graph:
    """Compile an ordinary agent. `inherited` is the model that it uses if it names none.

    Raises:
        ManifestError: its `config.yaml` or a tool file is malformed.
    """
    request.record(request.path)
    document = request.read(request.path, yaml="1.2")
    config = validate(AgentConfig, document).with_model(inherited)
    tools = ToolUniverse.of(config.global_tools, config.mcp_servers, request, request.env)
    model = ModelSettings.of(config)

    async def run(state: State, ctx: NodeContext) -> Update:
        front: list[BaseMessage] = [SystemMessage(content=config.instructions)] if config.instructions else []
        messages = [*front, HumanMessage(content=state[INITIAL_PROMPT])]
        universe = await tools.select(tools.names(), ctx.run)
        text = await tool_loop(model, messages, universe, MAX_MODEL_CALLS, ctx)
        return Update({**state, _ANSWER: text})

    async def finish(state: State, _run: RunContext) -> Any:
        return state[_ANSWER]

    return Graph(
        name=name,
        dialect="loki",
        nodes=(Node(name, "agent", run, document.span()),),
        edges=(Edge(START, name), Edge(name, END)),
        channels=(),
        lifecycle=Lifecycle(finish=finish),
        may_pause=False,
        warnings=(*_ignored_keys(document), *tools.warnings(document)),
        open_state=True,
        takes_hooks=False,
        vocabulary=lambda: Vocabulary(
            names={"llm": [model.name], **tools.names_by_kind()}, outside=tools.outside([tools.names()])
        ),
    )


def _ignored_keys(document: Document) -> Iterator[Problem]:
    """Yield warnings of keys that are not supported, and of keys that are probably misspelt."""
    known = keys_of(AgentConfig)
    for key, value in document.value.items():
        near = None if key in known else nearest(str(key), known, cutoff=_MISSPELLING_CUTOFF)
        if key in _UNSUPPORTED and value:
            text = f"'{key}' of an ordinary agent is not supported: it is ignored"
            yield Problem("unsupported", text, document.key_span((key,)), severity="warning")
        elif near is not None:
            text, hint = f"unknown key '{key}' in an agent: it is ignored", f"did you mean '{near}'?"
            yield Problem("unknown-key", text, document.key_span((key,)), hint, "warning")


CONFIG: Final = "config.yaml"

_MAX_NAME_BYTES: Final = 255  # the limit for file names of the usual file systems

Load = Callable[[LoadRequest, str | None], Graph]
"""Compiles a graph agent. The second argument is the model that it uses if it names none."""


def sibling_folder(request: LoadRequest, agent: str) -> Path | None:
    """Return the folder of another agent, beside that of the manifest; None if it cannot be read."""
    folder = request.path.resolve().parent.parent / agent
    if not is_file_name(agent):
        return None
    with suppress(OSError):  # a name that is too long
        return folder if request.may_read(folder.resolve()) and folder.is_dir() else None
    return None


def is_file_name(name: str) -> bool:
    """True if a file can have this name, which must have no path separator."""
    is_short = len(name.encode("utf-8", "surrogatepass")) <= _MAX_NAME_BYTES
    return is_short and Path(name).name == name and name != ".." and "\0" not in name


@dataclass
class ChildAgent:
    """An agent that a node spawns. Its manifest is loaded when it is first needed. `model` is that of its parent."""

    name: str
    parent: LoadRequest
    model: str | None
    load: Load
    _graph: Graph | None = None

    @property
    def is_ordinary(self) -> bool:
        """True if it is an ordinary agent, whose effects are attributed to the node that spawns it."""
        folder = sibling_folder(self.parent, self.name)
        return folder is None or not (folder / MANIFEST).exists()

    def graph(self) -> Graph:
        """Load its graph. The graph of an ordinary agent has a single node.

        Raises:
            ManifestError: there is no such agent, or its manifest is refused.
        """
        if self._graph is None:
            folder = sibling_folder(self.parent, self.name)
            if folder is None:  # the validator reports this earlier, unless it is off
                raise ManifestError(Problem("unknown-agent", f"there is no agent '{self.name}'"))
            if self.is_ordinary:
                request = self.parent.for_manifest(folder / CONFIG, None)
                self._graph = ordinary_graph(self.name, request, self.model)
            else:
                self._graph = self.load(self.parent.for_manifest(folder / MANIFEST, None), self.model)
        return self._graph

    def nested_graph(self) -> NestedGraph:
        """Return its entry for the vocabulary of the graph that spawns it."""
        key = (str(self.parent.path.parent), self.name, self.model)
        return NestedGraph(key, self.graph, attributed=self.is_ordinary)

    async def run(self, prompt: str, ctx: NodeContext) -> str:
        """Run the agent on a prompt and return its final text.

        Raises:
            Exception: it failed, or its manifest is refused.
        """
        graph = self.graph()
        for warning in graph.warnings:
            # Locations start at the agent's folder, so that a trace does not depend on the path of the project.
            span = warning.span
            place = replace(span, file="/".join(Path(span.file).parts[-2:])) if span else None
            warn_once(ctx.run, replace(warning, span=place).one_line)
        inputs = {INITIAL_PROMPT: prompt}
        ending = await run_inside(ctx, graph, inputs, attribute_to_caller=self.is_ordinary)
        return text_of(ending.output)


async def spawn(
    node: AgentNode, child: ChildAgent, agent_model: ModelSettings, state: State, ctx: NodeContext
) -> Update:
    """Spawn the child, wait for its final text and update the state with it.

    `agent_model` is the model of the agent, which extracts structured output.

    Raises:
        Exception: the child failed or timed out, or structured output cannot be extracted from its text.
    """
    prompt = render(node.prompt, state)
    effect = AgentCall(name=node.agent, args={"input": prompt}, real=partial(child.run, prompt, ctx))
    # spec: `timeout` limits the child. The extractor runs after it, outside the limit.
    what = f"agent '{node.agent}'"
    text = text_of(await with_timeout(lambda: ctx.perform(effect), ctx, node.timeout, what))
    if node.output_schema is None:
        return exit_update(apply_state_updates(state, node, text))
    value = await parse_structured_output(text, node.output_schema, agent_model, ctx)
    return exit_update(apply_state_updates(merge_output(state, value), node, value))
