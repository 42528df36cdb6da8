"""Secrets learned from one message are replaced in others, and replays send equal requests."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from harness.secrets import Secrets
from tests.planted import files_with, found_in
from tests.secrets.sample import KEY, OPENAI, SECRETS

FOUND = "tok-q7Rt0Lm2xP"


@pytest.mark.parametrize(
    "find",
    [
        lambda secrets: secrets.data({"access_token": FOUND}),
        lambda secrets: secrets.data({"arguments": json.dumps({"access_token": FOUND})}),
        lambda secrets: secrets.data({"headers": {"access_token": f"Bearer {FOUND}"}}),
        lambda secrets: secrets.header("access_token", FOUND),
        lambda secrets: secrets.header("Access_Token", f"Bearer {FOUND}"),
        lambda secrets: secrets.url(f"https://a.example/?access_token={FOUND}"),
        lambda secrets: secrets.body(f'{{"access_token":"{FOUND}"}}'.encode(), "application/json"),
        lambda secrets: secrets.body(f"access_token={FOUND}".encode(), "application/x-www-form-urlencoded"),
        lambda secrets: secrets.learn("access_token", FOUND),
    ],
)
def test_a_secret_found_once_is_replaced_everywhere_afterwards(find: Any) -> None:
    secrets = Secrets({})
    assert secrets.text(f"use {FOUND}") == f"use {FOUND}"
    find(secrets)
    assert secrets.text(f"use {FOUND}").lower() == "use <secret:access_token>"
    assert not found_in(secrets.text(b64encode(f"me:{FOUND}".encode()).decode()), FOUND)


def test_a_secret_is_also_replaced_earlier_in_the_same_message() -> None:
    assert Secrets({}).data([f"use {FOUND}", {"api_key": FOUND}]) == [
        "use <secret:api_key>",
        {"api_key": "<secret:api_key>"},
    ]
    assert Secrets({}).headers([("X-Note", FOUND), ("X-Api-Key", FOUND)]) == [
        ("X-Note", "<secret:x-api-key>"),
        ("X-Api-Key", "<secret:x-api-key>"),
    ]


@pytest.mark.parametrize(
    ("name", "value", "learned"),
    [
        ("authorization", f"Bearer {FOUND}", FOUND),
        ("authorization", f"Custom {FOUND}", FOUND),
        ("authorization", "Basic " + b64encode(f"me:{FOUND}".encode()).decode(), FOUND),
        ("authorization", FOUND, FOUND),
        ("cookie", f"theme=dark; session={FOUND}", FOUND),
        ("set-cookie", f"session={FOUND}; Path=/; HttpOnly", FOUND),
    ],
)
def test_only_the_secret_part_of_a_header_is_learned(name: Any, value: Any, learned: Any) -> None:
    secrets = Secrets({})
    secrets.header(name, value)
    assert secrets.text(f"({learned})") == f"(<secret:{name}>)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", "abc12"),
        ("password", "two words"),
        ("note", "correct horse battery"),
        ("password", "required"),
        ("password", "********"),
        ("api_key", "sk-abcd...wxyz"),
        ("api_key", "OPENAI_API_KEY"),
        ("client_secret", "client_secret"),
        ("api_key", "${OPENAI_API_KEY}"),
        ("api_key", "{{ keys.openai }}"),
        ("api_key", "<secret:OTHER>"),
        ("token", "https://auth.example/token"),
        ("token", "chocolate"),
        ("key", "chocolate"),
        ("cookie", "theme=chocolate"),
    ],
)
def test_common_words_and_placeholders_are_not_learned(name: Any, value: Any) -> None:
    secrets = Secrets({})
    secrets.learn(name, value)
    assert secrets.text(f"a {value} b") == f"a {value} b"


def test_a_learned_value_of_a_variable_keeps_the_variable_s_name() -> None:
    assert Secrets({"OPENAI_API_KEY": FOUND}).headers(
        [("authorization", f"Bearer {FOUND}"), ("x", FOUND)]
    ) == [
        ("authorization", "<secret:authorization>"),
        ("x", OPENAI),
    ]


def request(key: str, secrets: Secrets) -> tuple[object, ...]:
    return (
        secrets.url(
            f"https://me:{quote(key, safe='')}@a.example/{quote(key)}?api_key={quote(key)}&q={quote(key, safe='')}"
        ),
        secrets.headers([("authorization", f"Bearer {key}"), ("x-note", f"with {key}")]),
        secrets.body(
            json.dumps({"api_key": key, "note": [key, b64encode(key.encode()).decode()]}).encode(),
            "application/json",
        ),
    )


def test_a_scrubbed_request_does_not_depend_on_the_value_of_a_variable() -> None:
    keys = ["sk-1234567890abcd", "other/key+of~é5", "short1"]
    first, *others = [request(key, Secrets({"OPENAI_API_KEY": key})) for key in keys]
    assert others == [first, first]


def test_a_replayed_request_with_a_recorded_token_equals_the_recorded_one() -> None:
    recorded, replayed = Secrets({}), Secrets({})
    login = recorded.data({"access_token": FOUND})
    given = replayed.data(login)["access_token"]
    asked = [
        [
            secrets.header("authorization", f"Bearer {token}"),
            secrets.data({"token": token, "note": f"use {token}"}),
            secrets.url(f"https://a.example/{quote(token)}?token={quote(token)}"),
        ]
        for secrets, token in ((recorded, FOUND), (replayed, given))
    ]
    assert asked[0] == asked[1]


def test_the_repr_contains_no_secret() -> None:
    assert not found_in(repr(SECRETS) + repr(vars(SECRETS)), KEY)


def test_the_search_for_planted_secrets_finds_every_encoding(tmp_path: Path) -> None:
    secret = "p/w+1 é?~xyz"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "raw.txt").write_text(f"a {secret}", encoding="utf-8")
    (tmp_path / "lower.txt").write_text("p%2fw%2b1%20%c3%a9%3f~xyz")
    (tmp_path / "mid.txt").write_bytes(b64encode(f"user:{secret}!".encode()))
    (tmp_path / "clean.txt").write_text("nothing")
    assert files_with(tmp_path, secret) == {
        "a/raw.txt": ["raw", "JSON"],
        "lower.txt": ["URL"],
        "mid.txt": ["base64"],
    }
