"""Known values in texts and JSON data, in all encodings."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import pytest

from harness.secrets import Secrets
from tests.secrets.sample import KEY, NO_SECRETS, OPENAI, SECRETS, words


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        quote(KEY),
        quote(KEY, safe="").lower().replace("sk-proj-zx81", "sk-proj-Zx81").replace("lw", "Lw"),
        quote(quote(KEY, safe=""), safe=""),
        json.dumps(KEY)[1:-1],
        json.dumps(json.dumps(KEY))[3:-3],
        KEY.replace("/", "\\/"),
        KEY.encode().hex(),
        KEY.encode().hex().upper(),
        b64encode(KEY.encode()).decode(),
        b64encode(KEY.encode()).decode().rstrip("="),
    ],
)
def test_a_value_is_replaced_in_all_its_encodings(form: Any) -> None:
    assert SECRETS.text(f"<{form}>") == f"<{OPENAI}>"


@pytest.mark.parametrize("user", ["u", "us", "use"])
def test_a_value_inside_longer_base64_is_replaced_whatever_its_length(user: Any) -> None:
    texts = [
        Secrets({"APP_TOKEN": value}).text(b64encode(f"{user}:{value}".encode()).decode())
        for value in ("Zq81kdjEwp", "Zq81kdjEwpX", "Zq81kdjEwpXY")
    ]
    assert "<secret:APP_TOKEN>" in texts[0]
    assert texts[0] == texts[1] == texts[2]


def test_the_longest_value_wins_and_overlapping_values_are_replaced_whole() -> None:
    secrets = Secrets({"A_TOKEN": "abcdef12", "B_TOKEN": "abcdef123456", "C_TOKEN": "3456wxyz"})
    assert secrets.text("abcdef12, abcdef123456") == "<secret:A_TOKEN>, <secret:B_TOKEN>"
    assert secrets.text("[abcdef123456wxyz]") == "[<secret:B_TOKEN>]"


def test_placeholders_are_kept_unless_they_contain_a_secret() -> None:
    secrets = Secrets({"A_PASSWORD": "hunter-22"}, named=["A_*"])
    assert secrets.text("<secret:A_PASSWORD>") == "<secret:A_PASSWORD>"
    assert secrets.text("<secret:hunter-22>") == "<secret:<secret:A_PASSWORD>>"
    keyed = Secrets({"A_TOKEN": "api_key"}, named=["A_TOKEN"])
    assert keyed.text("<secret:api_key> api_key") == "<secret:api_key> <secret:A_TOKEN>"


@pytest.mark.parametrize("run", ["\\", "%", "%25", "<secret:", '"', "\\u00", '\\"', "{", "A"])
def test_long_runs_of_escapes_are_unchanged(run: Any) -> None:
    secrets = Secrets({"A_PASSWORD": '!"/\\é %§', "B_TOKEN": "q7/Rt"}, named=["*"])
    text = run * 50_000
    for scrubbed in (secrets.text(text), secrets.data("{" + text)[1:], secrets.url(text)):
        assert scrubbed == text


@pytest.mark.parametrize(
    "name",
    words(
        """
        api_key apikey apiKey x-api-key OPENAI_API_KEY access_token refresh_token id_token token password passwd
        secret client_secret clientSecret private_key authorization Authorization credentials session_token
        cookie signature aws_access_key_id X-Amz-Security-Token
        """
    ),
)
def test_secret_fields_are_replaced_whatever_their_value(name: Any) -> None:
    assert NO_SECRETS.data({name: "any"}) == {name: f"<secret:{name}>"}
    assert NO_SECRETS.data({name: "<secret:OTHER>"}) == {name: f"<secret:{name}>"}


@pytest.mark.parametrize(
    "name",
    words(
        """
        max_tokens token_count prompt_tokens tokens next_page_token pageToken continuation_token progressToken
        tokenizer
        eos_token key keys public_key author secretary token_type private_key_id api_key_env
        """
    ),
)
def test_fields_with_similar_names_are_not_replaced(name: Any) -> None:
    assert NO_SECRETS.data({name: "any"}) == {name: "any"}


def test_tokens_and_signed_thinking_of_a_model_are_kept() -> None:
    said = [
        {"token": "Hello", "logprob": -0.1, "bytes": None},
        {"type": "thinking", "thinking": "hm", "signature": "EqQBCkgIARABGAIiQ"},
        {"type": "signature_delta", "signature": "EqQBCkgIARABGAIiQ"},
        {"signature": "def f(x)"},
    ]
    assert Secrets({}).data(said) == said
    assert json.loads(Secrets({}).body(json.dumps(said).encode(), "application/json")) == said


@pytest.mark.parametrize("kind", [[], {}, None, 1])
def test_a_signature_beside_a_type_of_any_kind_is_a_secret(kind: Any) -> None:
    assert Secrets({}).data({"type": kind, "signature": "EqQBCkgI"}) == {
        "type": kind,
        "signature": "<secret:signature>",
    }


def test_known_values_are_replaced_in_keys_strings_and_numbers() -> None:
    secrets = Secrets({"PIN": "12345678", "API_TOKEN": "q7Rt0-Lm2xP"}, named=["PIN"])
    assert secrets.data({"q7Rt0-Lm2xP": ["a q7Rt0-Lm2xP", 12345678, 1234567, (1.5,)]}) == {
        "<secret:API_TOKEN>": ["a <secret:API_TOKEN>", "<secret:PIN>", 1234567, [1.5]]
    }


def test_json_in_a_string_is_scrubbed_and_keeps_its_formatting() -> None:
    arguments = (
        '{ "user":"é\\u00e9", "password" : "hunter22",\n "n": 1.0e3, "more": "{\\"api_key\\":\\"x\\"}" }'
    )
    (call,) = NO_SECRETS.data([{"arguments": arguments}])
    assert call["arguments"] == arguments.replace("hunter22", "<secret:password>").replace(
        '"x', '"<secret:api_key>'
    ).replace('\\"x\\"', '\\"<secret:api_key>\\"')


def test_data_of_any_depth_is_scrubbed() -> None:
    deep: Any = "q7Rt0-Lm2xP"
    for _ in range(100_000):
        deep = [deep]
    scrubbed = Secrets({"API_TOKEN": "q7Rt0-Lm2xP"}).data(deep)
    while isinstance(scrubbed, list):
        (scrubbed,) = scrubbed
    assert scrubbed == "<secret:API_TOKEN>"


def test_credentials_of_a_url_in_a_string_are_replaced_and_other_parts_kept() -> None:
    assert NO_SECRETS.data(["https://me:pw@a.example/?key=chocolate&access_token=abc"]) == [
        "https://%3Csecret%3Auserinfo%3E@a.example/?key=chocolate&access_token=%3Csecret%3Aaccess_token%3E"
    ]
