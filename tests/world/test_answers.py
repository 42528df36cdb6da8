"""The answers of the stubs of a scripted world."""

from typing import Any

import pytest

from harness.graph.effects import HTTPCall, HumanCall
from harness.world.spec import KINDS, ErrorAnswer, Stub, WorldSpec, to_exception
from tests.world.stubs import answers, llm, replies


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"reply": "hi"}, "hi"),
        ({"json": {"a": [1, 2.5, None], "b": "é"}}, '{"a":[1,2.5,null],"b":"é"}'),
        ({"chunks": ["st", "ream"]}, "stream"),
        ({"tool_calls": [{"name": "t", "args": {}}]}, ""),
    ],
)
def test_replies_of_models(answer: Any, text: Any) -> None:
    assert answers(replies(Stub(answer=answer)), llm())[0].text == text


def test_an_http_answer_has_status_body_and_headers() -> None:
    stub = Stub(method="post", url="https://*/x", answer={"json": {"ok": True}, "headers": {"X-A": 1}})
    call = HTTPCall(name="https://a.example/x", args={"method": "POST"})
    (found,) = answers(WorldSpec(http=(stub,)), call)
    assert (found.status, found.json, found.text, found.headers) == (
        200,
        {"ok": True},
        '{"ok":true}',
        {"x-a": "1"},
    )


def test_people_answer_by_node() -> None:
    spec = WorldSpec(human=(Stub(nodes=("b",), answer={"reply": {"ok": True}}),))
    assert answers(spec, HumanCall(node="b", name="b")) == [{"ok": True}]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_kind_has_a_class_and_a_text(kind: Any) -> None:
    error = to_exception(ErrorAnswer(kind))
    assert isinstance(error, KINDS[kind][0])
    assert str(error) == KINDS[kind][1]
    assert str(to_exception(ErrorAnswer(kind, "mine"))) == "mine"


@pytest.mark.parametrize("name", ["ValueError", "KeyError", "OSError", "TimeoutError", "UnicodeDecodeError"])
def test_an_exception_has_the_built_in_type_and_exactly_the_message(name: Any) -> None:
    error = to_exception(ErrorAnswer("exception", "as written", name))
    assert (type(error).__name__, str(error)) == (name, "as written")
