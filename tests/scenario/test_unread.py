"""What a scenario file has and nothing reads is a warning: columns, odd references, repeated scenarios."""

from pathlib import Path

import pytest

from harness.scenario.load import load_file


def told(tmp_path: Path, *scenarios: str) -> list[str]:
    """Return the warnings `unread` of a file with these scenarios, each with its line and column."""
    file = tmp_path / "a.scenario.yaml"
    listed = "".join(f"\n  - {scenario}" for scenario in scenarios)
    file.write_text(f"harness: 1\nmanifest: m.yaml\nscenarios:{listed}\n")
    found = dict.fromkeys(each for one in load_file(file).scenarios for each in one.whole().warnings)
    assert all(each.severity == "warning" and each.span for each in found)
    return [
        f"{each.span.line}:{each.span.column} {each.message} ({each.hint})"
        for each in found
        if each.code == "unread" and each.span
    ]


USES_CITY = "name: x, input: '${case.city}', expect: {path: []}"


def test_a_column_that_nothing_uses_is_a_warning(tmp_path: Path) -> None:
    rows = "[{id: 1, city: Rome, degrees: 3}, {id: 2, city: Oslo, wind: 4}]"
    assert told(tmp_path, f"{{{USES_CITY}, cases: {rows}}}") == [
        "4:58 columns 'degrees', 'wind' of these cases are not used (write ${case.degrees} where it is meant, or "
        "call a remark _degrees)"
    ]


@pytest.mark.parametrize(
    "rows",
    [
        "[{id: 1, city: Rome}]",  # the first column names the cases
        "[{city: Rome, name: r, weight: 2}]",
        "[{id: 1, city: Rome, _source: the archive}]",
    ],
)
def test_names_weights_and_remarks_are_no_values(tmp_path: Path, rows: str) -> None:
    assert told(tmp_path, f"{{{USES_CITY}, cases: {rows}}}") == []


def test_a_part_of_a_column_uses_it(tmp_path: Path) -> None:
    scenario = "{name: x, input: '${case.at.city}', cases: [{id: 1, at: {city: Rome}}], expect: {path: []}}"
    assert told(tmp_path, scenario) == []


@pytest.mark.parametrize(
    "form", ["{{case.city}}", "{{ case.city }}", "{case.city}", "$case.city", "${cases.city}"]
)
def test_a_reference_of_another_form_is_a_warning(tmp_path: Path, form: str) -> None:
    scenario = f"{{{USES_CITY}, cases: [{{city: Rome}}], llm: ['in {form}.']}}"
    assert told(tmp_path, scenario) == [
        f"4:87 '{form}' is not filled: it stays as it is (write ${{case.city}})"
    ]


@pytest.mark.parametrize("text", ["{{case.town}}", "the case.city is", "$casement"])
def test_other_text_stays_as_it_is_in_silence(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, f"{{{USES_CITY}, cases: [{{city: Rome}}], llm: ['in {text}.']}}") == []


def test_a_scenario_that_repeats_another_is_a_warning(tmp_path: Path) -> None:
    rest = "input: go, expect: {path: []}"
    first, second, third = (f"{{name: {name}, {rest}}}" for name in ("one", "two", "three"))
    other = "{name: four, input: stay, expect: {path: []}}"
    second = second.replace("input", "description: again, tags: [b], input")
    found = told(tmp_path, first, second, third, other)
    assert [text.replace(f"{tmp_path}/", "") for text in found] == [
        f"{line}:12 this scenario runs the same as 'one' (a.scenario.yaml:4:12) (for several runs of "
        "the same, write `repeat`)"
        for line in (5, 6)
    ]


def test_a_row_that_repeats_another_is_a_warning(tmp_path: Path) -> None:
    rows = "{name: a, city: Rome}, {name: b, city: Oslo}, {name: c, city: Rome, _by: me}"
    [text] = told(tmp_path, f"{{{USES_CITY}, cases: [{rows}]}}")
    assert "case 'c' runs the same as 'a' (for several runs of the same, write `repeat`)" in text
    assert told(tmp_path, f"{{{USES_CITY}, cases: [{rows.replace('Rome, _by', 'Bari, _by')}]}}") == []
