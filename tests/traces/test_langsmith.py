"""LangSmith's runs, in the three forms that they are exported in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.traces.exports import calls, lc, one, path, told

PAUSED = (
    "GraphInterrupt((Interrupt(value={'question': \"Send it?\"}, id='1', response_schema=None),))"
    "Traceback (most recent call last):\n\n  File x"
)
RESUMED: dict[str, Any] = {
    "input": {"graph": None, "update": None, "resume": {"decision": "send"}, "goto": []}
}


def run(
    id_: str, above: str | None, at: int, name: str, inputs: Any, outputs: Any = None, /, **fields: Any
) -> dict[str, Any]:
    meta = {"thread_id": "t1", **fields.pop("metadata", {})}
    times = {
        "start_time": f"2026-01-01T00:00:0{at}Z",
        "end_time": f"2026-01-01T00:00:0{at}.5Z",
        "dotted_order": f"{at}",
    }
    made = {
        "id": id_,
        "trace_id": id_[0],
        "parent_run_id": above,
        "name": name,
        "run_type": "chain",
        "status": "success",
    }
    return {
        **made,
        **times,
        "error": None,
        "inputs": inputs,
        "outputs": outputs,
        "extra": {"metadata": meta},
        **fields,
    }


def task(name: str, step: int) -> dict[str, Any]:
    return {"langgraph_node": name, "langgraph_step": step, "langgraph_checkpoint_ns": f"{name}:{step}"}


def letters() -> list[dict[str, Any]]:
    said = {"messages": [[lc("system", "You write letters."), lc("human", "About owls.")]]}
    reply = {"generations": [[{"text": "", "message": lc("ai", "Dear owls.", tool_calls=[])}]]}
    return [
        run("a", None, 1, "letters", {"topic": "owls"}, {"topic": "owls", "letter": "Dear owls."}),
        run("ab", "a", 1, "draft", {"topic": "owls"}, {"letter": "Dear owls."}, metadata=task("draft", 1)),
        run(
            "ac",
            "ab",
            1,
            "ChatAnthropic",
            said,
            reply,
            run_type="llm",
            metadata={"ls_model_name": "claude", **task("draft", 1)},
        ),
        run(
            "ad",
            "a",
            2,
            "review",
            {"topic": "owls"},
            {},
            metadata=task("review", 2),
            status="error",
            error=PAUSED,
        ),
        run("b", None, 5, "letters", RESUMED, {"sent": True}),
        run(
            "be",
            "b",
            5,
            "review",
            {"topic": "owls"},
            {"output": {"graph": None, "update": {"ok": 1}, "resume": None, "goto": "send"}},
            metadata=task("review", 2),
        ),
        run("bf", "b", 6, "send", {"topic": "owls"}, {"sent": True}, metadata=task("send", 3)),
    ]


def as_queried(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same as rows of `runs.query`: other names, and kinds in upper case."""
    made = []
    for each in runs:
        above = each.pop("parent_run_id")
        made.append(
            {**each, "run_type": each["run_type"].upper(), "parent_run_ids": [above] if above else []}
        )
    return made


def as_posted(runs: list[dict[str, Any]]) -> str:
    """The same as the parts that the SDK posts, each run first without and then with its outputs."""
    lines = []
    for each in runs:
        number, inputs, outputs = each["id"], each.pop("inputs"), each.pop("outputs")
        lines += [{"part": f"post.{number}", "value": each | {"end_time": None}}]
        lines += [
            {"part": f"post.{number}.inputs", "value": inputs},
            {"part": f"post.{number}.outputs", "value": {}},
        ]
        lines += [
            {"part": f"patch.{number}", "value": {"end_time": each["end_time"]}},
            {"part": f"patch.{number}.outputs", "value": outputs},
        ]
    return "\n".join(map(json.dumps, lines))


