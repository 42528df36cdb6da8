import re
import unicodedata
import xml.etree.ElementTree as ET
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.draw import diagram
from harness.graph.model import END, START, DataEdge

TRIAGE = (
    [("classify", "call_llm"), ("answer", "call_llm"), ("escalate", "interrupt"), ("orphan", "noop")],
    [
        (START, "classify", None),
        ("classify", "answer", 'intent == "billing"'),
        ("classify", "escalate", "otherwise"),
        ("escalate", "classify", "retry"),
        ("answer", "answer", None),
        ("answer", END, None),
    ],
)
CAPTION = (
    [("inputs", "StartNode"), ("write_label", "LlmNode"), ("outputs", "EndNode")],
    [
        (START, "inputs", None),
        ("inputs", "write_label", None),
        ("write_label", "outputs", None),
        ("outputs", END, None),
    ],
)
VALUES = [
    DataEdge("inputs", "crop", "write_label", "crop"),
    DataEdge("inputs", "size", "write_label", "length"),
    DataEdge("write_label", "label", "outputs", "label"),
    DataEdge("write_label", "label", "write_label", "previous"),
]
SVG = "{http://www.w3.org/2000/svg}"

names = st.one_of(st.sampled_from(["a", "b", "c", "d", START, END]), st.text(max_size=12))
labels = st.none() | st.text(max_size=80)


def parsed(drawing: str) -> Any:
    return ET.fromstring(drawing)


graphs = st.tuples(
    st.lists(st.tuples(names, st.text(max_size=10)), max_size=8),
    st.lists(st.tuples(names, names, labels), max_size=14),
)
values = st.lists(st.builds(DataEdge, names, st.text(max_size=40), names, st.text(max_size=40)), max_size=20)


def test_text_lists_every_node_with_its_kind_and_edges() -> None:
    assert diagram.text(*TRIAGE) == (
        "(start)\n"
        "└─▶ classify\n"
        "\n"
        "classify  [call_llm]\n"
        '├─ intent == "billing" ─▶ answer\n'
        "└─ otherwise ─▶ escalate\n"
        "\n"
        "orphan  [noop]  (unreachable)\n"
        "\n"
        "answer  [call_llm]\n"
        "├─▶ answer  (back)\n"
        "└─▶ (end)\n"
        "\n"
        "escalate  [interrupt]\n"
        "└─ retry ─▶ classify  (back)\n"
    )


def test_text_escapes_control_sequences() -> None:
    shown = diagram.text([("\x1b[31mred", "k")], [(START, "\x1b[31mred", "a\nb\u202e")])
    assert "\x1b" not in shown
    assert "\\x1b[31mred  [k]" in shown
    assert "└─ a b\\u202e ─▶ \\x1b[31mred" in shown


def test_node_named_only_by_an_edge_is_undeclared() -> None:
    assert "ghost  [undeclared]" in diagram.text([("a", "k")], [(START, "a", None), ("a", "ghost", None)])


def test_first_of_two_nodes_with_the_same_name_is_drawn() -> None:
    assert "a  [one]" in diagram.text([("a", "one"), ("a", "two")], [])


def test_an_edge_given_twice_is_drawn_once() -> None:
    assert diagram.mermaid([("a", "k")], [(START, "a", None)] * 2).count("-->") == 1


def test_mermaid_has_a_line_for_each_node_and_edge_with_dotted_back_edges() -> None:
    assert diagram.mermaid(*TRIAGE) == (
        "flowchart TD\n"
        '    n0(["start"])\n'
        '    n1("classify<br/><small>call_llm</small>")\n'
        '    n2("orphan<br/><small>noop</small>")\n'
        '    n3("answer<br/><small>call_llm</small>")\n'
        '    n4("escalate<br/><small>interrupt</small>")\n'
        '    n5(["end"])\n'
        "    n0 --> n1\n"
        '    n1 -->|"intent #61;#61; #34;billing#34;"| n3\n'
        '    n1 -->|"otherwise"| n4\n'
        '    n4 -.->|"retry"| n1\n'
        "    n3 -.-> n3\n"
        "    n3 --> n5\n"
        "    classDef unreachable stroke-dasharray: 4 3\n"
        "    class n2 unreachable\n"
    )


