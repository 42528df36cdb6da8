import unicodedata
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.graph import diagram
from harness.graph.model import END, START

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
SVG = "{http://www.w3.org/2000/svg}"

names = st.one_of(st.sampled_from(["a", "b", "c", "d", START, END]), st.text(max_size=12))
labels = st.none() | st.text(max_size=80)
graphs = st.tuples(
    st.lists(st.tuples(names, st.text(max_size=10)), max_size=8),
    st.lists(st.tuples(names, names, labels), max_size=14),
)


def test_the_text_lists_every_node_with_its_kind_and_its_ways():
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


def test_the_text_shows_escape_sequences_instead_of_sending_them():
    shown = diagram.text([("\x1b[31mred", "k")], [(START, "\x1b[31mred", "a\nb\u202e")])
    assert "\x1b" not in shown
    assert "\\x1b[31mred  [k]" in shown
    assert "└─ a b\\u202e ─▶ \\x1b[31mred" in shown


def test_a_node_that_only_an_edge_names_is_called_undeclared():
    assert "ghost  [undeclared]" in diagram.text([("a", "k")], [(START, "a", None), ("a", "ghost", None)])


def test_the_first_of_two_nodes_with_one_name_counts():
    assert "a  [one]" in diagram.text([("a", "one"), ("a", "two")], [])


def test_an_edge_given_twice_is_drawn_once():
    assert diagram.mermaid([("a", "k")], [(START, "a", None)] * 2).count("-->") == 1


def test_mermaid_has_a_line_for_each_node_and_edge_and_dots_the_ways_back():
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
def test_mermaid_labels_mean_nothing_to_mermaid(label, escaped):
    assert f'n0 -->|"{escaped}"| n1' in diagram.mermaid([("a", "k")], [(START, "a", label)])


def test_the_drawing_has_a_box_for_each_node_with_name_and_kind():
    root = ET.fromstring(diagram.svg(*TRIAGE))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    for name, kind in TRIAGE[0][:3]:
        assert name in texts
        assert kind in texts
    assert "noop · unreachable" in texts
    assert {'intent == "billing"', "otherwise", "retry"} <= set(texts)
    assert [title.text for title in root.iter(f"{SVG}title")].count("start") == 1


def test_a_label_that_is_too_long_is_cut_and_whole_in_the_tooltip():
    long = "size(state.messages) > 10 && state.attempts < 3"
    root = ET.fromstring(diagram.svg([("a", "k")], [(START, "a", long)]))
    shown = [text.text for text in root.iter(f"{SVG}text")]
    assert long not in shown
    assert any(text.endswith("…") and long.startswith(text[:-1]) for text in shown)
    assert long in [title.text for title in root.iter(f"{SVG}title")]


def test_the_drawing_loads_nothing_and_runs_nothing():
    evil = "<script>alert(1)</script>"
    drawn = diagram.svg([(evil, evil)], [(START, evil, evil)])
    assert "<script" not in drawn
    assert "href" not in drawn
    assert "url(" not in drawn


def test_what_was_not_taken_is_dashed():
    nodes, edges = [("a", "k"), ("b", "k")], [(START, "a", None), ("a", END, None), ("a", "b", None)]
    everything = {START, END, "a", "b", *(edge[:2] for edge in edges)}
    assert "dasharray" not in diagram.svg(nodes, edges, taken=everything)
    assert diagram.svg(nodes, edges, taken=everything - {"b", ("a", "b")}).count("dasharray") == 2


def _boxes(drawing):
    for rect in ET.fromstring(drawing).iter(f"{SVG}rect"):
        if rect.get("stroke") or rect.get("fill-opacity"):
            x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            yield x, y, x + width, y + height


def _overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


plain_names = st.sampled_from([f"node{i}" for i in range(12)])
plain_edges = st.lists(
    st.tuples(plain_names, plain_names, st.sampled_from([None, "x > 3", "otherwise"])), max_size=24
)


@given(plain_edges)
def test_boxes_and_labels_never_overlap(edges):
    boxes = list(_boxes(diagram.svg([], [(START, "node0", None), *edges])))
    assert not [pair for pair in combinations(boxes, 2) if _overlap(*pair)]


@given(plain_edges)
def test_everything_is_inside_the_drawing(edges):
    drawing = diagram.svg([], edges)
    width, height = map(float, ET.fromstring(drawing).get("viewBox").split()[2:])
    for left, top, right, bottom in _boxes(drawing):
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height


def test_what_nothing_leads_to_stands_beside_the_rest():
    edges = [(START, "a", None), *(("a", f"a wide name {i}", "a condition") for i in range(6))]
    alone = diagram.svg([], edges)
    with_isle = diagram.svg([], [*edges, ("isle", "other isle", None)])
    widths = [float(ET.fromstring(drawing).get("width")) for drawing in (alone, with_isle)]
    assert widths[1] <= widths[0] + 220  # one more box


@given(graphs)
def test_any_names_and_labels_give_well_formed_xml(graph):
    ET.fromstring(diagram.svg(*graph))


@given(graphs)
def test_no_picture_has_a_character_a_terminal_acts_on(graph):
    for picture in (diagram.text, diagram.mermaid, diagram.svg):
        drawn = set(picture(*graph)) - {"\n"}
        assert not {
            character for character in drawn if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        }
        assert not drawn & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068")


@given(graphs)
def test_every_mermaid_line_has_balanced_quotes(graph):
    for line in diagram.mermaid(*graph).splitlines():
        assert line.count('"') in (0, 2)


@given(graphs)
def test_the_same_graph_gives_the_same_pictures(graph):
    for picture in (diagram.text, diagram.mermaid, diagram.svg):
        assert picture(*graph) == picture(*graph)


def test_sixty_nodes_and_a_chain_of_a_thousand_can_be_drawn():
    dense = [(f"n{i}", f"n{(i * 7 + j) % 60}", None) for i in range(60) for j in range(3)]
    chain = [(f"n{i}", f"n{i + 1}", None) for i in range(1000)]
    for edges in (dense, chain):
        ET.fromstring(diagram.svg([], [(START, "n0", None), *edges]))


def test_a_graph_with_nothing_in_it_is_a_start():
    assert diagram.text([], []) == "(start)\n"
    assert len(list(ET.fromstring(diagram.svg([], [])).iter(f"{SVG}circle"))) == 1
