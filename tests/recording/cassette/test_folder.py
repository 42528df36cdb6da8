"""A cassette on disk: names, files, what is refused, and that a change happens as a whole."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import vcr
import yaml

from harness.errors import CassetteBroken, CassetteError
from harness.interception.messages import Request, Response
from harness.recording.folder import (
    CassetteFolder,
    cassette_names,
    kept_request_headers,
    kept_response_headers,
)
from harness.recording.interactions import About, Exchange, HumanReply, Interaction, Recording

CHAT = "https://api.openai.com/v1/chat/completions"
PROMPT = {"model": "gpt", "messages": [{"role": "user", "content": "Wie heiß? 😀\nSag"}], "n": 1}


def interaction(text: Any = "hello", *, turn: Any = 1, duration: Any = 0.5, **more: Any) -> Any:
    body = json.dumps(PROMPT | {"user": text}).encode()
    response = Response(
        200, "OK", (("content-type", "application/json"),), json.dumps({"said": text}).encode()
    )
    request = Request("POST", CHAT, {"content-type": "application/json"}, body)
    return Interaction(request, response, turn, duration, **more)


FAILED = Interaction(Request("GET", "http://a.example/x"), None, 2, 1.5, failure="ConnectError: refused")
EXCHANGE = Exchange(
    {"jsonrpc": "2.0", "id": 1, "method": "ping"}, ({"jsonrpc": "2.0", "id": 1, "result": {}},), 1, 0.1
)
ABOUT = About(
    "scenarios/a.scenario.yaml::a",
    "2026-01-31",
    {"agent.yaml": "0" * 64},
    {"openai": "3.5"},
    {"BASE_URL": "http://x"},
)
RECORDING = Recording(
    (interaction("one", chunks_s=(0.25, 0.5)), FAILED, interaction("two", turn=2)),
    {"weather": (EXCHANGE,)},
    (HumanReply("ask", {"question": "Really?"}, {"yes": True}, 1),),
    ABOUT,
)


def told(recording: Any) -> Any:
    """The recording without what depends on where it stands in its files."""

    def body(data: Any) -> Any:
        try:
            return json.loads(data)
        except ValueError:
            return data

    http = [
        replace(one, request=replace(one.request, body=body(one.request.body)), line=0)
        for one in recording.http
    ]
    mcp = {
        name: [(e.sent, e.received, e.turn, e.duration_s) for e in all] for name, all in recording.mcp.items()
    }
    return http, mcp, recording.human, recording.about


def files(folder: Any) -> Any:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    "name", ["weather", "weather/rain", "a b", "Wetter-für_2", "recording", "recording-x", "a.b"]
)
def test_names(tmp_path: Path, name: Any) -> None:
    folder = CassetteFolder(tmp_path, name)
    assert folder.save({1: RECORDING})
    assert (tmp_path / name / "http.yaml").is_file()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it is empty"),
        ("/etc", "relative path"),
        ("a//b", "relative path"),
        ("a/", "relative path"),
        ("..", "begins with a dot"),
        ("a/../../b", "begins with a dot"),
        (".git", "begins with a dot"),
        ("a\\b", "not possible"),
        ("C:x", "not possible"),
        ("a\nb", "cannot be seen"),
        ("a\x1b[31m", "cannot be seen"),
        ("\ud800", "cannot be seen"),
        ("a ", "space"),
        ("a.", "dot"),
        ("nul", "device"),
        ("COM1.txt", "device"),
        ("recording-2", "a part of their own"),
        ("a/Recording-2/b", "a part of their own"),
        ("a/take-2/b", "a part of their own"),
        ("a/http.yaml", "a part of their own"),
        ("x" * 201, "longer than 200"),
    ],
)
def test_names_that_no_cassette_can_have(tmp_path: Path, name: Any, why: Any) -> None:
    with pytest.raises(ValueError) as refused:
        CassetteFolder(tmp_path, name)
    assert "cannot be the name of a cassette" in str(refused.value)
    assert why in str(refused.value)
    assert str(refused.value).isprintable()


def test_a_link_does_not_lead_out_of_the_root(tmp_path: Path) -> None:
    root, outside = tmp_path / "cassettes", tmp_path / "outside"
    CassetteFolder(outside, "a").save({1: RECORDING, 2: RECORDING})
    root.mkdir()
    (root / "linked").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    for name in ("linked", "linked/a", "loop"):
        with pytest.raises(ValueError, match="is not below"):
            CassetteFolder(root, name)
    (root / "b").mkdir()
    (root / "b/http.yaml").symlink_to(outside / "a/http.yaml")
    (root / "b/recording-2").symlink_to(outside / "a/recording-2")
    for recording in (1, 2):
        with pytest.raises(CassetteBroken, match="a link leads out of the cassettes"):
            CassetteFolder(root, "b").load(recording)
    before = files(outside)
    with pytest.raises(CassetteError, match="in the way"):
        CassetteFolder(root, "b").save({1: RECORDING, 2: Recording()})
    assert files(outside) == before


def test_a_link_planted_where_a_file_is_written_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "cassettes/a"
    folder.mkdir(parents=True)
    for name in ("http.yaml.new", "meta.yaml", "cassette.journal.new"):
        (folder / name).symlink_to(outside)
    assert CassetteFolder(tmp_path / "cassettes", "a").save({1: RECORDING})
    assert outside.read_text() == "mine"


# ---------------------------------------------------------------- saved and loaded


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    assert (folder.exists(), folder.numbers(), folder.load()) == (False, [], None)
    other = Recording((interaction("three"),))
    assert folder.save({1: RECORDING, 3: other})
    assert (folder.exists(), folder.numbers()) == (True, [1, 3])
    assert told(folder.load()) == told(RECORDING)
    assert told(folder.load(3)) == told(other)
    assert folder.load(2) is None


def test_older_cassettes_call_recordings_takes_until_they_are_written(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    third = Recording((interaction("three"),))
    folder.save({1: RECORDING, 2: RECORDING, 3: third})
    written = files(tmp_path)
    for number in (2, 3):
        (tmp_path / f"a/recording-{number}").rename(tmp_path / f"a/take-{number}")
    (tmp_path / "a/take-3/notes.txt").write_text("mine")
    assert folder.numbers() == [1, 2, 3]
    assert cassette_names(tmp_path) == ["a"]
    assert folder.folder_of(3) == tmp_path / "a/take-3"
    assert folder.folder_of(4) == tmp_path / "a/recording-4"
    loaded = {number: recording for number in folder.numbers() if (recording := folder.load(number))}
    assert told(loaded[2]) == told(RECORDING)
    assert told(loaded[3]) == told(third)
    assert folder.save(loaded)
    assert files(tmp_path) == {**written, "a/take-3/notes.txt": b"mine"}
    assert folder.numbers() == [1, 2, 3]


def test_where_both_spellings_are_there_the_newer_is_read_and_kept(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    older, newer = Recording((interaction("older"),)), Recording((interaction("newer"),))
    folder.save({2: older})
    (tmp_path / "a/recording-2").rename(tmp_path / "a/take-2")
    CassetteFolder(tmp_path, "b").save({2: newer})
    (tmp_path / "b/recording-2").rename(tmp_path / "a/recording-2")
    found = folder.load(2)
    assert found is not None
    assert told(found) == told(newer)
    folder.save({2: found})
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["recording-2"]


def test_a_recording_in_which_nothing_was_asked_is_recorded_too(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    assert folder.save({1: Recording(about=ABOUT)})
    assert sorted(files(tmp_path)) == ["a/meta.yaml"]
    assert folder.load() == Recording(about=ABOUT)


def test_the_same_again_touches_nothing(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: RECORDING, 2: RECORDING})
    before = {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in tmp_path.rglob("*")}
    assert folder.save({1: folder.load(), 2: folder.load(2)}) is False
    assert {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in tmp_path.rglob("*")} == before


def test_durations_and_dates_are_in_meta_yaml_alone(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: Recording((interaction("one"),), {"w": (EXCHANGE,)}, (), ABOUT)})
    before = files(tmp_path)
    later = Exchange(EXCHANGE.sent, EXCHANGE.received, 1, 9.0)
    dated = Request(
        "POST",
        CHAT,
        {"content-type": "application/json", "date": "now", "x-stainless-retry-count": "1"},
        interaction("one").request.body,
    )
    response = Response(
        200, "OK", (("date", "now"), ("content-type", "application/json")), b'{"said": "one"}'
    )
    assert folder.save(
        {
            1: Recording(
                (Interaction(dated, response, 1, 7.0, (1.0,)),),
                {"w": (later,)},
                (),
                About(recorded="2027-01-01"),
            )
        }
    )
    after = files(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"a/meta.yaml"}


def test_files_and_recordings_that_are_no_longer_needed_go_and_others_stay(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: RECORDING, 2: RECORDING, 3: RECORDING})
    (tmp_path / "a/README.md").write_text("mine")
    (tmp_path / "a/recording-3/notes.txt").write_text("mine")
    (tmp_path / "a/recording-12x").mkdir()
    CassetteFolder(tmp_path, "a/b").save({1: RECORDING})
    assert folder.save({1: Recording((interaction(),))})
    assert {"a/README.md", "a/http.yaml", "a/meta.yaml", "a/recording-3/notes.txt"} < set(files(tmp_path))
    assert not {"a/mcp.yaml", "a/recording-2/http.yaml", "a/recording-3/meta.yaml"} & set(files(tmp_path))
    assert not (tmp_path / "a/recording-2").exists()
    assert CassetteFolder(tmp_path, "a/b").exists()


def test_the_names_of_all_cassettes(tmp_path: Path) -> None:
    assert cassette_names(tmp_path / "nowhere") == []
    for name, recordings in [
        ("b", {1: RECORDING, 2: RECORDING}),
        ("a/c", {2: RECORDING}),
        ("a", {1: Recording()}),
    ]:
        CassetteFolder(tmp_path, name).save(recordings)
    for name in (".hidden", "con", "readme"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ("README.md" if name == "readme" else "http.yaml")).touch()
    (tmp_path / "http.yaml").touch()
    (tmp_path / "linked").symlink_to("b")
    assert cassette_names(tmp_path) == ["a", "a/c", "b"]


def test_a_cassette_is_removed_and_what_is_not_its_own_stays(tmp_path: Path) -> None:
    for name in ("a/b", "a/c", "d"):
        CassetteFolder(tmp_path, name).save({1: RECORDING, 2: RECORDING})
    (tmp_path / "d/README.md").write_text("mine")
    for name in ("a/b", "d", "nothing"):
        CassetteFolder(tmp_path, name).remove()
    assert cassette_names(tmp_path) == ["a/c"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "d"]
    assert files(tmp_path / "d") == {"README.md": b"mine"}
    CassetteFolder(tmp_path, "a/c").remove()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d"]


def test_recordings_are_counted_from_1(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    for use in (lambda: folder.load(0), lambda: folder.save({0: RECORDING})):
        with pytest.raises(ValueError, match="counted from 1"):
            use()


def test_what_is_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "a/http.yaml").mkdir(parents=True)
    (tmp_path / "b").write_text("a file")
    with pytest.raises(CassetteError, match=r"http\.yaml is in the way"):
        CassetteFolder(tmp_path, "a").save({1: RECORDING})
    with pytest.raises(CassetteError, match="the cassette 'b' cannot be written: "):
        CassetteFolder(tmp_path, "b").save({1: RECORDING})
    (tmp_path / "c").mkdir()
    (tmp_path / "c/recording-2").write_text("a file")
    with pytest.raises(CassetteError, match="the cassette 'c' cannot be written: "):
        CassetteFolder(tmp_path, "c").save({1: RECORDING, 2: RECORDING})
    assert files(tmp_path / "c") == {"recording-2": b"a file"}
    assert CassetteFolder(tmp_path, "b").load() is None


def test_json_that_is_too_deep_is_not_written(tmp_path: Path) -> None:
    deep = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(CassetteError, match="nested more than 100 levels deep"):
        CassetteFolder(tmp_path, "a").save({1: Recording((), {"w": (Exchange(deep),)})})


# ---------------------------------------------------------------- the files


def saved(tmp_path: Path, recording: Any) -> Any:
    CassetteFolder(tmp_path, "a").save({1: recording})
    return {name: data.decode() for name, data in files(tmp_path / "a").items()}


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
    assert CassetteFolder(tmp_path, "a").load().http[0].response.body == body


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
def test_a_request_body_that_json_cannot_say_again_is_kept_as_it_is(tmp_path: Path, body: Any) -> None:
    saved(tmp_path, Recording((Interaction(Request("POST", CHAT, {}, body), Response(200)),)))
    assert CassetteFolder(tmp_path, "a").load().http[0].request.body == body


def test_half_a_surrogate_pair_in_json_is_kept_as_its_escape(tmp_path: Path) -> None:
    body = b'{"a": "\\ud83d \\u2028 \\u0085"}'
    text = saved(tmp_path, Recording((Interaction(Request("POST", CHAT, {}, body), Response(200)),)))[
        "http.yaml"
    ]
    assert '"a": "\\ud83d \\u2028 \\u0085"\n' in text


def test_half_a_surrogate_pair_in_mcp_which_no_file_can_have_is_replaced(tmp_path: Path) -> None:
    saved(tmp_path, Recording((), {"w": (Exchange({"method": "a\ud83d\nb"}),)}))
    assert CassetteFolder(tmp_path, "a").load().mcp["w"][0].sent == {"method": "a\ufffd\nb"}


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


def write(folder: Any, **contents: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (folder / f"{name}.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())


def of_vcr(response: Any, request: Any = "body: null") -> Any:
    return f"""\
