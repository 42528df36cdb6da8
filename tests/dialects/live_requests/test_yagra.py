"""In live mode models and servers are asked what yagra 1.2 asks them. The bodies are theirs.

`stream: false`, which some leave out, is what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.dialects.live_requests.answers import (
    Live,
    body,
    claude_says,
    says,
    streams,
)


def workflow(handler: str, provider: str = "openai", name: str = "small", **more: Any) -> Mapping[str, str]:
    """A workflow of one node."""
    model = {"provider": provider, "name": name, "kwargs": more.pop("kwargs", {})}
    params = {"prompt_ref": "prompts.yaml#ask", "model": model, **more}
    told = {
        "version": "1.0",
        "start_at": "ask",
        "end_at": ["ask"],
        "nodes": [{"id": "ask", "handler": handler, "params": params}],
        "edges": [],
    }
    return {"workflow.yaml": json.dumps(told), "prompts.yaml": 'ask: {system: "Be kind.", user: "{input}"}'}


ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}]


def test_openai_is_sent_the_kwargs_of_yagra_as_they_are_written(live: Live) -> None:
    kwargs = {"temperature": 0, "max_tokens": 8, "stop": "END", "seed": 3, "user": "u", "unheard_of": 1}
    files = workflow("llm", kwargs={**kwargs, "drop_params": True, "metadata": {"run": "1"}})
    (asked,) = live(files, [says()], input={"input": "hello"})
    assert body(asked) == {"model": "small", "messages": ASKED, **kwargs}


@pytest.mark.parametrize("name", ["o3-mini", "gpt-5-mini"])
def test_openai_s_reasoning_models_know_max_tokens_by_another_name(name: str, live: Live) -> None:
    (asked,) = live(workflow("llm", name=name, kwargs={"max_tokens": 8}), [says()], input={"input": "hello"})
    assert asked.json["max_completion_tokens"] == 8
    assert "max_tokens" not in asked.json


def test_a_stream_of_yagra_has_only_the_options_that_are_written(live: Live) -> None:
    (asked,) = live(
        workflow("streaming_llm", kwargs={"max_tokens": 8}), [streams("hi")], input={"input": "hello"}
    )
    assert asked.json == {"model": "small", "messages": ASKED, "max_tokens": 8, "stream": True}


def test_a_structured_answer_of_yagra_is_asked_for_by_its_schema(live: Live) -> None:
    files = workflow("structured_llm", schema_yaml="name: str\nage: int | None")
    (asked,) = live(files, [says('{"name": "x"}')], input={"input": "hello"})
    schema = (
        '{"properties": {"name": {"title": "Name", "type": "string"}, '
        '"age": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null, "title": "Age"}}, '
        '"required": ["name"], "title": "Answer", "type": "object"}'
    )
    told = "Answer with JSON alone, valid under this JSON Schema:"
    assert body(asked) == {
        "model": "small",
        "messages": [{"role": "system", "content": f"Be kind.\n\n{told}\n{schema}"}, ASKED[1]],
        "response_format": {"type": "json_object"},
    }


def test_anthropic_is_told_of_yagra_s_user_as_it_wants(live: Live) -> None:
    files = workflow("llm", provider="anthropic", name="claude-x", kwargs={"user": "u", "max_tokens": 8})
    (asked,) = live(files, [claude_says("hi")], input={"input": "hello"})
    assert body(asked) == {
        "model": "claude-x",
        "max_tokens": 8,
        "system": "Be kind.",
        "messages": [ASKED[1]],
        "metadata": {"user_id": "u"},
    }