@pytest.mark.parametrize(
    ("label", "escaped"),
    [
        ('say "hi"', "say #34;hi#34;"),
        ("a[0] | b{1}", "a#91;0#93; #124; b#123;1#125;"),
        ("<b>&amp;#35;", "#60;b#62;#38;amp#59;#35;35#59;"),
        ("%%{init: {}}%%", "#37;#37;#123;init#58; #123;#125;#125;#37;#37;"),
        ("1. `code`", "1#46; #96;code#96;"),
        ("agent_tools-2.x __init__", "agent_tools-2.x #95;#95;init#95;#95;"),
        ("$$x$$", "#36;#8203;#36;x#36;#8203;#36;"),
        ("two\nlines", "two lines"),
    ],
)
def test_mermaid_labels_are_escaped(label: Any, escaped: Any) -> None:
    assert f'n0 -->|"{escaped}"| n1' in diagram.mermaid([("a", "k")], [(START, "a", label)])


def test_svg_has_a_box_for_each_node_with_name_and_kind() -> None:
    root = parsed(diagram.svg(*TRIAGE))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    for name, kind in TRIAGE[0][:3]:
        assert name in texts
        assert kind in texts
    assert "noop · unreachable" in texts
    assert {'intent == "billing"', "otherwise", "retry"} <= set(texts)
    assert [title.text for title in root.iter(f"{SVG}title")].count("start") == 1


def test_long_label_is_cut_with_the_whole_text_in_the_tooltip() -> None:
    long = "size(state.messages) > 10 && state.attempts < 3"
    root = parsed(diagram.svg([("a", "k")], [(START, "a", long)]))
    shown = [text.text for text in root.iter(f"{SVG}text")]
    assert long not in shown
    assert any(text.endswith("…") and long.startswith(text[:-1]) for text in shown)
    assert long in [title.text for title in root.iter(f"{SVG}title")]


def test_svg_has_no_external_resources_and_no_scripts() -> None:
    evil = "<script>alert(1)</script>"
    drawn = diagram.svg([(evil, evil)], [(START, evil, evil)])
    assert "<script" not in drawn
    assert "href" not in drawn
    assert "url(" not in drawn


def _boxes(drawing: Any) -> Any:
    for rect in parsed(drawing).iter(f"{SVG}rect"):
        if rect.get("stroke") or rect.get("fill-opacity"):
            yield _corners(rect)


def _corners(rect: Any) -> Any:
    x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def _lines(drawing: Any) -> Any:
    for path in parsed(drawing).iter(f"{SVG}path"):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d"))]
        yield min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2])


def _overlap(one: Any, other: Any) -> Any:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


plain_names = st.sampled_from([f"node{i}" for i in range(12)])
plain_edges = st.lists(
    st.tuples(plain_names, plain_names, st.sampled_from([None, "x > 3", "otherwise"])), max_size=24
)


plain_data = st.lists(
    st.builds(
        DataEdge, plain_names, st.sampled_from("abcdefgh"), plain_names, st.sampled_from(["a", "input"])
    ),
    max_size=24,
)


@given(plain_edges, plain_data)
def test_boxes_and_labels_never_overlap(edges: Any, data: Any) -> None:
    boxes = list(_boxes(diagram.svg([], [(START, "node0", None), *edges], data=data)))
    assert not [pair for pair in combinations(boxes, 2) if _overlap(*pair)]


ARCH_WITH_ITS_TOP_BESIDE_BOTH_ENDS = (
    [(START, "a", None)],
    [DataEdge("b", "x", "c", "x"), DataEdge("d", "a value with a very long name", "a", "x")],
)


