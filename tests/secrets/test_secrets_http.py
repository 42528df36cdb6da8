"""Secrets in headers, URLs and the bodies of requests and responses."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from harness.secrets import Secrets
from tests.secrets.sample import KEY, NO_SECRETS, OPENAI, SECRETS, words


@pytest.mark.parametrize(
    "name",
    words(
        """
        authorization Authorization proxy-authorization api-key x-api-key x-goog-api-key cookie set-cookie
        x-amz-security-token x-csrf-token x-client-secret ocp-apim-subscription-key x-signature
        x-functions-key
        """
    ),
)
def test_secret_headers_are_replaced(name: Any) -> None:
    assert Secrets({}).header(name, "any") == f"<secret:{name.lower()}>"


@pytest.mark.parametrize(
    "name",
    ["content-type", "x-ratelimit-remaining-tokens", "idempotency-key", "authority", "keep-alive", "key"],
)
def test_other_headers_are_scrubbed_as_text(name: Any) -> None:
    assert SECRETS.header(name, f"any {KEY}") == f"any {OPENAI}"


def test_a_header_with_a_url_is_scrubbed_as_a_url() -> None:
    assert (
        SECRETS.header("Location", "https://a.example/?sig=abc")
        == "https://a.example/?sig=%3Csecret%3Asig%3E"
    )


@pytest.mark.parametrize(
    "name",
    words(
        """
        key api_key apikey access_token token sig signature X-Amz-Signature X-Amz-Credential X-Goog-Signature
        AWSAccessKeyId password secret auth client_secret
        """
    ),
)
def test_secret_parameters_are_replaced_and_the_url_stays_valid(name: Any) -> None:
    url = Secrets({}).url(f"https://a.example:8080/x?n=1&{name}=any%20one&page_token=2#top")
    assert urlsplit(url)[:3] == ("https", "a.example:8080", "/x")
    assert parse_qs(urlsplit(url).query) == {"n": ["1"], name: [f"<secret:{name}>"], "page_token": ["2"]}
    assert urlsplit(url).fragment == "top"


def test_user_and_password_in_a_url_are_replaced_and_a_short_user_alone_is_not() -> None:
    url = Secrets({}).url("https://me:pw@a.example/x")
    assert url == "https://%3Csecret%3Auserinfo%3E@a.example/x"
    assert urlsplit(url).hostname == "a.example"
    assert Secrets({}).url("ssh://git@a.example/x") == "ssh://git@a.example/x"
    assert Secrets({}).url("https://ghp12345678@a.example") == "https://%3Csecret%3Auserinfo%3E@a.example"


def test_a_url_with_a_known_value_in_its_path_stays_a_url() -> None:
    secrets = Secrets({"HOOK_WEBHOOK_URL": "https://hooks.example/services/T00/Xq81kdjE"})
    assert secrets.url("https://hooks.example/services/T00/Xq81kdjE") == (
        "https://hooks.example/%3Csecret%3AHOOK_WEBHOOK_URL%3E"
    )


def test_urls_inside_urls_are_scrubbed_to_a_limited_depth() -> None:
    inner = "https://a.example/?access_token=abc"
    assert "abc" not in NO_SECRETS.url(f"https://a.example/?u=https://b.example/?u={quote(inner, safe='')}")
    deep = "https://a.example/?u=" * 5_000
    assert (NO_SECRETS.url(deep), NO_SECRETS.data([deep])) == (deep, [deep])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "?",
        "#",
        "a?b#c",
        "//",
        "https://[::1",
        "http://a\u2100b/",
        "x://a?&&=&",
        "mailto:a:b@c",
        "https://a:",
    ],
)
def test_a_malformed_url_is_unchanged(url: Any) -> None:
    assert SECRETS.url(url) == url


def test_placeholders_are_the_same_however_a_client_encodes_them() -> None:
    written = ["<secret:A>", "%3Csecret:A%3E", "%3csecret%3aA%3e"]
    assert {NO_SECRETS.url(f"https://a.example/{text}") for text in written} == {
        "https://a.example/%3Csecret%3AA%3E"
    }
    form = "application/x-www-form-urlencoded"
    assert {NO_SECRETS.body(f"a={text}".encode(), form) for text in written} == {b"a=%3Csecret%3AA%3E"}


@pytest.mark.parametrize(
    "written", ['{"b":"%s","a":1.0}', '{\n  "b": "%s",\r\n\t"a": 1e5 , "é": "\\u00e9\\/"}', '["%s"]', '"%s"']
)
def test_a_json_body_keeps_its_formatting(written: Any) -> None:
    body = (written % f"x {KEY} y").encode()
    assert SECRETS.body(body, "application/json") == (written % f"x {OPENAI} y").encode()
    assert NO_SECRETS.body(body, "application/json") == body


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/vnd.api+json; charset=utf-8", "", "text/plain"]
)
def test_secret_fields_of_json_are_replaced_even_if_it_is_truncated(content_type: Any) -> None:
    secrets = Secrets({})
    assert (
        secrets.body(b'{"a": {"password":"x y"}, "n": [1', content_type)
        == b'{"a": {"password":"<secret:password>"}, "n": [1'
    )
    assert secrets.body(b'[{"api_key": "half of i', content_type) == b'[{"api_key": "<secret:api_key>'


def test_a_number_that_is_a_secret_becomes_a_string() -> None:
    secrets = Secrets({"PIN": "12345678"}, named=["PIN"])
    assert secrets.body(b'{"code": 12345678}', "application/json") == b'{"code": "<secret:PIN>"}'
    arguments = json.dumps({"arguments": '{"code": 12345678}'}).encode()
    assert json.loads(json.loads(secrets.body(arguments, "application/json"))["arguments"]) == {
        "code": "<secret:PIN>"
    }


def test_secret_fields_of_a_form_are_replaced() -> None:
    form = f"grant_type=password&username=me&password=x%20y&note={quote(KEY, safe='')}&empty=&password="
    assert SECRETS.body(form.encode(), "application/x-www-form-urlencoded; charset=utf-8") == (
        b"grant_type=password&username=me&password=%3Csecret%3Apassword%3E"
        b"&note=%3Csecret%3AOPENAI_API_KEY%3E&empty=&password="
    )


def test_secret_fields_of_json_in_a_form_are_replaced() -> None:
    body = Secrets({}).body(b"payload=%7B%22token%22%3A%22abc%22%7D", "application/x-www-form-urlencoded")
    assert parse_qs(body.decode()) == {"payload": ['{"token":"<secret:token>"}']}


def test_known_values_in_binary_bodies_are_replaced_and_other_bytes_kept() -> None:
    body = b"\xff\x00\xc3" + KEY.encode() + b"\xe2\x82" + b64encode(KEY.encode()) + b"\x80"
    assert (
        SECRETS.body(body, "image/png")
        == b"\xff\x00\xc3" + OPENAI.encode() + b"\xe2\x82" + OPENAI.encode() + b"\x80"
    )
