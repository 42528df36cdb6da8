"""The functions of nodes, by node type. spec: "Node Types"."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.loki import document as doc
from harness.dialects.loki import routing
from harness.dialects.loki.knowledge.provision import KnowledgeProvider
from harness.dialects.loki.knowledge.store import context_of
from harness.dialects.loki.model_nodes import ChildAgent, Load, ModelSettings, call_llm, spawn
from harness.dialects.loki.templates import (
    apply_state_updates,
    json_text,
    parse_json,
    render,
    render_leniently,
    text_of,
    written,
)
from harness.dialects.loki.tool_universe import Skills, ToolUniverse
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import RetrievalCall, RetrievalReply, ScriptCall
from harness.graph.model import Graph, NodeFunction, State, Update
from harness.graph.to_json import error_text
from harness.source.document import Document
from harness.source.models import describe
from harness.time.gather import Deadline

_OPERATORS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}
_MAX_DIGITS: Final = 4
"""The most digits of a length that answers are made of."""
_PREDICATE: Final = re.compile(r"len\(input\)\s*(>=|<=|==|>|<)\s*(\d{1,1000})", re.ASCII)

PREDICATE_FORM: Final = f"len(input) <op> <integer>, where <op> is one of {' '.join(_OPERATORS)}"
"""The grammar of a `validation`, for messages. spec: "validation"."""


class InvalidInput(HarnessError):
    """An answer that does not satisfy `validation`, or a `validation` that cannot be parsed."""

    code = "invalid-input"


async def ask_approval(node: doc.ApprovalNode, state: State, ctx: NodeContext) -> Update:
    """Ask the question, and take the route whose key equals the answer, else `on_other`."""
    question = render(node.question, state)
    choice = text_of(await ctx.pause({"question": question, "options": node.options}))
    if choice not in node.routes:
        ctx.because(f"'{choice}' is none of its routes: {', '.join(node.routes)}", "branch")
    exit_ = routing.AnswerExit(choice) if choice in node.routes else routing.ON_OTHER
    return routing.exit_update(apply_state_updates(state, node, choice), exit_)


async def ask_input(node: doc.InputNode, state: State, ctx: NodeContext) -> Update:
    """Ask the question. An empty answer is replaced by the default, which is not validated.

    Raises:
        InvalidInput: the answer does not satisfy `validation`, or that cannot be parsed.
    """
    answer = text_of(await ctx.pause({"question": render(node.question, state)}))
    if not answer and node.default is not None:
        ctx.because("the answer is empty", "default")
        answer = render_leniently(node.default, state)
    elif node.validation is not None and not satisfies(answer, node.validation):
        text = f"the answer does not fit the validation `{node.validation}`: its length is {_length(answer)}"
        raise InvalidInput(text)
    return routing.exit_update(apply_state_updates(state, node, answer))


def is_predicate(validation: str) -> bool:
    """True if a validation can be parsed."""
    return _PREDICATE.fullmatch(validation.strip()) is not None


def satisfies(answer: str, validation: str) -> bool:
    """True if an answer satisfies a validation. spec: "validation". `len` counts bytes of UTF-8.

    Raises:
        InvalidInput: the validation cannot be parsed.
    """
    found = _PREDICATE.fullmatch(validation.strip())
    if found is None:
        raise InvalidInput(f"the validation `{validation}` cannot be read: expected {PREDICATE_FORM}")
    return _OPERATORS[found[1]](_length(answer), int(found[2]))


def valid_lengths(validation: str) -> Mapping[str, int]:
    """Return the lengths of answers that satisfy a validation, as `minLength` and `maxLength`; none if it is bad."""
    found = _PREDICATE.fullmatch(validation.strip())
    if found is None or len(found[2]) > _MAX_DIGITS:
        return {}
    least = {">": 1, ">=": 0, "==": 0}.get(found[1])
    most = {"<": -1, "<=": 0, "==": 0}.get(found[1])
    number = int(found[2])
    lengths = {"minLength": least, "maxLength": most}
    return {key: max(0, number + step) for key, step in lengths.items() if step is not None}


def _length(text: str) -> int:
    """Return the number of bytes of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


