"""Documents: locations, files that cannot be used, and merging."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import FormatError, ManifestError, Span
from harness.source.document import Document, parse, read

TEXT = """\
name: tide
nodes:
  - id: é
    prompt: |
      one
      two
  - {id: b, next: [c, d]}
"""


@pytest.fixture
def document() -> Document:
    return parse(TEXT, file="f.yaml")


@pytest.mark.parametrize(
    ("path", "span"),
    [
        ((), Span("f.yaml", 1, 1, 10)),
        (("name",), Span("f.yaml", 1, 7, 4)),
        (("nodes", 0), Span("f.yaml", 3, 5, 5)),
        (("nodes", 0, "id"), Span("f.yaml", 3, 9, 1)),
        (("nodes", 0, "prompt"), Span("f.yaml", 4, 13, 1)),
        (("nodes", 1, "next"), Span("f.yaml", 7, 19, 6)),
        (("nodes", 1, "next", 1), Span("f.yaml", 7, 23, 1)),
    ],
)
def test_every_value_has_a_location(document: Document, path: tuple[str | int, ...], span: Span) -> None:
    assert document.span(path) == span


def test_a_missing_value_has_the_location_of_its_parent(document: Document) -> None:
    assert document.span(("nodes", 0, "nope", 3)) == document.span(("nodes", 0))
    assert document.span(("nodes", 7)) == document.span(("nodes",))
    assert document.key_span(("nodes", 0, "nope")) == document.span(("nodes", 0))


def test_every_key_has_a_location(document: Document) -> None:
    assert document.key_span(("nodes",)) == Span("f.yaml", 2, 1, 5)
    assert document.key_span(("nodes", 1, "next")) == Span("f.yaml", 7, 13, 4)
    assert document.key_span(("nodes", 1)) == document.span(("nodes", 1))


def test_lines_end_as_editors_count_them() -> None:
    document = parse("a: 1\r\nb: 2\rc: 3\nd: 'x\u2028y'\ne: 5", file="f")
    assert [document.span((key,)).line for key in "abcde"] == [1, 2, 3, 4, 5]


def test_a_byte_order_mark_does_not_count_as_a_character() -> None:
    assert str(parse("\ufeffa: 1", file="f").span(("a",))) == "f:1:4"


def test_an_alias_has_its_own_location_and_its_parts_those_of_the_anchor() -> None:
    document = parse("a: &x {k: 1}\nb: *x", file="f")
    assert str(document.span(("b",))) == "f:2:4"
    assert str(document.span(("b", "k"))) == "f:1:11"


def test_merged_keys_have_the_location_of_their_source() -> None:
    document = parse("a: &x {k: 1}\nb: {<<: *x, l: 2}", file="f")
    assert str(document.key_span(("b", "k"))) == "f:1:8"
    assert str(document.key_span(("b", "l"))) == "f:2:13"


def test_a_location_inside_a_text_is_found_by_line_and_column() -> None:
    document = parse("a: x == 'y\nb: |\n  one\n  two\nc: 'it''s'", file="f")
    assert str(document.span_within(("a",), 1, 3)) == "f:1:6"
    assert str(document.span_within(("b",), 2, 2)) == "f:4:4"
    assert document.span_within(("c",), 1, 4) == document.span(("c",))


def test_a_part_is_a_document_of_the_same_file(document: Document) -> None:
    part = document.at(("nodes", 1))
    assert part.value == {"id": "b", "next": ["c", "d"]}
    assert part.span(("id",)) == document.span(("nodes", 1, "id"))


def test_merging_is_by_key_at_every_depth_and_keeps_locations() -> None:
    document = parse("base: {a: {x: 1, y: 1}, l: [1, 2]}\nover: {a: {y: 2}, l: [3], n: 4}", file="f")
    merged = document.at(("base",)).under(document.at(("over",)))
    assert merged.value == {"a": {"x": 1, "y": 2}, "l": [3], "n": 4}
    assert str(merged.span(("a", "x"))) == "f:1:15"
    assert str(merged.span(("a", "y"))) == "f:2:15"
    assert str(merged.span(("l", 0))) == "f:2:23"
    assert document.value["base"]["a"] == {"x": 1, "y": 1}


def test_merging_replaces_mappings_for_which_the_function_is_true() -> None:
    document = parse("base: {a: {x: 1}, b: {x: 1}}\nover: {a: {y: 2}, b: {y: 2}}", file="f")
    merged = document.at(("base",)).under(document.at(("over",)), lambda path, _: path == ("a",))
    assert merged.value == {"a": {"y": 2}, "b": {"x": 1, "y": 2}}


# ---------------------------------------------------------------- files


def refusal(path: Path) -> str:
    with pytest.raises(FormatError) as caught:
        read(path, error=FormatError)
    return str(caught.value)


def test_json_and_yaml_are_distinguished_by_the_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": "\\u00e9"}')
    (tmp_path / "a.yaml").write_text("{a: yes}")
    assert read(tmp_path / "a.json").value == {"a": "é"}
    assert read(tmp_path / "a.yaml").value == {"a": True}
    assert read(tmp_path / "a.yaml", yaml="1.2").value == {"a": "yes"}


def test_paths_are_shown_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yaml").write_text("a: 1")
    assert read(tmp_path / "sub" / "a.yaml").file == (tmp_path / "sub" / "a.yaml").as_posix()
    monkeypatch.chdir(tmp_path)
    assert read(tmp_path / "sub" / "a.yaml").file == "sub/a.yaml"
    assert read("sub/a.yaml").file == "sub/a.yaml"


def test_a_missing_file_suggests_the_nearest_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("triage.yaml").write_text("a: 1")
    assert refusal(Path("traige.yaml")) == "traige.yaml: no such file\n    did you mean 'triage.yaml'?"
    assert refusal(Path("no/x.yaml")) == "no/x.yaml: no such file\n    the folder no does not exist"


def test_a_broken_link_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").symlink_to("gone.yaml")
    Path("b.yaml").symlink_to("b.yaml")
    assert refusal(Path("a.yaml")) == (
        "a.yaml: no such file\n    it is a link to 'gone.yaml', which does not exist"
    )
    assert refusal(Path("b.yaml")) == "b.yaml: cannot be read: Too many levels of symbolic links"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_refused_without_waiting_for_its_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("a.yaml")
    assert refusal(Path("a.yaml")) == "a.yaml: this is a pipe, a socket or a device, not a file"


def test_a_missing_file_is_reported_at_the_location_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        read(tmp_path / "x.yaml", named_at=Span("s.yaml", 2, 11))
    assert str(caught.value).startswith("s.yaml:2:11: ")


def test_a_path_relative_to_the_current_folder_gets_a_hint_relative_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("agents", "suites"):
        (tmp_path / folder).mkdir()
    (tmp_path / "agents/shop.yaml").write_text("a: 1")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ManifestError) as caught:
        read("suites/agents/shop.yaml", named_at=Span("suites/s.yaml", 2, 11))
    assert caught.value.problems[0].hint == (
        "paths are relative to the file that contains them: write '../agents/shop.yaml'"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: \xff\n", "a.yaml:1:4: not UTF-8: the byte 0xff"),
        (b"a: 1\nb: \xe9", "a.yaml:2:4: not UTF-8: the byte 0xe9\n    save it as UTF-8"),
        (b"\x7fELF\0\0", "a.yaml:1:5: not a text file: it contains zero bytes"),
        ("a: 1".encode("utf-16"), "not a text file: it contains zero bytes\n    save it as UTF-8"),
        (b"#" * (10 * 1024 * 1024 + 1), "larger than 10 MiB"),
        (b"", "the file is empty"),
    ],
)
def test_files_that_are_not_text_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "a.yaml").write_bytes(data)
    assert message in refusal(tmp_path / "a.yaml")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path).endswith("this is a folder, not a file")
    for name in ("d.json", "b.yaml", "notes.txt", "c.yml", "a.yaml"):
        (tmp_path / name).touch()
    assert refusal(tmp_path).endswith(
        f"\n    name a file: {tmp_path}/a.yaml, {tmp_path}/b.yaml, {tmp_path}/c.yml, …"
    )
