"""Mining: the words and numbers that a graph compares with, and the shape of what it reads."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from harness.explore.mining import Mined, mined, shape_schema, used_as
from harness.graph.model import Edge, Graph, Node


async def never(*_: Any) -> Any:
    raise AssertionError


def graph(folder: Path, *edges: Edge, **files: str) -> Graph:
    """Return a graph that was compiled from these files; `_` in a name stands for the dot."""
    paths = []
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(dedent(text), encoding="utf-8")
        paths.append(path)
    nodes = tuple(Node(name, "node", never) for name in ("gather", "approve"))
    return Graph("g", "any", nodes, edges, (), sources=tuple(paths))


def found_in(folder: Path, expression: str) -> Mined:
    """Return what an expression of a manifest is mined for."""
    return mined(graph(folder, m_yaml=f"any key: {json.dumps(expression)}"))


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ("state.order.total > 100", {"order": {"total": {}}}),
        ('state["order"]["total"] > 100', {"order": {"total": {}}}),
        ("order.items[0].price == 1", {"order": {"items": {"0": {"price": {}}}}}),
        ("kind == 'a.b' and not urgent", {"kind": {}, "urgent": {}}),
        ("ready and order.paid", {"ready": {}, "order": {"paid": {}}}),
        ("state.text.contains('yes')", {"text": {}}),
        ('default(json(state.reply)["action"], "none") == "buy"', {"json": {"action": {}}, "reply": {}}),
        ('json(state.texts[size(state.texts) - 1])["action"]', {"json": {"action": {}}, "texts": {}}),
        ("Tell {{customer.name}} and {mood}.", {"customer": {"name": {}}, "mood": {}}),
        ("state.order", {"order": {}}),
        ("https://a.example/x", {}),
        ("package.module.function", {}),
        ("Be kind, and say why.", {}),
        ("${HOST:local} {not a name}", {}),
    ],
)
def test_expressions_and_templates_are_recognised_by_their_form(
    expression: str, reads: Any, tmp_path: Path
) -> None:
    found = dict(found_in(tmp_path, expression).reads)
    assert found == reads or {key: found[key] for key in found if key != "state"} == reads


@pytest.mark.parametrize(
    ("expression", "words", "numbers"),
    [
        ("state.kind == 'refund' && state.total >= 100", ["refund"], [100, 99, 101]),
        ("'vip' in state.tags", ["vip"], []),
        ("state.kind in ['one', 'two']", ["one", "two"], []),
        ("state.text.startsWith('ok go') || -2.5 < x", ["ok go"], [-2.5, -3.5, -1.5]),
        ("state['kind'] == 'a+b'", ["a+b"], []),  # a key is no word to compare with
    ],
)
def test_words_and_numbers_that_a_condition_compares_with_come_first(
    expression: str, words: list[str], numbers: list[float], tmp_path: Path
) -> None:
    found = found_in(tmp_path, expression)
    assert list(found.words[: len(words) + 1]) == [*words, "gather"]
    assert list(found.numbers) == numbers


def test_labels_of_edges_and_keys_that_lead_to_nodes_come_before_names_and_other_texts(
    tmp_path: Path,
) -> None:
    text = """\
        mapping: {big: approve, small: gather}
        edges: [{source: gather, target: approve}]
        prompt: Say "done", or `more`.
        title: My agent
        import: a/b.py
    """
    found = mined(graph(tmp_path, Edge("gather", "approve", "urgent"), m_yaml=text))
    assert found.words == ("big", "small", "urgent", "gather", "approve", "done", "more", "My agent")


PYTHON = [
    ("def f(state): return state['order']['total'] > 100", {"order": {"total": {}}}, ["gather"], [100, 99, 101]),
    ("def f(x): return x.get('kind') in ('a', 'b')", {"x": {"kind": {}}}, ["a", "b"], []),
    ("def f(r):\n    match r['kind']:\n        case 'buy' | 'sell': pass", {"r": {"kind": {}}}, ["buy", "sell"], []),
    ("def f(text): return text.startswith('yes')", {}, ["yes"], []),
    ("import re\ndef f(text): return re.search(r'\\bcancel\\b', text)", {}, ["cancel"], []),
    ("def f(m):\n    data = json.loads(m.content)\n    return data['action'] == 'buy'",
     {"m": {"content": {}}, "json": {"action": {}}}, ["buy"], []),
    ("def f(state):\n    order = find_order.invoke(state['id'])\n    return order['total'] > 3",
     {"id": {}, "find_order": {"total": {}}}, ["gather"], [3, 2, 4]),
    ("def f(x): return [i['price'] for i in x['items']]", {"x": {"items": {"*": {"price": {}}}}}, ["gather"], []),
    ("from typing import Literal\nKind = Literal['one', 'two']", {}, ["one", "two"], []),
    ("import os\ndef f(): return os.environ['KEY']", {}, ["gather"], []),
]  # fmt: skip


@pytest.mark.parametrize(("source", "reads", "words", "numbers"), PYTHON)
def test_code_is_read_for_comparisons_and_lookups(
    source: str, reads: Any, words: list[str], numbers: list[float], tmp_path: Path
) -> None:
    found = mined(graph(tmp_path, app_py=source))
    assert {key: below for key, below in found.reads.items() if key in reads} == reads
    assert list(found.words[: len(words)]) == words
    assert list(found.numbers) == numbers
    assert "os" not in found.reads


def test_code_that_a_manifest_names_and_that_code_imports_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("from other import x\ndef f(a): return a == 'one'", encoding="utf-8")
    (tmp_path / "other.py").write_text("def g(a): return a == 'two'", encoding="utf-8")
    further = tmp_path / "third.txt"
    further.write_text("'three' in state.words", encoding="utf-8")
    found = mined(graph(tmp_path, m_yaml="tool: own.f"), (further,))
    assert found.words[:3] == ("three", "one", "two")


def test_a_shape_has_all_that_is_read_with_types_by_what_it_is_compared_with(tmp_path: Path) -> None:
    code = """\
        def f(order):
            if order["paid"] and order["total"] > 3 and len(order["lines"]) > 1:
                return order["state"]["name"] == "open" or order["tags"][1] or order["note"]
    """
    found = mined(graph(tmp_path, app_py=code))
    expected = {
        "type": "object",
        "properties": {
            "paid": {"type": "string"},
            "total": {"type": "number"},
            "lines": {"type": "array"},
            "state": {
                "type": "object",
                "properties": {"name": {"type": "string", "examples": ["open"]}},
                "required": ["name"],
            },
            "tags": {"type": "array", "minItems": 2, "items": {"type": "string"}},
            "note": {"type": "string"},
        },
        "required": ["paid", "total", "lines", "state", "tags", "note"],
    }
    assert shape_schema(found, "order") == expected
    assert shape_schema(found, "find_order") == expected
    assert shape_schema(found, "weather") == {}
    assert shape_schema(found, "weather", "order") == expected
    typed = shape_schema(found, "order", types={"paid": {"type": "boolean"}})
    assert typed["properties"]["paid"] == {"type": "boolean"}


def test_a_text_without_letters_and_digits_is_no_word(tmp_path: Path) -> None:
    assert not {".", "- -"} & {*mined(graph(tmp_path, m_yaml="a: [., '- -', fine]")).words}


def test_mining_gives_the_same_again(tmp_path: Path) -> None:
    again = graph(tmp_path, m_yaml="a: [\"state.x == 'y'\", z]")
    assert mined(again) is mined(again)


def test_a_name_is_used_as_what_it_is_compared_with(tmp_path: Path) -> None:
    code = "def press(input_data):\n    apples = input_data['apples']\n    return apples >= 10\n"
    found = mined(graph(tmp_path, m_yaml="x: code.press", code_py=code))
    assert used_as(found, "apples") == {"type": "number"}
    assert used_as(found, "pears") == {}


def test_a_name_whose_methods_are_those_of_texts_is_a_text(tmp_path: Path) -> None:
    code = "def label(input_data):\n    return input_data['message'].upper()\n"
    found = mined(graph(tmp_path, m_yaml="x: code.label", code_py=code))
    assert used_as(found, "message") == {"type": "string"}
