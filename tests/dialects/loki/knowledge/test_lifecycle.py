"""Answering a rag node, and building, saving and loading its knowledge base. spec: "Knowledge base lifecycle".

More in `cases/rag.scenario.yaml`.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.settings import RecordMode
from tests.dialects.loki.knowledge.desk import Desk, http_calls
from tests.world.loopback import CannedReply, Loopback, ReceivedRequest, loopback


def embedding_server(asked: ReceivedRequest) -> CannedReply:
    """Return vectors of the numbers of letters and words."""
    rows = [
        {"index": at, "embedding": [len(text), text.count(" ")]}
        for at, text in enumerate(asked.json["input"])
    ]
    return CannedReply(json={"data": rows})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(
        Loopback, "answer", lambda self, asked: self.asked.append(asked) or embedding_server(asked)
    )
    with loopback(CannedReply()) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-4711")
        yield running


def inputs(server: Loopback) -> list[list[str]]:
    return [asked.json["input"] for asked in server.asked]


def test_a_stub_of_the_retrieval_builds_nothing(desk: Desk) -> None:
    desk.graph("[gone.md]")
    outcome = desk.run("retrieval: {recall: {return: {context: stubbed, sources: []}}}")
    assert (outcome.observed.output, http_calls(outcome)) == ("stubbed", [])
    assert not desk.base.exists()


def test_without_an_answer_the_message_says_how_to_search_for_real(desk: Desk) -> None:
    error = desk.run("").observed.error
    assert error is not None
    assert error["code"] == "unscripted-call"
    assert "or `recall: real`, which searches its knowledge base" in error["message"]


def test_a_base_built_from_stubs_is_not_saved(desk: Desk) -> None:
    assert desk.embedded().observed.output == "[Source: ./mill.md]\nThe mill closed in 1931."
    assert not desk.base.exists()


def test_a_base_built_live_is_saved_and_loaded_later(desk: Desk, server: Loopback) -> None:
    first = desk.run("", RecordMode.LIVE)
    assert inputs(server) == [["The mill closed in 1931."], ["mill"]]
    assert server.asked[0].headers["authorization"] == "Bearer sk-planted-4711"
    assert sorted(path.name for path in desk.folder.iterdir()) == ["graph.yaml", "mill.md", "recall.yaml"]
    assert "sk-planted" not in desk.base.read_text(encoding="utf-8")

    desk.write("mill.md", "It was changed, which does not matter.")
    second = desk.run("", RecordMode.LIVE)
    assert inputs(server)[2:] == [["mill"]]
    assert second.observed.output == first.observed.output == "[Source: ./mill.md]\nThe mill closed in 1931."


def test_a_base_with_a_stubbed_document_is_not_saved_even_live(desk: Desk, server: Loopback) -> None:
    desk.graph('["https://archive.example/a"]')
    outcome = desk.run("http: [{url: 'https://archive.example/a', text: Boats}]", RecordMode.LIVE)
    assert outcome.observed.output == "[Source: https://archive.example/a]\nBoats"
    assert not desk.base.exists()


def test_building_and_searching_are_recorded_and_replayed(
    desk: Desk, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = "cassette: it"
    recorded = desk.run(keys, RecordMode.REWRITE)
    assert recorded.passed, recorded.observed.error
    asked = len(server.asked)
    cassette = "".join(path.read_text("utf-8") for path in (desk.project / "cassettes").rglob("*.yaml"))
    assert "The mill closed in 1931." in cassette
    assert "sk-planted" not in cassette

    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    replayed = desk.run(keys)
    assert len(server.asked) == asked
    assert replayed.digest == recorded.digest
    assert replayed.observed.output == "[Source: ./mill.md]\nThe mill closed in 1931."
    assert replayed.observed.warnings == []
    assert not desk.base.exists()


def test_real_is_also_answered_from_a_recording(desk: Desk, server: Loopback) -> None:
    keys = "cassette: it\nretrieval: {recall: real}"
    desk.run(keys, RecordMode.REWRITE)
    asked = len(server.asked)
    assert desk.run(keys).observed.status == "completed"
    assert len(server.asked) == asked == 2


def test_a_base_that_cannot_be_saved_is_a_warning(
    desk: Desk, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.dialects.loki.knowledge.store.os.replace", full)
    outcome = desk.run("expect: {status: completed}", RecordMode.LIVE)
    assert outcome.verdict == "passed"
    assert outcome.observed.warnings == [
        "agents/desk/graph.yaml:4:3: node 'recall': its knowledge base cannot be kept: No space left on device"
    ]
    assert sorted(path.name for path in desk.folder.iterdir()) == ["graph.yaml", "mill.md"]
