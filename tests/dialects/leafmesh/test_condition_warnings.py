"""Valid conditions that are false for every output, because of a misspelt name. spec: "Condition Syntax"."""

from __future__ import annotations

import pytest

from tests.dialects.leafmesh.opener import Opener

MESH = """\
agents:
  desk: {YIELDS, can_call: [{agent: owner, condition: "CONDITION"}]}
  owner: {agent_type: human, inputs: {order: string}, can_call: [{agent: desk, condition: "OWNERS"}]}
entry_points: [{name: go, target: owner, condition: "ENTRY"}]
"""


def warnings(
    opener: Opener,
    condition: str,
    *,
    yields: str = "yields: {status: string}",
    types_with_field: str = "true",
    entry: str = "true",
) -> list[tuple[str, str]]:
    text = MESH.replace("YIELDS", yields).replace("CONDITION", condition)
    found = opener.open(text.replace("OWNERS", types_with_field).replace("ENTRY", entry)).warnings
    return [(warning.message, warning.hint) for warning in found]


@pytest.mark.parametrize(
    ("condition", "field", "hint"),
    [
        ("calling_agent_response.stats == 'x'", "stats", "did you mean 'status'?"),
        ("not staus", "staus", "did you mean 'status'?"),
        (
            "calling_agent_respones.status == 'x'",
            "calling_agent_respones",
            "did you mean 'calling_agent_response'?",
        ),
        ("status == ready or status == 'done'", "ready", "text is written in quotes: 'ready'"),
        ("not (calling_agent_response.status != ready)", "ready", "text is written in quotes: 'ready'"),
        ("else", "else", "every entry whose condition holds is called"),
    ],
)
def test_a_name_that_is_probably_another_is_a_warning(
    opener: Opener, condition: str, field: str, hint: str
) -> None:
    ((message, found),) = warnings(opener, condition)
    assert field in message
    assert message.endswith("which nothing declares")
    assert hint in found


@pytest.mark.parametrize(
    "condition",
    [
        "status == 'ready'",
        "calling_agent_response.status",
        "urgent",
        "score > 5",
        "other.status == 'x'",
        "status == null",
    ],
)
def test_no_warning_for_other_names(opener: Opener, condition: str) -> None:
    assert warnings(opener, condition) == []


def test_fields_of_an_agent_without_yields_may_be_compared(opener: Opener) -> None:
    assert warnings(opener, "first == second", yields="model: m") == []
    ((message, _),) = warnings(opener, "calling_agent_response.status == ready", yields="model: m")
    assert "'ready'" in message


def test_fields_of_a_response_format_are_declared(opener: Opener) -> None:
    schema = "response_format: {type: object, properties: {status: {type: string}}}"
    assert warnings(opener, "status == 'x'", yields=schema) == []
    ((_, hint),) = warnings(opener, "stats == 'x'", yields=schema)
    assert "status" in hint


def test_output_fields_of_human_agents_are_known(opener: Opener) -> None:
    assert warnings(opener, "true", types_with_field="human_decision == 'yes' and from_agent == 'desk'") == []
    ((_, hint),) = warnings(opener, "true", types_with_field="human_decison == 'yes'")
    assert hint == "did you mean 'human_decision'?"


def test_an_entry_point_reads_the_inputs_of_its_target(opener: Opener) -> None:
    assert warnings(opener, "true", entry="input_data.order == 'x'") == []
    ((_, hint),) = warnings(opener, "true", entry="ordr == 'x'")
    assert hint == "did you mean 'order'?"
    ((_, hint),) = warnings(opener, "true", entry="input_dat.order == 'x'")
    assert hint == "did you mean 'input_data'?"


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        (
            "weight > '20'",
            "the condition compares 'weight', a number, with '20', a string: it is always false",
            "write 20 without quotes",
        ),
        (
            "not (ready and '20' != calling_agent_response.weight)",
            "the condition compares 'weight', a number, with '20', a string: it is always true",
            "write 20 without quotes",
        ),
        (
            "ready == 'yes'",
            "the condition compares 'ready', a boolean, with 'yes', a string: it is always false",
            "",
        ),
        (
            "status == 3",
            "the condition compares 'status', a string, with 3, a number: it is always false",
            "",
        ),
        (
            "other >= '2.5'",
            "the condition compares 'other' with the text '2.5': it is false for every number",
            "write 2.5 without quotes",
        ),
    ],
)
def test_a_comparison_of_two_types_is_a_warning(
    opener: Opener, condition: str, message: str, hint: str
) -> None:
    """Nothing is converted."""
    yields = "yields: {weight: number, status: string, ready: boolean}"
    assert warnings(opener, condition, yields=yields) == [(message, hint)]


@pytest.mark.parametrize(
    "condition",
    ["weight > 20", "status > '20'", "ready == true", "weight == null", "other == '3'", "day > '2026-01-01'"],
)
def test_a_comparison_of_one_type_is_none(opener: Opener, condition: str) -> None:
    yields = "yields: {weight: number, status: string, ready: boolean, more: object}"
    assert warnings(opener, condition, yields=yields) == []


def test_a_comparison_with_an_input_of_another_type_is_a_warning(opener: Opener) -> None:
    ((message, _),) = warnings(opener, "true", entry="input_data.order > 5")
    assert message == "the condition compares 'order', a string, with 5, a number: it is always false"
