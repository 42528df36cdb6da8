"""The built-in handlers that call a model: prompts, attempts, structured replies, streams."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import UnscriptedCall
from harness.graph.to_json import to_json
from tests.dialects.yagra.runs import RunResult, run_workflow
from tests.world.stubs import world_spec

MODEL = {"provider": "openai", "name": "small", "kwargs": {"temperature": 0.5}}


def ask(
    folder: Path,
    *stubs: Any,
    handler: str = "llm",
    prompt: Any = None,
    node: dict[str, Any] | None = None,
    given: dict[str, Any] | None = None,
    python: str = "",
    **params: Any,
) -> RunResult:
    """Run one model node; with `python`, also a node after it whose handler is `after`."""
    asking = {
        "id": "ask",
        "handler": handler,
        "params": {"prompt_ref": "prompts.yaml#ask", "model": MODEL, **params},
        **(node or {}),
    }
    nodes = [asking, {"id": "after", "handler": "after"}] if python else [asking]
    return run_workflow(
        folder,
        *nodes,
        edges=[("ask", "after")] if python else [],
        world=world_spec(llm=[*stubs], handlers={"after": "own.after"}),
        prompts={"ask": {"system": "Be kind.", "user": "{topic}"} if prompt is None else prompt},
        given={} if given is None else given,
        python=python,
    )


def says(text: str, **more: Any) -> Any:
    return {**more, "reply": text}


def broken(text: str, latency_s: float = 0.0) -> Any:
    return {"error": {"kind": "server_error", "message": text}, "latency": latency_s}


def sent(result: RunResult) -> list[str]:
    """Return the texts of the messages of the first call."""
    return [message.content for message in result.requests("llm")[0]["messages"]]


# ------------------------------------------------------------ prompts


@pytest.mark.parametrize(
    ("prompt", "given", "messages"),
    [
        (
            {"system": "In {place}.", "user": "{topic}?"},
            {"place": "Kiel", "topic": "rye"},
            ["In Kiel.", "rye?"],
        ),
        ({"user": "{topic}"}, {}, ["", ""]),
        ({"system": "Be kind."}, {}, ["Be kind.", ""]),
        ({}, {}, ["", ""]),
        ({"user": "{a} {b} {c}"}, {"a": ["x"], "b": None, "c": 1.0}, ["", "['x'] None 1.0"]),
        ({"user": "{{topic}} {topic}"}, {"topic": "rye"}, ["", "{topic} rye"]),
        ({"system": "{topic}", "user": "{topic:>4}|{topic[0]}"}, {"topic": "rye"}, ["rye", " rye|r"]),
        ({"user": "{größe}"}, {"größe": 3}, ["", "3"]),
    ],
)
def test_prompts_are_filled_from_the_state(
    tmp_path: Path, prompt: Any, given: dict[str, Any], messages: list[str]
) -> None:
    assert sent(ask(tmp_path, says("hi"), prompt=prompt, given=given)) == messages


def test_a_conversation_in_a_prompt_is_its_list_of_messages(tmp_path: Path) -> None:
    asking = {
        "id": "ask",
        "handler": "llm",
        "params": {"prompt_ref": "prompts.yaml#ask", "model": MODEL},
    }
    result = run_workflow(
        tmp_path,
        asking,
        world=world_spec(llm=[says("hi")]),
        prompts={"ask": {"user": "{messages}"}},
        given={"messages": "hello"},
        state_schema={"messages": {"type": "messages"}, "output": {"type": "str"}},
    )
    assert sent(result)[1].startswith("[HumanMessage(content='hello'")


@pytest.mark.parametrize(
    "user",
    [
        "{topic} {topic.__class__.__mro__}",
        "{topic} {topic[0].__class__}",
        "{topic} {topic:>9999999999}",
        "{topic} {topic:.9999999999}",
        "{topic} {topic:{topic}}",
    ],
)
def test_a_prompt_reaches_neither_attributes_nor_the_end_of_the_memory(tmp_path: Path, user: str) -> None:
    result = ask(tmp_path, prompt={"user": user}, given={"topic": "rye"})
    assert "'prompt.user' cannot be filled in" in str(result.error)


def test_a_value_in_a_prompt_may_have_a_width(tmp_path: Path) -> None:
    prompt = {"user": "{topic}{topic:>5}"}
    assert "rye  rye" in sent(ask(tmp_path, says("hi"), prompt=prompt, given={"topic": "rye"}))[-1]


@pytest.mark.parametrize("user", ["{topic.size}", "{ topic }", "{}", "{0.x}", '{"a": 1}', "{", "{topic!x}"])
def test_a_prompt_with_other_fields_than_plain_names_fails_the_node(tmp_path: Path, user: str) -> None:
    result = ask(tmp_path, prompt={"user": user}, given={"topic": "rye"})
    assert "'prompt.user' cannot be filled in" in str(result.error)
    assert result.ending.node == "ask"


@pytest.mark.parametrize(
    ("prompt", "params", "found"),
    [
        ("Be kind.", {}, "'prompt' must be a mapping with system and user, found text 'Be kind.'"),
        ({"system": ["a"]}, {}, "'prompt.system' must be text, found a list"),
        ({"user": 7}, {}, "'prompt.user' must be text, found the number 7"),
        (None, {"model": None}, "'model' must be a mapping with provider and name, found nothing"),
        (None, {"model": "gpt"}, "'model' must be a mapping"),
        (None, {"model": {"name": "small"}}, "'model.provider' must be text, found nothing"),
        (None, {"model": {"provider": "openai", "name": ""}}, "'model.name' must be text, found text ''"),
        (None, {"model": {**MODEL, "kwargs": [1]}}, "'model.kwargs' must be a mapping, found a list"),
        (None, {"output_key": ["a"]}, "'output_key' must be text, found a list"),
    ],
)
def test_malformed_params_fail_the_node_when_it_runs(
    tmp_path: Path, prompt: Any, params: dict[str, Any], found: str
) -> None:
    result = ask(tmp_path, prompt=prompt, **params)
    assert found in str(result.error)
    assert result.path == ["ask"]
    assert result.calls("llm") == []


# ------------------------------------------------------------ the call


def test_the_request_to_the_model(tmp_path: Path) -> None:
    stub = says(
        "hi",
        model="small",
        when="request.provider == 'openai' && request.params.temperature == 0.5 && state.topic == 'rye' "
        "&& request.messages.map(m, m.type) == ['system', 'human']",
    )
    result = ask(tmp_path, stub, given={"topic": "rye"})
    assert result.state == {"topic": "rye", "output": "hi"}


def test_the_reply_is_written_to_the_output_key(tmp_path: Path) -> None:
    assert ask(tmp_path, says(" hi\n"), output_key="said").state == {"said": " hi\n"}


def test_a_node_without_retry_makes_three_attempts(tmp_path: Path) -> None:
    result = ask(tmp_path, broken("a", 0.5), broken("b"), says("hi"))
    assert (result.state, result.seconds) == ({"output": "hi"}, 3.5)


def test_after_three_failures_the_last_is_reported(tmp_path: Path) -> None:
    result = ask(tmp_path, broken("first"), broken("second"), broken("third"), says("too late"))
    assert str(result.error) == "the call of model 'small' failed after 3 attempts: third"
    assert result.seconds == 3


def test_retry_replaces_the_attempts_of_the_node(tmp_path: Path) -> None:
    retry = {"retry": {"max_attempts": 2, "backoff": "fixed", "base_delay_seconds": 5}}
    result = ask(tmp_path, broken("a"), broken("b"), says("too late"), node=retry)
    assert str(result.error) == "the call of model 'small' failed after 1 attempt: b"
    assert (result.seconds, len(result.calls("llm"))) == (5, 2)


def test_a_timeout_covers_the_delays_between_attempts(tmp_path: Path) -> None:
    stubs = [broken("a", 0.5), broken("b", 0.5), says("too late")]
    result = ask(tmp_path, *stubs, node={"timeout_seconds": 3})
    assert "timed out" in str(result.error)
    assert (result.seconds, len(result.calls("llm"))) == (3, 2)


@pytest.mark.parametrize("node", [{}, {"retry": {}}, {"fallback": "after"}])
@pytest.mark.parametrize("handler", ["llm", "streaming_llm"])
def test_an_unscripted_call_ends_the_run(tmp_path: Path, node: dict[str, Any], handler: str) -> None:
    result = ask(tmp_path, node=node, handler=handler, python="def after(state): return {}")
    assert isinstance(result.error, UnscriptedCall)
    assert (result.seconds, len(result.calls("llm"))) == (0, 1)


# ------------------------------------------------------------ structured replies


def structured(folder: Path, schema: Any, *stubs: Any, **more: Any) -> RunResult:
    return ask(folder, *stubs, handler="structured_llm", schema_yaml=schema, **more)


EVERY_TYPE = """
a: str
b: int
c: float
d: bool
e: list[str]
f: dict[str, int]
g: dict[str, Any]
h: int | None
"""


def test_a_structured_reply_is_validated_by_its_schema(tmp_path: Path) -> None:
    reply = {"a": "x", "b": 2, "c": 1, "d": True, "e": ["y"], "f": {"z": 1}, "g": {"z": [None]}}
    python = "def after(state): return {'seen': [state['output'].c, state['output'].model_dump()['e']]}"
    result = structured(tmp_path, EVERY_TYPE, {"json": reply}, python=python)
    assert to_json(result.state) == {"output": {**reply, "c": 1.0, "h": None}, "seen": [1.0, ["y"]]}


def test_the_schema_is_in_the_system_message(tmp_path: Path) -> None:
    stub = {"when": "request.response_format.type == 'json_object'", "json": {"größe": 3}}
    system, user = sent(structured(tmp_path, "größe: int", stub, given={"topic": "rye"}))
    assert system.startswith("Be kind.\n\n")
    assert '"größe": {' in system
    assert '"required": ["größe"]' in system
    assert user == "rye"


def test_a_response_format_in_the_kwargs_is_kept(tmp_path: Path) -> None:
    model = {**MODEL, "kwargs": {"response_format": {"type": "text"}}}
    stub = {
        "when": "request.response_format.type == 'text' && !has(request.params.response_format)",
        "json": {"a": 3},
    }
    assert to_json(structured(tmp_path, "a: int", stub, model=model).state) == {"output": {"a": 3}}


def test_objects_are_matched_by_their_fields(tmp_path: Path) -> None:
    asking = {
        "id": "ask",
        "handler": "structured_llm",
        "params": {"prompt_ref": "prompts.yaml#ask", "model": MODEL, "schema_yaml": "size: int"},
    }
    stub = {
        "times": 1,
        "args": {"output": {"size": 3}},
        "when": "state.output.size == 3",
        "return": {"seen": True},
    }
    result = run_workflow(
        tmp_path,
        asking,
        {"id": "after", "handler": "after"},
        edges=[("ask", "after")],
        world=world_spec(llm=[{"json": {"size": 3}}], handlers={"after": [stub]}),
        prompts={"ask": {"user": "How big?"}},
    )
    assert result.state["seen"] is True


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('{"size": "very big", "name": "x"}', "size: Input should be a valid integer"),
        ('{"size": "very big", "name": "x"}', "found text 'very big'"),
        ('{"size": 3}', "name: it is missing"),
        ("A big one.", "Invalid JSON"),
        ("", "Invalid JSON"),
    ],
)
def test_an_invalid_reply_fails_without_another_call(tmp_path: Path, reply: str, found: str) -> None:
    result = structured(tmp_path, "size: int\nname: str", says(reply), says('{"size": 3, "name": "x"}'))
    assert found in str(result.error)
    assert len(result.calls("llm")) == 1


def test_with_retry_an_invalid_reply_is_requested_again(tmp_path: Path) -> None:
    stubs = [says("A big one."), says('{"size": 3}')]
    assert to_json(structured(tmp_path, "size: int", *stubs, node={"retry": {}}).state) == {
        "output": {"size": 3}
    }


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (None, "'schema_yaml' must be text with lines of `field: type`, found nothing"),
        ({"a": "int"}, "'schema_yaml' must be text with lines of `field: type`, found a mapping"),
        ("- a", "'schema_yaml' must be a mapping of field to type, found a list"),
        ("a: [", "'schema_yaml' cannot be read: schema_yaml:1:"),
        ("a: integer", "field 'a' has a type that is not known: text 'integer' (did you mean 'int'?)"),
        ("a: 3", "field 'a' has a type that is not known: the number 3"),
        ("model_dump: int", "'schema_yaml' cannot be used"),
    ],
)
def test_an_invalid_schema_fails_the_node(tmp_path: Path, schema: Any, found: str) -> None:
    result = structured(tmp_path, schema)
    assert found in str(result.error)
    assert result.calls("llm") == []


# ------------------------------------------------------------ streams


READ_TWICE = "def after(state): return {'first': list(state['output']), 'then': list(state['output'])}"


def stream(folder: Path, *stubs: Any, **more: Any) -> RunResult:
    return ask(folder, *stubs, handler="streaming_llm", **more)


def test_a_stream_is_read_once_and_recorded_as_its_text(tmp_path: Path) -> None:
    result = stream(tmp_path, {"chunks": ["Vega ", "", "is blue."]}, python=READ_TWICE)
    assert to_json(result.state) == {
        "output": "Vega is blue.",
        "first": ["Vega ", "is blue."],
        "then": [],
    }


def test_a_reply_that_is_not_streamed_is_one_chunk(tmp_path: Path) -> None:
    assert to_json(stream(tmp_path, says("hi"), python=READ_TWICE).state["first"]) == ["hi"]


def test_a_stream_is_requested(tmp_path: Path) -> None:
    asking = says("hi", when="request.params.stream && request.params.temperature == 0.5")
    assert to_json(stream(tmp_path, asking).state) == {"output": "hi"}


def test_str_of_a_stream_gives_its_text_without_reading_it(tmp_path: Path) -> None:
    look = "def after(state): return {'seen': f\"{state['output']}\", 'chunks': list(state['output'])}"
    assert stream(tmp_path, says("hi"), python=look).state["seen"] == "hi"
    nodes: list[dict[str, Any]] = [
        {
            "id": "ask",
            "handler": "streaming_llm",
            "params": {"prompt_ref": "prompts.yaml#ask", "model": MODEL},
        },
        {"id": "after", "handler": "after"},
    ]
    stub = {"times": 1, "args": {"output": "hi"}, "when": "state.output == 'hi'", "return": {"seen": True}}
    world = world_spec(llm=[says("hi")], handlers={"after": [stub]})
    result = run_workflow(tmp_path, *nodes, edges=[("ask", "after")], world=world, prompts={"ask": {}})
    assert result.state["seen"] is True
    assert list(result.state["output"]) == ["hi"]


def test_a_stream_that_fails_before_it_begins_is_retried(tmp_path: Path) -> None:
    result = stream(tmp_path, broken("a"), says("hi"))
    assert (to_json(result.state), result.seconds) == ({"output": "hi"}, 1)


# ------------------------------------------------------------ tools


@pytest.mark.parametrize("handler", ["llm", "streaming_llm"])
def test_tool_calls_of_a_model_are_refused(tmp_path: Path, handler: str) -> None:
    reply = {"reply": "Hi", "tool_calls": [{"name": "look", "args": {"at": "it"}}]}
    [call] = ask(tmp_path, reply, handler=handler).calls("tool")
    assert (call["name"], call["args"], call["ok"]) == ("look", {"at": "it"}, False)
    assert call["reason"] == "the model has no tool 'look' (it has none)"
