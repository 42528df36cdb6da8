"""Calling the handlers of a workflow. spec: "Node Handler Signature"."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.engine.callables import collect_exceptions
from harness.errors import UnscriptedCall
from harness.source.frames import own_frames
from tests.dialects.yagra.runs import RunResult, answers, fails, handlers, run_workflow
from tests.world.stubs import world_spec

BREAD: Mapping[str, Any] = {"id": "bread", "handler": "bake", "params": {"grams": 500, "toppings": ["salt"]}}


def bake(folder: Path, python: str, *nodes: Mapping[str, Any], **more: Any) -> RunResult:
    """Run a workflow with the function `bake` of this Python text."""
    return run_workflow(folder, *(nodes or (BREAD,)), world=handlers(bake="bake"), python=python, **more)


@pytest.mark.parametrize(
    "python",
    [
        "def bake(state, params): return {'made': [state['flour'], params['grams']]}",
        "async def bake(state, params): return {'made': [state['flour'], params['grams']]}",
        "def bake(state): return {'made': [state['flour'], 500]}",
        "async def bake(state): return {'made': [state['flour'], 500]}",
        "class Baker:\n    def __call__(self, state, params):\n        return {'made': ['rye', 500]}\nbake = Baker()",
    ],
)
def test_a_handler_takes_the_state_and_the_params_or_the_state_alone(tmp_path: Path, python: str) -> None:
    assert bake(tmp_path, python, given={"flour": "rye"}).state == {"flour": "rye", "made": ["rye", 500]}


@pytest.mark.parametrize("way", ["def", "async def"])
def test_a_type_error_inside_the_handler_also_leads_to_a_second_call(tmp_path: Path, way: str) -> None:
    python = f"""
{way} bake(state, params=None):
    if params is not None:
        state["tried"] = True
        raise TypeError("no params, please")
    return {{"seen": sorted(state)}}
"""
    with collect_exceptions() as recovered:
        assert bake(tmp_path, python, given={"flour": "rye"}).state["seen"] == ["flour"]
    assert [str(error) for error in recovered] == ["no params, please"]


def test_type_errors_with_and_without_params_are_reported_together(tmp_path: Path) -> None:
    result = bake(tmp_path, "def bake(state, params): return 1 + 'one'")
    assert "both signatures" in str(result.error)
    assert "unsupported operand" in str(result.error)
    assert "missing 1 required positional argument: 'params'" in str(result.error)


@pytest.mark.parametrize(
    ("signature", "told"),
    [
        ("state, params", "SignatureError"),  # cannot be called without params
        ("state, params=None", "AttributeError"),  # fails in another way without params
        ("*given", "SignatureError"),  # fails in the same way
    ],
)
def test_the_line_of_a_type_error_inside_a_handler_with_params_is_shown(
    tmp_path: Path, signature: str, told: str
) -> None:
    python = f"""
def bake({signature}):
    grams = (params if "params" in locals() else given[-1]).get("grams")
    return {{"left": grams - None}}
"""
    error = bake(tmp_path, python).error
    assert type(error).__name__ == told
    raised = [frame for frame in own_frames(error) if frame["raised"].startswith("TypeError: unsupported")]
    assert raised[0]["source"] == 'return {"left": grams - None}'
    assert (Path(raised[0]["file"]).name, raised[0]["line"]) == ("own.py", 4)


def test_any_other_error_fails_the_node_at_once(tmp_path: Path) -> None:
    python = "def bake(state, params=None): raise KeyError('oven' if params else 'no params')"
    result = bake(tmp_path, python)
    assert (type(result.error), result.error.args) == (KeyError, ("oven",))
    assert result.ending.node == "bread"


@pytest.mark.parametrize(("answer", "found"), [("None", "null"), ("['rye']", "a list"), ("'rye'", "'rye'")])
def test_a_return_value_other_than_a_mapping_fails(tmp_path: Path, answer: str, found: str) -> None:
    text = str(bake(tmp_path, f"def bake(state): return {answer}").error)
    assert "handler 'bake' of node 'bread' must answer with a mapping" in text
    assert found in text


def test_a_stub_with_a_return_value_other_than_a_mapping_fails(tmp_path: Path) -> None:
    stub = {"return": "rye"}
    assert "mapping" in str(run_workflow(tmp_path, BREAD, world=handlers(bake=[stub])).error)


CARELESS = """
def bake(state, params):
    if not state["log"]:
        state["scratch"], params["scratch"] = 1, 1
        state["log"].append("baked")
        params["toppings"].append("seeds")
        raise RuntimeError("once more")
    return {"keys": sorted(state), "params": dict(params)}
