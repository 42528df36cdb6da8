"""Matching of requests: the parts that are compared, and the parts that are ignored."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from harness.interception.messages import Request
from harness.recording.matching import Matcher

CHAT = "https://api.openai.com/v1/chat/completions"


def post(body: Any = b"", url: Any = CHAT, method: Any = "POST", headers: Any = None) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(method, url, headers or {}, data)


def said(content: Any) -> Any:
    """Return a request of a conversation with a model."""
    return post({"messages": content})


def same(one: Any, other: Any, ignore: Any = ()) -> Any:
    matcher = Matcher(ignore)
    return matcher.key(one) == matcher.key(other)


# ---------------------------------------------------------------- URL, method, headers


def test_a_header_never_matters() -> None:
    one = post({"a": 1}, headers={"authorization": "one", "content-type": "application/json"})
    assert same(one, post({"a": 1}, headers={"x-other": "1"}))


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com:8080/v1/chat/completions",
        "https://API.OPENAI.COM/v1/chat/completions",
        "https://me:secret@api.openai.com/v1/chat/completions#top",
    ],
)
def test_scheme_port_user_and_case_of_the_host_do_not_matter(url: Any) -> None:
    assert same(post(), post(url=url))


@pytest.mark.parametrize(
    "other",
    [
        post(method="PUT"),
        post(url="https://api.anthropic.com/v1/chat/completions"),
        post(url="https://api.openai.com/v1/responses"),
        post(url=CHAT + "?a=1"),
        post(b"x"),
    ],
)
def test_method_host_path_query_and_body_matter(other: Any) -> None:
    assert not same(post(), other)


def test_the_order_of_a_query_does_not_matter_but_its_values_do() -> None:
    assert same(post(url=CHAT + "?a=1&b=%20&a=2"), post(url=CHAT + "?a=2&b=+&a=1"))
    assert not same(post(url=CHAT + "?a=1&a=1"), post(url=CHAT + "?a=1"))
    assert not same(post(url=CHAT + "?a="), post(url=CHAT))


def test_a_url_without_path_is_that_of_the_root_and_an_impossible_one_is_itself() -> None:
    assert same(post(url="https://a.example"), post(url="https://a.example/"))
    assert not same(post(url="https://[a"), post(url="https://[b"))


def test_the_canonical_form_is_plain_data() -> None:
    request = post({"b": 1.0, "a": [True, None]}, url="https://A.example:1/x?z=1&a=2", method="post")
    assert Matcher().canonical(request) == {
        "method": "POST",
        "host": "a.example",
        "path": "/x",
        "query": [["a", "2"], ["z", "1"]],
        "body": {"b": 1, "a": [True, None]},
    }


# ---------------------------------------------------------------- bodies


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a": 1, "b": 2}', b'{ "b":2,"a":1.0 }'),
        (b'{"a": 1e2}', b'{"a": 100}'),
        (b'{"a": "\\u00e9"}', '{"a": "é"}'.encode()),
        (b"[1, 2]", b"[1.0,\n2]"),
    ],
)
def test_the_spelling_of_json_does_not_matter(one: Any, other: Any) -> None:
    assert same(post(one), post(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a": 1}', b'{"a": true}'),
        (b'{"a": 1}', b'{"a": "1"}'),
        (b'{"a": null}', b"{}"),
        (b"[1, 2]", b"[2, 1]"),
        (b'{"a": "x"}', b"a=x"),
        (b'{"a": 0.1}', b'{"a": 0.2}'),
        (b'{"a": 1', b'{"a":1'),
        (b"text", b"text "),
        (b"\xff\x00", b"\xff\x01"),
        (b"{}", b""),
    ],
)
def test_other_values_are_other_requests(one: Any, other: Any) -> None:
    assert not same(post(one), post(other))


def test_a_form_is_a_mapping() -> None:
    one, other = urlencode([("a", "x y"), ("b", "é")]).encode(), b"b=%C3%A9&a=x%20y"
    assert same(post(one), post(other))
    assert not same(post(b"a=1&a=2"), post(b"a=2&a=1"))
    assert Matcher().canonical(post(one))["body"] == {"a": "x y", "b": "é"}


def multipart(boundary: Any, content: Any = "hello", name: Any = "file") -> Any:
    lines = [
        f"--{boundary}",
        f'Content-Disposition: form-data; name="{name}"; filename="a.txt"',
        "",
        content,
        f"--{boundary}--",
        "",
    ]
    return "\r\n".join(lines).encode()


def test_the_boundary_of_a_multipart_body_does_not_matter_but_its_parts_do() -> None:
    assert same(post(multipart("aaa")), post(multipart("b-b")))
    assert not same(post(multipart("aaa")), post(multipart("aaa", "bye")))
    assert not same(post(multipart("aaa")), post(multipart("aaa", name="other")))


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"a": 1e999}', b'{"a": NaN}', b"[" + b"9" * 5000 + b"]", b'["\\ud800"]', b"=&="],
)
def test_odd_bodies_have_keys_too(body: Any) -> None:
    assert same(post(body), post(body))
    assert not same(post(body), post(body + b"x"))


# ---------------------------------------------------------------- ids

UUIDS = ["6f9619ff-8b86-d011-b42d-00cf4fc964ff", "123e4567-e89b-12d3-a456-426614174000"]


def conversation(first: Any = "call_1", second: Any = "call_2", answers: Any = None) -> Any:
    answered = answers or (first, second)
    calls = [{"id": id, "type": "function", "function": {"name": "f"}} for id in (first, second)]
    return {
        "messages": [
            {"role": "assistant", "tool_calls": calls},
            *({"role": "tool", "tool_call_id": id, "content": "x"} for id in answered),
        ]
    }


def test_the_ids_of_tool_calls_do_not_matter_but_which_reply_belongs_to_which_does() -> None:
    assert same(post(conversation()), post(conversation("call_x", "call_y")))
    assert not same(post(conversation()), post(conversation(answers=("call_2", "call_1"))))
    assert not same(post(conversation()), post(conversation("a", "a")))


@pytest.mark.parametrize(
    "key", ["tool_call_id", "call_id", "tool_use_id", "request_id", "trace_id", "message_id", "messageId"]
)
def test_values_under_the_keys_of_ids_are_ignored(key: Any) -> None:
    assert same(said({key: "one", "x": [{key: "two"}]}), said({"x": [{key: "b"}], key: "a"}))
    assert not same(said({key: "one"}), said({key: None}))


def test_the_numbering_of_ids_does_not_depend_on_the_order_of_keys() -> None:
    one = {"a": {"call_id": "x"}, "b": {"call_id": "y"}, "c": {"call_id": "x"}}
    other = {"c": {"call_id": "1"}, "b": {"call_id": "2"}, "a": {"call_id": "1"}}
    assert same(said(one), said(other))


def test_uuids_in_texts_are_ignored_but_not_their_repetition() -> None:
    first, second = UUIDS
    text = "run {} of {}"
    assert same(said(text.format(first, first)), said(text.format(second, second.upper())))
    assert not same(said(text.format(first, first)), said(text.format(first, second)))
    assert not same(said(f"run {first}"), said(f"walk {first}"))


def test_outside_of_conversations_ids_are_compared() -> None:
    first, second = UUIDS
    assert not same(post({"customer": first}), post({"customer": second}))
    assert not same(post({"id": "u1", "role": "admin"}), post({"id": "u2", "role": "admin"}))
    assert not same(post({"message_id": "a"}), post({"message_id": "b"}))
    assert same(post({"customer": first, "request_id": "a"}), post({"customer": first, "request_id": "b"}))


def test_an_id_of_json_rpc_does_not_matter() -> None:
    assert same(post({"jsonrpc": "2.0", "id": 1}), post({"jsonrpc": "2.0", "id": 7}))


@pytest.mark.parametrize(
    ("one", "other"), [(42, 43), ("A17", "A18"), ("customer-20260001", "customer-20260002")]
)
def test_ids_that_are_part_of_the_question_are_compared(one: Any, other: Any) -> None:
    assert not same(post({"id": one}), post({"id": other}))
    tool = {"type": "tool_use", "id": "toolu_1", "input": {"id": one}}
    assert not same(post(tool), post(tool | {"input": {"id": other}}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": "tool_use", "id": "a"}, {"type": "tool_use", "id": "b"}),
        ({"role": "assistant", "id": "a"}, {"role": "assistant", "id": "b"}),
        ({"id": "call_abc123def"}, {"id": "call_xyz123uvw"}),
        ({"id": UUIDS[0]}, {"id": UUIDS[1]}),
    ],
)
def test_the_id_of_a_piece_of_conversation_does_not_matter(one: Any, other: Any) -> None:
    assert same(said([one]), said([other]))


def test_a_schema_with_a_property_called_id_is_data() -> None:
    assert not same(
        post({"properties": {"id": {"type": "string"}}}), post({"properties": {"id": {"type": "integer"}}})
    )


# ---------------------------------------------------------------- what to ignore


@pytest.mark.parametrize(
    ("ignore", "one", "other"),
    [
        ("host", post(), post(url="http://localhost:1/v1/chat/completions")),
        ("method", post(), post(method="PUT")),
        ("path", post(), post(url="https://api.openai.com/v2")),
        ("query", post(), post(url=CHAT + "?a=1")),
        ("query.ts", post(url=CHAT + "?ts=1&a=1"), post(url=CHAT + "?a=1&ts=2")),
        ("query.a.b", post(url=CHAT + "?a.b=1"), post()),
        ("body", post({"a": 1}), post(b"text")),
        ("body.metadata.user", post({"metadata": {"user": 1}}), post({"metadata": {"user": 2}})),
        ("body.metadata.user", post({"metadata": {}}), post({"metadata": {"user": 2}})),
        (
            "body.messages.*.name",
            post({"messages": [{"name": 1}, {}]}),
            post({"messages": [{}, {"name": 1}]}),
        ),
        ("body.messages.0.name", post({"messages": [{"name": 1}]}), post({"messages": [{}]})),
        ("body.tags.*", post({"tags": [1, 2]}), post({"tags": []})),
        ("body.*.x", post({"a": {"x": 1}}), post({"a": {}})),
        ("body.a", post(b"a=1&b=2"), post(b"a=2&b=2")),
    ],
)
def test_ignored_parts_are_not_compared(ignore: Any, one: Any, other: Any) -> None:
    assert not same(one, other)
    assert same(one, other, [ignore])


def test_other_parts_are_still_compared() -> None:
    messages = [{"name": "a", "content": "x"}]
    other = [{"name": "a", "content": "y"}]
    assert not same(
        post({"messages": messages}), post({"messages": other}), ["body.messages.*.name", "query.a", "host"]
    )
    assert not same(post({"m": [1, 2]}), post({"m": [2]}), ["body.m.0"])


def test_ignored_parts_are_not_in_the_canonical_form() -> None:
    canonical = Matcher(["host", "body.a"]).canonical(post({"a": 1, "b": 2}))
    assert (canonical["host"], canonical["body"]) == (None, {"b": 2})


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("hots", "did you mean 'host'"),
        ("headers.date", "headers are never compared"),
        ("body..x", "known: method, host, path, query, query.NAME"),
        ("host.x", "known: method"),
        ("", "known: method"),
        ("query.", "query.NAME"),
        ("bodymetadata", "known"),
    ],
)
def test_invalid_ignored_parts_are_refused(text: Any, hint: Any) -> None:
    with pytest.raises(ValueError) as refused:
        Matcher([text])
    assert f"'{text}' is not a part of a request" in str(refused.value)
    assert hint in str(refused.value)
