"""What is allowed in a workflow and probably a mistake."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.yagra.loader import Loader
from tests.dialects.yagra.sound import PROMPTS, WORKFLOW, changed, parent

# what is odd: the changes that make it so; the code, the message, the place it points to
WARNINGS = {
    "a placeholder nobody sets": (
        [("output_key: leaf", "output_key: name"), ("leaf: {type: str}", "name: {type: str}")],
        "unknown-placeholder",
        "node 'name': nothing is known to set '{leaf}' of its prompt: "
        "it is neither in state_schema nor the output_key of a node",
        "{",
    ),
    "an output_key that is not kept": (
        [("output_key: leaf", "output_key: leav")],
        "undeclared-output",
        "node 'name': its output_key 'leav' is not in state_schema, so that what it writes is lost",
        "leav",
    ),
    "an output_key that is not said": (
        [(", output_key: leaf", "")],
        "undeclared-output",
        "node 'name': its output_key 'output' is not in state_schema, so that what it writes is lost",
        '{prompt_ref: "prompts/names.yaml#latin"}',
    ),
    "a version that is another": (
        [("#latin", "#latin@1")],
        "prompt-version",
        "prompt version '1' is asked for, and ",
        '"prompts/names.yaml#latin@1"',
    ),
}


@pytest.mark.parametrize(("changes", "code", "message", "place"), WARNINGS.values(), ids=WARNINGS)
def test_what_is_odd_is_warned_about(
    loader: Loader, changes: Any, code: Any, message: Any, place: Any
) -> None:
    (warning,) = loader.graph(changed(*changes), PROMPTS).warnings
    assert (warning.code, warning.severity) == (code, "warning")
    assert message in warning.message
    assert loader.place(warning) == place


def test_a_version_that_is_pinned_and_not_there_is_warned_about(loader: Loader) -> None:
    files = {"prompts/names.yaml": "latin: {user: Hi}"}
    (warning,) = loader.graph(changed(("#latin", "#latin@2")), files).warnings
    assert warning.message.endswith("has no _meta.version")


@pytest.mark.parametrize("reference", ["#latin@2", "#latin"])
def test_a_version_that_is_right_or_not_pinned_is_no_warning(loader: Loader, reference: Any) -> None:
    assert loader.graph(changed(("#latin", reference)), PROMPTS).warnings == ()


def test_what_is_odd_about_a_subgraph_is_told_with_its_node(loader: Loader) -> None:
    odd = changed(("#latin", "#latin@1"), ("output_key: leaf", "output_key: leav"))
    (lost, version) = loader.graph(parent("inner.yaml"), {"flows/inner.yaml": odd, **PROMPTS}).warnings
    assert lost.message.startswith(
        "subgraph 'grow': node 'name': its output_key 'leav' is not in state_schema"
    )
    assert version.message.startswith("subgraph 'grow': prompt version '1' is asked for")


def test_a_subgraph_without_a_schema_may_be_given_what_its_prompts_ask_for(loader: Loader) -> None:
    inner = (
        'version: "1"\nstart_at: a\nend_at: [a]\nedges: []\n'
        "nodes: [{id: a, handler: llm, params: {prompt_ref: prompts/names.yaml#latin}}]\n"
    )
    files = {"flows/inner.yaml": inner, **PROMPTS}
    assert [warning.code for warning in loader.graph(inner, files).warnings] == ["unknown-placeholder"]
    assert loader.graph(parent("inner.yaml"), files).warnings == ()


def test_doubled_braces_are_no_placeholder(loader: Loader) -> None:
    files = {"prompts/names.yaml": "latin: {user: 'Answer {{like}} {{{leaf}}}'}"}
    assert loader.graph(WORKFLOW, files).warnings == ()


def test_prompts_that_are_text_have_no_placeholders_to_check(loader: Loader) -> None:
    files = {"prompts/names.yaml": "latin: Hello {nobody}"}
    assert loader.graph(changed(("output_key: leaf", "output_key: nowhere")), files).warnings == ()
