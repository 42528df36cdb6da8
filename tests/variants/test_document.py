"""Reading of variants files. Source: docs/variants.md, "The file"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import FormatError
from harness.variants.document import Variant, read_variants, select_variants

Read = Callable[[str], list[Variant]]


@pytest.fixture
def variants(tmp_path: Path) -> Read:
    def of(text: str) -> list[Variant]:
        file = tmp_path / "variants.yaml"
        file.write_text(f"harness: 1\n{text}")
        return read_variants(file)

    return of


def refusals(read: Read, text: str) -> list[str]:
    with pytest.raises(FormatError) as caught:
        read(text)
    return [f"{p.span.line}:{p.span.column} {p.message}" for p in caught.value.problems if p.span]


def test_a_variant_says_what_it_changes(variants: Read, tmp_path: Path) -> None:
    (tmp_path / "terse.txt").write_text("Be terse.\n")
    (tmp_path / "other.yaml").touch()
    _, one = variants(
        "variants:\n  - {name: one, prompts: {a: {file: terse.txt}, b: Be kind.}, models: {x: y},\n"
        "     params: {temperature: 0}, env: {TONE: formal, N: 3}, manifest: other.yaml,\n"
        "     edit: [{op: remove, path: /a}], only: [a*]}\n"
    )
    assert {id_: prompt.text for id_, prompt in one.prompts.items()} == {"a": "Be terse.\n", "b": "Be kind."}
    assert (one.models, one.params, one.env) == ({"x": "y"}, {"temperature": 0}, {"TONE": "formal", "N": "3"})
    assert (one.manifest, one.edit, one.only) == (
        tmp_path / "other.yaml",
        ({"op": "remove", "path": "/a"},),
        (("a*",),),
    )


def test_the_baseline_is_the_variant_that_changes_nothing(variants: Read) -> None:
    found = variants("variants: [{name: b, env: {A: x}}, {name: today}]")
    assert [(each.name, each.is_baseline) for each in found] == [("today", True), ("b", False)]


def test_a_baseline_is_added_where_none_is_written(variants: Read) -> None:
    assert [each.name for each in variants("variants: [{name: b, env: {A: x}}]")] == ["baseline", "b"]


def test_a_matrix_has_every_combination_named_after_its_parts(variants: Read) -> None:
    found = variants(
        "variants: [{name: terse, prompts: {a: x}}, {name: small, models: {m: n}}]\n"
        "matrix: {prompt: [baseline, terse], model: [baseline, small]}"
    )
    assert [each.name for each in found] == ["baseline", "terse", "small", "terse+small"]
    assert set(found[-1].prompts) == {"a"}
    assert found[-1].models == {"m": "n"}


def test_variants_are_chosen_by_name_beside_the_baseline(variants: Read) -> None:
    found = variants("variants: [{name: a, env: {A: x}}, {name: b, env: {A: y}}]")
    assert [each.name for each in select_variants(found, ("b",))] == ["baseline", "b"]
    with pytest.raises(FormatError, match="no variant 'c'"):
        select_variants(found, ("c",))


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("variants: []", "2:11 variants: "),
        ("variants: [{name: a, promts: {}}]", "2:22 unknown key 'promts' in a variant"),
        ("variants: [{name: a}, {name: b}]", "2:30 a second variant that changes nothing (first in line 2)"),
        ("variants: [{name: a, env: {A: x}}, {name: a, env: {A: y}}]", "2:43 a second variant 'a'"),
        ("variants: [{name: baseline, env: {A: x}}]", "2:19 the variant 'baseline' changes something"),
        ("variants: [{name: a/b, env: {A: x}}]", "2:19 'a/b' cannot be the name of a variant: it has a '/'"),
        ("variants: [{name: a+b, env: {A: x}}]", "2:19 'a+b' cannot be the name of a variant: it has a '+'"),
        ("variants: [{name: a, prompts: {x: {file: no.txt}}}]", "2:35 "),
        (
            "variants: [{name: a, prompts: {x: 3}}]",
            "2:35 x: expected text, or {file: PATH}, found the number 3",
        ),
        (
            "variants: [{name: a, edit: [{op: sing, path: /a}]}]",
            "2:28 operation 1: 'sing' is not an operation; expected one of add, ",
        ),
        (
            "variants: [{name: a, edit: [{op: remove, path: a/b}]}]",
            "2:28 operation 1: 'a/b' is not a path: write '/a/b'",
        ),
        ("variants: [{name: a, manifest: no.yaml}]", "2:32 "),
        ("variants: [{name: a, edit: [{op: remove}]}]", "2:28 operation 1: "),
        ("variants: [{name: a, env: {A: x}}]\nmatrix: {p: [a, z]}", "3:17 no variant 'z'"),
        (
            "variants: [{name: a, env: {A: x}}, {name: b, env: {A: y}}]\nmatrix: {p: [a], q: [b]}",
            "3:9 cannot build 'a+b': 'b' and another variant change env.A",
        ),
    ],
)
def test_a_faulty_file_is_refused_where_it_is_at_fault(variants: Read, text: str, refusal: str) -> None:
    (found,) = refusals(variants, text)
    assert found.startswith(refusal)
