"""How the handlers of a Yagra workflow are called. spec: "Node Handler Signature"."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UnscriptedCall
from harness.world.spec import Entry, Stub, WorldSpec
from tests.dialects.yagra.small import Played, answers, fails, handlers, play

BREAD: Mapping[str, Any] = {"id": "bread", "handler": "bake", "params": {"grams": 500, "toppings": ["salt"]}}


def bake(folder: Path, python: str, *nodes: Mapping[str, Any], **more: Any) -> Played:
    """A run in which `bake` is a function of this text."""
    return play(folder, *(nodes or (BREAD,)), world=handlers(bake="bake"), python=python, **more)


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
def test_a_type_error_from_inside_leads_to_a_second_call_too(tmp_path: Path, way: str) -> None:
    python = f"""
{way} bake(state, params=None):
    if params is not None:
        state["tried"] = True
        raise TypeError("no params, please")
    return {{"seen": sorted(state)}}
"""
    assert bake(tmp_path, python, given={"flour": "rye"}).state["seen"] == ["flour"]


def test_type_errors_with_and_without_params_are_told_together(tmp_path: Path) -> None:
    played = bake(tmp_path, "def bake(state, params): return 1 + 'one'")
    assert "both signatures" in str(played.error)
    assert "unsupported operand" in str(played.error)
    assert "missing 1 required positional argument: 'params'" in str(played.error)


def test_any_other_error_is_the_failure_at_once(tmp_path: Path) -> None:
    python = "def bake(state, params=None): raise KeyError('oven' if params else 'no params')"
    played = bake(tmp_path, python)
    assert (type(played.error), played.error.args) == (KeyError, ("oven",))
    assert played.ending.node == "bread"


@pytest.mark.parametrize(("answer", "found"), [("None", "null"), ("['rye']", "a list"), ("'rye'", "'rye'")])
def test_an_answer_that_is_no_mapping_fails(tmp_path: Path, answer: str, found: str) -> None:
    text = str(bake(tmp_path, f"def bake(state): return {answer}").error)
    assert "handler 'bake' of node 'bread' must answer with a mapping" in text
    assert found in text


def test_a_stub_whose_answer_is_no_mapping_fails(tmp_path: Path) -> None:
    stub = Stub(times="any", answer={"return": "rye"})
    assert "mapping" in str(play(tmp_path, BREAD, world=handlers(bake=[stub])).error)


CARELESS = """
def bake(state, params):
    if not state["log"]:
        state["scratch"], params["scratch"] = 1, 1
        state["log"].append("baked")
        params["toppings"].append("seeds")
        raise RuntimeError("once more")
    return {"keys": sorted(state), "params": dict(params)}
"""


def test_keys_set_in_what_a_handler_is_given_are_lost_and_changes_inside_stay(tmp_path: Path) -> None:
    played = bake(tmp_path, CARELESS, {**BREAD, "retry": {"max_attempts": 2}}, given={"log": []})
    assert played.state["log"] == ["baked"]
    assert played.state["keys"] == ["log"]
    assert "scratch" not in played.state["params"]
    assert played.state["params"]["toppings"] == ["salt", "seeds"]


def test_what_a_handler_changes_inside_its_params_is_gone_in_the_next_run(tmp_path: Path) -> None:
    node = {**BREAD, "retry": {"max_attempts": 2}}
    for _ in range(2):
        played = bake(tmp_path, CARELESS, node, given={"log": []})
        assert played.state["params"]["toppings"] == ["salt", "seeds"]


# ------------------------------------------------------------ who answers


def test_a_stub_sees_what_the_node_was_given(tmp_path: Path) -> None:
    stubs = [
        Stub(
            when="state.flour == 'rye' && request.args.flour == 'rye'", times=1, answer={"return": {"by": 1}}
        ),
        Stub(args={"by": 1}, times=1, answer={"return": {"by": 2}}),
    ]
    nodes = [BREAD, {"id": "more", "handler": "bake"}]
    played = play(
        tmp_path, *nodes, world=handlers(bake=stubs), given={"flour": "rye"}, edges=[("bread", "more")]
    )
    assert played.state["by"] == 2
    assert [call["args"] for call in played.calls("handler")] == [
        {"flour": "rye"},
        {"flour": "rye", "by": 1},
    ]


def test_messages_are_matched_as_mappings(tmp_path: Path) -> None:
    stub = Stub(args={"messages": [{"content": "hello"}]}, answer={"return": {"seen": True}})
    schema = {"messages": {"type": "messages"}, "seen": {"type": "bool"}}
    played = play(
        tmp_path,
        BREAD,
        world=handlers(bake=[stub]),
        given={"messages": [{"role": "user", "content": "hello"}]},
        state_schema=schema,
    )
    assert played.state["seen"] is True


def test_a_stub_that_raises_type_error_is_called_again(tmp_path: Path) -> None:
    once = handlers(bake=[fails("no params", times=1, kind="TypeError"), answers(made=True)])
    always = handlers(bake=[fails("no params", kind="TypeError")])
    assert play(tmp_path, BREAD, world=once).state == {"made": True}
    assert "signatures" in str(play(tmp_path, BREAD, world=always).error)


def test_an_unbound_handler_ends_the_run_and_names_the_bound_ones(tmp_path: Path) -> None:
    world = handlers(bakes="bake", weigh="weigh")
    python = "def bake(state): return {}"
    resilient = {**BREAD, "retry": {"max_attempts": 3}, "fallback": "weigh"}
    played = play(tmp_path, resilient, {"id": "weigh", "handler": "weigh"}, world=world, python=python)
    assert isinstance(played.error, UnscriptedCall)
    text = str(played.error)
    assert "did you mean 'bakes'?" in text
    assert "known: bakes, weigh" in text
    assert "built in are llm, structured_llm, streaming_llm" in text
    assert len(played.calls("handler")) == 1


def test_an_unbound_handler_that_sounds_like_a_built_in_one(tmp_path: Path) -> None:
    text = str(play(tmp_path, {"id": "n", "handler": "structured_lm"}).error)
    assert "did you mean 'structured_llm'?" in text
    assert "did you mean 'subgraph'?" in str(play(tmp_path, {"id": "n", "handler": "sub_graph"}).error)


def test_real_alone_names_no_callable(tmp_path: Path) -> None:
    played = play(tmp_path, BREAD, world=WorldSpec(handlers={"bake": Entry(real=True)}))
    assert (
        "`bake: real` names no function, and the manifest has none: write `bake: package.module.function`"
        in str(played.error)
    )


# ------------------------------------------------------------ built-in names


ASK = {
    "id": "ask",
    "handler": "llm",
    "params": {"prompt_ref": "prompts.yaml#ask", "model": {"provider": "openai", "name": "small"}},
}
PROMPTS = {"ask": {"user": "Hello"}}


def test_a_scenario_may_take_over_a_built_in_handler(tmp_path: Path) -> None:
    played = play(tmp_path, ASK, world=handlers(llm=[answers(output="mine")]), prompts=PROMPTS)
    assert played.state == {"output": "mine"}
    assert played.calls("llm") == []


def test_a_built_in_handler_may_be_called_real(tmp_path: Path) -> None:
    world = WorldSpec(handlers={"llm": Entry(real=True)}, llm=(Stub(answer={"reply": "hi"}),))
    assert play(tmp_path, ASK, world=world, prompts=PROMPTS).state == {"output": "hi"}
