"""What counts as a secret, and what stands in its place."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from harness.secrets import Secrets
from tests.planted import files_with, found_in

KEY = "sk-proj-Zx81/kq+Lw==~é"
OPENAI = "<secret:OPENAI_API_KEY>"
SECRETS = Secrets({"OPENAI_API_KEY": KEY})
NOTHING = Secrets({})


def words(text: str) -> list[str]:
    return text.split()


def known(environment: dict[str, str], value: str, named: tuple[str, ...] = ()) -> bool:
    return Secrets(environment, named).text(f"a {value} b") != f"a {value} b"


# What is a secret in the environment


@pytest.mark.parametrize(
    "name",
    words(
        """
        OPENAI_API_KEY OPENAI_APIKEY GITHUB_TOKEN HF_TOKEN_2 DB_PASSWORD db_passwd SMTP_PASS DB_PWD APP_SECRET
        AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID
        VAULT_SECRET_ID RSA_PRIVATE_KEY_PROD SERVICE_CREDENTIALS STRIPE_KEY NPM_AUTH
        npm_config__authToken SLACK_WEBHOOK SENTRY_DSN SESSION_COOKIE SSH_PASSPHRASE
        """
    ),
)
def test_variables_with_a_secret_name_are_known(name: Any) -> None:
    assert Secrets({name: "q7Rt0-Lm2xP"}).text("is q7Rt0-Lm2xP here") == f"is <secret:{name}> here"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSH_AUTH_SOCK", "/run/user/1000/agent.sock"),
        ("TOKENIZERS_PARALLELISM", "enabled-1"),
        ("XAUTHORITY", "/home/user/.Xauthority"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/srv/keys/account.json"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "var-run-token-1"),
        ("OAUTH_TOKEN_URL", "https://auth.example/token1"),
        ("MAX_TOKENS", "64000000"),
        ("TOKEN_LIMIT", "100000000"),
        ("AUTH_MODE", "oauth2-bearer"),
        ("SORT_KEY", "created_at"),
        ("KEYBOARD", "us-intl-1"),
        ("MONKEY", "banana-42"),
        ("API_KEY", "false"),
        ("API_KEY", "1"),
        ("API_KEY", "abc12"),
        ("API_KEY", "placeholder"),
        ("API_KEY", "xxxxxxxxxx"),
        ("API_TOKEN", "123456"),
        ("HOME", "q7Rt0-Lm2xP"),
    ],
)
def test_others_are_not(name: Any, value: Any) -> None:
    assert not known({name: value}, value)


def test_a_path_that_exists_is_not_a_secret_and_one_that_does_not_may_be(tmp_path: Path) -> None:
    assert not known({"APP_SECRET": str(tmp_path)}, str(tmp_path))
    assert known({"APP_SECRET": "/bPxRfiCYEXAMPLEKEY"}, "/bPxRfiCYEXAMPLEKEY")


def test_named_variables_are_known_whatever_they_hold() -> None:
    assert known({"ACME_SITE": "abc"}, "abc", named=("ACME_*",))
    assert known({"ACME_SITE": "true"}, "true", named=("X", "ACME_SITE"))
    assert not known({"ACME_SITE": "ab"}, "ab", named=("ACME_*",))
    assert not known({"OTHER": "abcdef"}, "abcdef", named=("ACME_*",))


def test_white_space_around_a_value_is_not_a_part_of_it() -> None:
    assert Secrets({"APP_TOKEN": " q7Rt0-Lm2xP\n"}).text("q7Rt0-Lm2xP") == "<secret:APP_TOKEN>"


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("DATABASE_URL", "postgres://app:S3cr%21etPw@db.example/app", "S3cr!etPw"),
        ("HTTPS_PROXY", "http://me:with/sl@sh1@proxy.example:3128", "with/sl@sh1"),
        ("SENTRY_DSN", "https://9f8e7d6c5b4a39281706@o1.ingest.example/42", "9f8e7d6c5b4a39281706"),
        ("SEARCH_URL", "https://search.example/?api_key=Zq81kdjEwp&n=5", "Zq81kdjEwp"),
        ("SLACK_WEBHOOK_URL", "https://hooks.example/services/T00/B00/Xq81kdjE", "services/T00/B00/Xq81kdjE"),
        ("STORE_CONNECTION_STRING", "Endpoint=sb://a.example/;SharedAccessKey=Zq81kdjEwp=", "Zq81kdjEwp="),
        ("SERVICE_CREDENTIALS", '{"type": "x", "private_key": "-----Zq81\\nkdjEwp"}', "-----Zq81\nkdjEwp"),
        ("OPENAI_API_KEYS", "sk-Zq81kdjEwp,sk-Lm20sowQrt", "sk-Lm20sowQrt"),
        ("BASIC_AUTH", "user:Zq81kdjEwp", "Zq81kdjEwp"),
        ("APP_AUTHORIZATION", "Bearer Zq81kdjEwp", "Zq81kdjEwp"),
    ],
)
def test_the_secret_part_of_a_value_is_known_too(name: Any, value: Any, part: Any) -> None:
    assert Secrets({name: value}).text(f"({part})") == f"(<secret:{name}>)"


def test_the_public_part_of_a_url_is_not() -> None:
    secrets = Secrets({"DATABASE_URL": "postgres://application:S3cretPw12@db.example/application"})
    assert secrets.text("application at db.example") == "application at db.example"


def test_the_same_value_under_two_names_goes_by_the_first() -> None:
    one = {"B_TOKEN": "q7Rt0-Lm2xP", "A_TOKEN": "q7Rt0-Lm2xP", "A_URL": "https://u:q7Rt0-Lm2xP@a.example"}
    assert Secrets(one).text("q7Rt0-Lm2xP") == "<secret:A_TOKEN>"
    assert Secrets(dict(reversed(one.items()))).text("q7Rt0-Lm2xP") == "<secret:A_TOKEN>"


# Text


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
def test_a_value_is_replaced_in_all_its_forms(form: Any) -> None:
    assert SECRETS.text(f"<{form}>") == f"<{OPENAI}>"


@pytest.mark.parametrize("user", ["u", "us", "use"])
def test_a_value_is_replaced_inside_longer_base64_whatever_its_length(user: Any) -> None:
    texts = [
        Secrets({"APP_TOKEN": value}).text(b64encode(f"{user}:{value}".encode()).decode())
        for value in ("Zq81kdjEwp", "Zq81kdjEwpX", "Zq81kdjEwpXY")
    ]
    assert "<secret:APP_TOKEN>" in texts[0]
    assert texts[0] == texts[1] == texts[2]


def test_the_longest_value_wins_and_overlapping_ones_leave_nothing() -> None:
    secrets = Secrets({"A_TOKEN": "abcdef12", "B_TOKEN": "abcdef123456", "C_TOKEN": "3456wxyz"})
    assert secrets.text("abcdef12, abcdef123456") == "<secret:A_TOKEN>, <secret:B_TOKEN>"
    assert secrets.text("[abcdef123456wxyz]") == "[<secret:B_TOKEN>]"


def test_placeholders_are_left_alone_but_hide_nothing() -> None:
    secrets = Secrets({"A_PASSWORD": "hunter-22"}, named=["A_*"])
    assert secrets.text("<secret:A_PASSWORD>") == "<secret:A_PASSWORD>"
    assert secrets.text("<secret:hunter-22>") == "<secret:<secret:A_PASSWORD>>"
    keyed = Secrets({"A_TOKEN": "api_key"}, named=["A_TOKEN"])
    assert keyed.text("<secret:api_key> api_key") == "<secret:api_key> <secret:A_TOKEN>"


@pytest.mark.parametrize("run", ["\\", "%", "%25", "<secret:", '"', "\\u00", '\\"', "{", "A"])
def test_a_long_run_of_escapes_is_no_trouble(run: Any) -> None:
    secrets = Secrets({"A_PASSWORD": '!"/\\é %§', "B_TOKEN": "q7/Rt"}, named=["*"])
    text = run * 50_000
    for scrubbed in (secrets.text(text), secrets.data("{" + text)[1:], secrets.url(text)):
        assert scrubbed == text


# Data


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
def test_secret_fields_are_replaced_whatever_they_hold(name: Any) -> None:
    assert NOTHING.data({name: "any"}) == {name: f"<secret:{name}>"}
    assert NOTHING.data({name: "<secret:OTHER>"}) == {name: f"<secret:{name}>"}


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
def test_fields_that_only_sound_like_it_are_not(name: Any) -> None:
    assert NOTHING.data({name: "any"}) == {name: "any"}


def test_the_tokens_and_the_signed_thoughts_of_a_model_are_no_secrets() -> None:
    said = [
        {"token": "Hello", "logprob": -0.1, "bytes": None},
        {"type": "thinking", "thinking": "hm", "signature": "EqQBCkgIARABGAIiQ"},
        {"type": "signature_delta", "signature": "EqQBCkgIARABGAIiQ"},
        {"signature": "def f(x)"},
    ]
    assert Secrets({}).data(said) == said
    assert json.loads(Secrets({}).body(json.dumps(said).encode(), "application/json")) == said


def test_keys_strings_and_numbers_are_replaced_by_value() -> None:
    secrets = Secrets({"PIN": "12345678", "API_TOKEN": "q7Rt0-Lm2xP"}, named=["PIN"])
    assert secrets.data({"q7Rt0-Lm2xP": ["a q7Rt0-Lm2xP", 12345678, 1234567, (1.5,)]}) == {
        "<secret:API_TOKEN>": ["a <secret:API_TOKEN>", "<secret:PIN>", 1234567, [1.5]]
    }


def test_json_in_a_string_is_looked_into_and_keeps_its_form() -> None:
    arguments = (
        '{ "user":"é\\u00e9", "password" : "hunter22",\n "n": 1.0e3, "more": "{\\"api_key\\":\\"x\\"}" }'
    )
    (call,) = NOTHING.data([{"arguments": arguments}])
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


def test_a_url_in_a_string_loses_its_login_but_not_its_words() -> None:
    assert NOTHING.data(["https://me:pw@a.example/?key=chocolate&access_token=abc"]) == [
        "https://%3Csecret%3Auserinfo%3E@a.example/?key=chocolate&access_token=%3Csecret%3Aaccess_token%3E"
    ]


# Headers


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
def test_other_headers_are_text(name: Any) -> None:
    assert SECRETS.header(name, f"any {KEY}") == f"any {OPENAI}"


def test_a_header_with_a_url_is_a_url() -> None:
    assert (
        SECRETS.header("Location", "https://a.example/?sig=abc")
        == "https://a.example/?sig=%3Csecret%3Asig%3E"
    )


# URLs


@pytest.mark.parametrize(
    "name",
    words(
        """
        key api_key apikey access_token token sig signature X-Amz-Signature X-Amz-Credential X-Goog-Signature
        AWSAccessKeyId password secret auth client_secret
        """
    ),
)
def test_secret_parameters_are_replaced_and_the_url_can_be_split(name: Any) -> None:
    url = Secrets({}).url(f"https://a.example:8080/x?n=1&{name}=any%20one&page_token=2#top")
    assert urlsplit(url)[:3] == ("https", "a.example:8080", "/x")
    assert parse_qs(urlsplit(url).query) == {"n": ["1"], name: [f"<secret:{name}>"], "page_token": ["2"]}
    assert urlsplit(url).fragment == "top"


def test_a_login_is_replaced_and_a_user_alone_is_not() -> None:
    url = Secrets({}).url("https://me:pw@a.example/x")
    assert url == "https://%3Csecret%3Auserinfo%3E@a.example/x"
    assert urlsplit(url).hostname == "a.example"
    assert Secrets({}).url("ssh://git@a.example/x") == "ssh://git@a.example/x"
    assert Secrets({}).url("https://ghp12345678@a.example") == "https://%3Csecret%3Auserinfo%3E@a.example"


def test_a_known_value_in_a_path_leaves_a_url() -> None:
    secrets = Secrets({"HOOK_WEBHOOK_URL": "https://hooks.example/services/T00/Xq81kdjE"})
    assert secrets.url("https://hooks.example/services/T00/Xq81kdjE") == (
        "https://hooks.example/%3Csecret%3AHOOK_WEBHOOK_URL%3E"
    )


def test_urls_in_urls_are_looked_into_to_any_depth_that_people_write() -> None:
    inner = "https://a.example/?access_token=abc"
    assert "abc" not in NOTHING.url(f"https://a.example/?u=https://b.example/?u={quote(inner, safe='')}")
    deep = "https://a.example/?u=" * 5_000
    assert (NOTHING.url(deep), NOTHING.data([deep])) == (deep, [deep])


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
def test_what_is_hardly_a_url_stays_as_it_is(url: Any) -> None:
    assert SECRETS.url(url) == url


def test_placeholders_are_the_same_however_a_client_encodes_them() -> None:
    written = ["<secret:A>", "%3Csecret:A%3E", "%3csecret%3aA%3e"]
    assert {NOTHING.url(f"https://a.example/{text}") for text in written} == {
        "https://a.example/%3Csecret%3AA%3E"
    }
    form = "application/x-www-form-urlencoded"
    assert {NOTHING.body(f"a={text}".encode(), form) for text in written} == {b"a=%3Csecret%3AA%3E"}


# Bodies


@pytest.mark.parametrize(
    "written", ['{"b":"%s","a":1.0}', '{\n  "b": "%s",\r\n\t"a": 1e5 , "é": "\\u00e9\\/"}', '["%s"]', '"%s"']
)
def test_a_json_body_keeps_its_form(written: Any) -> None:
    body = (written % f"x {KEY} y").encode()
    assert SECRETS.body(body, "application/json") == (written % f"x {OPENAI} y").encode()
    assert NOTHING.body(body, "application/json") == body


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/vnd.api+json; charset=utf-8", "", "text/plain"]
)
def test_fields_of_json_are_replaced_even_when_it_is_cut_off(content_type: Any) -> None:
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


def test_a_form_has_its_fields_replaced() -> None:
    form = f"grant_type=password&username=me&password=x%20y&note={quote(KEY, safe='')}&empty=&password="
    assert SECRETS.body(form.encode(), "application/x-www-form-urlencoded; charset=utf-8") == (
        b"grant_type=password&username=me&password=%3Csecret%3Apassword%3E"
        b"&note=%3Csecret%3AOPENAI_API_KEY%3E&empty=&password="
    )


def test_json_in_a_form_is_looked_into() -> None:
    body = Secrets({}).body(b"payload=%7B%22token%22%3A%22abc%22%7D", "application/x-www-form-urlencoded")
    assert parse_qs(body.decode()) == {"payload": ['{"token":"<secret:token>"}']}


def test_bytes_that_are_no_text_are_searched_and_otherwise_kept() -> None:
    body = b"\xff\x00\xc3" + KEY.encode() + b"\xe2\x82" + b64encode(KEY.encode()) + b"\x80"
    assert (
        SECRETS.body(body, "image/png")
        == b"\xff\x00\xc3" + OPENAI.encode() + b"\xe2\x82" + OPENAI.encode() + b"\x80"
    )


# Streams


def sse(*events: object, end: str = "\n") -> str:
    return "".join(f"data: {json.dumps(event)}{end}{end}" for event in events)


def streamed(*events: object, secrets: Secrets = SECRETS) -> list[Any]:
    body = secrets.body(sse(*events).encode(), "text/event-stream").decode()
    return [json.loads(line.removeprefix("data: ")) for line in body.split("\n") if line]


def chat(text: str, index: int = 0) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": index, "delta": {"content": text}}]}


def arguments(text: str, index: int = 0) -> dict[str, Any]:
    return {
        "choices": [
            {"index": 0, "delta": {"tool_calls": [{"index": index, "function": {"arguments": text}}]}}
        ]
    }


def block(text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def partial(text: str, index: int = 0) -> dict[str, Any]:
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": "input_json_delta", "partial_json": text},
    }


def response(text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": text}


@pytest.mark.parametrize("event", [chat, arguments, block, partial, response])
def test_a_secret_over_several_events_goes_to_the_first(event: Any) -> None:
    texts = ["The key", " is " + KEY[:3], KEY[3:9], KEY[9:] + ", ", "yes"]
    assert streamed(*map(event, texts)) == [*map(event, ["The key", f" is {OPENAI}", "", ", ", "yes"])]


@pytest.mark.parametrize("event", [chat, arguments, block, partial, response])
def test_texts_that_come_side_by_side_are_kept_apart(event: Any) -> None:
    one, two, rest = event(KEY[:9], 0), event(KEY[:5], 1), event(KEY[9:], 0)
    assert streamed(one, two, rest, event(KEY[5:], 1)) == [
        event(OPENAI, 0),
        event(OPENAI, 1),
        event("", 0),
        event("", 1),
    ]


@pytest.mark.parametrize("event", [arguments, partial])
def test_a_secret_that_ends_in_a_quote_leaves_json(event: Any) -> None:
    secrets = Secrets({"APP_TOKEN": 'Zq81kdjEwp"'})
    assert streamed(event("Zq81kdjEwp"), event('" yes'), secrets=secrets) == [
        event("<secret:APP_TOKEN>"),
        event(" yes"),
    ]


@pytest.mark.parametrize("event", [arguments, partial])
def test_fields_of_arguments_that_come_in_parts_are_replaced(event: Any) -> None:
    parts = ['{"us', 'er": "me", "pass', 'word": "hun', "ter", '22", "n"', ": 1}"]
    scrubbed = ['{"us', 'er": "me", "pass', 'word": "<secret:password>', "", '", "n"', ": 1}"]
    assert streamed(*map(event, parts), secrets=Secrets({})) == [*map(event, scrubbed)]


def test_a_text_that_comes_token_by_token_is_no_secret() -> None:
    tokens = [{"token": "Hel"}, {"token": "lo "}, {"token": "password1"}]
    assert streamed(*tokens, secrets=Secrets({})) == tokens
    assert streamed({"token": "Hello"}, secrets=Secrets({})) == [{"token": "<secret:token>"}]


def test_the_rest_of_a_stream_stays_byte_for_byte() -> None:
    head, tail = KEY[:6], json.dumps(KEY[6:])[1:-1]
    stream = (
        "\ufeff: hello\r\n\r\nevent: x\r\nid: 1\r\nretry:5\r\n"
        'data:  {"a" :\r\ndata: "%s" , "b":1.0}\r\n\r\n'
        'data:{"a":"%s\\u00e9"}\n\n\n'
        "data: {bad json}\r\rdata\rdata: [DONE]\n\n"
        'nonsense\ndata: {"half": "of an ev'
    )
    body = (stream % (head, tail)).encode()
    assert NOTHING.body(body, "text/event-stream; charset=utf-8") == body
    assert SECRETS.body(body, "text/event-stream; charset=utf-8").decode() == stream % (OPENAI, "")


def test_events_that_are_no_json_are_one_text() -> None:
    body = f"data: a {KEY[:7]}\n\ndata: {KEY[7:]} b\n\n: {KEY}\nid: {KEY}\n\n"
    assert SECRETS.body(body.encode(), "text/event-stream").decode() == (
        f"data: a {OPENAI}\n\ndata:  b\n\n: {OPENAI}\nid: {OPENAI}\n\n"
    )


def test_lines_of_json_are_a_stream_too() -> None:
    lines = "".join(json.dumps({"message": {"content": text}}) + "\n" for text in (KEY[:7], KEY[7:] + "!"))
    assert SECRETS.body(lines.encode(), "application/x-ndjson").decode() == (
        f'{{"message": {{"content": "{OPENAI}"}}}}\n{{"message": {{"content": "!"}}}}\n'
    )


# Learning


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
def test_what_was_found_once_is_replaced_everywhere_afterwards(find: Any) -> None:
    secrets = Secrets({})
    assert secrets.text(f"use {FOUND}") == f"use {FOUND}"
    find(secrets)
    assert secrets.text(f"use {FOUND}").lower() == "use <secret:access_token>"
    assert not found_in(secrets.text(b64encode(f"me:{FOUND}".encode()).decode()), FOUND)


def test_and_before_it_in_the_same_piece() -> None:
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
def test_what_is_learned_of_a_header_is_the_secret_alone(name: Any, value: Any, learned: Any) -> None:
    secrets = Secrets({})
    secrets.header(name, value)
    assert secrets.text(f"({learned})") == f"(<secret:{name}>)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", "short1"),
        ("password", "correct horse battery"),
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
def test_words_that_others_say_too_are_not_learned(name: Any, value: Any) -> None:
    secrets = Secrets({})
    secrets.learn(name, value)
    assert secrets.text(f"a {value} b") == f"a {value} b"


def test_a_variable_keeps_its_name_when_its_value_is_found() -> None:
    assert Secrets({"OPENAI_API_KEY": FOUND}).headers(
        [("authorization", f"Bearer {FOUND}"), ("x", FOUND)]
    ) == [
        ("authorization", "<secret:authorization>"),
        ("x", OPENAI),
    ]


# Replay


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


def test_a_request_is_the_same_with_another_value_of_the_variable() -> None:
    keys = ["sk-1234567890abcd", "other/key+of~é5", "short1"]
    first, *others = [request(key, Secrets({"OPENAI_API_KEY": key})) for key in keys]
    assert others == [first, first]


def test_a_request_is_the_same_when_it_carries_what_a_recorded_response_gave() -> None:
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


def test_no_secret_shows_in_the_repr() -> None:
    assert not found_in(repr(SECRETS) + repr(vars(SECRETS)), KEY)


# The helper of other tests


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
