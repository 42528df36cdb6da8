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
