"""Which formats are read, and what is said of files that are none, or are damaged, or mean harm."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FormatError
from harness.traces import reading
from harness.traces.reading import read_traces
from tests.traces.exports import asks, calls, chat, message, one, otlp, path, span, told, traces

AGENT = {"gen_ai.operation.name": "invoke_agent"}


def observation(
    id_: str, above: str | None, kind: str, name: str, given: Any, gave: Any, /, **fields: Any
) -> dict[str, Any]:
    times = {"startTime": "2026-01-01T00:00:01.000Z", "endTime": "2026-01-01T00:00:02.000Z"}
    made = {"id": id_, "traceId": "t", "parentObservationId": above, "type": kind, "name": name, **times}
    return {
        **made,
        "input": given,
        "output": gave,
        "level": "DEFAULT",
        "statusMessage": None,
        "metadata": {},
        **fields,
    }


def observations() -> list[dict[str, Any]]:
    definition = {"role": "tool", "content": {"type": "function", "function": {"name": "find"}}}
    said = [{"role": "user", "content": "Where is o7?"}, definition]
    return [
        observation("a", None, "SPAN", "desk", {"args": ["Where is o7?", False], "kwargs": {}}, "In Bern."),
        observation(
            "b",
            "a",
            "GENERATION",
            "ChatOpenAI",
            said,
            {"role": "assistant", "content": "In Bern."},
            model="gpt-4o",
        ),
        observation("c", "a", "TOOL", "find", {"args": [], "kwargs": {"order": "o7"}}, "Bern"),
    ]


def langfuse_trace() -> Any:
    return {"id": "t", "name": "desk", "sessionId": "s1", "observations": observations()}


def langfuse_observations() -> Any:
    flat = [
        {
            **each,
            "input": json.dumps(each["input"]),
            "output": json.dumps(each["output"]) if isinstance(each["output"], dict) else each["output"],
        }
        for each in observations()
    ]
    return {"data": flat, "meta": {}}


@pytest.mark.parametrize("made", [langfuse_trace, langfuse_observations, lambda: [langfuse_trace()]])
def test_langfuse_has_observations_in_traces_or_alone(made: Any, tmp_path: Path) -> None:
    trace = one(tmp_path, made())
    assert (trace.head["format"], told(trace, "input")[0]["value"]) == ("langfuse", "Where is o7?")
    assert calls(trace) == [("llm", "gpt-4o", "In Bern."), ("tool", "find", "Bern")]
    requests = [event["request"] for event in told(trace, "call")]
    assert requests == [
        {"messages": [{"type": "human", "content": "Where is o7?"}], "tools": ["find"]},
        {"args": {"order": "o7"}},
    ]


def test_the_agents_sdk_has_ids_of_responses_only(tmp_path: Path) -> None:
    def item(id_: str, above: str | None, at: int, **data: Any) -> dict[str, Any]:
        times = {"started_at": f"2026-01-01T00:00:0{at}+00:00", "ended_at": f"2026-01-01T00:00:0{at}.5+00:00"}
        return {
            "object": "trace.span",
            "id": id_,
            "trace_id": "t",
            "parent_id": above,
            **times,
            "span_data": data,
            "error": None,
        }

    items = [
        {"object": "trace", "id": "t", "workflow_name": "ferries"},
        item("root", None, 1, type="custom", name="task", data={"name": "ferries"}),
        item("desk", "root", 1, type="agent", name="front desk"),
        item("r", "desk", 1, type="response", response_id="resp_1", usage={"input_tokens": 40}),
        item("h", "desk", 2, type="handoff", from_agent="front desk", to_agent="booking"),
        item("booking", "root", 3, type="agent", name="booking"),
        item(
            "f",
            "booking",
            3,
            type="function",
            name="departures",
            input='{"from": "Bern"}',
            output="['09:35']",
        ),
    ]
    trace = one(tmp_path, {"data": items})
    assert path(trace) == ["front desk", "booking"]
    assert calls(trace) == [("llm", "", "gap: the reply"), ("tool", "departures", ["09:35"])]
    (route,) = told(trace, "route")
    assert (route["source"], route["target"], route["condition"]) == ("front desk", "booking", "hand-off")
    assert trace.missing[-1].startswith("all of the Responses API but ids: the SDK's own exporter has none")


def test_a_golden_run_of_yagra_has_the_states_of_its_nodes(tmp_path: Path) -> None:
    def saved(name: str, handler: str, before: Any, after: Any) -> dict[str, Any]:
        return {"node_id": name, "handler": handler, "input_snapshot": before, "output_snapshot": after}

    begun, sorted_, done = (
        {"q": "why?"},
        {"q": "why?", "kind": "other"},
        {"q": "why?", "kind": "other", "answer": "So."},
    )
    run = {
        **{
            "case_name": "why",
            "workflow_name": "flow",
            "source_run_id": "1",
            "created_at": "2026-01-01T00:00:00Z",
        },
        **{"initial_state": begun, "final_state": done, "execution_path": ["sort", "answer", "answer"]},
        "node_snapshots": {
            "sort": saved("sort", "by_words", begun, sorted_),
            "answer": saved("answer", "llm", sorted_, done),
        },
    }
    trace = one(tmp_path, run)
    assert (trace.head["scenario"], path(trace)) == ("why", ["sort", "answer", "answer"])
    assert calls(trace) == [
        ("handler", "by_words", {"kind": "other"}),
        ("llm", "", "gap: the reply"),
        ("llm", "", "So."),
    ]
    assert (told(trace, "input")[0]["value"], told(trace, "end")[0]["output"]) == (begun, done)


def test_a_trace_of_a_run_is_read_as_it_is(tmp_path: Path) -> None:
    lines = [
        {"event": "trace", "format": "harness-trace/1", "id": "a::b"},
        {"event": "input", "at": 0.0, "graph": "", "value": "hello"},
    ]
    file = tmp_path / "1.jsonl.gz"
    file.write_bytes(gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))
    (trace,) = read_traces(file)
    assert (trace.head["id"], trace.events, trace.missing) == ("a::b", lines[1:], ())


def test_an_export_may_be_packed(tmp_path: Path) -> None:
    (tmp_path / "spans.jsonl.gz").write_bytes(gzip.compress(otlp(span("root", attributes=AGENT)).encode()))
    assert read_traces(tmp_path / "spans.jsonl.gz")[0].head["format"] == "otel"


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"", "trace-damaged", "the file is empty"),
        (b"\xff\xfe\x00", "trace-damaged", "this is no text"),
        (b"[" * 100_000, "trace-damaged", "nested too deeply"),
        (b'{"resourceSpans": []}\n{"resou', "trace-damaged", "export.json:2:1: this is not JSON"),
        (b'{"a": 1}', "trace-unknown", "OpenTelemetry (OTLP as JSON), LangSmith (runs), Langfuse"),
        (b'{"resourceLogs": []}', "trace-unknown", "no span of an agent, a model or a tool"),
        (
            b'[{"run_type": "llm", "id": 1, "start_time": "soon"}]',
            "trace-damaged",
            "looks like LangSmith (runs), but cannot be read",
        ),
        (gzip.compress(b"{}", mtime=0)[:-9], "trace-damaged", ""),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_that_says_why(
    content: bytes, code: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "export.json").write_bytes(content)
    with pytest.raises(FormatError) as raised:
        read_traces(tmp_path / "export.json")
    assert raised.value.code == code
    assert says in str(raised.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="No such file") as raised:
        read_traces(tmp_path / "export.json")
    assert raised.value.code == "trace-missing"


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_FILE", 1_000_000)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * 2_000_000))
    with pytest.raises(FormatError, match="more than 1 MB"):
        read_traces(tmp_path / "bomb.json.gz")


def test_parents_that_are_missing_or_go_in_circles_lose_no_span(tmp_path: Path) -> None:
    spans = [
        chat("a", "b", 1, None, "A."),
        chat("b", "a", 3, None, "B."),
        chat("c", "c", 5, None, "C."),
        chat("d", "gone", 7, None, "D."),
    ]
    assert [value for _, _, value in calls(one(tmp_path, otlp(*spans)))] == ["A.", "B.", "C.", "D."]


def test_of_two_spans_with_one_id_one_counts(tmp_path: Path) -> None:
    assert len(calls(one(tmp_path, otlp(chat("a", "", 1, None, "A."), chat("a", "", 1, None, "A."))))) == 1


def test_a_long_chain_of_spans_is_read(tmp_path: Path) -> None:
    chain = [span(str(at), str(at - 1) if at else "", at, attributes=AGENT) for at in range(2_000)]
    assert len(traces(tmp_path, otlp(*chain))) == 1


def test_text_that_looks_like_code_is_never_run(tmp_path: Path) -> None:
    evil = "[__import__('os').mkdir('harm')]"
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "gen_ai.tool.call.result": evil}
    root = span("root", attributes=AGENT, took=9)
    paused = span(
        "p",
        "root",
        3,
        attributes={**AGENT, "error.type": "GraphInterrupt"},
        status={"code": 2, "message": f"(Interrupt(value={evil}),)"},
    )
    assert calls(one(tmp_path, otlp(root, span("c", "root", 1, attributes=tool), paused))) == [
        ("tool", "t", evil)
    ]
    assert not Path("harm").exists()


def test_the_name_of_a_conversation_has_whole_words_only(tmp_path: Path) -> None:
    text = "please use the key " + "sk-" + "a" * 80
    said = {"gen_ai.input.messages": [message(("user", text))]}
    assert (
        one(tmp_path, otlp(span("desk", attributes={**AGENT, **said}))).head["scenario"]
        == "desk: please use the key …"
    )


def test_a_tool_call_without_a_result_is_only_asked_for(tmp_path: Path) -> None:
    assert [
        kind
        for kind, _, _ in calls(one(tmp_path, otlp(chat("a", "", 1, [("user", "x")], asks("find", "1")))))
    ] == ["llm"]