"""


def test_a_handler_gets_shallow_copies(tmp_path: Path) -> None:
    result = bake(tmp_path, CARELESS, {**BREAD, "retry": {"max_attempts": 2}}, given={"log": []})
    assert result.state["log"] == ["baked"]
    assert result.state["keys"] == ["log"]
    assert "scratch" not in result.state["params"]
    assert result.state["params"]["toppings"] == ["salt", "seeds"]


def test_nested_changes_to_params_last_for_one_run(tmp_path: Path) -> None:
    node = {**BREAD, "retry": {"max_attempts": 2}}
    for _ in range(2):
        result = bake(tmp_path, CARELESS, node, given={"log": []})
        assert result.state["params"]["toppings"] == ["salt", "seeds"]


# ------------------------------------------------------------ who answers


def test_a_stub_sees_the_input_state_of_the_node(tmp_path: Path) -> None:
    stubs = [
        {"when": "state.flour == 'rye' && request.args.flour == 'rye'", "times": 1, "return": {"by": 1}},
        {"args": {"by": 1}, "times": 1, "return": {"by": 2}},
    ]
    nodes = [BREAD, {"id": "more", "handler": "bake"}]
    result = run_workflow(
        tmp_path, *nodes, world=handlers(bake=stubs), given={"flour": "rye"}, edges=[("bread", "more")]
    )
    assert result.state["by"] == 2
    assert [call["args"] for call in result.calls("handler")] == [
        {"flour": "rye"},
        {"flour": "rye", "by": 1},
    ]


def test_messages_are_matched_as_mappings(tmp_path: Path) -> None:
    stub = {"times": 1, "args": {"messages": [{"content": "hello"}]}, "return": {"seen": True}}
    schema = {"messages": {"type": "messages"}, "seen": {"type": "bool"}}
    result = run_workflow(
        tmp_path,
        BREAD,
        world=handlers(bake=[stub]),
        given={"messages": [{"role": "user", "content": "hello"}]},
        state_schema=schema,
    )
    assert result.state["seen"] is True


def test_a_stub_that_raises_type_error_is_called_again(tmp_path: Path) -> None:
    once = handlers(bake=[fails("no params", times=1, kind="TypeError"), answers(made=True)])
    always = handlers(bake=[fails("no params", kind="TypeError")])
    assert run_workflow(tmp_path, BREAD, world=once).state == {"made": True}
    assert "signatures" in str(run_workflow(tmp_path, BREAD, world=always).error)


def test_an_unbound_handler_ends_the_run_and_names_the_bound_ones(tmp_path: Path) -> None:
    world = handlers(bakes="bake", weigh="weigh")
    python = "def bake(state): return {}"
    resilient = {**BREAD, "retry": {"max_attempts": 3}, "fallback": "weigh"}
    result = run_workflow(
        tmp_path, resilient, {"id": "weigh", "handler": "weigh"}, world=world, python=python
    )
    assert isinstance(result.error, UnscriptedCall)
    text = str(result.error)
    assert "did you mean 'bakes'?" in text
    assert "known: bakes, weigh" in text
    assert "built in are llm, structured_llm, streaming_llm" in text
    assert len(result.calls("handler")) == 1


def test_an_unbound_handler_with_a_name_similar_to_a_built_in_one(tmp_path: Path) -> None:
    text = str(run_workflow(tmp_path, {"id": "n", "handler": "structured_lm"}).error)
    assert "did you mean 'structured_llm'?" in text
    assert "did you mean 'subgraph'?" in str(
        run_workflow(tmp_path, {"id": "n", "handler": "sub_graph"}).error
    )


def test_real_needs_a_callable_unless_the_handler_is_built_in(tmp_path: Path) -> None:
    result = run_workflow(tmp_path, BREAD, world=world_spec(handlers={"bake": "real"}))
    assert (
        "`bake: real` names no function, and the manifest has none: write `bake: package.module.function`"
        in str(result.error)
    )


# ------------------------------------------------------------ built-in names


ASK = {
    "id": "ask",
    "handler": "llm",
    "params": {"prompt_ref": "prompts.yaml#ask", "model": {"provider": "openai", "name": "small"}},
}
PROMPTS = {"ask": {"user": "Hello"}}


def test_a_scenario_may_replace_a_built_in_handler(tmp_path: Path) -> None:
    result = run_workflow(tmp_path, ASK, world=handlers(llm=[answers(output="mine")]), prompts=PROMPTS)
    assert result.state == {"output": "mine"}
    assert result.calls("llm") == []


def test_a_built_in_handler_may_be_called_real(tmp_path: Path) -> None:
    world = world_spec(handlers={"llm": "real"}, llm=["hi"])
    assert run_workflow(tmp_path, ASK, world=world, prompts=PROMPTS).state == {"output": "hi"}