RUNTIMES: Final[Mapping[str, tuple[str, ...]]] = {
    ".sh": ("bash",),
    ".py": ("python3",),
    ".ts": ("tsx",),  # the program of `npx tsx`; npx itself would need the network, which scripts do not have
}
"""The command that runs a script, by its extension. spec: "Supported extensions and runtimes"."""

INLINE_LIMIT: Final = 32 * 1024
"""The size in bytes of UTF-8 up to which the state is passed in a variable and not in a file."""

FAILURE: Final = "output"
"""The state key with the description of a failure after which the run goes on to `next`.

spec: "Tolerant-fail contract": "with the error description exposed in state so the next node can react". The document
has one name for it, that of llm nodes.
"""

_NEXT: Final = "_next"
_STATE, _STATE_FILE = "GRAPH_STATE", "GRAPH_STATE_FILE"
"""The variables with the state: exactly one is set. spec: "script"."""


class ScriptError(HarnessError):
    """A script that cannot be run, or whose output is not a JSON object."""

    code = "script"


async def run_script(
    node: doc.ScriptNode, path: Path | None, cwd: Path, env: Mapping[str, str], state: State, ctx: NodeContext
) -> Update:
    """Run the script, merge its output into the state, and take the exit `_next` if it names one.

    A failure merges nothing. It leads to `fallback`, else to `next`, with a warning and its description in the state.

    Args:
        node: the node.
        path: the file of the script; None if it does not exist.
        cwd: the folder of the agent.
        env: the environment variables of the script, besides the state.
        state: the state.
        ctx: the context of the visit.

    Raises:
        Exception: the script failed, and the node has neither.
    """
    try:
        effect = _effect(node, path or cwd / node.script, cwd, env, state, ctx)
        what = f"the script {node.script}"
        output = await with_timeout(lambda: ctx.perform(effect), ctx, node.timeout, what)
        if not isinstance(output, Mapping):  # spec: "Script-output JSON must be an object"
            raise ScriptError(f"the output of the script is not a JSON object: found {describe(output)}")
    except Exception as error:
        if (exit_ := routing.exit_after_failure(node, error, ctx)) == routing.NEXT:
            state = written(state, {FAILURE: f"Script node failed: {error_text(error)}"})
        return routing.exit_update(state, exit_)
    target = output.get(_NEXT)
    if target is not None and not isinstance(target, str):
        ctx.warn(f"the `{_NEXT}` of node '{ctx.name}' is ignored: expected text, found {describe(target)}")
    merged = {str(key): value for key, value in output.items() if key != _NEXT}
    after = apply_state_updates(written(state, merged), node)
    return routing.exit_update(after, routing.ScriptExit(target) if isinstance(target, str) else routing.NEXT)


def _effect(
    node: doc.ScriptNode, path: Path, cwd: Path, env: Mapping[str, str], state: State, ctx: NodeContext
) -> ScriptCall:
    """Return the effect that runs the script.

    Raises:
        ScriptError: there is no runtime for its extension.
    """
    runtime = RUNTIMES.get(Path(node.script).suffix)
    text = json_text(state)
    inline = _length(text) <= INLINE_LIMIT
    if runtime is None:
        raise ScriptError(
            f"the script {node.script} has no runtime: its extension must be one of {', '.join(RUNTIMES)}"
        )
    return ScriptCall(
        name=ctx.name,
        args=state,
        argv=(*runtime, str(path)),
        env={name: value for name, value in env.items() if name not in (_STATE, _STATE_FILE)},
        inputs={_STATE: text} if inline else {},
        files={} if inline else {_STATE_FILE: text},
        cwd=cwd,
        timeout_s=node.timeout,
        read=read_output,
    )


def read_output(text: str) -> Any:
    """Parse the JSON that a script printed.

    Raises:
        ScriptError: it is not JSON.
    """
    if not text.strip():
        raise ScriptError("the script printed nothing: expected one JSON object on its standard output")
    try:
        return parse_json(text.strip())
    except ValueError as error:
        raise ScriptError(f"the output of the script is not one JSON object: {error}") from None


