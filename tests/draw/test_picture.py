"""Pictures of graphs: joins, limits and other properties beyond nodes and edges."""

from dataclasses import replace
from xml.etree import ElementTree

from harness.draw.diagram import picture
from harness.graph.events import ConcurrencyLimit
from harness.graph.model import END, START, Edge, Graph, Node, State, Update
from tests.engine.events import compiled


async def stay(_state: State, _ctx: object) -> Update:
    return Update()


LOOSE = Graph(
    name="g",
    dialect="test",
    nodes=(Node("plan", "step", stay), Node("act", "step", stay)),
    edges=(Edge(START, "plan"), Edge("plan", END), Edge("act", END)),
    channels=(),
    goto_anywhere=frozenset({"plan"}),
)
EVENTS = compiled(
    {
        "start": ["a", "b"],
        "limit": 2,
        "nodes": {
            "a": {"to": "c"},
            "b": {"to": "c"},
            "c": {"wait_for": "a AND b?", "timeout": 5, "limit": 1},
        },
    }
)


def test_goto_any_node_is_one_edge_and_makes_all_nodes_reachable() -> None:
    text = picture(LOOSE, "text")
    assert "plan  [step]\n├─▶ (end)\n└─ goto any ─▶ *\n" in text
    assert "unreachable" not in text


def test_unreachable_goto_makes_no_node_reachable() -> None:
    assert "plan  [step]  (unreachable)" in picture(replace(LOOSE, edges=(Edge(START, "act"),)), "text")


def test_pictures_show_joins_and_limits_of_an_event_graph() -> None:
    assert picture(EVENTS, "text") == (
        "(start)\n"
        "├─ 2 nodes at once ─▶ a\n"
        "└─ 2 nodes at once ─▶ b\n"
        "\n"
        "a  [step]\n"
        "└─▶ c\n"
        "\n"
        "b  [step]\n"
        "└─▶ c\n"
        "\n"
        "c  [step · waits at most 5 s for a AND b? · 1 at once]\n"
        "└─▶ (end)\n"
    )
    assert "step · waits at most 5 s for a AND b" in picture(EVENTS, "mermaid")
    ElementTree.fromstring(picture(EVENTS, "svg"))


MESH = compiled(
    {
        "start": "split",
        "nodes": {
            "split": {"to": [{"a": "severity > 3"}, "b", "c"]},
            "a": {"to": "join"},
            "b": {"to": "join"},
            "c": {"to": "join"},
            "join": {"wait_for": "a AND (b OR c?)"},
            "all": {"wait_for": " AND ".join(f"worker_{number}" for number in range(50)), "timeout": 60},
        },
    }
)


def test_pictures_show_conditions_on_edges_and_joins_as_text() -> None:
    text, mermaid, svg = picture(MESH, "text"), picture(MESH, "mermaid"), picture(MESH, "svg")
    assert "split  [step]\n├─ severity > 3 ─▶ a\n├─▶ b\n" in text
    assert "join  [step · waits for a AND (b OR c?)]" in text
    assert '-->|"severity #62; 3"|' in mermaid
    assert "waits for a AND #40;b OR c#63;#41;" in mermaid
    assert all(f">{row}</text>" in svg for row in ("severity &gt; 3", "step", "waits for a AND (b OR c?)"))


def test_time_limit_of_a_join_is_visible_with_many_sources() -> None:
    assert "waits at most 60 s for worker_0 AND worker_1" in picture(MESH, "mermaid")
    assert ">waits at most 60 s for</text>" in picture(MESH, "svg")


def test_a_limit_of_several_nodes_names_the_others() -> None:
    shared = replace(EVENTS, limits=(ConcurrencyLimit(1, frozenset({"a", "b"})),))
    assert "a  [step · 1 at once with b]" in picture(shared, "text")


def test_default_limit_of_one_run_per_node_is_not_shown() -> None:
    each = tuple(ConcurrencyLimit(1, frozenset({node})) for node in ("a", "b", "c"))
    text = picture(replace(EVENTS, limits=each), "text")
    assert "at once" not in text
    assert "a  [step · 1 at once]\n" in picture(replace(EVENTS, limits=each[:2]), "text")
