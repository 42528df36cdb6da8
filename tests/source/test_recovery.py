"""The readable part of a file with errors: the keys at its top level, but for those that are damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.source.recovery import readable_part

FEW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
KEYS = st.text("abcdef", min_size=1, max_size=3)
VALUES = st.recursive(
    st.integers() | st.text("abc: '\"{}[]\n", max_size=8),
    lambda inner: st.dictionaries(KEYS, inner),
    max_leaves=5,
)


def part_of(folder: Path, content: str | bytes) -> Any:
    (folder / "a.yaml").write_bytes(content.encode() if isinstance(content, str) else content)
    return readable_part(folder / "a.yaml").document.value


@FEW
@given(
    data=st.dictionaries(KEYS, VALUES, min_size=1),
    damage=st.sampled_from(['z: "', "z: [", "z: &a *b", "z: !x", "{{ z }}: 1", "z: 1\nz: 2\n1: x"]),
    position=st.integers(0),
)
def test_keys_before_and_after_a_damaged_one_are_read(
    tmp_path: Path, data: dict[str, Any], damage: str, position: int
) -> None:
    entries = [yaml.safe_dump({key: value}, default_flow_style=False) for key, value in data.items()]
    entries.insert(position % (len(entries) + 1), damage + "\n")
    found = part_of(tmp_path, "".join(entries))
    assert {key: found[key] for key in data} == data


@FEW
@given(data=st.dictionaries(KEYS, st.integers(), min_size=1), position=st.integers(0))
def test_keys_of_json_before_and_after_a_damaged_one_are_read(
    tmp_path: Path, data: dict[str, Any], position: int
) -> None:
    lines = json.dumps(data, indent=4).splitlines()
    lines.insert(1 + position % len(data), '    "z": "')
    found = part_of(tmp_path, "\n".join(lines))
    assert {key: found[key] for key in data} == data


@FEW
@given(content=st.binary() | st.text("ab:- \n\t'\"{}[]&*#?!|>").map(str.encode))
def test_no_content_raises(tmp_path: Path, content: bytes) -> None:
    assert isinstance(part_of(tmp_path, content), dict | list | None)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", None),
        (b"\x89PNG\r\n\x1a\n\0", None),
        ("agents:\nagents:\n  a: 1\n", {"agents": {"a": 1}}),
        ("agents:\n\ta:\n\t\tb: 1\n", {"agents": {"a": {"b": 1}}, "a": None, "b": 1}),
        ("nodes:\n  a: {b: 1\n", {"nodes": {"a": {"b": 1}}}),
        ("kind: x\n---\nkind: y\n", {"kind": "x"}),
        ("a: ${B}\nb: {c: ${D}}\nc: 1\nc: 2\n", {"a": "${B}", "b": {"c": "${D}"}, "c": 1}),
        ("a: 1\nb: 'x".encode("utf-16"), {"a": 1, "b": "x"}),
    ],
)
def test_what_is_read_of_a_damaged_file(tmp_path: Path, content: str | bytes, found: Any) -> None:
    assert part_of(tmp_path, content) == found


def test_a_file_that_is_no_file_has_no_readable_part(tmp_path: Path) -> None:
    assert [readable_part(path).document.value for path in (tmp_path, tmp_path / "no", Path("x" * 400))] == [
        None
    ] * 3
