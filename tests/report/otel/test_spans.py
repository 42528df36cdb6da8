"""Spans of a run: their tree, names and attributes."""

from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, test_attributes

from harness.report.otel.spans import RunSpans, run_spans
from harness.report.traces import RunTrace

HEAD = {
    "suite": "a.scenario.yaml", "scenario": "one", "id": "a.scenario.yaml::one", "manifest": "a.yaml",
    "dialect": "sherma", "agent": "desk", "variant": None, "repeat": 0, "seed": 0, "status": "completed",
    "verdict": "passed", "digest": "d1", "kinds": {"ask": "call_llm"},
}  # fmt: skip
LINE = {"score": 1.0, "usage": {"input_tokens": 40, "output_tokens": 6}, "checks": []}
KNOWN = {
    value
    for module in (gen_ai_attributes, test_attributes)
    for name, value in vars(module).items()
    if name.isupper()
}


def _node(event: str, at: float, node: str, graph: str = "", **data: Any) -> dict[str, Any]:
    return {"event": event, "at": at, "graph": graph, "node": node, "step": 1, "invocation": 1, **data}


def _call(
    number: int, at: float, node: str, kind: str = "tool", name: str = "look", **request: Any
) -> dict[str, Any]:
    request.setdefault("args", {"a": 1})
    return {
        "event": "call",
        "at": at,
        "call": number,
        "kind": kind,
        "name": name,
        "node": node,
        "request": request,
    }


def _answer(number: int, at: float, **data: Any) -> dict[str, Any]:
    return {"event": "answer", "at": at, "call": number, "ok": True, "latency": 0.0, "value": "found", **data}


def _end(at: float, **data: Any) -> dict[str, Any]:
    end = {"event": "end", "at": at, "graph": "", "status": "completed", "output": "done", "error": None}
    return end | {"node": None} | data


def _spans(*events: dict[str, Any], content: bool = False, **head: Any) -> RunSpans:
    return run_spans(RunTrace(HEAD | head, [*events]), LINE, content=content)


def _tree(run: RunSpans) -> list[tuple[str, str | None, float, float | None]]:
    names = [span.name for span in run.spans]
    return [
        (span.name, None if span.parent is None else names[span.parent], span.start, span.end)
        for span in run.spans
    ]


