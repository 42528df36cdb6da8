"""The answers of the stubs of a scripted world."""

from typing import Any

import pytest

from harness.graph.effects import HTTPCall, HumanCall
from harness.world.failures import KINDS, ErrorMapping
from tests.world.stubs import answers, llm, replies, world_spec


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
    assert answers(replies(answer), llm())[0].text == text


def test_an_http_answer_has_status_body_and_headers() -> None:
    stub = {"method": "post", "url": "https://*/x", "json": {"ok": True}, "headers": {"X-A": "1"}}
    call = HTTPCall(name="https://a.example/x", args={"method": "POST"})
    (found,) = answers(world_spec(http=[stub]), call)
    assert (found.status, found.json, found.text, found.headers) == (
        200,
        {"ok": True},
        '{"ok":true}',
        {"x-a": "1"},
    )


def test_people_answer_by_node() -> None:
    spec = world_spec(human=[{"node": "b", "reply": {"ok": True}}])
    assert answers(spec, HumanCall(node="b", name="b")) == [{"ok": True}]


def exception(**error: Any) -> Exception:
    return ErrorMapping.model_validate(error).exception()


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_kind_has_a_class_and_a_text(kind: Any) -> None:
    error = exception(kind=kind)
    assert isinstance(error, KINDS[kind][0])
    assert str(error) == KINDS[kind][1]
    assert str(exception(kind=kind, message="mine")) == "mine"


@pytest.mark.parametrize("name", ["ValueError", "KeyError", "OSError", "TimeoutError", "UnicodeDecodeError"])
def test_an_exception_has_the_built_in_type_and_exactly_the_message(name: Any) -> None:
    error = exception(kind="exception", message="as written", type=name)
    assert (type(error).__name__, str(error)) == (name, "as written")
