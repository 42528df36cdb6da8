"""The conversations in a forest of spans, the turns of each, and which spans are nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.traces.messages import Message
from harness.traces.spans import Span, forest


def conversations(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """Yield the turns of each conversation, in order of time.

    A turn is the outermost span that has to do with agents. Those of one conversation are joined by its id. Calls of
    models with nothing around them are split by what they ask, as their exporters write each as a trace of its own.
    """
    groups: dict[str, list[Span]] = {}
    for turn in sorted(_turns(forest(spans)), key=lambda turn: turn.start):
        groups.setdefault(_key(turn), []).append(turn)
    for turns in groups.values():
        if all(turn.kind == "model" for turn in turns):
            yield from _split(turns)
        else:
            yield turns


def _turns(roots: Sequence[Span]) -> Iterator[Span]:
    """Yield a span for each turn; it is made if a trace has several of the outermost spans."""
    by_trace: dict[str, list[Span]] = {}
    for root in roots:
        by_trace.setdefault(root.trace, []).append(root)
    for together in by_trace.values():
        found = [each for root in together for each in _outermost(root)]
        if len(found) == 1:
            yield found[0]
        elif found:
            yield _around(found, together[0].name if len(together) == 1 else "")


def _outermost(root: Span) -> Iterator[Span]:
    if root.kind != "other":
        yield root
    else:
        for child in root.children:
            yield from _outermost(child)


def _around(spans: list[Span], name: str = "") -> Span:
    first, end = spans[0], max(each.end for each in spans)
    made = Span("", "", first.trace, name, "agent", first.start, end, first.source, thread=first.thread)
    made.children = spans
    return made


def _key(turn: Span) -> str:
    """Return what joins turns: the id of the conversation, else that of the trace."""
    thread = next((span.thread for span in (turn, *turn.below()) if span.thread), "")
    return f"thread {thread}" if thread else "" if turn.kind == "model" else f"trace {turn.trace}"


def _split(calls: Sequence[Span]) -> Iterator[list[Span]]:
    """Split calls of models into conversations, each a list of turns: spans around the calls of one.

    A conversation begins where a request has the first system prompt with another question, and nothing else; a turn
    where a request continues the messages of the one before with another question.
    """
    turns: list[list[Span]] = []
    before: list[Message] = []
    opening: list[Message] = []
    for call in calls:
        said: list[Message] = call.input or []
        is_opening = [each["type"] for each in said] == ["system", "human"]
        if is_opening and opening and said[0] == opening[0] and said[1] != opening[1]:
            yield [_around(each) for each in turns]
            turns = []
        more = said[len(before) :] if before and said[: len(before)] == before else []
        if not turns:
            turns, opening = [[call]], said if is_opening else []
        elif any(each["type"] == "human" for each in more):
            turns.append([call])
        else:
            turns[-1].append(call)
        before = said
    yield [_around(each) for each in turns]


def mark_nodes(turn: Span, *, has_graph: bool) -> None:
    """Mark the spans that are nodes, and set where they led to.

    With a graph these are the outermost spans of its tasks that are named as their nodes; what is inside belongs to
    the node, and a function that gave the name of a node is its condition. Without a graph they are agents.
    """
    waiting: list[tuple[Span, Span | None]] = [(child, None) for child in turn.children]
    while waiting:
        span, node = waiting.pop()
        if span.kind in ("step", "agent"):
            belongs = has_graph and node is not None and _task(span) == _task(node)
            is_task = has_graph and span.node == span.name and not span.name.startswith("__") and not belongs
            outer = (turn.name, node.name if node else "")
            if is_task or (not has_graph and span.kind == "agent" and span.name not in outer):
                span.kind = "node"
            elif node is not None and belongs and not span.children and isinstance(span.output, str):
                node.routes = [(span.output, span.name)]
        waiting += [(child, span if span.kind == "node" else node) for child in reversed(span.children)]


def _task(span: Span) -> object:
    return span.place or (span.node, span.step)
