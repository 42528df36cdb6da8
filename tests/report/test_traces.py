"""traces/: a file for each run, named in its line of results; large values, and the limit of disk space."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from harness.errors import FormatError
from harness.graph.effects import LLMCall, LLMReply
from harness.graph.sharing import with_shared
from harness.graph.trace import Trace
from harness.report.reading import read_lines
from harness.report.results import ResultsWriter
from harness.report.traces import RunTrace, read_trace
from tests.report.fixtures import MakeOutcome

END = {"event": "end", "at": 0.0, "graph": "", "status": "completed", "output": "bye"}
Written = Callable[..., RunTrace]


@pytest.fixture
def write_trace(tmp_path: Path, outcome: MakeOutcome) -> Written:
    """Write a run with these events, and return its trace."""

    def read(events: list[dict[str, Any]]) -> RunTrace:
        with ResultsWriter(tmp_path) as results:
            results.add(outcome(events=with_shared(events)))
        [line] = read_lines(tmp_path)
        return read_trace(tmp_path / line["trace"])

    return read


def raw_lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.open(folder / "traces/1.jsonl.gz").read().splitlines()]


# ---------------------------------------------------------------- what a file says


def test_first_line_identifies_the_run(write_trace: Written) -> None:
    trace = write_trace([END])
    assert {key: trace.head[key] for key in ("id", "repeat", "seed", "verdict", "dialect")} == {
        "id": "triage.scenario.yaml::a double charge",
        "repeat": 0,
        "seed": 0,
        "verdict": "passed",
        "dialect": "sherma",
    }
    assert (trace.events, trace.damage) == ([END], None)


def test_message_sent_repeatedly_is_written_once(tmp_path: Path, write_trace: Written) -> None:
    conversation = [HumanMessage(f"question {number}") for number in range(50)]
    trace = Trace()
    for length in range(1, 51):
        call = trace.record_call(LLMCall(name="m", messages=tuple(conversation[:length])), 0.0)
        trace.record_answer(call, 0.0, 0.0, LLMReply(f"answer {length}"), None)
    sent = [event for event in write_trace(trace.events).events if event["event"] == "call"]
    assert [len(event["request"]["messages"]) for event in sent] == [*range(1, 51)]
    assert sent[49]["request"]["messages"][7]["content"] == "question 7"
    assert sent[49]["request"]["messages"][7] is sent[9]["request"]["messages"][7]
    assert sum("question 7" in json.dumps(line) for line in raw_lines(tmp_path)) == 1


def test_a_message_in_the_state_of_every_node_is_written_once(tmp_path: Path, write_trace: Written) -> None:
    message = {"role": "user", "content": "hello there"}
    ends = [{"event": "node_end", "at": 0.0, "update": {"talk": [dict(message)] * 3}} for _ in range(5)]
    assert write_trace(ends).events == ends
    assert sum("hello there" in json.dumps(line) for line in raw_lines(tmp_path)) == 1


def test_long_list_in_several_events_is_written_once(tmp_path: Path, write_trace: Written) -> None:
    trace = Trace()
    pages = [f"page {number}" for number in range(1000)]
    for _ in range(5):
        trace.record("node_end", 0.0, update=trace.snapshot({"pages": pages}))
    assert [event["update"]["pages"] for event in write_trace(trace.events).events] == [pages] * 5
    assert sum("page 77" in json.dumps(line) for line in raw_lines(tmp_path)) == 1


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text() | st.sampled_from(["$shared", "content", "type", "role"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(st.lists(plain, max_size=5))
def test_any_values_are_restored(values: list[Any]) -> None:
    from tempfile import TemporaryDirectory

    from harness.report.traces import pack_trace
    from harness.scenario.outcome import Observation, Outcome

    events = [{"event": "node_end", "at": 0.0, "update": {"value": value}} for value in values]
    made = Outcome(
        "a", "b", "m", "sherma", "x", Observation(), "passed", 1.0, events=with_shared([*events, END])
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "1.jsonl.gz")
        path.write_bytes(pack_trace(made))
        assert read_trace(path).events == [*events, END]


def test_value_of_more_than_a_million_characters_is_cut_and_marked(write_trace: Written) -> None:
    large = {"text": "x" * 2_000_000, "items": ["y" * 1000] * 3000, "small": 1}
    [event] = write_trace([{"event": "node_end", "at": 0.0, "update": large, "node": "n"}]).events
    assert event["cut"] == ["update.text", "update.items"]
    assert event["update"]["text"] == "x" * 1_000_000 + "… (2000000 characters)"
    assert event["update"]["items"][-1] == "… 2002 more"
    assert event["node"] == "n"


def test_an_event_below_the_bound_is_not_cut(write_trace: Written) -> None:
    [event] = write_trace([{"event": "node_end", "at": 0.0, "update": {"text": "x" * 900_000}}]).events
    assert "cut" not in event


# ---------------------------------------------------------------- the folder


def test_traces_are_numbered_by_the_order_of_scenarios(tmp_path: Path, outcome: MakeOutcome) -> None:
    from harness.report.results import record

    with ResultsWriter(tmp_path) as results:
        for place, repeat in ((1, 0), (0, 0), (1, 1)):
            results.add_record(record(outcome(repeat=repeat, events=[END])), place)
    assert [line["trace"] for line in read_lines(tmp_path)] == [
        "traces/1.jsonl.gz",
        "traces/2.jsonl.gz",
        "traces/2-2.jsonl.gz",
    ]


def test_a_run_without_events_has_no_trace(tmp_path: Path, outcome: MakeOutcome) -> None:
    with ResultsWriter(tmp_path) as results:
        results.add(outcome())
    assert [line["trace"] for line in read_lines(tmp_path)] == [None]
    assert not (tmp_path / "traces").exists()


def test_only_the_last_complete_run_keeps_its_traces(tmp_path: Path, outcome: MakeOutcome) -> None:
    for seed, incomplete in ((1, ""), (2, "interrupted"), (3, "interrupted")):
        with ResultsWriter(tmp_path) as results:
            results.add(outcome(seed=seed, events=[END]))
            results.finish(incomplete)
    whole = tmp_path / "last-whole"
    assert [read_trace(folder / "traces/1.jsonl.gz").head["seed"] for folder in (tmp_path, whole)] == [3, 1]
    with ResultsWriter(tmp_path) as results:
        results.add(outcome())
    assert not (tmp_path / "traces").exists()
    assert not whole.exists()


def test_unrelated_files_in_the_folder_are_kept(tmp_path: Path, outcome: MakeOutcome) -> None:
    notes = tmp_path / "traces/notes.txt"
    for _ in range(2):
        with ResultsWriter(tmp_path) as results:
            results.add(outcome(events=[END]))
        notes.write_text("mine")
    with ResultsWriter(tmp_path) as results:
        results.add(outcome(events=[END]))
    assert notes.read_text() == "mine"


def test_traces_beyond_the_limit_are_left_out_and_reported(tmp_path: Path, outcome: MakeOutcome) -> None:
    with ResultsWriter(tmp_path, traces_limit=0.01) as results:
        for _ in range(4):
            results.add(outcome(events=[END]))
        summary = results.finish()
    why = "the traces of a run may take 0.01 MB (traces_limit)"
    assert summary["traces"] == {"kept": 2, "left_out": 2, "why": why}
    assert [line["trace"] is None for line in read_lines(tmp_path)] == [False, False, True, True]


def test_results_are_written_if_traces_cannot_be(tmp_path: Path, outcome: MakeOutcome) -> None:
    (tmp_path / "traces").touch()
    with ResultsWriter(tmp_path) as results:
        results.add(outcome(events=[END]))
        summary = results.finish()
    assert summary["traces"]["why"].startswith("they cannot be written: ")
    assert [line["trace"] for line in read_lines(tmp_path)] == [None]


# ---------------------------------------------------------------- files that are none


@pytest.fixture
def file(tmp_path: Path, outcome: MakeOutcome) -> Path:
    """Write a trace of a thousand events."""
    with ResultsWriter(tmp_path) as results:
        results.add(outcome(events=[{"event": "warning", "at": 0.0, "text": f"{n:x}"} for n in range(1000)]))
    return tmp_path / "traces/1.jsonl.gz"


def test_beginning_of_a_truncated_file_is_read(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1000])
    trace = read_trace(file)
    assert 0 < len(trace.events) < 1000
    assert trace.damage is not None
    assert "the file is cut off here" in str(trace.damage)
    assert f"1.jsonl.gz:{len(trace.events) + 2}:1" in str(trace.damage)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hello", "1.jsonl.gz:1:1: this is not a gzip file"),
        (b"", "1.jsonl.gz:1:1: the file is cut off here"),
        (gzip.compress(b"hello\n"), "1.jsonl.gz:1:1: this is not an event: 'hello'"),
        (gzip.compress(b'{"a": 1}\n'), "1.jsonl.gz:1:1: this is not a trace of the format harness-trace/1"),
        (gzip.compress(b'{"format": "harness-trace/9"}\n'), "found 'harness-trace/9'"),
    ],
    ids=["no gzip", "empty", "no JSON", "other JSON", "other version"],
)
def test_file_that_is_no_trace_is_rejected(file: Path, content: bytes, says: str) -> None:
    file.write_bytes(content)
    with pytest.raises(FormatError) as raised:
        read_trace(file)
    assert says in str(raised.value)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"cannot read the trace .*No such file"):
        read_trace(tmp_path / "1.jsonl.gz")


def test_streamed_reply_is_stored_as_one_value(write_trace: Written) -> None:
    """A secret that is split over several chunks could not be redacted."""
    trace = Trace()
    call = trace.record_call(LLMCall(name="m", messages=(HumanMessage("hi"), AIMessage("yes?"))), 0.0)
    trace.record_answer(call, 0.0, 0.0, LLMReply("sesame", chunks=("ses", "ame")), None)
    assert write_trace(trace.events).events[1]["value"] == {"text": "sesame", "chunks": 2}
