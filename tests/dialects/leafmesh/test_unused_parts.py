"""Warnings about agents without callers, and tools without agents or registration."""

from pathlib import Path

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from tests.dialects.leafmesh.opener import Opener

MESH = """\
name: desk
auto_discover: {directory: agency, pattern: "*.py"}
entry_points: [{name: ask, target: reader}]
agents:
  reader: {agent_type: llm, model: m, prompt: Read., tools: [find], can_call: [{agent: other}]}
  other: {agent_type: programmatic}
  joined: {agent_type: llm, model: m, prompt: Join., wait_for: other}
"""
TOOLS = """\
from leafmesh import global_tool


@global_tool(name="find", description="Finds")
def find(q: str) -> dict:
    return {"found": q}


def other(llm_response, input_data, context):
    return {"done": True}
"""


def warned(folder: Path, mesh: str, tools: str = TOOLS, agent: str | None = None) -> list[str]:
    (folder / "agency").mkdir()
    (folder / "agency" / f"{folder.name}_tools.py").write_text(tools)
    (folder / "mesh.yaml").write_text(mesh)
    graph = load_graph(LoadRequest((folder / "mesh.yaml",), agent=agent, folders=(folder,)), "leafmesh")
    return [
        f"{problem.span.line}:{problem.span.column} {problem.message}|{problem.hint}"
        for problem in graph.warnings
        if problem.span and problem.severity == "warning"
    ]


def test_used_parts_cause_no_warning(tmp_path: Path) -> None:
    assert warned(tmp_path, MESH) == []


def test_an_agent_that_nothing_leads_to(tmp_path: Path) -> None:
    (text,) = warned(
        tmp_path, MESH.replace(", can_call: [{agent: other}]", "").replace(", wait_for: other", "")
    )[:1]
    assert text.startswith(
        "6:3 agent 'other' can never run: no agent calls it, and no entry point leads to it"
    )


def test_agents_that_only_call_each_other(tmp_path: Path) -> None:
    calls = "{agent_type: programmatic, can_call: [{agent: third}]}"
    third = "  third: {agent_type: programmatic, can_call: [{agent: other}]}\n"
    mesh = MESH.replace(", can_call: [{agent: other}]", "").replace(", wait_for: other", "")
    found = warned(tmp_path, mesh.replace("{agent_type: programmatic}", calls) + third)
    assert [text.partition(" run")[0] + " run" for text in found if "can never run" in text][:2] == [
        "6:3 agent 'other' can never run",
        "7:3 agent 'joined' can never run",
    ]


@pytest.mark.parametrize(
    ("wait_for", "is_told"),
    [
        ("joined", True),
        ("other AND joined", True),
        ("other AND (joined OR joined)", True),
        ("other OR joined", False),
        ("other AND joined?", False),
        ("other AND joined, can_call: [{agent: joined, condition: again}]", False),
    ],
)
def test_an_agent_that_waits_for_itself(tmp_path: Path, wait_for: str, is_told: bool) -> None:
    found = warned(tmp_path, MESH.replace("wait_for: other", f"wait_for: {wait_for}"), agent="joined")
    text = (
        "7:64 agent 'joined' waits for itself, and does not call itself: its join never holds|"
        "take 'joined' out of its wait_for, or name it under its own can_call"
    )
    assert found == [text] * is_told


def test_query_knowledge_without_knowledge(tmp_path: Path) -> None:
    mesh = MESH.replace("tools: [find]", "tools: [find, query_knowledge]")
    (text,) = warned(tmp_path, mesh)
    assert text.startswith("5:68 agent 'reader' has no knowledge, so it is not offered 'query_knowledge'|")


def test_query_knowledge_with_knowledge(tmp_path: Path) -> None:
    listed = "tools: [find, query_knowledge], knowledge: {serviceName: kb}"
    assert warned(tmp_path, MESH.replace("tools: [find]", listed)) == []


def test_a_category_that_no_tool_has(tmp_path: Path) -> None:
    tools = TOOLS.replace('description="Finds"', 'description="Finds", category="books"')
    (text,) = warned(
        tmp_path, MESH.replace("tools: [find]", "tools: [find], tool_categories: [books, boks]"), tools
    )
    assert text == (
        "5:94 no registered tool is of the category 'boks' of agent 'reader'|did you mean 'books'?"
    )


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('description="Finds"', 'description="Finds", allowed_agents=["reader", "raeder"]', "4:74"),
        ("def other", "from leafmesh import compose\n\n@compose(joind=len, audit=len)\ndef other", "11:16"),
    ],
)
def test_a_decorator_that_names_nearly_an_agent(tmp_path: Path, old: str, new: str, where: str) -> None:
    (text,) = warned(tmp_path, MESH, TOOLS.replace(old, new))
    assert text.startswith(f"{where} @")
    assert "which is not an agent|did you mean '" in text


def test_an_agent_that_is_entered_by_its_name(tmp_path: Path) -> None:
    mesh = MESH.replace(", can_call: [{agent: other}]", "")
    assert warned(tmp_path, mesh, agent="other") == []


@pytest.mark.parametrize(
    ("mesh", "expected"),
    [
        (
            MESH.replace("tools: [find]", "tools: [find, fnid]"),
            ["5:68 no file of the agency registers the tool 'fnid' of agent 'reader'|did you mean 'find'?"],
        ),
        (
            MESH.replace(", tools: [find]", ""),
            ["2:16 no agent has the tool 'find', which the agency registers|"],
        ),
    ],
)
def test_a_tool_on_one_side_alone(tmp_path: Path, mesh: str, expected: list[str]) -> None:
    assert warned(tmp_path, mesh) == expected


def test_a_mesh_without_tools_of_its_own_leaves_them_to_the_scenario(tmp_path: Path) -> None:
    assert warned(tmp_path, MESH, "def other(llm_response, input_data, context):\n    return {}\n") == []


def test_a_tool_choice_that_is_none_of_the_tools(tmp_path: Path) -> None:
    mesh = MESH.replace("tools: [find]", "tools: [find], tool_choice: fnd")
    assert warned(tmp_path, mesh) == [
        "5:82 the tool_choice of agent 'reader' is not one of its tools: 'fnd'|did you mean 'find'?"
    ]


@pytest.mark.parametrize(
    "fields",
    [
        "tools: [find], tool_choice: find",
        "tools: [find], tool_choice: none",
        "tools: [find], knowledge: {serviceName: kb}, tool_choice: query_knowledge",
    ],
)
def test_a_tool_choice_that_names_a_tool(tmp_path: Path, fields: str) -> None:
    assert not any("tool_choice" in text for text in warned(tmp_path, MESH.replace("tools: [find]", fields)))


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ("max_concurrent: 2", "parallel: true"),
        ("wait_for_timeout: 5", "wait_for"),
        ("enforce_yields: true", "yields"),
        ("enforce_yields_retry: 1", "enforce_yields: true"),
        ("memory_limit: 3", "memory"),
    ],
)
def test_a_field_that_counts_only_beside_another_is_a_note(opener: Opener, fields: str, written: str) -> None:
    key = fields.partition(":")[0]
    (note,) = opener.open(f"entry_points: []\nagents:\n  a: {{agent_type: programmatic, {fields}}}\n").notes
    assert note.message == f"'{key}' of agent 'a' changes nothing without `{written}`"
    assert opener.place(note) == key