@example(*ARCH_WITH_ITS_TOP_BESIDE_BOTH_ENDS)
@given(plain_edges, plain_data)
def test_all_elements_are_inside_the_drawing(edges: Any, data: Any) -> None:
    drawing = diagram.svg([], edges, data=data)
    width, height = map(float, parsed(drawing).get("viewBox").split()[2:])
    for left, top, right, bottom in [*_boxes(drawing), *_lines(drawing)]:
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height


def test_unreachable_nodes_are_beside_the_others() -> None:
    edges = [(START, "a", None), *(("a", f"a wide name {i}", "a condition") for i in range(6))]
    alone = diagram.svg([], edges)
    with_isle = diagram.svg([], [*edges, ("isle", "other isle", None)])
    widths = [float(parsed(drawing).get("width")) for drawing in (alone, with_isle)]
    assert widths[1] <= widths[0] + 220  # one more box


@given(graphs, values)
def test_any_names_and_labels_give_well_formed_xml(graph: Any, data: Any) -> None:
    parsed(diagram.svg(graph[0], graph[1], data=data))


@given(graphs, values)
def test_pictures_have_no_control_characters(graph: Any, data: Any) -> None:
    for picture in (diagram.text, diagram.mermaid, diagram.svg):
        drawn = set(picture(graph[0], graph[1], data=data)) - {"\n"}
        assert not {
            character for character in drawn if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        }
        assert not drawn & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068")


@given(graphs, values)
def test_every_mermaid_line_has_balanced_quotes(graph: Any, data: Any) -> None:
    for line in diagram.mermaid(graph[0], graph[1], data).splitlines():
        assert line.count('"') in (0, 2)


@given(graphs, values)
def test_pictures_are_deterministic(graph: Any, data: Any) -> None:
    for picture in (diagram.text, diagram.mermaid, diagram.svg):
        assert picture(graph[0], graph[1], data=data) == picture(graph[0], graph[1], data=data)


def test_sixty_nodes_and_a_chain_of_a_thousand_can_be_drawn() -> None:
    dense = [(f"n{i}", f"n{(i * 7 + j) % 60}", None) for i in range(60) for j in range(3)]
    chain = [(f"n{i}", f"n{i + 1}", None) for i in range(1000)]
    for edges in (dense, chain):
        parsed(diagram.svg([], [(START, "n0", None), *edges]))


def test_empty_graph_has_only_the_start() -> None:
    assert diagram.text([], []) == "(start)\n"
    assert len(list(parsed(diagram.svg([], [])).iter(f"{SVG}circle"))) == 1


def test_text_lists_data_edges_last() -> None:
    assert diagram.text(*CAPTION, VALUES) == diagram.text(*CAPTION) + (
        "\n"
        "data:\n"
        "  inputs.crop       → write_label.crop\n"
        "  inputs.size       → write_label.length\n"
        "  write_label.label → outputs.label\n"
        "  write_label.label → write_label.previous\n"
    )


def test_text_states_that_there_are_no_data_edges_if_requested() -> None:
    assert diagram.text(*CAPTION, []) == diagram.text(*CAPTION) + "\nno data edges\n"


def test_text_aligns_arrows_after_wide_characters() -> None:
    shown = diagram.text([], [], [DataEdge("画像", "x", "b", "x"), DataEdge("abcd", "x", "b", "x")])
    assert shown.endswith("data:\n  画像.x → b.x\n  abcd.x → b.x\n")


def test_a_data_edge_given_twice_is_drawn_once() -> None:
    assert diagram.text(*CAPTION, [*VALUES, *VALUES]) == diagram.text(*CAPTION, VALUES)
    assert diagram.mermaid(*CAPTION, [*VALUES, *VALUES]) == diagram.mermaid(*CAPTION, VALUES)


def test_mermaid_joins_data_edges_between_two_nodes_into_one_dotted_arrow() -> None:
    assert diagram.mermaid(*CAPTION, VALUES) == diagram.mermaid(*CAPTION) + (
        '    n1 -.->|"crop<br/>size → length"| n2\n'
        '    n2 -.->|"label"| n3\n'
        '    n2 -.->|"label → previous"| n2\n'
        "    linkStyle 4,5,6 stroke:#2f9e8f\n"
    )


