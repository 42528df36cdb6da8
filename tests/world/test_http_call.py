"""`http_call` converts a URL, a query, a body and headers to data."""

from typing import Any

import pytest

from harness.graph.http_call import http_call


def args(url: Any = "https://a.example/x", **given: Any) -> Any:
    return http_call("POST", url, **given).args


def test_a_request_has_all_its_args_and_is_called_by_its_url_without_query_and_fragment() -> None:
    call = http_call("GET", "https://a.example/x?q=1#top", hint="or that")
    assert (call.name, call.hint) == ("https://a.example/x", "or that")
    assert call.args == {
        "method": "GET",
        "url": "https://a.example/x",
        "query": {"q": "1"},
        "json": None,
        "headers": {},
        "text": "",
    }


def test_a_query_is_laid_over_that_of_the_url() -> None:
    assert args("https://a.example/x?a=1&b=2", query={"b": 3, "c": "4"})["query"] == {
        "a": "1",
        "b": "3",
        "c": "4",
    }


def test_a_repeated_key_is_a_list_of_texts() -> None:
    assert args("https://a.example/x?a=1&a=2", query={"b": [3, True]})["query"] == {
        "a": ["1", "2"],
        "b": ["3", "true"],
    }


@pytest.mark.parametrize(
    ("value", "text"), [("é", "é"), (1, "1"), (2.5, "2.5"), (True, "true"), (False, "false"), (None, "")]
)
def test_values_are_texts(value: Any, text: Any) -> None:
    assert args(query={"k": value})["query"] == {"k": text}
    assert args(headers={"k": value})["headers"] == {"k": text}


def test_header_names_are_in_lower_case() -> None:
    assert args(headers={"X-Key": 7})["headers"] == {"x-key": "7"}


def test_a_json_body_is_given_as_value_and_as_text_and_adds_no_header() -> None:
    sent = args(json={"at": "Vardø"}, headers={"Content-Type": "application/vnd.a+json"})
    assert (sent["json"], sent["text"]) == ({"at": "Vardø"}, '{"at": "Vardø"}')
    assert sent["headers"] == {"content-type": "application/vnd.a+json"}
    assert args(json={})["headers"] == {}


def test_a_form_is_sent_urlencoded() -> None:
    sent = args(form={"at": "Vardø & Oslo", "n": [1, 2], "now": True})
    assert (sent["json"], sent["text"]) == (None, "at=Vard%C3%B8+%26+Oslo&n=1&n=2&now=true")
    assert sent["headers"] == {}
