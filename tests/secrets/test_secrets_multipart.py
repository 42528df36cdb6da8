"""Secrets in the parts of multipart bodies."""

from __future__ import annotations

import pytest

from harness.secrets import Secrets

KEY = "sk-proj-Zx81/kq+Lw"
FORM = "multipart/form-data; boundary=b-1"


def part(disposition: str, content: str, content_type: str = "") -> str:
    typed = f"Content-Type: {content_type}\r\n" if content_type else ""
    return f"--b-1\r\nContent-Disposition: form-data; {disposition}\r\n{typed}\r\n{content}\r\n"


def scrubbed(*parts: str, content_type: str = FORM, secrets: Secrets | None = None) -> str:
    body = "".join(parts) + "--b-1--\r\n"
    return (secrets or Secrets({})).body(body.encode(), content_type).decode().removesuffix("--b-1--\r\n")


@pytest.mark.parametrize(
    "disposition",
    [
        'name="api_key"',
        "name=api_key",
        'name = "api_key"; filename="k.txt"',
        'filename="name"; name="api_key"',
        "name*=utf-8''api%5Fkey",
        'NAME="api_key"',
    ],
)
@pytest.mark.parametrize("content", ["abc", "two\r\nlines", "--b-1 is no end"])
def test_a_part_with_a_secret_name_is_replaced(disposition: str, content: str) -> None:
    assert scrubbed(part(disposition, content)) == part(disposition, "<secret:api_key>")


def test_other_parts_are_unchanged() -> None:
    kept = part('name="prompt"', "the password is not here") + part('name="empty"', "")
    assert scrubbed(kept, part('name="password"', "abc"), part('name="token"', "")) == (
        kept + part('name="password"', "<secret:password>") + part('name="token"', "")
    )
    image = (
        b'--b-1\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n\xff\x00\n\r\xc3\r\n--b-1--'
    )
    assert Secrets({}).body(image, FORM) == image


def test_a_part_is_scrubbed_by_its_content_type() -> None:
    assert scrubbed(part('name="meta"', '{"password": 12345678}', "application/json; charset=utf-8")) == (
        part('name="meta"', '{"password": "<secret:password>"}', "application/json; charset=utf-8")
    )
    assert scrubbed(part('name="meta"', "a=1&password=x", "application/x-www-form-urlencoded")) == (
        part('name="meta"', "a=1&password=%3Csecret%3Apassword%3E", "application/x-www-form-urlencoded")
    )


def test_known_values_are_replaced_in_parts_and_their_headers() -> None:
    secrets = Secrets({"OPENAI_API_KEY": KEY})
    text = part(f'name="note"; filename="{KEY}.txt"', f"use {KEY}")
    assert scrubbed(text, secrets=secrets) == text.replace(KEY, "<secret:OPENAI_API_KEY>")


def test_a_secret_found_in_a_part_is_replaced_afterwards() -> None:
    secrets = Secrets({})
    scrubbed(part('name="access_token"', "tok-q7Rt0Lm2xP"), secrets=secrets)
    assert secrets.text("use tok-q7Rt0Lm2xP") == "use <secret:access_token>"


@pytest.mark.parametrize(
    "content_type",
    [
        'multipart/form-data; charset=utf-8; boundary="b-1"',
        "Multipart/Form-Data; Boundary=b-1",
        "multipart/form-data",
        "multipart/mixed; boundary=b-1",
    ],
)
def test_the_boundary_is_found_in_the_header_or_the_body(content_type: str) -> None:
    told = scrubbed(part('name="api_key"', "abc"), content_type=content_type)
    assert told == part('name="api_key"', "<secret:api_key>")


def test_a_truncated_body_and_one_with_lf_line_ends_are_scrubbed() -> None:
    cut = part('name="api_key"', "half of i").removesuffix("\r\n").encode()
    assert Secrets({}).body(cut, FORM).endswith(b"\r\n\r\n<secret:api_key>")
    short = part('name="api_key"', "abc").replace("\r\n", "\n")
    assert scrubbed(short) == short.replace("abc", "<secret:api_key>")


def test_a_body_without_parts_is_scrubbed_as_text() -> None:
    secrets = Secrets({"OPENAI_API_KEY": KEY})
    assert secrets.body(f"no parts, {KEY}".encode(), FORM) == b"no parts, <secret:OPENAI_API_KEY>"
