"""Inputs without a source, and data flow by name. spec: "Data relationships"."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.agentspec.flow_texts import (
    FLOW,
    MODEL,
    PROMPT,
    TABLE,
    VALUES,
    after,
    changed,
    data,
    node,
    without,
)
from tests.dialects.agentspec.loader import Loader


def test_values_flow_by_name_without_a_list_of_data_edges(loader: Loader) -> None:
    text = changed([(FLOW[FLOW.index(VALUES) : FLOW.index(TABLE)], "")])
    codes = {(problem.code, problem.message.split(" has")[0]) for problem in loader.graph(text).warnings}
    assert codes == {
        ("no-source", "Flow 'school': input 'branching_mapping_key' of the BranchingNode 'sort'"),
        ("no-source", "Flow 'school': input 'essay' of the ToolNode 'grade'"),
        ("no-source", "Flow 'school': input 'text' of the EndNode 'passed'"),
        ("no-source", "Flow 'school': input 'score' of the EndNode 'passed'"),
        ("no-source", "Flow 'school': input 'text' of the EndNode 'failed'"),
    }


def test_an_empty_list_of_data_edges_is_no_data_flow(loader: Loader) -> None:
    text = changed([(FLOW[FLOW.index(VALUES) : FLOW.index(TABLE)], "data_flow_connections: []\n")])
    assert ("no-source", "topic") in {
        (item.code, item.message.split("'")[3]) for item in loader.graph(text).warnings
    }


UNMATCHED = {
    "a number as an integer": ("number", "", "'7'", "gets number", "write '7.0'"),
    "an integer as a number": ("integer", "", "'7.0'", "gets integer", "write '7'"),
    "a number with a second zero": ("number", "", "'2.50'", "gets number", "write '2.5'"),
    "a boolean as Python writes it": ("boolean", "", "'True'", "gets boolean", "write 'true'"),
    "a word for a boolean": ("boolean", "", "'yes'", "gets boolean", ""),
    "a list without spaces": ("array", "", "'[1,2]'", "gets array", "write '[1, 2]'"),
    "a number that no float can be": ("number", "", f"'{10**400}'", "gets number", ""),
    "a boolean that may be text": (
        "boolean",
        "[string, boolean]",
        "'true'",
        "gets boolean",
        "declare 'mark' as a string",
    ),
    "an integer that stays one": ("integer", "integer", "'7'", "is integer", "declare 'mark' as a string"),
    "a boolean that stays one": ("boolean", "boolean", "'true'", "is boolean", "declare 'mark' as a string"),
    "a number or null": (
        "number",
        "[number, 'null']",
        "'7.0'",
        "is number or null",
        "declare 'mark' as a string",
    ),
}
MATCHED = {
    "a number": ("number", "", "'7.0'"),
    "a large number": ("number", "", "'1e+21'"),
    "an integer": ("integer", "", "'-7'"),
    "a boolean": ("boolean", "", "'true'"),
    "a list": ("array", "", "'[1, 2]'"),
    "a text": ("string", "", "'True'"),
    "a text or a number": ("[string, integer]", "[string, integer]", "'7'"),
    "an object": ("object", "", "'{}'"),
}


def branching_on_marks(kind: str, declared: str, key: str) -> str:
    """Return a flow whose BranchingNode gets the output of a tool, of this type, and has this key."""
    title = "mark" if declared else "branching_mapping_key"
    inputs = f", inputs: [{{title: mark, type: {declared}}}]" if declared else ""
    text: str = changed(
        [
            (
                data("write", "generated_text", "sort", "branching_mapping_key"),
                data("grade", "marks", "sort", title),
            ),
            (data("grade", "marks", "passed", "score"), ""),
            ("outputs: [{title: marks, type: integer}]", f"outputs: [{{title: marks, type: {kind}}}]"),
            ("mapping: {fine: good}", f"mapping: {{{key}: good}}{inputs}"),
        ]
    )
    return text


@pytest.mark.parametrize(("kind", "declared", "key", "which", "hint"), UNMATCHED.values(), ids=UNMATCHED)
def test_a_key_of_a_mapping_that_never_matches_is_a_warning(
    loader: Loader, kind: str, declared: str, key: str, which: str, hint: str
) -> None:
    [_, warning] = loader.graph(branching_on_marks(kind, declared, key)).warnings
    assert (warning.code, warning.severity, warning.hint) == ("unmatched-key", "warning", hint)
    title = "mark" if declared else "branching_mapping_key"
    assert (
        warning.message
        == f"BranchingNode 'sort': key {key} of its mapping never matches its input '{title}', which {which}"
    )
    assert loader.place(warning) == "good"


@pytest.mark.parametrize(("kind", "declared", "key"), MATCHED.values(), ids=MATCHED)
def test_a_key_of_a_mapping_that_may_match_is_no_warning(
    loader: Loader, kind: str, declared: str, key: str
) -> None:
    warnings = loader.graph(branching_on_marks(kind, declared, key)).warnings
    assert [warning.code for warning in warnings] == ["no-source"]


def test_a_key_of_a_mapping_may_match_the_default_or_another_source(loader: Loader) -> None:
    text = branching_on_marks("number", "string, default: none", "none")
    assert [warning.code for warning in loader.graph(text).warnings] == ["no-source"]
    text = text.replace(", default: none", "").replace(
        data("grade", "marks", "sort", "mark"),
        data("grade", "marks", "sort", "mark") + data("write", "generated_text", "sort", "mark"),
    )
    assert [warning.code for warning in loader.graph(text).warnings] == ["no-source"]


NO_SOURCE = {
    "its placeholder": (
        [without(data("begin", "topic", "write", "topic"))],
        "{{topic}}",
        "connect an output to it, or give it a default",
    ),
    "its placeholder in a later line": (
        [
            without(data("begin", "topic", "write", "topic")),
            (node("write", "LlmNode", f"{PROMPT}, llm_config: {MODEL}"), ""),
            after(
                TABLE,
                "  write:\n    component_type: LlmNode\n    name: write\n    prompt_template: |\n"
                f"      Write.\n      On {{{{ topic }}}}, please.\n    llm_config: {MODEL}\n",
            ),
        ],
        "{{ topic }}",
        "connect an output to it, or give it a default",
    ),
    "a text that is referred to": (
        [
            without(data("begin", "topic", "write", "topic")),
            (PROMPT, "prompt_template: {$component_ref: prompt}"),
            after(TABLE, "  prompt: 'On {{topic}}'\n"),
        ],
        "{$component_ref: prompt}",
        "connect an output to it, or give it a default",
    ),
    "what is written of it": (
        [without(data("begin", "topic", "write", "topic")), (PROMPT, PROMPT + ", inputs: [{title: topic}]")],
        "{title: topic}",
        "connect an output to it, or give it a default",
    ),
    "its node": (
        [without(data("write", "generated_text", "grade", "essay"))],
        "{component_type: ToolNode, name: grade,",
        "connect an output to it, or give it a default",
    ),
    "its node, with an output that is nearly called so": (
        [
            (data("begin", "topic", "write", "topic"), data("begin", "topics", "write", "topic")),
            ("name: begin, inputs: [{title: topic,", "name: begin, inputs: [{title: topics,"),
            ("\ninputs: [{title: topic,", "\ninputs: [{title: topics,"),
            (VALUES + data("begin", "topics", "write", "topic"), VALUES),
        ],
        "{{topic}}",
        "did you mean 'topics'? Otherwise connect an output to it, or give it a default",
    ),
}


@pytest.mark.parametrize(("changes", "place", "hint"), NO_SOURCE.values(), ids=NO_SOURCE)
def test_an_input_without_a_source_is_located_at_its_placeholder(
    loader: Loader, changes: Any, place: Any, hint: Any
) -> None:
    [warning] = loader.graph(changed(changes)).warnings
    assert (warning.code, warning.hint) == ("no-source", hint)
    assert loader.place(warning).startswith(place)