def test_mermaid_escapes_names_of_outputs_and_inputs() -> None:
    drawn = diagram.mermaid([], [], [DataEdge("a", '"|<br/>', "b", "$$x$$")])
    assert '-.->|"#34;#124;#60;br#47;#62; → #36;#8203;#36;x#36;#8203;#36;"|' in drawn


@pytest.mark.parametrize("picture", [diagram.text, diagram.mermaid, diagram.svg])
def test_node_named_only_by_a_data_edge_is_undeclared(picture: Any) -> None:
    assert "undeclared" in picture(*CAPTION, data=[DataEdge("ghost", "x", "write_label", "x")])


@pytest.mark.parametrize("picture", [diagram.mermaid, diagram.svg])
def test_requesting_data_edges_changes_nothing_if_there_are_none(picture: Any) -> None:
    assert picture(*TRIAGE, data=[]) == picture(*TRIAGE)


def _strokes(drawing: Any) -> Any:
    """Return (title, colour, width, dashed) of each arrow."""
    for group in parsed(drawing).iter(f"{SVG}g"):
        line = group.find(f"{SVG}path")
        if line is not None:
            title = group.findtext(f"{SVG}title")
            dashed = line.get("stroke-dasharray") is not None
            yield title, line.get("stroke"), float(line.get("stroke-width")), dashed


def test_svg_distinguishes_data_edges_from_control_edges() -> None:
    strokes = list(_strokes(diagram.svg(*CAPTION, data=VALUES)))
    control = [stroke for stroke in strokes if stroke[0] is None]
    data = [stroke for stroke in strokes if stroke[0] is not None]
    assert [title for title, *_ in data] == ["crop, size → length", "label", "label → previous"]
    assert len(control) == len(CAPTION[1])
    for (_, colour, width, dashed), (_, other, wider, _) in zip(data, control, strict=False):
        assert dashed
        assert colour != other
        assert width < wider


def test_svg_label_of_a_data_edge_has_a_line_for_each_value() -> None:
    texts = [text.text for text in parsed(diagram.svg(*CAPTION, data=VALUES)).iter(f"{SVG}text")]
    assert {"crop", "size → length", "label", "label → previous"} <= set(texts)


def test_label_with_many_values_is_cut_with_all_in_the_tooltip() -> None:
    many = [DataEdge("inputs", f"v{i}", "write_label", f"v{i}") for i in range(12)]
    root = parsed(diagram.svg(*CAPTION, data=many))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "v6" in texts
    assert "v7" not in texts
    assert "… 5 more" in texts
    assert ", ".join(f"v{i}" for i in range(12)) in [title.text for title in root.iter(f"{SVG}title")]


def test_data_edge_within_a_layer_is_an_arch_above_it() -> None:
    edges = [(START, "a", None), ("a", "b", "x"), ("a", "c", "otherwise"), ("b", END, None), ("c", END, None)]
    root = parsed(diagram.svg([], edges, data=[DataEdge("b", "draft", "c", "draft")]))
    groups = {group.findtext(f"{SVG}title"): group for group in root.iter(f"{SVG}g")}
    b, c = (_corners(groups[f"{name} (undeclared)"].find(f"{SVG}rect")) for name in "bc")
    line = groups["draft"].find(f"{SVG}path").get("d")
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", line)]
    assert b[0] < numbers[0] < b[2]
    assert c[0] < numbers[-2] < c[2]
    assert max(numbers[1::2]) <= b[1] == c[1]


def test_data_edges_do_not_affect_layers() -> None:
    def tops(data: Any) -> Any:
        drawing = parsed(diagram.svg(*TRIAGE, data=data))
        return [float(rect.get("y")) for rect in drawing.iter(f"{SVG}rect") if rect.get("stroke")]

    assert tops(
        [DataEdge("answer", "reply", "classify", "hint"), DataEdge("answer", "x", "escalate", "x")]
    ) == tops([])