MODEL = _call(
    1, 0.5, "ask", "llm", "gpt-4o",
    messages=[
        {"type": "system", "content": "Be kind."},
        {"type": "human", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": "x"}]},
        {"type": "ai", "content": "", "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "c1"}]},
        {"type": "tool", "content": "found", "tool_call_id": "c1"},
    ],
    provider="azure", params={"temperature": 0.2, "max_tokens": 9, "stop": "END", "seed": None, "top_p": True},
)  # fmt: skip
REPLY = _answer(
    1,
    2.0,
    value={"text": "bye", "tool_calls": [{"name": "look", "args": {}, "id": "c2"}]},
    usage={"input_tokens": 40, "output_tokens": 6},
)


def test_spans_of_nodes_contain_the_spans_of_their_calls() -> None:
    run = _spans(
        {"event": "input", "at": 0.0, "graph": "", "value": "hi"},
        _node("node_start", 0.0, "ask"),
        MODEL,
        REPLY,
        _node("node_end", 2.0, "ask", update={}, latency=2.0),
        _end(2.0),
    )
    assert _tree(run) == [
        ("invoke_agent desk", None, 0.0, 2.0),
        ("node ask", "invoke_agent desk", 0.0, 2.0),
        ("chat gpt-4o", "node ask", 0.5, 2.0),
    ]
    root, node, chat = run.spans
    assert root.attributes["gen_ai.agent.name"] == "desk"
    assert root.attributes["test.case.result.status"] == "pass"
    assert root.attributes["gen_ai.provider.name"] == "azure.ai.openai"
    assert node.attributes == {"harness.node": "ask", "harness.step": 1, "harness.node.kind": "call_llm"}
    assert chat.is_remote
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.provider.name": "azure.ai.openai",
        "gen_ai.request.temperature": 0.2,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.stop_sequences": ["END"],
        "gen_ai.response.finish_reasons": ["tool_call"],
        "gen_ai.usage.input_tokens": 40,
        "gen_ai.usage.output_tokens": 6,
        "gen_ai.conversation.id": "a.scenario.yaml::one #0",
        "harness.effect.kind": "llm",
        "harness.node": "ask",
    }


def test_content_includes_messages_in_the_form_of_the_conventions() -> None:
    *_, chat = _spans(_node("node_start", 0.0, "ask"), MODEL, REPLY, content=True).spans
    assert chat.attributes["gen_ai.input.messages"] == (
        '[{"role":"system","parts":[{"type":"text","content":"Be kind."}]},'
        '{"role":"user","parts":[{"type":"text","content":"hi"},'
        '{"type":"image_url","content":{"type":"image_url","image_url":"x"}}]},'
        '{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"look","arguments":{"a":1}}]},'
        '{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"found"}]}]'
    )
    assert chat.attributes["gen_ai.output.messages"] == (
        '[{"role":"assistant","parts":[{"type":"text","content":"bye"},'
        '{"type":"tool_call","id":"c2","name":"look","arguments":{}}],"finish_reason":"tool_call"}]'
    )


@pytest.mark.parametrize(
    ("kind", "request_", "name", "attributes"),
    [
        (
            "tool",
            {},
            "execute_tool look",
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"},
        ),
        ("mcp", {"server": "books"}, "execute_tool look", {"mcp.method.name": "tools/call"}),
        ("agent", {}, "invoke_agent look", {"gen_ai.agent.name": "look"}),
        ("retrieval", {}, "retrieval look", {"gen_ai.data_source.id": "look"}),
        ("http", {"args": {"method": "POST"}}, "POST", {"http.request.method": "POST", "url.full": "look"}),
        ("human", {}, "human look", {"harness.effect.kind": "human"}),
        ("script", {}, "script look", {"harness.effect.kind": "script"}),
    ],
)
def test_span_names_by_kind_of_call(
    kind: str, request_: dict[str, Any], name: str, attributes: dict[str, str]
) -> None:
    *_, span = _spans(_call(1, 0.0, "ask", kind, **request_), _answer(1, 1.0)).spans
    assert span.name == name
    assert attributes.items() <= span.attributes.items()


def test_attribute_names_exist_in_the_conventions() -> None:
    kinds = ("tool", "mcp", "agent", "retrieval", "http", "human", "script", "handler")
    calls = [_call(number, 0.0, "ask", kind) for number, kind in enumerate(kinds, start=2)]
    for content in (True, False):
        run = _spans(_node("node_start", 0.0, "ask"), MODEL, REPLY, *calls, _end(1.0), content=content)
        used = {name for span in run.spans for name in span.attributes}
        used |= {name for span in run.spans for event in span.events for name in event.attributes}
        assert {name for name in used if name.startswith(("gen_ai.", "test."))} <= KNOWN


def test_failed_spans_have_an_error_type() -> None:
    run = _spans(
        _node("node_start", 0.0, "ask"),
        _call(1, 0.0, "ask"),
        _answer(1, 1.0, ok=False, error={"type": "TimeoutError", "message": "too late"}),
        _node("node_error", 1.0, "ask", type="KeyError", message="'x'", latency=1.0),
        _end(1.0, status="failed", error={"type": "KeyError", "message": "'x'"}),
    )
    assert [(span.error, span.message) for span in run.spans] == [
        ("KeyError", "'x'"), ("KeyError", "'x'"), ("TimeoutError", "too late"),
    ]  # fmt: skip


def test_stopped_run_has_no_output() -> None:
    stopped = {"event": "end", "at": 1.0, "graph": "", "status": "interrupted"}
    [root] = _spans({"event": "input", "at": 0.0, "graph": "", "value": "hi"}, stopped, content=True).spans
    assert "gen_ai.output.messages" not in root.attributes
    assert (root.end, root.error) == (1.0, "")


def test_pause_ends_a_visit_and_resuming_starts_another() -> None:
    run = _spans(
        _node("node_start", 0.0, "sign"),
        _node("node_pause", 1.0, "sign", values=[None], latency=1.0),
        _call(1, 1.0, "sign", "human", "sign"),
        _answer(1, 3.0),
        _node("node_resume", 3.0, "sign"),
        _node("node_end", 4.0, "sign", update={}, latency=1.0),
    )
    assert _tree(run)[1:] == [
        ("node sign", "invoke_agent desk", 0.0, 1.0),
        ("human sign", "invoke_agent desk", 1.0, 3.0),
        ("node sign", "invoke_agent desk", 3.0, 4.0),
    ]
    assert run.spans[1].attributes["harness.paused"] is True


def test_nodes_of_a_nested_graph_are_children_of_the_outer_node() -> None:
    run = _spans(
        _node("node_start", 0.0, "outer"),
        _node("node_start", 0.0, "inner", "outer/"),
        _call(1, 0.0, "outer/inner"),
        _answer(1, 1.0),
        _node("node_end", 1.0, "inner", "outer/", update={}, latency=1.0),
        _node("node_end", 1.0, "outer", update={}, latency=1.0),
    )
    assert _tree(run)[1:] == [
        ("node outer", "invoke_agent desk", 0.0, 1.0),
        ("node outer/inner", "node outer", 0.0, 1.0),
        ("execute_tool look", "node outer/inner", 0.0, 1.0),
    ]


def test_calls_of_concurrent_visits_are_children_of_the_run() -> None:
    run = _spans(
        _node("node_start", 0.0, "ask"),
        _node("node_start", 1.0, "ask"),
        _call(1, 1.0, "ask"),
        _node("node_end", 4.0, "ask", update={}, latency=3.0),
        _node("node_end", 5.0, "ask", update={}, latency=5.0),
    )
    assert _tree(run)[1:] == [
        ("node ask", "invoke_agent desk", 0.0, 5.0),
        ("node ask", "invoke_agent desk", 1.0, 4.0),
        ("execute_tool look", "invoke_agent desk", 1.0, 5.0),
    ]
    assert run.spans[3].attributes["harness.unfinished"] is True


def test_ids_depend_on_the_run_only() -> None:
    def ids(**head: Any) -> set[int]:
        run = _spans(_node("node_start", 0.0, "ask"), **head)
        return {run.trace_id, *(run.span_id(span.number) for span in run.spans)}

    assert len(ids()) == 3
    assert ids() == ids()
    for other in ({"digest": "d2"}, {"id": "b"}, {"repeat": 1}, {"variant": "terse"}, {"seed": 1}):
        assert not ids() & ids(**other)
