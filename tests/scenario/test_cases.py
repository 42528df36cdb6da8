"""`cases`: a scenario runs once for each row of a table. Source: docs/scenario-format.md, "Cases"."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import FormatError
from harness.scenario.load import load_file
from harness.scenario.model import Scenario

Load = Callable[..., list[Scenario]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """The scenarios of a file with one scenario `x` that has these keys; `tables` are files beside it."""

    def load_keys(keys: str, **tables: str) -> list[Scenario]:
        for name, text in tables.items():
            (tmp_path / name.replace("_", ".")).write_text(text, newline="")
        file = tmp_path / "a.scenario.yaml"
        file.write_text(f"harness: 1\nmanifest: m.yaml\nscenarios:\n  - {{name: x, {keys}}}\n")
        return [scenario.whole() for scenario in load_file(file).scenarios]

    return load_keys


def refusals(load: Load, keys: str, **tables: str) -> list[str]:
    with pytest.raises(FormatError) as caught:
        load(keys, **tables)
    return [
        f"{Path(p.span.file).name}:{p.span.line} {p.message}|{p.hint}"
        for p in caught.value.problems
        if p.span
    ]


TABLES = {
    "csv": 'city,degrees,path\nRome,21,"[a, b]"\nOslo,-3,"[a]"\n',
    "jsonl": '{"city": "Rome", "degrees": 21, "path": ["a", "b"]}\n\n'
    '{"city": "Oslo", "degrees": -3, "path": ["a"]}\n',
    "yaml": "- {city: Rome, degrees: 21, path: [a, b]}\n- {city: Oslo, degrees: -3, path: [a]}\n",
    "json": '[{"city": "Rome", "degrees": 21, "path": ["a", "b"]}, {"city": "Oslo", "degrees": -3, "path": ["a"]}]',
}


@pytest.mark.parametrize("suffix", [*TABLES, "list"])
def test_each_row_is_a_scenario_filled_with_its_values(load: Load, suffix: str) -> None:
    cases = TABLES["yaml"] if suffix == "list" else f"t.{suffix}"
    if suffix == "list":
        cases = "[{city: Rome, degrees: 21, path: [a, b]}, {city: Oslo, degrees: -3, path: [a]}]"
    keys = (
        f"cases: {cases}, input: 'Weather in ${{case.city}}?', "
        "llm: {a: ['It is ${case.degrees}.']}, expect: {path: '${case.path}', state: {n: '${case.degrees}'}}"
    )
    rome, oslo = load(keys, **({} if suffix == "list" else {f"t_{suffix}": TABLES[suffix]}))
    assert [rome.name, oslo.name] == ["x[Rome]", "x[Oslo]"]
    assert rome.turns[0].input == "Weather in Rome?"
    assert rome.expect.values == {"path": ["a", "b"], "state": {"n": 21}}
    assert oslo.expect.values == {"path": ["a"], "state": {"n": -3}}
    assert oslo.world.llm[0].answer["reply"] == "It is -3."


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("21", 21),
        ("-1.5", -1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("null", None),
        ("", ""),
        ("007", "007"),
        ("+49", "+49"),
        ("1,5", "1,5"),
        ("9" * 5000, "9" * 5000),
        ("1e999", "1e999"),
        ("yes", "yes"),
        ("[a, 1]", ["a", 1]),
        ("[a, b", "[a, b"),
        ("{a: 1}", {"a": 1}),
        ('"21"', "21"),
    ],
)
def test_a_cell_of_csv_has_the_type_that_it_looks_like(load: Load, cell: str, value: Any) -> None:
    quoted = '"' + cell.replace('"', '""') + '"'
    (one,) = load("cases: t.csv, expect: {output: '${case.v}'}", t_csv=f"id,v\n1,{quoted}\n")
    assert one.expect.values["output"] == value
    assert type(one.expect.values["output"]) is type(value)


def test_a_cell_that_looks_like_a_number_is_text_where_only_text_fits(load: Load) -> None:
    keys = "cases: t.csv, input: '${case.q}', expect: {state: {n: '${case.q}'}}"
    (one,) = load(keys, t_csv="id,q\n1,42\n")
    assert one.turns[0].input == "42"
    assert one.expect.values["state"] == {"n": 42}


def test_a_number_is_written_as_in_the_table_inside_a_text(load: Load) -> None:
    (one,) = load("cases: t.csv, input: 'It is ${case.v} or ${case.w}'", t_csv="id,v,w\n1,1.50,true\n")
    assert one.turns[0].input == "It is 1.50 or true"


def test_the_quotes_that_make_a_number_a_text_are_not_written(load: Load) -> None:
    (one,) = load(
        "cases: t.csv, input: 'It is ${case.v}, a ${case.w}'", t_csv='id,v,w\n1,"""007""","""a"" b"\n'
    )
    assert one.turns[0].input == 'It is 007, a "a" b'


