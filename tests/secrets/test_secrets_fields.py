"""Secrets in JSON by their location, in data and in the text of a body."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.secrets import Secrets


def scrubbed(value: Any) -> Any:
    """Return the value scrubbed as data, as a body, as JSON in a string, and as an event."""
    as_data = Secrets({}).data(value)
    text = json.dumps(value)
    assert json.loads(Secrets({}).body(text.encode(), "application/json")) == as_data
    assert [json.loads(inner) for inner in Secrets({}).data([text])] == [as_data]
    event = Secrets({}).body(f"data: {text}\n\n".encode(), "text/event-stream").decode()
    assert json.loads(event.removeprefix("data: ")) == as_data
    return as_data


# Numbers


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("password", 12345678),
        ("password", 0),
        ("secret", 42),
        ("pin", 4711),
        ("card_pin", 4711),
        ("passcode", 4711),
        ("api_key", 1234567),
        ("apiKey", 12345678901234567890),
        ("access_token", 1234567),
        ("clientSecret", 12345.0),
    ],
)
def test_a_number_under_a_secret_name_is_a_secret(name: Any, number: Any) -> None:
    assert scrubbed({name: number}) == {name: f"<secret:{name}>"}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("max_tokens", 4096),
        ("token", 1234567),
        ("completion_token", 12),
        ("api_keys", 3),
        ("cookies", 12),
        ("pin", 13),
        ("signature", 4),
        ("password", -3.25),
        ("password", 0.25),
        ("auth", 1),
    ],
)
def test_a_number_that_counts_or_measures_is_not_a_secret(name: Any, number: Any) -> None:
    assert scrubbed({name: number}) == {name: number}


@pytest.mark.parametrize("value", [None, True, False, "", [], {}, [None, True, ""]])
def test_empty_values_and_booleans_are_kept(value: Any) -> None:
    assert scrubbed({"password": value}) == {"password": value}


def test_a_number_found_once_is_replaced_everywhere_afterwards() -> None:
    secrets = Secrets({})
    assert secrets.data(["is 12345678", {"password": 12345678}]) == [
        "is <secret:password>",
        {"password": "<secret:password>"},
    ]
    assert secrets.data({"token": 12345678}) == {"token": "<secret:token>"}
    assert secrets.data([12345678]) == ["<secret:password>"]


# Nested values


def test_all_strings_and_numbers_inside_a_secret_field_are_secrets() -> None:
    assert scrubbed(
        {
            "api_keys": ["a", "b"],
            "cookies": {"theme": "abc", "n": 7, "secure": True},
            "credentials": {"user": "me", "deep": [[{"x": "y"}]], "api_key": "k"},
            "passwords": [1234, None],
            "access_tokens": ["abc"],
            "authorization": {"scheme": "x"},
        }
    ) == {
        "api_keys": ["<secret:api_keys>", "<secret:api_keys>"],
        "cookies": {"theme": "<secret:cookies>", "n": "<secret:cookies>", "secure": True},
        "credentials": {
            "user": "<secret:credentials>",
            "deep": [[{"x": "<secret:credentials>"}]],
            "api_key": "<secret:api_key>",
        },
        "passwords": ["<secret:passwords>", None],
        "access_tokens": ["<secret:access_tokens>"],
        "authorization": {"scheme": "<secret:authorization>"},
    }


def test_lifetimes_ports_and_amounts_inside_a_secret_field_are_kept() -> None:
    assert scrubbed({"credentials": {"expires_in": 3600, "port": 80}, "authorization": {"amount": 5}}) == {
        "credentials": {"expires_in": 3600, "port": 80},
        "authorization": {"amount": 5},
    }


@pytest.mark.parametrize(
    "told",
    [
        {"token": {"id": 1234, "text": " Hello", "logprob": -0.1, "special": False}},
        {"token": [" Hello"], "logprob": -0.1},
        {"signature": {"params": ["name"]}},
        {"pin": {"title": "A board"}},
        {"top_logprobs": [{"password": -0.25, "secret": -3}]},
    ],
)
def test_tokens_and_signatures_of_model_output_are_kept(told: Any) -> None:
    assert scrubbed(told) == told


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "description": "The user's password", "minLength": 8},
        {"type": ["string", "null"], "title": "Password"},
        {"type": "STRING", "nullable": True},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        {"$ref": "#/$defs/Login"},
        {"title": "Password"},
        {"type": "object", "properties": {"user": {"type": "string"}}, "required": ["user"]},
    ],
)
def test_the_schema_of_a_secret_field_is_kept(schema: Any) -> None:
    told = {"inputSchema": {"properties": {"password": schema}, "required": ["password", "user"]}}
    assert scrubbed(told) == told


def test_default_and_examples_in_the_schema_of_a_secret_field_are_secrets() -> None:
    told = {"api_key": {"type": "string", "default": "abc", "examples": ["d", "e"], "title": "Key"}}
    assert scrubbed(told) == {
        "api_key": {
            "type": "string",
            "default": "<secret:api_key>",
            "examples": ["<secret:api_key>", "<secret:api_key>"],
            "title": "Key",
        }
    }


def test_an_object_that_only_resembles_a_schema_is_a_secret() -> None:
    told = scrubbed({"credentials": {"type": "string", "value": "abc"}, "secret": {"type": "hmac"}})
    assert told["credentials"]["value"] == "<secret:credentials>"
    assert told["secret"] == {"type": "<secret:secret>"}


def test_random_looking_values_inside_a_secret_field_are_replaced_elsewhere() -> None:
    secrets = Secrets({})
    secrets.data({"cookies": {"id": "tok-q7Rt0Lm2xP", "theme": "chocolate"}, "api_keys": ["zq81-kdjEwp"]})
    assert secrets.text("tok-q7Rt0Lm2xP, chocolate, zq81-kdjEwp") == (
        "<secret:cookies>, chocolate, <secret:api_keys>"
    )


def test_secret_fields_of_truncated_json_are_replaced() -> None:
    body = b'{"login": {"user": "me", "passcode": 4711, "password": "half of i'
    assert Secrets({}).body(body, "application/json") == (
        b'{"login": {"user": "me", "passcode": <secret:passcode>, "password": "<secret:password>'
    )


# Pairs of name and value


def test_values_in_pairs_of_header_and_value_are_secrets() -> None:
    assert scrubbed(
        {"headers": [["Authorization", "Bearer abc"], ["accept", "*/*"], ["set-cookie", ["a=b"]]]}
    ) == {
        "headers": [
            ["Authorization", "<secret:Authorization>"],
            ["accept", "*/*"],
            ["set-cookie", ["<secret:set-cookie>"]],
        ]
    }


def test_a_list_of_two_names_is_not_a_pair_of_header_and_value() -> None:
    told = {"required": ["password", "user"], "rows": [["password", "user", "n"], ["a", "b"]]}
    assert scrubbed(told) == told


@pytest.mark.parametrize(
    ("name", "value"), [("name", "value"), ("key", "value"), ("Name", "Value"), ("header", "values")]
)
def test_values_in_objects_with_a_header_and_its_value_are_secrets(name: Any, value: Any) -> None:
    assert scrubbed([{name: "X-Api-Key", value: "abc"}, {value: "x", name: "accept"}]) == [
        {name: "X-Api-Key", value: "<secret:X-Api-Key>"},
        {value: "x", name: "accept"},
    ]


def test_auth_in_json_is_a_secret_unless_it_names_a_method() -> None:
    assert scrubbed({"auth": "abc"}) == {"auth": "<secret:auth>"}
    assert scrubbed({"auth": ["me", "abc"]}) == {"auth": ["<secret:auth>", "<secret:auth>"]}
    assert scrubbed([{"auth": how} for how in ("oauth2", "none", "Bearer")]) == [
        {"auth": "oauth2"},
        {"auth": "none"},
        {"auth": "Bearer"},
    ]


@pytest.mark.parametrize("secret", [{"pin": "4711"}, {"pins": "4711"}, {"pin": "A board"}])
def test_a_pin_is_a_secret_only_if_it_has_digits(secret: Any) -> None:
    assert (scrubbed(secret) != secret) == (secret == {"pin": "4711"})
