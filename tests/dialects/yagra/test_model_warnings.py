"""Warnings of params that a built-in handler does not read, or will refuse when it runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.yagra.loader import Loader

NODE = """\
version: "1.0"
start_at: sum_up
end_at: [sum_up]
state_schema: {topic: {type: str}, output: {type: str}}
nodes:
  - id: sum_up
    handler: llm
    timeout_seconds: 9
    params:
      prompt_ref: prompts.yaml#short
      model: {provider: openai, name: gpt-4o-mini, kwargs: {temperature: 0}}
edges: []
"""
FILES = {
    "flows/prompts.yaml": """\
short: {system: Be short., user: 'About {topic}', note: of no use}
text: About {topic}
json: {system: 'Answer {"text": ""}', user: Go on.}
half: {user: 'A } in {topic}'}
dots: {user: 'About {topic.name}'}
wide: {user: '{topic} {topic:d} {topic[0]}'}
misspelt: {systm: Be short., user: 'About {topic}'}
parts: {here: {user: Hi}}
""",
    "flows/inner.yaml": """\
version: "1.0"
start_at: a
end_at: [a]
nodes: [{id: a, handler: x}]
edges: []
""",
}
FAILS = "node 'sum_up': its handler llm will fail: "
STRUCTURED = ("handler: llm", "handler: structured_llm")

# what is odd: the changes that make it so; the code, the beginning of the message, the place it points to, the hint
ODD: dict[str, tuple[list[tuple[str, str]], str, str, str, str]] = {
    "a param that is misspelt": (
        [("      model:", "      outptu_key: topic\n      model:")],
        "unread-param",
        "node 'sum_up': its handler llm does not read 'outptu_key'",
        "outptu_key",
        "did you mean 'output_key'?",
    ),
    "a param of another handler": (
        [("      model:", "      top_k: 3\n      model:")],
        "unread-param",
        "node 'sum_up': its handler llm does not read 'top_k'",
        "top_k",
        "known: prompt_ref, model, output_key",
    ),
    "a setting among the params": (
        [("      model:", "      temperature: 0.9\n      model:")],
        "unread-param",
        "node 'sum_up': its handler llm does not read 'temperature'",
        "temperature",
        "put settings under kwargs: model: {…, kwargs: {temperature: …}}",
    ),
    "what stands beside the params": (
        [("      model:", "      retry: {max_attempts: 2}\n      model:")],
        "unread-param",
        "node 'sum_up': its handler llm does not read 'retry'",
        "retry",
        "'retry' belongs next to params, not inside it",
    ),
    "a setting of a model outside its kwargs": (
        [("gpt-4o-mini,", "gpt-4o-mini, top_p: 1,")],
        "unread-param",
        "'top_p' of a model is not read: it has provider, name and kwargs",
        "top_p",
        "put settings under kwargs: model: {…, kwargs: {top_p: …}}",
    ),
    "a key of a model that is misspelt": (
        [("kwargs:", "kwarg:")],
        "unread-param",
        "'kwarg' of a model is not read: it has provider, name and kwargs",
        "kwarg",
        "did you mean 'kwargs'?",
    ),
    "a message that is misspelt": (
        [("#short", "#misspelt")],
        "unread-param",
        "node 'sum_up': 'systm' of its prompt is not read",
        "systm",
        "did you mean 'system'?",
    ),
    "a prompt without a message": (
        [("#short", "#parts")],
        "empty-prompt",
        "node 'sum_up': its prompt has neither system nor user, so the model is asked nothing",
        "prompts.yaml#parts",
        "did you mean 'prompts.yaml#parts.here'?",
    ),
    "a prompt file without its key": (
        [("#short", "")],
        "empty-prompt",
        "node 'sum_up': its prompt has neither system nor user, so the model is asked nothing",
        "prompts.yaml",
        "did you mean 'prompts.yaml#short'?",
    ),
    "a prompt that is text": (
        [("#short", "#text")],
        "model-params",
        f"{FAILS}'prompt' must be a mapping with system and user, found text 'About {{topic}}'",
        "prompts.yaml#text",
        "refer to a mapping with system and user",
    ),
    "no model": (
        [("      model: {provider: openai, name: gpt-4o-mini, kwargs: {temperature: 0}}\n", "")],
        "model-params",
        f"{FAILS}'model' must be a mapping with provider and name, found nothing (null)",
        "prompt_ref: prompts.yaml#short",
        "",
    ),
    "a model without a provider": (
        [("provider: openai, ", "")],
        "model-params",
        f"{FAILS}'model.provider' must be text, found nothing (null)",
        "{name: gpt-4o-mini, kwargs: {temperature: 0}}",
        "",
    ),
    "a schema of an unknown type": (
        [STRUCTURED, ("      model:", "      schema_yaml: 'stars: integer'\n      model:")],
        "model-params",
        "node 'sum_up': its handler structured_llm will fail: 'schema_yaml': field 'stars' has a type",
        "'stars: integer'",
        "",
    ),
    "no schema": (
        [STRUCTURED],
        "model-params",
        "node 'sum_up': its handler structured_llm will fail: 'schema_yaml' must be text",
        "prompt_ref: prompts.yaml#short",
        "",
    ),
    "JSON in a prompt": (
        [("#short", "#json")],
        "model-params",
        f"{FAILS}'prompt.system' cannot be filled in: there is no value '\"text\"'",
        "{",
        "",
    ),
    "a brace that is not closed": (
        [("#short", "#half")],
        "model-params",
        f"{FAILS}'prompt.user' cannot be filled in: Single '}}' encountered",
        "}",
        "",
    ),
    "a placeholder with a dot": (
        [("#short", "#dots")],
        "model-params",
        f"{FAILS}'prompt.user' cannot be filled in: {{topic.name}} reads an attribute",
        "{",
        "",
    ),
    "a param of a subgraph": (
        [
            ("handler: llm", "handler: subgraph"),
            ("prompt_ref: prompts.yaml#short", "workflow_ref: inner.yaml"),
        ],
        "unread-param",
        "node 'sum_up': its handler subgraph does not read 'model'",
        "model",
        "known: workflow_ref",
    ),
}


def changed(*changes: tuple[str, str]) -> str:
    text = NODE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(("changes", "code", "message", "place", "hint"), ODD.values(), ids=ODD)
def test_params_that_a_built_in_handler_does_not_read_are_warnings(
    loader: Loader, changes: Any, code: str, message: str, place: str, hint: str
) -> None:
    (warning,) = loader.graph(changed(*changes), FILES).warnings
    assert (warning.code, warning.severity) == (code, "warning")
    assert warning.message.startswith(message)
    assert (loader.place(warning), warning.hint) == (place, hint)


def test_params_that_a_built_in_handler_reads_are_no_warnings(loader: Loader) -> None:
    assert loader.graph(NODE, FILES).warnings == ()


def test_a_template_that_fails_for_some_values_only_is_no_warning(loader: Loader) -> None:
    assert loader.graph(changed(("#short", "#wide")), FILES).warnings == ()


def test_a_custom_handler_may_have_any_params(loader: Loader) -> None:
    text = changed(
        ("handler: llm", "handler: mine"),
        ("#short", "#text"),
        ("      model:", "      retry: 2\n      model:"),
    )
    assert loader.graph(text, FILES).warnings == ()


def test_global_params_that_no_handler_reads_are_no_warnings(loader: Loader) -> None:
    assert loader.graph(changed(("nodes:", "params: {top_k: 3}\nnodes:")), FILES).warnings == ()


def test_a_model_of_the_workflow_is_warned_about_once(loader: Loader) -> None:
    text = changed(
        ("      model: {provider: openai, name: gpt-4o-mini, kwargs: {temperature: 0}}\n", ""),
        ("nodes:", "params: {model: {provider: openai, name: gpt-4o-mini, stop: x}}\nnodes:"),
        ("edges:", "  - {id: again, handler: llm, params: {prompt_ref: prompts.yaml#short}}\nedges:"),
        ("handler: llm\n    timeout", "handler: llm\n    fallback: again\n    timeout"),
    )
    (warning,) = loader.graph(text, FILES).warnings
    assert loader.place(warning) == "stop"