def test_a_part_of_a_value_has_a_dotted_name(load: Load) -> None:
    (one,) = load("cases: t.jsonl, input: '${case.ask.city}'", t_jsonl='{"id": 1, "ask": {"city": "Rome"}}')
    assert one.turns[0].input == "Rome"


def test_rows_are_named_by_the_column_name_then_the_first_column_then_their_number(load: Load) -> None:
    rows = '[{city: Rome, name: south}, {city: Oslo}, {text: "two\\nlines"}, {list: [1]}, {n: 7}]'
    assert [each.name for each in load(f"cases: {rows}")] == ["x[south]", "x[Oslo]", "x[3]", "x[4]", "x[7]"]


def test_the_column_weight_weighs_the_row(load: Load) -> None:
    weights = load("cases: t.csv, weight: 5", t_csv="city,weight\nRome,2\nOslo,0.5\nBari,\n")
    assert [each.weight for each in weights] == [2, 0.5, 5]


def test_what_selects_a_row_may_come_from_it(load: Load) -> None:
    keys = "cases: t.csv, tags: ['${case.tag}'], skip: '${case.why}', repeat: '${case.times}'"
    first, second = load(keys, t_csv="id,tag,why,times\n1,red,slow,2\n2,blue,later,3\n")
    assert (first.tags, first.skip, first.repeat) == (("red",), "slow", 2)
    assert (second.tags, second.skip, second.repeat) == (("blue",), "later", 3)


def test_defaults_are_filled_too(tmp_path: Path) -> None:
    file = tmp_path / "a.scenario.yaml"
    file.write_text(
        "harness: 1\nmanifest: m.yaml\ndefaults: {cases: [{id: 1}], expect: {output: 'n ${case.id}'}}\n"
        "scenarios: [{name: x}, {name: y, cases: [{id: 2}, {id: 3}]}]"
    )
    found = [scenario.whole() for scenario in load_file(file).scenarios]
    assert [(each.name, each.expect.values["output"]) for each in found] == [
        ("x[1]", "n 1"),
        ("y[2]", "n 2"),
        ("y[3]", "n 3"),
    ]


def test_a_row_survives_the_way_to_another_process(load: Load) -> None:
    keys = "cases: [{id: 1}, {id: 2}], expect: {output: '${case.id}'}"
    load(keys)
    second = load_file_again(load, keys)[1]
    assert pickle.loads(pickle.dumps(second)).whole().expect.values["output"] == 2


def load_file_again(load: Load, keys: str) -> list[Scenario]:
    return [pickle.loads(pickle.dumps(each)) for each in load(keys)]


