"""The files of a recording: written for people and for vcrpy, and read back."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
import vcr
import yaml

from harness.errors import CassetteBroken
from harness.interception.messages import Request, Response
from harness.interception.patches import kept_request_headers, kept_response_headers
from harness.recording.folder import CassetteFolder
from harness.recording.interactions import Exchange, Interaction, Recording
from tests.recording.cassette.sample import (
    ABOUT,
    CHAT,
    EXCHANGE,
    FAILED,
    PROMPT,
    RECORDING,
    interaction,
    loaded,
    of_vcr,
    saved,
    write,
)


def test_http_yaml_is_made_to_be_reviewed(tmp_path: Path) -> None:
    assert saved(tmp_path, Recording((interaction("one"),)))["http.yaml"] == (
        """\
interactions:
- request:
    method: POST
    uri: https://api.openai.com/v1/chat/completions
    body: |-
      {
        "model": "gpt",
        "messages": [
          {
            "role": "user",
            "content": "Wie heiß? 😀\\nSag"
          }
        ],
        "n": 1,
        "user": "one"
      }
    headers:
      content-type:
      - application/json
  response:
    status:
      code: 200
      message: OK
    headers:
      content-type:
      - application/json
    body:
      string: |-
        {"said": "one"}
version: 1
"""
    )


@pytest.mark.parametrize("kind", ["http", "mcp"])
def test_a_changed_word_of_a_long_prompt_is_one_changed_line(tmp_path: Path, kind: str) -> None:
    def lines(word: str) -> list[str]:
        prompt = "\n".join(
            f"{number}. You are the {word if number == 7 else 'old'} clerk. " * 9 for number in range(9)
        )
        body = json.dumps({"messages": [{"role": "system", "content": prompt}]}).encode()
        asked = Interaction(Request("POST", CHAT, {}, body), Response(200))
        said = Exchange(
            {"jsonrpc": "2.0", "method": "note", "params": {"text": prompt.replace(" \n", "\n").strip()}}
        )
        one = Recording((asked,)) if kind == "http" else Recording((), {"w": (said,)})
        return str(saved(tmp_path, one)[f"{kind}.yaml"]).splitlines()

    before, after = lines("kind"), lines("stern")
    assert len(before) == len(after)
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_mcp_yaml_and_meta_yaml(tmp_path: Path) -> None:
    written = saved(tmp_path, RECORDING)
    assert yaml.safe_load(written["mcp.yaml"]) == {
        "servers": {"weather": [{"sent": EXCHANGE.sent, "received": list(EXCHANGE.received)}]},
        "version": 1,
    }
    assert yaml.safe_load(written["meta.yaml"]) == {
        "format": "harness-cassette/1",
        "scenario": ABOUT.scenario,
        "recorded": ABOUT.recorded,
        "manifests": ABOUT.manifests,
        "versions": ABOUT.versions,
        "environment": ABOUT.environment,
        "http": [
            {"turn": 1, "duration_s": 0.5, "chunks_s": [0.25, 0.5]},
            {
                "turn": 2,
                "duration_s": 1.5,
                "failure": "ConnectError: refused",
                "request": {"method": "GET", "uri": "http://a.example/x", "body": ""},
            },
            {"turn": 2, "duration_s": 0.5},
        ],
        "mcp": {"weather": [{"turn": 1, "duration_s": 0.1}]},
        "human": [{"turn": 1, "node": "ask", "asked": {"question": "Really?"}, "reply": {"yes": True}}],
    }
    assert "  chunks_s: [0.25, 0.5]\n" in written["meta.yaml"]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"data: one\n\ndata: two\n\n", ["|+", "data: one", "", "data: two", ""]),
        (b"data: one\r\n\r\n two \n", ['"data: one\\r\\n\\r\\n two \\n"']),
        (b"\xff\x00", ["!!binary |", "/wA="]),
        (b" x\n\ty", ["|2-", " x", "\ty"]),
        (b"", ['""']),
    ],
)
def test_bodies_are_kept_as_they_came(tmp_path: Path, body: Any, lines: Any) -> None:
    one = Interaction(Request("GET", CHAT), Response(200, "", (), body))
    text = saved(tmp_path, Recording((one,)))["http.yaml"]
    first, *rest = lines
    indented = "".join(f"        {line}\n" if line else "\n" for line in rest)
    assert f"      string: {first}\n{indented}version: 1\n" in text
    response = loaded(tmp_path).http[0].response
    assert response is not None
    assert response.body == body


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b"[" * 2000 + b"]" * 2000,
        b'{"a": ',
        b"a=1&b=2",
        b"[" + b"9" * 5000 + b"]",
    ],
)
def test_a_request_body_that_does_not_survive_json_is_saved_unchanged(tmp_path: Path, body: Any) -> None:
    saved(tmp_path, Recording((Interaction(Request("POST", CHAT, {}, body), Response(200)),)))
    assert loaded(tmp_path).http[0].request.body == body


def test_a_lone_surrogate_in_json_is_saved_as_its_escape(tmp_path: Path) -> None:
    body = b'{"a": "\\ud83d \\u2028 \\u0085"}'
    text = saved(tmp_path, Recording((Interaction(Request("POST", CHAT, {}, body), Response(200)),)))[
        "http.yaml"
    ]
    assert '"a": "\\ud83d \\u2028 \\u0085"\n' in text


def test_half_a_surrogate_pair_in_mcp_which_no_file_can_have_is_replaced(tmp_path: Path) -> None:
    saved(tmp_path, Recording((), {"w": (Exchange({"method": "a\ud83d\nb"}),)}))
    assert loaded(tmp_path).mcp["w"][0].sent == {"method": "a\ufffd\nb"}


def test_headers_of_the_transport_are_not_kept() -> None:
    request = {
        "User-Agent": "x",
        "Host": "a",
        "X-Stainless-Lang": "py",
        "Accept": "b",
        "Content-Length": "1",
        "traceparent": "0",
    }
    assert kept_request_headers(request) == {"accept": "b"}
    response = [
        ("Set-Cookie", "b=1"),
        ("Date", "x"),
        ("CF-Ray", "y"),
        ("content-type", "text/plain"),
        ("set-cookie", "a=2"),
        ("Content-Encoding", "gzip"),
    ]
    assert kept_response_headers(response) == (
        ("content-type", "text/plain"),
        ("set-cookie", "b=1"),
        ("set-cookie", "a=2"),
    )


@pytest.mark.parametrize("client", ["httpx", "httpx2"])
def test_http_yaml_is_a_cassette_of_vcrpy(tmp_path: Path, client: Any) -> None:
    module = pytest.importorskip(client)
    binary = Interaction(
        Request("GET", "https://a.example/x?b=1"),
        Response(404, "Not Found", (("x-a", "1"), ("x-a", "2")), b"\xff\x00"),
    )
    saved(tmp_path, Recording((interaction("one"), FAILED, binary)))
    path = str(tmp_path / "a/http.yaml")
    with (
        vcr.use_cassette(path, record_mode="none", match_on=["method", "uri", "body"]) as tape,
        module.Client() as http,
    ):
        said = http.post(CHAT, json=PROMPT | {"user": "one"})
        assert (said.status_code, said.json(), said.headers["content-type"]) == (
            200,
            {"said": "one"},
            "application/json",
        )
        gone = http.get("https://a.example/x?b=1")
        assert (gone.status_code, gone.reason_phrase, gone.content) == (404, "Not Found", b"\xff\x00")
        assert gone.headers.get_list("x-a") == ["1", "2"]
        assert tape.all_played


@pytest.mark.parametrize(
    ("body", "content"),
    [
        ("body: {string: 'é'}", "é".encode()),
        ("body: {string: !!binary /wA=}", b"\xff\x00"),
        ("body: plain", b"plain"),
        ("body: {base64_string: /wA=}", b"\xff\x00"),
        ("body: {string: é, encoding: ISO-8859-1}", b"\xe9"),
        ("body: {string: é, encoding: UTF-8}", "é".encode()),
        ("body: {string: 2026-01-31}", b"2026-01-31"),
        ("body: {string: null}", b""),
    ],
)
def test_a_cassette_of_vcrpy_alone_is_read(tmp_path: Path, body: Any, content: Any) -> None:
    status = (
        "    status: {code: 200, message: OK}\n    headers: {Content-Type: [text/plain], Date: [now]}\n    "
    )
    write(tmp_path / "a", http=of_vcr(status + body, "body: {string: asked}"))
    recording = CassetteFolder(tmp_path, "a").load()
    assert recording == Recording(
        (
            Interaction(
                Request("GET", "https://a.example/", {"accept": "*/*", "x-number": "1"}, b"asked"),
                Response(200, "OK", (("content-type", "text/plain"),), content),
                line=2,
            ),
        )
    )


def test_a_compressed_body_is_read_without_its_compression(tmp_path: Path) -> None:
    def response(encoding: str, body: str | bytes) -> Any:
        head = f"    status: {{code: 200, message: null}}\n    headers: {{content-encoding: [{encoding}]}}\n"
        text = yaml.safe_dump(body).removesuffix("...\n").replace("\n", "\n        ")
        write(tmp_path / "a", http=of_vcr(f"{head}    body:\n      string: {text}".rstrip()))
        return loaded(tmp_path).http[0].response

    assert response("gzip", gzip.compress(b"hello")) == Response(200, "", (), b"hello")
    assert response("gzip", b"\xffhello").body == b"\xffhello"
    with pytest.raises(CassetteBroken, match="the body is compressed"):
        response("br", b"\xff\x00")
    with pytest.raises(CassetteBroken, match="larger than 100 MiB"):
        response("gzip", gzip.compress(b"\0" * 101 * 1024 * 1024, 1))


def test_a_cassette_that_vcrpy_wrote_is_read(tmp_path: Path) -> None:
    from vcr.request import Request as VCRRequest
    from vcr.serialize import serialize
    from vcr.serializers import yamlserializer

    asked = VCRRequest("POST", CHAT, b'{"a": "\xc3\xa9 \\n"}', {"Accept": "*/*"})
    response = {
        "status": {"code": 200, "message": "OK"},
        "headers": {"x": ["1", "2"]},
        "body": {"string": b"\xff" * 99},
    }
    write(tmp_path / "a", http=serialize({"requests": [asked], "responses": [response]}, yamlserializer))
    [one] = loaded(tmp_path).http
    assert one.request == Request("POST", CHAT, {"accept": "*/*"}, b'{"a": "\xc3\xa9 \\n"}')
    assert one.response == Response(200, "OK", (("x", "1"), ("x", "2")), b"\xff" * 99)


def test_interactions_and_messages_know_their_lines(tmp_path: Path) -> None:
    written = saved(tmp_path, RECORDING)
    recording = loaded(tmp_path)
    lines = written["http.yaml"].splitlines()
    assert [lines[one.line - 1] for one in recording.http if one.response] == ["- request:", "- request:"]
    assert recording.http[1].line == 0
    assert written["mcp.yaml"].splitlines()[recording.mcp["weather"][0].line - 1] == "  - sent:"


def test_a_large_cassette_loads_fast(tmp_path: Path) -> None:
    text = "x" * 20_000
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: Recording(tuple(interaction(f"{number} {text}") for number in range(50)))})
    began = time.process_time()
    assert len(loaded(tmp_path).http) == 50
    assert time.process_time() - began < 2