async def retrieve(node: doc.RagNode, knowledge: KnowledgeProvider, state: State, ctx: NodeContext) -> Update:
    """Search the knowledge base and update the state with `{context, sources}`.

    Raises:
        Exception: the search failed or timed out.
    """
    query = render(node.query, state)
    deadline = Deadline(node.timeout)

    async def real() -> RetrievalReply:
        # spec: "Knowledge base lifecycle". Loki builds the base at load, so building takes none of the timeout.
        deadline.stop()
        base = await knowledge.base(ctx)
        deadline.restart()
        return await knowledge.search(base, query, node.top_k, ctx)

    effect = RetrievalCall(
        name=ctx.name,
        args={"query": query, **({} if node.top_k is None else {"top_k": node.top_k})},
        real=real,
        hint=f"or `{ctx.name}: real`, which searches its knowledge base",
    )
    what = f"the retrieval of node '{ctx.name}'"
    found: RetrievalReply = await with_timeout(lambda: ctx.perform(effect), ctx, node.timeout, what, deadline)
    context = context_of(found.passages) if found.passages else found.context
    output = {"context": context, "sources": list(found.sources)}
    return routing.exit_update(apply_state_updates(state, node, output))


class SecondEnd(HarnessError):
    """A second end node that branches of a run reach."""

    code = "second-end"


OUTPUT: Final = "output"
"""The resource of a run with the output of the end node that it reached."""


@dataclass(frozen=True)
class AgentContext:
    """The parts of a graph agent that its nodes share.

    graph     its validated document
    document  the same with locations
    request   the request that loads it
    tools     its tools
    scripts   the files of its script nodes that exist, by node id
    env       the environment variables of its scripts
    load      compiles the graph of a child agent
    branches  the graphs of the branches of map nodes, by the node
    """

    graph: doc.GraphFile
    document: Document
    request: LoadRequest
    tools: ToolUniverse
    scripts: dict[str, Path]
    env: Mapping[str, str]
    load: Load
    branches: dict[str, Graph] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of the agent."""
        return self.request.path.resolve().parent

    def branch(self, node: doc.MapNode) -> Graph:
        """Return the graph that a map node runs for each item; the same object for the same node."""
        if node.branch not in self.branches:
            inner = self.graph.nodes[node.branch].as_branch(node.output_key)
            function = node_function(node.branch, inner, self)
            self.branches[node.branch] = routing.branch_graph(
                self.graph, node.branch, function, self.document
            )
        return self.branches[node.branch]

    def child(self, agent: str) -> ChildAgent:
        """Return an agent that a node spawns."""
        return ChildAgent(agent, self.request, self.graph.model, self.load)


def node_function(id_: str, node: doc.NodeSpec, context: AgentContext) -> NodeFunction:
    """Return the function of a node."""
    agent_model = ModelSettings.of(context.graph)
    match node:
        case doc.AgentNode():
            return partial(spawn, node, context.child(node.agent), agent_model)
        case doc.ScriptNode():
            return partial(run_script, node, context.scripts.get(id_), context.folder, context.env)
        case doc.ApprovalNode():
            return partial(ask_approval, node)
        case doc.InputNode():
            return partial(ask_input, node)
        case doc.LLMNode():
            model, skills = ModelSettings.of(node, context.graph), Skills.of(node, context.graph)
            return partial(call_llm, node, model, agent_model, context.tools, skills)
        case doc.RagNode():
            file = context.folder / f"{id_}.yaml"  # spec: "Directory Structure"
            knowledge = KnowledgeProvider(node, file, context.request, context.document, ("nodes", id_))
            return partial(retrieve, node, knowledge)
        case doc.MapNode():
            most = context.graph.settings.max_concurrency
            return partial(routing.run_map, node, context.branch(node), most)
        case doc.EndNode():
            return partial(end, node)
    raise TypeError(f"no function for {node!r}")


async def end(node: doc.EndNode, state: State, ctx: NodeContext) -> Update:
    """Render the output of the run. spec: "end"."""
    after = apply_state_updates(state, node)
    if OUTPUT in ctx.run.resources:
        raise SecondEnd(f"the run reaches node '{ctx.name}' after another end node")
    ctx.run.resources[OUTPUT] = render(node.output, after)
    return Update(after)