@pytest.mark.parametrize("form", [list, as_queried, as_posted])
def test_a_pause_and_its_answer_are_one_conversation(form: Any, tmp_path: Path) -> None:
    trace = one(tmp_path, form(letters()))
    assert trace.head["format"] == "langsmith"
    assert path(trace) == ["draft", "review", "review*", "send"]
    assert told(trace, "node_pause")[0]["values"] == [{"question": "Send it?"}]
    assert [event["value"] for event in told(trace, "input", "resume")] == [
        {"topic": "owls"},
        {"decision": "send"},
    ]
    assert [event["status"] for event in told(trace, "end")] == ["interrupted", "completed"]
    assert calls(trace) == [("llm", "claude", "Dear owls.")]
    assert told(trace, "call")[0]["node"] == "draft"
    assert told(trace, "node_end")[1]["update"] == {"ok": 1}
    assert [(event["source"], event["target"], event["condition"]) for event in told(trace, "route")] == [
        ("review", "send", "Command")
    ]
    assert trace.missing == ()


def test_a_pause_whose_values_cannot_be_read_is_a_pause_all_the_same(tmp_path: Path) -> None:
    runs = letters()[:4]
    runs[3]["error"] = "GraphInterrupt((Interrupt(value=HumanMessage(content='x'), id='1'),))"
    (pause,) = told(one(tmp_path, runs), "node_pause")
    assert (pause["values"], pause["gap"]) == ([], "what the pause asks")


def test_an_error_has_its_type_and_text_and_no_traceback(tmp_path: Path) -> None:
    text = "ValueError('at most 60 characters')\n\nTraceback (most recent call last):\n  File \"/home/me/notes.py\""
    runs = [run("a", None, 1, "notes", {"message": "Hm."}, {"output": "Noted."})]
    runs += [run("ab", "a", 2, "add_note", {"text": "x"}, {"output": None}, run_type="tool", error=text)]
    trace = one(tmp_path, runs)
    assert calls(trace) == [("tool", "add_note", {"type": "ValueError", "message": "at most 60 characters"})]
    assert (told(trace, "end")[0]["status"], told(trace, "end")[0]["output"]) == ("completed", "Noted.")
    assert trace.missing == (
        "the model calls: this export has none (instrument the client of the provider too)",
    )


def test_a_run_that_failed_ends_so_at_the_node_that_did(tmp_path: Path) -> None:
    failed = "ValueError('no owls')"
    runs = [run("a", None, 1, "letters", {"topic": "owls"}, error=failed)]
    runs += [run("ab", "a", 1, "draft", {}, error=failed, metadata=task("draft", 1))]
    (end,) = told(one(tmp_path, runs), "end")
    assert (end["status"], end["error"], end["node"]) == (
        "failed",
        {"type": "ValueError", "message": "no owls"},
        "draft",
    )


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("no such order", {"type": "ToolException", "message": "no such order"}),
        (
            "Error: ValueError('no such order')\n Please fix your mistakes.",
            {"type": "ValueError", "message": "no such order"},
        ),
    ],
)
def test_a_result_that_says_it_is_an_error_is_the_failure_of_the_tool(
    content: str, error: Any, tmp_path: Path
) -> None:
    result = {"output": {"type": "tool", "content": content, "tool_call_id": "1", "status": "error"}}
    runs = [
        run("a", None, 1, "desk", {}, {}),
        run("ab", "a", 2, "find", {"order": "o7"}, result, run_type="tool"),
    ]
    assert calls(one(tmp_path, runs)) == [("tool", "find", error)]


def test_the_messages_of_a_state_are_text_going_in_and_out(tmp_path: Path) -> None:
    said = [{"type": "human", "content": "Hi."}, {"type": "ai", "content": "Hello."}]
    trace = one(
        tmp_path,
        [run("a", None, 1, "desk", {"messages": said[:1], "kind": ""}, {"messages": said, "kind": "hello"})],
    )
    assert (told(trace, "input")[0]["value"], told(trace, "end")[0]["output"]) == ("Hi.", "Hello.")