interactions:
- request:
    {request}
    headers: {{Accept: ['*/*'], x-number: 1}}
    method: GET
    uri: https://a.example/
  response:
{response}
version: 1
"""


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
    def loaded(encoding: Any, body: Any) -> Any:
        head = f"    status: {{code: 200, message: null}}\n    headers: {{content-encoding: [{encoding}]}}\n"
        text = yaml.safe_dump(body).removesuffix("...\n").replace("\n", "\n        ")
        write(tmp_path / "a", http=of_vcr(f"{head}    body:\n      string: {text}".rstrip()))
        return CassetteFolder(tmp_path, "a").load().http[0].response

    assert loaded("gzip", gzip.compress(b"hello")) == Response(200, "", (), b"hello")
    assert loaded("gzip", b"\xffhello").body == b"\xffhello"
    with pytest.raises(CassetteBroken, match="the body is compressed"):
        loaded("br", b"\xff\x00")
    with pytest.raises(CassetteBroken, match="larger than 100 MiB"):
        loaded("gzip", gzip.compress(b"\0" * 101 * 1024 * 1024))


def test_a_cassette_that_vcrpy_wrote_is_read(tmp_path: Path) -> None:
    from vcr.request import Request as Asked
    from vcr.serialize import serialize
    from vcr.serializers import yamlserializer

    asked = Asked("POST", CHAT, b'{"a": "\xc3\xa9 \\n"}', {"Accept": "*/*"})
    response = {
        "status": {"code": 200, "message": "OK"},
        "headers": {"x": ["1", "2"]},
        "body": {"string": b"\xff" * 99},
    }
    write(tmp_path / "a", http=serialize({"requests": [asked], "responses": [response]}, yamlserializer))
    [one] = CassetteFolder(tmp_path, "a").load().http
    assert one.request == Request("POST", CHAT, {"accept": "*/*"}, b'{"a": "\xc3\xa9 \\n"}')
    assert one.response == Response(200, "OK", (("x", "1"), ("x", "2")), b"\xff" * 99)


def test_interactions_and_messages_know_their_lines(tmp_path: Path) -> None:
    written = saved(tmp_path, RECORDING)
    recording = CassetteFolder(tmp_path, "a").load()
    lines = written["http.yaml"].splitlines()
    assert [lines[one.line - 1] for one in recording.http if one.response] == ["- request:", "- request:"]
    assert recording.http[1].line == 0
    assert written["mcp.yaml"].splitlines()[recording.mcp["weather"][0].line - 1] == "  - sent:"


def test_a_large_cassette_loads_fast(tmp_path: Path) -> None:
    text = "x" * 20_000
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: Recording(tuple(interaction(f"{number} {text}") for number in range(50)))})
    began = time.process_time()
    assert len(folder.load().http) == 50
    assert time.process_time() - began < 2


# ---------------------------------------------------------------- what is refused

META = 'format: "harness-cassette/1"\n'
HTTP = of_vcr("    status: {code: 200, message: OK}\n    headers: {}\n    body: {string: x}")
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n"
    for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("http", "", "http.yaml:1:1: the file is empty"),
        ("http", "# nothing\n", "the file is empty"),
        ("http", b"\x00\x01\x02", "not a text file"),
        ("http", b"interactions:\n- \xff", "http.yaml:2:3: not UTF-8"),
        ("http", "a: \x07", "not valid YAML: the character U+0007 is not allowed"),
        ("http", HTTP[:-40], "not valid YAML"),
        ("http", "- [", "not valid YAML"),
        ("http", HTTP + "version: 1\n", "http.yaml:12:1: key 'version' is given twice"),
        ("http", "a: b\n---\na: b", "a second YAML document"),
        ("http", "- 1", "expected a mapping, found a list"),
        ("http", "interactions: 1", "interactions: expected a list, found the number 1"),
        ("http", "version: 1", "missing key 'interactions' in http.yaml"),
        ("http", HTTP.replace("version: 1", "version: 2"), "a cassette of version 2, not 1"),
        ("http", HTTP.replace("    uri:", "    url:"), "unknown key 'url' in a request (did you mean 'uri'?)"),
        ("http", HTTP.replace("    method: GET\n", ""), "yaml:3:5: missing key 'method' in a request"),
        ("http", HTTP.replace("code: 200", "code: ok"), "code: expected a whole number, found text 'ok'"),
        ("http", HTTP.replace("code: 200", "code: true"), "code: expected a whole number, found true"),
        ("http", HTTP.replace("uri: https://a.example/", "uri: [a]"), "uri: expected text, found a list"),
        ("http", HTTP.replace("{string: x}", "{text: x}"), "unknown key 'text' in a body"),
        ("http", HTTP.replace("{string: x}", "[x]"), "body: expected text, found a list"),
        ("http", HTTP.replace("{string: x}", "!!binary x"), "'x' is no binary"),
        ("http", HTTP.replace("{string: x}", "!!python/object/apply:os.system [x]"), "the tag !!python/object"),
        ("http", "[" * 100_000, "nested more than 100 levels deep"),
        ("http", "- " * 100_000, "nested more than 100 levels deep"),
        ("http", BOMB, "more than 1,000,000 values, aliases written out"),
        ("http", "a: &a [*a]", "stands inside"),
        ("http", "a: *b", "no anchor '&b'"),
        ("http", "? [a]\n: 1", "a key must be text"),
        ("mcp", "servers: {a: [{sent: 1}]}", "sent: expected a mapping, found the number 1"),
        ("mcp", "servers: {a: [{received: []}]}", "missing key 'sent' in an exchange"),
        ("mcp", "servers: {a: 1}", "a: expected a list, found the number 1"),
        ("meta", "scenario: x", "missing key 'format' in meta.yaml"),
        ("meta", "format: harness-cassette/9", "format: expected harness-cassette/1"),
        ("meta", META + "htpp: []", "meta.yaml:2:1: unknown key 'htpp' in meta.yaml (did you mean 'http'?)"),
        ("meta", META + "http: [{duration_s: 1}]", "'http' tells of 1 of what http.yaml holds, which is 0"),
        ("meta", META + "http: [{duration_s: -1, request: {method: GET, uri: x}}]", "must be greater than or equal"),
        ("meta", META + "http: [{duration_s: .inf, request: {method: GET, uri: x}}]", "duration_s: must be less"),
        ("meta", META + "http: [{duration_s: true, request: {method: GET, uri: x}}]", "expected a number"),
        ("meta", META + "http: [{duration_s: 1, turn: 0, request: {method: GET, uri: x}}]", "turn: must be greater"),
        ("meta", META + "mcp: {a: [{duration_s: 1}]}", "mcp.yaml has no server 'a'"),
        ("meta", META + "recorded: yesterday", "recorded must be a day such as 2026-01-31, not 'yesterday'"),
        ("meta", META + "human: [{node: a}]", "missing key 'asked' in an entry of human"),
        ("meta", META + "versions: {a: [1]}", "a: expected text, found a list"),
    ],
)  # fmt: skip
def test_what_is_no_cassette_is_refused_with_its_place(
    tmp_path: Path, name: Any, text: Any, why: Any
) -> None:
    write(tmp_path / "a", **{name: text})
    began = time.process_time()
    with pytest.raises(CassetteBroken) as refused:
        CassetteFolder(tmp_path, "a").load()
    assert time.process_time() - began < 2
    assert why in str(refused.value)
    assert refused.value.span.file.endswith(f"a/{name}.yaml")
    assert str(refused.value).isprintable()


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    saved(tmp_path, RECORDING)
    folder = tmp_path / "a"
    write(folder, mcp="servers: {weather: []}\nversion: 1")
    with pytest.raises(
        CassetteBroken, match=r"'mcp\.weather' tells of 1 of what mcp\.yaml holds, which is 0"
    ):
        CassetteFolder(tmp_path, "a").load()
    write(folder, http="interactions: []")
    with pytest.raises(CassetteBroken, match=r"'http' tells of 2 of what http\.yaml holds, which is 0"):
        CassetteFolder(tmp_path, "a").load()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / name).mkdir()
    (tmp_path / "a/http.yaml").mkdir()
    os.mkfifo(tmp_path / "b/http.yaml")
    (tmp_path / "c/http.yaml").symlink_to("nowhere")
    with (tmp_path / "d/http.yaml").open("wb") as file:
        file.truncate(100 * 1024 * 1024 + 1)
    for name, why in [
        ("a", "no file"),
        ("b", "no file"),
        ("c", "leads nowhere"),
        ("d", "larger than 100 MiB"),
    ]:
        with pytest.raises(CassetteBroken, match=why):
            CassetteFolder(tmp_path, name).load()


# ---------------------------------------------------------------- interrupted changes


def test_killed_at_any_step_a_save_leaves_the_old_cassette_or_the_new_one(tmp_path: Path) -> None:
    script = Path(__file__).with_name("killed_while_saving.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=True, timeout=300
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    found = [outcome["loaded"] for outcome in outcomes]
    assert set(found) == {"old", "new"}
    assert found == sorted(found, reverse=True)  # there is one moment at which it changes
    assert found.count("new") > 10, "the change was killed while files were put in place, too"
    assert len(found) > 30
    assert {tuple(outcome["left"]) for outcome in outcomes} == {()}
    assert {outcome["again"] for outcome in outcomes} == {"new"}


def test_what_an_interrupted_save_left_is_ignored_and_goes_with_the_next(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: RECORDING, 2: RECORDING})
    for name in ("http.yaml.new", "recording-2/mcp.yaml.new", "cassette.journal.new"):
        (tmp_path / "a" / name).write_text("half of it")
    assert told(folder.load()) == told(RECORDING)
    folder.save({1: RECORDING, 2: RECORDING})
    assert not list(tmp_path.rglob("*.new"))


@pytest.mark.parametrize(
    "plan",
    [
        "",
        "[",
        "[]",
        '{"put": ["../x.yaml"], "remove": []}',
        '{"put": ["/etc/passwd"], "remove": []}',
        '{"put": [], "remove": ["README.md"]}',
        '{"put": [], "remove": ["recording-2/../../b/http.yaml"]}',
        '{"put": "http.yaml", "remove": []}',
        '{"put": [1], "remove": []}',
    ],
)
def test_a_journal_that_is_none_is_refused_and_nothing_is_touched(tmp_path: Path, plan: Any) -> None:
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: RECORDING})
    (tmp_path / "a/README.md").write_text("mine")
    (tmp_path / "a/cassette.journal").write_text(plan)
    before = files(tmp_path)
    for use in (folder.load, folder.numbers, folder.exists, lambda: folder.save({1: Recording()})):
        with pytest.raises(CassetteBroken, match=r"cassette\.journal:1:1: this is no journal"):
            use()
    assert files(tmp_path) == before


# ---------------------------------------------------------------- locks


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder for temporary files of its own."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


HOLD = """
import sys
from pathlib import Path
from harness.recording.folder import CassetteFolder
with CassetteFolder(Path(sys.argv[1]), "a").reserved():
    print("recording", flush=True)
    sys.stdin.read()
"""


def test_a_cassette_is_recorded_by_one_process_at_a_time(tmp_path: Path, temp: Any) -> None:
    root = tmp_path / "cassettes"
    folder = CassetteFolder(root, "a")
    command = [sys.executable, "-c", HOLD, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "recording\n"
        with (
            pytest.raises(CassetteError, match="'a' is being recorded by another process"),
            folder.reserved(),
        ):
            pass
        with CassetteFolder(root, "b").reserved():
            pass
        assert folder.load() is None
        other.kill()
        other.wait()
    with folder.reserved():
        folder.save({1: RECORDING})
        assert told(folder.load()) == told(RECORDING)
    assert list(temp.iterdir()) == []
    assert sorted(files(root)) == ["a/http.yaml", "a/mcp.yaml", "a/meta.yaml"]


def test_a_cassette_can_be_read_where_no_lock_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CassetteFolder(tmp_path, "a").save({1: RECORDING})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert told(CassetteFolder(tmp_path, "a").load()) == told(RECORDING)
    with pytest.raises(CassetteError, match="cannot be locked"), CassetteFolder(tmp_path, "a").reserved():
        pass
