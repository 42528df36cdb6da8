"""Properties of scrubbing: no planted secret is left, nothing else changes, and it is idempotent."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, quote, quote_plus, urlsplit

from hypothesis import assume, given
from hypothesis import strategies as st

from harness.secrets import Secrets
from tests.planted import found_in, lower_escapes

ASCII = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60)
KEYS = st.from_regex(r"(sk|ghp|AKIA)[-_][A-Za-z0-9_-]{6,60}", fullmatch=True)
ANY = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=30)
SECRETS = (ASCII | KEYS | ANY).filter(
    lambda secret: (
        secret == secret.strip() and not found_in("<secret:ACME_1_KEY> <secret:ACME_2_KEY>", secret)
    )
)
AROUND = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)

DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["api_key", "token", "type"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)
# Names that mark secrets, or exceptions to them, in JSON.
SPECIAL_NAMES = """
password pin token api_keys cookies credentials auth signature name value key type properties default logprob
authorization headers expires_in thinking text const x-api-key access_token
"""
NAMES = st.sampled_from(SPECIAL_NAMES.split())
SPECIAL_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**9) | st.floats(0, 9) | st.text(max_size=9)
    | NAMES | st.sampled_from(["string", "oauth2", "1234", "thinking", "tok-q7Rt0Lm2xP"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(NAMES, inner).map(list), max_size=2)
        | st.dictionaries(NAMES, inner, max_size=4)
    ),
    max_leaves=15,
)  # fmt: skip

ENCODE: dict[str, Callable[[str, str, str], str]] = {
    "as it is": lambda before, secret, after: before + secret + after,
    "JSON": lambda before, secret, after: json.dumps(before + secret + after),
    "JSON in JSON": lambda before, secret, after: json.dumps([json.dumps([before, secret, after])]),
    "JSON in Unicode": lambda before, secret, after: json.dumps({secret: after}, ensure_ascii=False),
    "URL": lambda before, secret, after: quote(before + secret + after),
    "URL, all": lambda before, secret, after: before + quote(secret, safe="") + after,
    "URL, lower": lambda before, secret, after: lower_escapes(quote(before + secret + after)),
    "form": lambda before, secret, after: (
        f"a={quote_plus(before)}&b={quote_plus(secret)}&{quote_plus(after)}"
    ),
    "base64": lambda before, secret, after: b64encode((before + secret + after).encode()).decode(),
    "base64 for URLs": lambda before, secret, after: (
        urlsafe_b64encode((before + secret).encode()).decode().rstrip("=")
    ),
    "hex": lambda before, secret, after: (before + secret + after).encode().hex(),
}
ENCODINGS = st.sampled_from(sorted(ENCODE))


def secrets_with(*secrets: str) -> Secrets:
    return Secrets(
        {f"ACME_{number}_KEY": secret for number, secret in enumerate(secrets, 1)}, named=["ACME_*"]
    )


def is_free_of(secret: str, *around: str) -> bool:
    """Random data may contain a secret, or half a placeholder, beside a planted one."""
    return not any(found_in(text, secret) or "<" in text or "%3c" in text.lower() for text in around)


@given(SECRETS, SECRETS, AROUND, AROUND, ENCODINGS)
def test_no_encoding_of_a_known_value_is_left_in_text(
    secret: str, other: str, before: str, after: str, how: str
) -> None:
    assume(is_free_of(secret, before, after))
    text = ENCODE[how](before, secret, after)
    assert not found_in(secrets_with(secret, other).text(text), secret)


@given(
    SECRETS,
    AROUND,
    AROUND,
    ENCODINGS,
    st.sampled_from(
        [
            "",
            "text/plain",
            "application/json; charset=utf-8",
            "text/event-stream",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=b",
        ]
    ),
    st.binary(max_size=5),
)
def test_no_encoding_of_a_known_value_is_left_in_a_body_of_any_type(
    secret: str, before: str, after: str, how: str, content_type: str, junk: bytes
) -> None:
    assume(is_free_of(secret, before, after))
    body = ENCODE[how](before, secret, after).encode() + junk
    if "json" in content_type or "stream" in content_type:
        assume("\n" not in secret and "\r" not in secret)
    assert not found_in(secrets_with(secret).body(body, content_type), secret)


@given(SECRETS, DATA, ENCODINGS)
def test_no_known_value_is_left_in_keys_or_values_and_types_are_kept(
    secret: str, data: Any, how: str
) -> None:
    planted = {"data": data, "list": [ENCODE[how]("", secret, "")], ENCODE[how]("", secret, ""): 1}
    assume(is_free_of(secret, json.dumps(data), json.dumps(data, ensure_ascii=False)))
    scrubbed = secrets_with(secret).data(planted)
    assert not found_in(json.dumps(scrubbed), secret)
    assert [type(value) for value in scrubbed.values()] == [type(value) for value in planted.values()]


@given(SECRETS, st.sampled_from(["userinfo", "path", "query", "name", "fragment"]))
def test_no_known_value_is_left_in_a_url_which_stays_valid(secret: str, place: str) -> None:
    quoted = quote(secret, safe="")
    url = {
        "userinfo": f"https://user:{quoted}@a.example:8080/x?n=1",
        "path": f"https://a.example:8080/bot{quoted}/x?n=1",
        "query": f"https://a.example:8080/x?q={quoted}&n=1",
        "name": f"https://a.example:8080/x?{quoted}=2&n=1",
        "fragment": f"https://a.example:8080/x?n=1#{quoted}",
    }[place]
    scrubbed = secrets_with(secret).url(url)
    assert not found_in(scrubbed, secret)
    assert urlsplit(scrubbed).hostname == "a.example"
    assert urlsplit(scrubbed).port == 8080
    assert parse_qs(urlsplit(scrubbed).query)["n"] == ["1"]


@given(SECRETS, AROUND, AROUND, st.lists(st.integers(0, 100), max_size=6), st.booleans())
def test_no_known_value_is_left_split_over_the_events_of_a_stream(
    secret: str, before: str, after: str, cuts: list[int], ascii_only: bool
) -> None:
    assume(is_free_of(secret, before, after))
    text = before + secret + after
    places = sorted({0, len(text), *(at % (len(text) + 1) for at in cuts)})
    events = [
        {"choices": [{"index": 0, "delta": {"content": text[start:end]}}]} for start, end in pairwise(places)
    ]
    stream = "".join(f"data: {json.dumps(event, ensure_ascii=ascii_only)}\n\n" for event in events)
    scrubbed = secrets_with(secret).body(stream.encode(), "text/event-stream").decode()
    read = [json.loads(line[6:]) for line in scrubbed.split("\n") if line]
    assert len(read) == len(events)
    said = "".join(event["choices"][0]["delta"]["content"] for event in read)
    assert not found_in(said, secret)
    assert "<secret:ACME_1_KEY>" in said


@given(SECRETS, SECRETS, AROUND, AROUND, ENCODINGS, DATA)
def test_scrubbing_is_idempotent(
    secret: str, other: str, before: str, after: str, how: str, data: Any
) -> None:
    text = ENCODE[how](before, secret, after)
    secrets = secrets_with(secret, other)
    for scrub in (secrets.text, secrets.url, secrets.data):
        once = scrub(text)
        assert scrub(once) == once
    once = secrets.data([data, text])
    assert secrets.data(once) == once
    for content_type in ("application/json", "text/event-stream", "application/x-www-form-urlencoded"):
        for body in (text, json.dumps([text, data]), f"data: {json.dumps([text, data])}\n\n"):
            scrubbed = secrets.body(body.encode(), content_type)
            assert secrets.body(scrubbed, content_type) == scrubbed


@given(SECRETS, DATA, st.sampled_from([None, 2]), st.booleans())
def test_json_stays_json_with_the_same_numbers_and_shape(
    secret: str, data: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps({"planted": f"a {secret} b", "data": data}, indent=indent, ensure_ascii=ascii_only)
    secrets = secrets_with(secret)
    scrubbed = json.loads(secrets.body(text.encode("utf-8", "surrogatepass"), "application/json"))
    assert scrubbed == secrets_with(secret).data(json.loads(text))


@given(SPECIAL_JSON)
def test_json_text_and_parsed_json_are_scrubbed_alike(data: Any) -> None:
    scrubbed = Secrets({}).data(data)
    assert json.loads(Secrets({}).body(json.dumps(data).encode(), "application/json")) == scrubbed
    assert Secrets({}).data(scrubbed) == scrubbed


@given(SECRETS, st.text(), DATA)
def test_values_without_a_secret_are_unchanged(secret: str, text: str, data: Any) -> None:
    written = json.dumps({"n": data, "t": text})
    assume("api_key" not in written and "token" not in written)
    assume(is_free_of(secret, text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"), written))
    secrets = secrets_with(secret)
    assert secrets.text(text) == text
    assert secrets.data({"t": text, "n": data}) == {"t": text, "n": data}
    body = written.encode()
    for content_type in ("application/json", "text/event-stream", "text/plain"):
        assert secrets.body(body, content_type) == body


@given(
    st.dictionaries(st.text(max_size=12), st.text(max_size=30), max_size=4),
    st.text(),
    st.binary(),
    st.text(max_size=30),
)
def test_scrubbing_never_raises(
    environment: dict[str, str], text: str, body: bytes, content_type: str
) -> None:
    secrets = Secrets({f"{name}_TOKEN": value for name, value in environment.items()}, named=["*"])
    secrets.text(text)
    secrets.url(text)
    secrets.data({text: [text, {"api_key": text}]})
    secrets.headers([(text, text), ("authorization", text), ("set-cookie", text)])
    for media_type in (
        content_type,
        "application/json",
        "text/event-stream",
        "application/x-www-form-urlencoded",
        "application/x-ndjson",
        "multipart/mixed",
    ):
        secrets.body(body, media_type)
        secrets.body(b"data: " + body + b"\n\ndata: {}\n\n", media_type)
        secrets.body(
            b"--b\r\nContent-Disposition: form-data; name=pin\r\n\r\n" + body + b"\r\n--b--", media_type
        )
