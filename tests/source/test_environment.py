"""Substitution of `${VAR}` in manifests. Source: sherma.txt, "Environment variable substitution"."""

from __future__ import annotations

import pytest

from harness.errors import ManifestError
from harness.source.document import parse
from harness.source.environment import substitute

ENV = {"A": "one", "B_2": "two", "EMPTY": "", "_U": "under"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("${A}", "one"),
        ("x ${A}${B_2} y", "x onetwo y"),
        ("${_U}", "under"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", ""),
        ("${NO:-x}", "x"),
        ("${NO:-}", ""),
        ("${NO:-a:-b c}", "a:-b c"),
        ("${NO:-{}}", "{}"),
        ("$$", "$"),
        ("$${A}", "${A}"),
        ("$$${A}", "$one"),
        ("$$$$", "$$"),
        ("$A", "$A"),
        ("${1X}", "${1X}"),
        ("${lower}", "${lower}"),
        ("${A", "${A"),
        ("${}", "${}"),
        ("$${y}", "${y}"),
        ("$$${y}", "$${y}"),
        ("50 $", "50 $"),
    ],
)
def test_references(written: str, expected: str) -> None:
    document = parse(f"a: [{{k: '{written}'}}]", file="f")
    assert substitute(document, ENV).value == {"a": [{"k": expected}]}


def test_substituted_values_are_not_substituted_again() -> None:
    assert substitute(parse("a: ${X}", file="f"), {"X": "${Y}$$"}).value == {"a": "${Y}$$"}


def test_keys_and_values_that_are_not_text_stay() -> None:
    text = "${A}: 1\nb: [true, null, 2.5, 2024-01-01]"
    document = parse(text, file="f")
    assert substitute(document, ENV).value == document.value


def test_locations_and_the_original_document_stay() -> None:
    document = parse("a: ${A}\nb: x", file="f")
    result = substitute(document, ENV)
    assert result.span(("b",)) == document.span(("b",))
    assert document.value["a"] == "${A}"


def test_all_missing_variables_are_reported_at_once_sorted_and_located() -> None:
    document = parse("a: ${ZULU} ${ALPHA}\nb: [x, '${BETA} ${ALPHA}']\nc: ${A}", file="f.yaml")
    with pytest.raises(ManifestError, match=r"ALPHA.*BETA.*ZULU") as caught:
        substitute(document, ENV)
    assert [(p.message, str(p.span)) for p in caught.value.problems] == [
        ("the environment variables ALPHA, BETA, ZULU are not set", "f.yaml:1:4"),
        ("the environment variable BETA is not set", "f.yaml:2:8"),
        ("the environment variable ZULU is not set", "f.yaml:1:4"),
    ]
    assert caught.value.code == "missing-variable"


def test_shared_parts_stay_shared_so_that_a_small_file_stays_small() -> None:
    lines = ["a0: &a0 ['${A}']"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 17)]
    result = substitute(parse("\n".join(lines), file="f"), ENV).value
    assert result["a16"][0] is result["a16"][1]