def test_the_rest_of_a_large_table_is_built_when_it_runs(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,input\n" + "".join(f"{n},[a]\n" for n in range(2000)) + "last,x\n")
    file = tmp_path / "a.scenario.yaml"
    file.write_text("harness: 1\nmanifest: m\nscenarios: [{name: x, cases: t.csv, input: '${case.nput}'}]")
    with pytest.raises(FormatError, match="no column 'nput'"):
        load_file(file)
    file.write_text(
        "harness: 1\nmanifest: m\nscenarios: [{name: x, cases: t.csv, seed: 3, expect: {path: '${case.input}'}}]"
    )
    last = load_file(file).scenarios[-1]
    assert (last.name, last.seed, last.pending is None) == ("x[last]", 3, False)
    with pytest.raises(FormatError, match=r"expected a list, .*in case 'last' \(.*t.csv:2002:1\)"):
        last.whole()


@pytest.mark.parametrize(
    ("table", "refusal"),
    [
        ("", "t.csv:1 no cases in {t}|the file is empty"),
        (
            "id\n",
            "t.csv:1 no cases in {t}|its first line names the columns, and no case is below it",
        ),
        (
            "id\na\nb\na\n",
            "t.csv:4 a second case 'a' (first in line 2)|cases are named by their first column: add a column 'name'",
        ),
        ("id,name\n1,a\n2,a\n", "t.csv:3 a second case 'a' (first in line 2)|"),
        ("id,\n1,2\n", "t.csv:1 a column without a name|"),
        ("id,id\n1,2\n", "t.csv:1 a second column 'id'|"),
        (
            "id;v\n1;2\n",
            "t.csv:1 one column only: columns are separated by commas|save the table as CSV with commas",
        ),
        (
            "id,v\n1\n2",
            "t.csv:2 1 cell, where the first line has 2 columns|each row has a cell for each column, be it empty",
        ),
        (
            "id\n1,2\n",
            "t.csv:2 2 cells, where the first line has 1 column|a comma inside a cell needs quotes around the cell",
        ),
        ("id,weight\n1,0\n", "t.csv:2 a weight is a number above 0, and at most 1e+15, found the number 0|"),
        (
            "id,weight\n1,1e16\n",
            "t.csv:2 a weight is a number above 0, and at most 1e+15, found the number 1e+16|",
        ),
        (
            "id,weight\n1,much\n",
            "t.csv:2 a weight is a number above 0, and at most 1e+15, found text 'much'|",
        ),
        ("id\n1\n\0", "t.csv:3 not a text file: it contains zero bytes|"),
        (
            "citi\nRome\n",
            "a.scenario.yaml:4 no column 'id' in {t}, in case 'Rome' ({t}:2:1)|known: citi",
        ),
    ],
)
def test_a_faulty_table_is_refused_where_it_is_at_fault(
    load: Load, tmp_path: Path, table: str, refusal: str
) -> None:
    (found,) = refusals(load, "cases: t.csv, input: '${case.id}'", t_csv=table)
    assert found == refusal.format(t=(tmp_path / "t.csv").as_posix())


@pytest.mark.parametrize(
    ("keys", "refusal"),
    [
        ("cases: none.csv", "none.csv: no such file"),
        ("cases: t.txt", "its name must end in one of .csv, .jsonl, .yaml, .yml, .json"),
        ("cases: 3", "expected a list of cases, each a mapping, found the number 3"),
        ("cases: []", "no cases in the list"),
        ("cases: [3]", "a case is a mapping of columns, found the number 3"),
        ("cases: [{a: 1}], visits: 3", "unknown key 'visits'"),
        (
            "cases: [{a: 1}], expect: {visits: {'${case.a}': 1}}",
            "keys are not filled from cases, only values are",
        ),
        ("input: '${case.a}'", "there are no cases to take '${case.a}' from"),
        ("cases: [{a: 1}], test_scenario: '${case.b}'", "no column 'b' in"),
    ],
)
def test_what_cannot_be_filled_is_refused(load: Load, keys: str, refusal: str) -> None:
    (found,) = refusals(load, keys)
    assert found.startswith("a.scenario.yaml:4 ")
    assert refusal in found


def test_lines_of_json_are_refused_one_by_one(load: Load) -> None:
    assert "t.jsonl:2 not valid JSON: " in refusals(load, "cases: t.jsonl", t_jsonl='{"a": 1}\n{"a": \n')[0]
    assert "expected a value, found 'NaN'" in refusals(load, "cases: t.jsonl", t_jsonl='{"a": NaN}')[0]
    assert "found a list" in refusals(load, "cases: t.jsonl", t_jsonl="[1]")[0]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(value=VALUES)
def test_a_value_of_json_lines_arrives_as_it_is(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    folder = tmp_path_factory.mktemp("cases")
    (folder / "t.jsonl").write_text(json.dumps({"id": 1, "v": value}) + "\n")
    file = folder / "a.scenario.yaml"
    file.write_text(
        "harness: 1\nmanifest: m\nscenarios: [{name: x, cases: t.jsonl, input: {v: '${case.v}'}}]"
    )
    (one,) = load_file(file).scenarios
    assert one.whole().turns[0].input == {"v": value}


@given(data=st.binary(max_size=60), suffix=st.sampled_from([".csv", ".jsonl", ".yaml", ".json"]))
def test_no_table_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, suffix: str
) -> None:
    folder = tmp_path_factory.mktemp("cases")
    (folder / f"t{suffix}").write_bytes(b"id,v\n" * (suffix == ".csv") + data)
    file = folder / "a.scenario.yaml"
    text = f"harness: 1\nmanifest: m\nscenarios: [{{name: x, cases: t{suffix}, input: {{v: '${{case.v}}'}}}}]"
    file.write_text(text)
    try:
        assert [each.whole().name for each in load_file(file).scenarios]
    except FormatError as error:
        found = error.problems
    else:
        found = ()
    assert all(problem.span for problem in found)


@pytest.mark.parametrize(
    ("name", "content", "refusal"),
    [
        ("t.csv", b'a,b\n1,"x\n2,3\n', '{t}:2:3: this " is never closed'),
        ("t.csv", b'a,b\n1,"x\ny","z', '{t}:3:4: this " is never closed'),
        ("t.csv", b'a,b\n1,"x"y\n', '{t}:2:6: text after the " that ends a cell'),
        ("t.csv", b"a,b\r1,2\r", "{t}:1:4: a carriage return without a line feed"),
        ("t.csv", b'a\n"' + b"long\n" * 300_000, "{t}:2:1: a cell of more than 1 MiB"),
        ("t.csv", b"a\n\xff\n", "{t}:2:1: not UTF-8: the byte 0xff"),
        ("t.jsonl", b'{"a": 1}\n{"a": "x', '{t}:2:7: not valid JSON: this " is never closed'),
        ("t.jsonl", b'{"a": 1', "{t}:1:8: not valid JSON: expected ',' or '}', the line ends"),
        ("t.jsonl", b'{"a": 1,\n', "{t}:1:9: not valid JSON: expected a key in double quotes, the line ends"),
        ("t.jsonl", b'{"a": 1} {"a": 2}\n', "{t}:1:10: not valid JSON: text after the end of the JSON value"),
        ("t.jsonl", b"[" * 5000, "nested more than"),
        ("t.jsonl", b"1" * 5000, "{t}:1:1: not valid JSON: this number has too many digits"),
        ("t.jsonl", b"\x89PNG\x00", "{t}:1:5: not a text file: it contains zero bytes"),
        ("t.json", b'[{"a": 1}, {"a', '{t}:1:13: not valid JSON: this " is never closed'),
        (
            "t.json",
            b'[{"a": "x\n',
            "{t}:1:10: not valid JSON: a new line, tab or control character inside a text",
        ),
        ("t.json", b'[{"a": 1}, ', "{t}:1:12: not valid JSON: expected a value, the file ends"),
        ("t.json", b'[{"a": "C:\\d"}]', "{t}:1:11: not valid JSON: this is not an escape sequence of JSON"),
        ("t.json", b"\x00", "{t}:1:1: not a text file: it contains zero bytes"),
        ("t.json", b"", "{t}:1:1: the file is empty"),
        ("t.yaml", b"- a: 1\n- {a: ", "{t}:2:3: not valid YAML: this '{' is never closed"),
        ("t.yaml", b"- a: 1\n- a: [1", "{t}:2:6: not valid YAML: this '[' is never closed"),
        ("t.yaml", b"- a: 'x\n- b\n", "{t}:1:6: not valid YAML: this ' is never closed"),
        ("t.yaml", b"", "{t}:1:1: the file is empty"),
        ("t.jsonl", b"", "no cases in {t}\n    the file is empty"),
    ],
)
def test_a_table_that_was_cut_off_is_refused_where_it_ends(
    tmp_path: Path, name: str, content: bytes, refusal: str
) -> None:
    (tmp_path / name).write_bytes(content)
    file = tmp_path / "a.scenario.yaml"
    file.write_text(f"harness: 1\nmanifest: m\nscenarios: [{{name: x, cases: {name}, input: '${{case.a}}'}}]")
    with pytest.raises(FormatError) as caught:
        load_file(file)
    assert refusal.replace("{t}", str(tmp_path / name)) in str(caught.value)
