"""Files that are not valid cassettes are refused, with the location of the error."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CassetteBroken
from harness.recording.folder import (
    CassetteFolder,
)
from tests.recording.cassette.sample import (
    RECORDING,
    of_vcr,
    saved,
    write,
)

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
        ("http", HTTP.replace("{string: x}", "!!binary x"), "'x' is not a valid binary"),
        ("http", HTTP.replace("{string: x}", "!!python/object/apply:os.system [x]"), "the tag !!python/object"),
        ("http", "[" * 100_000, "nested more than 100 levels deep"),
        ("http", "- " * 100_000, "nested more than 100 levels deep"),
        ("http", BOMB, "more than 1,000,000 values, with aliases expanded"),
        ("http", "a: &a [*a]", "is used inside"),
        ("http", "a: *b", "no anchor '&b'"),
        ("http", "? [a]\n: 1", "a key must be text"),
        ("mcp", "servers: {a: [{sent: 1}]}", "sent: expected a mapping, found the number 1"),
        ("mcp", "servers: {a: [{received: []}]}", "missing key 'sent' in an exchange"),
        ("mcp", "servers: {a: 1}", "a: expected a list, found the number 1"),
        ("meta", "scenario: x", "missing key 'format' in meta.yaml"),
        ("meta", "format: harness-cassette/9", "format: expected harness-cassette/1"),
        ("meta", META + "htpp: []", "meta.yaml:2:1: unknown key 'htpp' in meta.yaml (did you mean 'http'?)"),
        ("meta", META + "http: [{duration_s: 1}]", "'http' has 1 entries, but http.yaml has 0"),
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
def test_invalid_cassettes_are_refused_with_the_location(
    tmp_path: Path, name: Any, text: Any, why: Any
) -> None:
    write(tmp_path / "a", **{name: text})
    began = time.process_time()
    with pytest.raises(CassetteBroken) as refused:
        CassetteFolder(tmp_path, "a").load()
    assert time.process_time() - began < 2
    assert why in str(refused.value)
    assert refused.value.span is not None
    assert refused.value.span.file.endswith(f"a/{name}.yaml")
    assert str(refused.value).isprintable()


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    saved(tmp_path, RECORDING)
    folder = tmp_path / "a"
    write(folder, mcp="servers: {weather: []}\nversion: 1")
    with pytest.raises(CassetteBroken, match=r"'mcp\.weather' has 1 entries, but mcp\.yaml has 0"):
        CassetteFolder(tmp_path, "a").load()
    write(folder, http="interactions: []")
    with pytest.raises(CassetteBroken, match=r"'http' has 2 entries, but http\.yaml has 0"):
        CassetteFolder(tmp_path, "a").load()


def test_files_that_are_not_regular_or_too_large_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / name).mkdir()
    (tmp_path / "a/http.yaml").mkdir()
    os.mkfifo(tmp_path / "b/http.yaml")
    (tmp_path / "c/http.yaml").symlink_to("nowhere")
    with (tmp_path / "d/http.yaml").open("wb") as file:
        file.truncate(100 * 1024 * 1024 + 1)
    for name, why in [
        ("a", "not a file"),
        ("b", "not a file"),
        ("c", "leads nowhere"),
        ("d", "larger than 100 MiB"),
    ]:
        with pytest.raises(CassetteBroken, match=why):
            CassetteFolder(tmp_path, name).load()
