"""OpenTelemetry's files: the conventions, and how each exporter bends them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.traces.exports import (
    OPENINFERENCE,
    TRACELOOP,
    asks,
    attribute,
    calls,
    chat,
    gave,
    lc,
    one,
    otlp,
    path,
    span,
    told,
    traces,
)

ASKED = [("system", "Be kind."), ("user", "Where is o7?")]
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}


def node(id_: str, parent: str, at: int, name: str, step: int, /, **fields: Any) -> dict[str, Any]:
    """A task of LangGraph, as OpenInference writes it."""
    meta = {
        "langgraph_node": name,
        "langgraph_step": step,
        "langgraph_checkpoint_ns": f"{name}:{step}",
        "thread_id": "t1",
    }
    attributes = {"openinference.span.kind": "CHAIN", "metadata": meta, **fields.pop("attributes", {})}
    return span(id_, parent, at, name=name, scope=OPENINFERENCE, attributes=attributes, **fields)


def graph(id_: str, at: int, given: Any, gave: Any = None, /, **fields: Any) -> dict[str, Any]:
    values = {"input.value": given, "input.mime_type": "application/json"}
    values |= {"output.value": gave} if gave is not None else {}
    attributes = {"openinference.span.kind": "CHAIN", "session.id": "t1", **values}
    return span(id_, "", at, name="letters", scope=OPENINFERENCE, attributes=attributes, **fields)


# ---------------------------------------------------------------- calls


def test_a_call_has_its_messages_reply_tools_and_tokens(tmp_path: Path) -> None:
    used = {"gen_ai.usage.input_tokens": 40, "gen_ai.usage.output_tokens": 5}
    defined = {"gen_ai.tool.definitions": [{"type": "function", "name": "find", "parameters": {}}]}
    root = span("root", attributes=AGENT, took=9)
    call = chat("c", "root", 1, ASKED, asks("find", "1", order="o7"), attributes={**used, **defined})
    trace = one(tmp_path, otlp(root, call))
    asked, answer = told(trace, "call", "answer")
    assert (asked["kind"], asked["name"], asked["node"], asked["at"]) == ("llm", "gpt-4o", "desk", 1.0)
    assert asked["request"] == {
        "messages": [{"type": "system", "content": "Be kind."}, {"type": "human", "content": "Where is o7?"}],
        "tools": ["find"],
    }
    usage = {"input_tokens": 40, "output_tokens": 5}
    reply = {"text": "", "tool_calls": [{"name": "find", "args": {"order": "o7"}, "id": "1"}], "usage": usage}
    assert (answer["value"], answer["usage"], answer["latency"]) == (reply, usage, 1.0)


def test_a_call_that_the_client_itself_reports_too_is_one_call(tmp_path: Path) -> None:
    sdk: dict[str, Any] = {"scope": "com.anthropic.sdk.python"}
    inner = chat("sdk", "c", 2, attributes={"gen_ai.response.id": "m1"}, **sdk)
    elsewhere = chat(
        "sdk2", "", 5, trace="u", **sdk
    )  # beside OpenInference and Traceloop it is a trace of its own
    spans = [span("root", attributes=AGENT, took=9), chat("c", "root", 1, ASKED, "Gone.", took=3), inner]
    trace = one(tmp_path, otlp(*spans, chat("d", "root", 4, ASKED, "Sent.", took=3), elsewhere))
    assert calls(trace) == [("llm", "gpt-4o", "Gone."), ("llm", "gpt-4o", "Sent.")]


def test_of_two_reports_of_a_call_that_both_tell_all_the_outer_counts(tmp_path: Path) -> None:
    response = chat("response", "root", 1, ASKED, "Gone.", took=3)
    trace = one(
        tmp_path,
        otlp(span("root", attributes=AGENT, took=9), response, chat("chat", "response", 2, ASKED, "Gone.")),
    )
    assert len(calls(trace)) == 1


def test_what_two_instrumentations_tell_in_full_is_one_call(tmp_path: Path) -> None:
    def tool(id_: str, scope: str, **more: Any) -> dict[str, Any]:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "find",
            "gen_ai.tool.call.result": "Bern",
        }
        return span(id_, "root", 5, scope=scope, attributes=attributes | more)

    twice = [
        chat("c", "root", 1, ASKED, "Gone.", took=3),
        chat("d", "root", 2, ASKED, "Gone.", scope="other"),
    ]
    tools = [tool("t", "one"), tool("u", "other", **{"gen_ai.tool.call.arguments": {"order": "o7"}})]
    trace = one(tmp_path, otlp(span("root", attributes=AGENT, took=9), *twice, *tools))
    assert calls(trace) == [("llm", "gpt-4o", "Gone."), ("tool", "find", "Bern")]
    assert told(trace, "call")[1]["request"] == {"args": {"order": "o7"}}


def test_an_exception_that_a_span_survived_is_no_failure(tmp_path: Path) -> None:
    event = {"name": "exception", "attributes": [{"key": "exception.type", "value": attribute("ValueError")}]}
    spans = [graph("g", 0, {}, {}, took=9), node("n", "g", 1, "draft", 1, events=[event], status={"code": 1})]
    assert [event["event"] for event in one(tmp_path, otlp(*spans)).events] == [
        "input",
        "node_start",
        "node_end",
        "end",
    ]


def test_calls_side_by_side_are_two_calls(tmp_path: Path) -> None:
    both = [chat("c", "root", 1, took=3), chat("d", "root", 2, took=3)]
    assert len(calls(one(tmp_path, otlp(span("root", attributes=AGENT, took=9), *both)))) == 2


def test_a_tool_without_a_span_is_found_in_the_next_request(tmp_path: Path) -> None:
    first = chat("a", "", 1, ASKED, asks("find", "1", order="o7"), trace="t1")
    more = [*ASKED, ("assistant", asks("find", "1", order="o7")), gave("1", '["Bern"]', role="user")]
    trace = one(tmp_path, otlp(first, chat("b", "", 4, more, "In Bern.", trace="t2")))
    assert calls(trace)[1] == ("tool", "find", ["Bern"])
    assert told(trace, "call")[1]["request"] == {"args": {"order": "o7"}}
    assert [event["at"] for event in told(trace, "call")] == [0.0, 1.0, 3.0]
    assert told(trace, "end")[0]["output"] == "In Bern."
    assert trace.missing[-1].startswith("which calls belong together: each is a trace of its own")


def test_the_output_tool_of_pydantic_ai_is_no_tool_of_the_app(tmp_path: Path) -> None:
    said = asks("final_result", "1", advice="Pay in.")
    refused = [*ASKED, ("assistant", said), gave("1", [{"msg": "too long"}], role="user")]
    root = span("root", attributes={**AGENT, "final_result": {"advice": "Pay."}}, took=9, scope="pydantic-ai")
    models = [
        chat("a", "root", 1, ASKED, said, scope="pydantic-ai"),
        chat("b", "root", 3, refused, said, scope="pydantic-ai"),
    ]
    trace = one(tmp_path, otlp(root, *models))
    assert [kind for kind, _, _ in calls(trace)] == ["llm", "llm"]
    assert told(trace, "end")[0]["output"] == {"advice": "Pay."}


def test_a_hand_off_that_only_the_messages_tell_is_a_route(tmp_path: Path) -> None:
    said = asks("transfer_to_booking", "1")
    more = [*ASKED, ("assistant", said), gave("1", '{"assistant": "booking"}')]
    spans = [
        span("root", attributes=AGENT, took=9),
        chat("a", "root", 1, ASKED, said),
        chat("b", "root", 3, more, "Booked."),
    ]
    trace = one(tmp_path, otlp(*spans))
    (route,) = told(trace, "route")
    assert (route["source"], route["target"], route["condition"]) == ("desk", "booking", "hand-off")
    assert [kind for kind, _, _ in calls(trace)] == ["llm", "llm"]


def test_a_retry_that_a_tool_asks_for_is_its_error(tmp_path: Path) -> None:
    raised = {"exception.type": "pydantic_ai.exceptions.ToolRetryError", "exception.message": "no account 17"}
    event = {
        "name": "exception",
        "attributes": [{"key": key, "value": attribute(value)} for key, value in raised.items()],
    }
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "balance",
        "gen_ai.tool.call.arguments": {"account": "17"},
    }
    attributes["pydantic_ai.tool.retry.cause"] = "model_retry"
    tool = span(
        "t", "root", 1, attributes=attributes, events=[event], status={"code": 2}, scope="pydantic-ai"
    )
    trace = one(tmp_path, otlp(span("root", attributes=AGENT, took=9), tool))
    assert calls(trace) == [("tool", "balance", {"type": "ModelRetry", "message": "no account 17"})]
    assert told(trace, "end")[0]["status"] == "completed"


def test_the_arguments_and_results_of_langchain_are_unwrapped(tmp_path: Path) -> None:
    given = {"input_str": "{'order': 'o7'}", "inputs": None, "kwargs": {"tool_call_id": "1"}}
    result = {"output": lc("tool", '[{"total": 19.9}]', tool_call_id="1", status="success"), "kwargs": {}}
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "find",
        "traceloop.span.kind": "tool",
    }
    attributes |= {
        "gen_ai.tool.call.arguments": json.dumps(given),
        "gen_ai.tool.call.result": json.dumps(result),
    }
    trace = one(
        tmp_path,
        otlp(
            span("root", attributes=AGENT, took=9),
            span("t", "root", 1, attributes=attributes, scope=TRACELOOP),
        ),
    )
    assert calls(trace) == [("tool", "find", [{"total": 19.9}])]
    assert told(trace, "call")[0]["request"] == {"args": {"order": "o7"}}


def test_the_set_up_of_an_agent_is_no_turn(tmp_path: Path) -> None:
    created = {"gen_ai.operation.name": "create_agent", "gen_ai.system_instructions": "the secret recipe"}
    trace = one(
        tmp_path, otlp(span("s", "", 0, trace="u", attributes=created), span("root", attributes=AGENT))
    )
    assert "recipe" not in json.dumps(trace.events)


def test_a_request_of_the_responses_api_has_its_items(tmp_path: Path) -> None:
    given = [
        {"role": "user", "content": "A ferry?"},
        {"type": "function_call", "call_id": "1", "name": "departures", "arguments": '{"from": "Bern"}'},
        {"type": "function_call_output", "call_id": "1", "output": "['09:41']"},
    ]
    response = {
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "At 09:41."}],
            }
        ]
    }
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4.1",
        "raw_input": given,
        "response": response,
    }
    root = span(
        "root",
        name="x",
        scope="logfire.openai_agents",
        attributes={"logfire.msg_template": "t", "name": "travel"},
        took=9,
    )
    trace = one(
        tmp_path, otlp(root, span("c", "root", 1, scope="logfire.openai_agents", attributes=attributes))
    )
    assert told(trace, "call")[0]["request"]["messages"] == [
        {"type": "human", "content": "A ferry?"},
        {
            "type": "ai",
            "content": "",
            "tool_calls": [{"name": "departures", "args": {"from": "Bern"}, "id": "1"}],
        },
        {"type": "tool", "content": "['09:41']", "tool_call_id": "1"},
    ]
    assert calls(trace) == [("llm", "gpt-4.1", "At 09:41.")]
    assert [text for text in trace.missing if "system prompts of 1 model call" in text]


def test_messages_in_log_records_belong_to_their_span(tmp_path: Path) -> None:
    def record(event: str, body: dict[str, Any]) -> dict[str, Any]:
        values = [{"key": key, "value": attribute(value)} for key, value in body.items()]
        return {
            "traceId": "t",
            "spanId": "c",
            "eventName": event,
            "body": {"kvlistValue": {"values": values}},
        }

    reply = {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "Gone."}}]}}
    choice = record("gen_ai.choice", {"finish_reason": "stop"})
    choice["body"]["kvlistValue"]["values"].append({"key": "message", "value": reply})
    records = [
        record("gen_ai.system.message", {"content": "Be kind."}),
        record("gen_ai.user.message", {"content": "Hm?"}),
        choice,
    ]
    logs = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})
    call = chat("c", "", 1, scope="opentelemetry.instrumentation.openai_v2")
    trace = one(tmp_path, otlp(call) + logs)
    assert told(trace, "call")[0]["request"]["messages"][0] == {"type": "system", "content": "Be kind."}
    assert calls(trace) == [("llm", "gpt-4o", "Gone.")]
    assert told(trace, "input")[0]["value"] == "Hm?"


def test_flattened_messages_may_have_holes_in_their_numbers(tmp_path: Path) -> None:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "claude",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": "Where?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.text": "I look.",
        "llm.output_messages.0.message.tool_calls.2.tool_call.id": "1",
        "llm.output_messages.0.message.tool_calls.2.tool_call.function.name": "find",
        "llm.output_messages.0.message.tool_calls.2.tool_call.function.arguments": '{"order": "o7"}',
        "llm.tools.0.tool.json_schema": {"type": "function", "function": {"name": "find"}},
    }
    trace = one(tmp_path, otlp(span("c", "", 1, scope=OPENINFERENCE, attributes=attributes)))
    call, answer = told(trace, "call", "answer")
    assert call["request"] == {"messages": [{"type": "human", "content": "Where?"}], "tools": ["find"]}
    assert answer["value"] == {
        "text": "I look.",
        "tool_calls": [{"name": "find", "args": {"order": "o7"}, "id": "1"}],
    }


def test_a_reply_that_was_cut_short_says_so(tmp_path: Path) -> None:
    cut = {"gen_ai.response.finish_reasons": ["length"]}
    trace = one(tmp_path, otlp(chat("c", "", 1, ASKED, "Once upon", attributes=cut)))
    assert told(trace, "answer")[0]["value"] == {"text": "Once upon", "finish_reason": "length"}


# ---------------------------------------------------------------- content that is not there


def test_what_was_not_exported_is_a_gap_and_how_to_export_it_is_said(tmp_path: Path) -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"}
    trace = one(
        tmp_path,
        otlp(
            span("root", attributes=AGENT, took=9),
            chat("c", "root", 1),
            span("t", "root", 3, attributes=tool),
        ),
    )
    gaps = [(event["event"], event["gap"]) for event in trace.events if "gap" in event]
    assert gaps == [
        ("input", "the input"),
        *(("call", "the prompt"), ("answer", "the reply")),
        *(("call", "the arguments"), ("answer", "the result")),
        ("end", "the output"),
    ]
    assert "the prompt of 1 model call" in trace.missing[0]
    assert "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only" in trace.missing[0]


@pytest.mark.parametrize("parts", [[{"type": "text"}], [{"type": "text", "content": "__REDACTED__"}]])
def test_messages_without_their_texts_are_a_gap(parts: list[Any], tmp_path: Path) -> None:
    call = chat("c", "", 1, [("user", parts)], parts)
    assert [event["gap"] for event in told(one(tmp_path, otlp(call)), "call", "answer")] == [
        "the prompt",
        "the reply",
    ]


def test_a_pause_tells_nothing_where_content_is_hidden(tmp_path: Path) -> None:
    raised = {
        "exception.type": "GraphInterrupt",
        "exception.message": "(Interrupt(value='the secret', id='1'),)",
    }
    event = {
        "name": "exception",
        "attributes": [{"key": key, "value": attribute(value)} for key, value in raised.items()],
    }
    hidden = {"openinference.span.kind": "LLM", "input.value": "__REDACTED__", "output.value": "__REDACTED__"}
    model = span("c", "draft", 1, scope=OPENINFERENCE, attributes=hidden)
    spans = [graph("g", 0, "__REDACTED__", took=9), node("draft", "g", 1, "draft", 1), model]
    trace = one(tmp_path, otlp(*spans, node("review", "g", 3, "review", 2, events=[event])))
    (pause,) = told(trace, "node_pause")
    assert (pause["values"], pause["gap"]) == ([], "what the pause asks")
    assert "the secret" not in json.dumps(trace.events)
    assert told(trace, "end")[0]["status"] == "interrupted"


# ---------------------------------------------------------------- graphs


def test_nodes_are_in_the_order_of_their_supersteps(tmp_path: Path) -> None:
    spans = [
        graph("g", 0, {"topic": "owls"}, {"topic": "owls", "done": True}, took=9),
        node("b", "g", 1, "last", 3),
        node("x", "g", 1, "first", 1),
        node("y", "g", 1, "left", 2),
        node("z", "g", 2, "right", 2),
    ]
    trace = one(tmp_path, otlp(*spans))
    assert path(trace) == ["first", "left", "right", "last"]
    assert [event["step"] for event in told(trace, "node_start")] == [1, 2, 2, 3]
    assert [told(trace, "input")[0]["value"], told(trace, "end")[0]["output"]] == [
        {"topic": "owls"},
        {"topic": "owls", "done": True},
    ]


def test_spans_inside_of_a_node_are_no_nodes_and_tell_where_it_led_to(tmp_path: Path) -> None:
    values = {"attributes": {"output.value": "tell"}}
    router = node("r", "sort", 2, "sort", 1, **values)
    router["spans"][0]["name"] = "by_kind"
    inner = node("again", "sort", 1, "sort", 1)
    trace = one(
        tmp_path,
        otlp(
            graph("g", 0, {}, {}, took=9),
            node("sort", "g", 1, "sort", 1, took=3),
            inner,
            router,
            node("tell", "g", 5, "tell", 2),
        ),
    )
    assert path(trace) == ["sort", "tell"]
    routes = [(event["source"], event["target"], event["condition"]) for event in told(trace, "route")]
    assert routes == [("sort", "tell", "by_kind")]


def test_a_graph_inside_of_a_node_has_its_path(tmp_path: Path) -> None:
    inner = node("model", "chief", 2, "model", 1)
    trace = one(
        tmp_path, otlp(graph("g", 0, {}, {}, took=9), node("chief", "g", 1, "chief", 1, took=5), inner)
    )
    assert path(trace) == ["chief", "chief/model"]
    assert [event["graph"] for event in told(trace, "node_start")] == ["", "chief/"]


def test_a_hand_off_to_another_graph_is_no_failure(tmp_path: Path) -> None:
    raised = {
        "exception.type": "langgraph.errors.ParentCommand",
        "exception.message": "Command(graph='x', update={})",
    }
    event = {
        "name": "exception",
        "attributes": [{"key": key, "value": attribute(value)} for key, value in raised.items()],
    }
    trace = one(
        tmp_path,
        otlp(
            graph("g", 0, {}, {}, took=9),
            node("chief", "g", 1, "chief", 1, events=[event], status={"code": 2}),
        ),
    )
    assert [event["event"] for event in trace.events] == ["input", "node_start", "node_end", "end"]


def test_the_key_of_a_bare_text_is_found_in_another_state(tmp_path: Path) -> None:
    spans = [
        graph("g", 0, "the lost globe", {"topic": "the lost globe"}, took=9),
        node("draft", "g", 1, "draft", 1),
    ]
    assert told(one(tmp_path, otlp(*spans)), "input")[0]["value"] == {"topic": "the lost globe"}


# ---------------------------------------------------------------- conversations


def test_turns_of_one_conversation_are_joined_and_keep_their_order(tmp_path: Path) -> None:
    def turn(trace: str, at: int, text: str, reply: str) -> dict[str, Any]:
        said = {"gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": text}]}]}
        said["gen_ai.output.messages"] = [
            {"role": "assistant", "parts": [{"type": "text", "content": reply}]}
        ]
        return span("root", "", at, trace=trace, attributes={**AGENT, "gen_ai.conversation.id": "t1", **said})

    trace = one(tmp_path, otlp(turn("late", 9, "Thank you.", "Bye."), turn("early", 1, "Help.", "Sure.")))
    assert [event["value"] for event in told(trace, "input")] == ["Help.", "Thank you."]
    assert [event["output"] for event in told(trace, "end")] == ["Sure.", "Bye."]
    assert [event["at"] for event in told(trace, "input")] == [0.0, 8.0]
    assert trace.head["scenario"] == "desk: Help."


def test_roots_without_a_conversation_are_one_each_and_equal_names_are_numbered(tmp_path: Path) -> None:
    found = traces(
        tmp_path,
        otlp(
            span("root", "", 1, trace="a", attributes=AGENT), span("root", "", 2, trace="b", attributes=AGENT)
        ),
    )
    assert [trace.head["id"] for trace in found] == ["desk", "desk (2)"]


def test_a_turn_without_an_input_after_one_with_is_a_resume_whose_answer_is_missing(tmp_path: Path) -> None:
    flow = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.conversation.id": "t1"}
    first = span(
        "a",
        "",
        1,
        trace="a",
        attributes={
            **flow,
            "gen_ai.input.messages": [
                {"role": "user", "parts": [{"type": "text", "content": '{"topic": "owls"}'}]}
            ],
        },
    )
    trace = one(tmp_path, otlp(first, span("b", "", 5, trace="b", attributes=flow)))
    assert [event["status"] for event in told(trace, "end")] == ["interrupted", "completed"]
    assert told(trace, "input")[0]["value"] == {"topic": "owls"}
    assert told(trace, "resume")[0]["gap"] == "the answer to the pause"


def test_calls_of_a_bare_client_are_split_into_turns_and_conversations(tmp_path: Path) -> None:
    follow = [*ASKED, ("assistant", "In Bern."), ("user", "And o8?")]
    other = [("system", "Be kind."), ("user", "Hello?")]
    spans = [chat("a", "", 1, ASKED, "In Bern.", trace="a"), chat("b", "", 3, follow, "In Basel.", trace="b")]
    found = traces(tmp_path, otlp(*spans, chat("c", "", 5, other, "Hi.", trace="c")))
    inputs = [[event["value"] for event in told(trace, "input")] for trace in found]
    assert inputs == [["Where is o7?", "And o8?"], ["Hello?"]]


def test_the_request_of_a_server_around_an_agent_is_no_turn_of_its_own(tmp_path: Path) -> None:
    agent = span(
        "root",
        "http",
        1,
        attributes={
            **AGENT,
            "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Hi."}]}],
        },
    )
    trace = one(tmp_path, otlp(span("http", name="POST /chat", scope="fastapi", took=9), agent))
    assert (trace.head["scenario"], told(trace, "input")[0]["value"]) == ("desk: Hi.", "Hi.")


def test_nothing_of_a_status_text_comes_through_where_content_is_hidden(tmp_path: Path) -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find", "error.type": "ValueError"}
    failed = span("t", "root", 1, attributes=tool, status={"code": 2, "message": "the secret recipe"})
    prompt = {"gen_ai.system_instructions": "the secret recipe"}
    spans = [span("root", attributes=AGENT, took=9), failed, chat("c", "root", 3, attributes=prompt)]
    trace = one(tmp_path, otlp(*spans))
    assert calls(trace)[0] == ("tool", "find", {"type": "ValueError", "message": ""})
    assert "recipe" not in json.dumps(trace.events)
