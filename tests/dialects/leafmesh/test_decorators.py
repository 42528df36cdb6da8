"""The decorators of agent functions, alone and stacked. NOTES 8.1-8.7."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dialects.leafmesh.agency_rules import STAND_IN
from harness.dialects.leafmesh.decorators import AgentFunction, RawOutput

leafmesh = STAND_IN["leafmesh"]
chain, compose = leafmesh.chain, leafmesh.compose
chain_with_results, conditional_chain = leafmesh.chain_with_results, leafmesh.conditional_chain
pre_compose = leafmesh.pre_compose

AGENTS = frozenset({"left", "right"})
Function = Callable[..., Any]


def called(function: Function, first: Any = None, input_data: Any = None, **context: Any) -> RawOutput:
    """Call an agent's function as the harness does."""
    return asyncio.run(AgentFunction("desk", function, AGENTS).run(first, input_data or {}, context))


def prepared(function: Function, input_data: Any, context: dict[str, Any]) -> dict[str, Any]:
    return asyncio.run(AgentFunction("desk", function, AGENTS).run_processors(input_data, context))


def desk(first: Any, input_data: Any, context: Any) -> Any:
    return {"trace": ["desk"]}


async def desk_async(first: Any, input_data: Any, context: Any) -> Any:
    await asyncio.sleep(0)
    return {"trace": ["desk"]}


def step(name: str) -> Function:
    """A step that adds its name to the trace."""

    def run(result: Any, context: Any) -> Any:
        return {**result, "trace": [*result.get("trace", ()), name]}

    return run


def async_step(name: str) -> Function:
    async def run(result: Any, context: Any) -> Any:
        await asyncio.sleep(0)
        return step(name)(result, context)

    return run


def later(name: str) -> Function:
    """A plain function that returns an awaitable."""
    return lambda result, context: async_step(name)(result, context)


def in_place(result: Any, context: Any) -> Any:
    result["trace"].append("in place")
    return result


def timed(function: Function) -> Function:
    """A decorator that is not LeafMesh's."""

    @functools.wraps(function)
    async def run(*given: Any, **named: Any) -> Any:
        result = function(*given, **named)
        result = await result if asyncio.iscoroutine(result) else result
        return {**result, "timed": True}

    return run


def unless_timed(result: Any, context: Any) -> bool:
    return "timed" not in result


async def never(result: Any, context: Any) -> bool:
    return False


a, b, c = step("a"), step("b"), step("c")

STACKS: list[tuple[str, list[Function], Any]] = [
    ("nothing", [], {"trace": ["desk"]}),
    ("chain goes through its steps in order", [chain(a, b, c)], {"trace": ["desk", "a", "b", "c"]}),
    ("chain without steps", [chain()], {"trace": ["desk"]}),
    ("the lowest decorator is first", [chain(b), chain(a)], {"trace": ["desk", "a", "b"]}),
    ("a step may be asynchronous", [chain(async_step("a"), b)], {"trace": ["desk", "a", "b"]}),
    (
        "a step may return an awaitable",
        [chain(later("a"), b, later("c"))],
        {"trace": ["desk", "a", "b", "c"]},
    ),
    ("a step may change the result in place", [chain(a, in_place)], {"trace": ["desk", "a", "in place"]}),
    (
        "chain_with_results lays what was returned beside the last result",
        [chain_with_results(a, in_place)],
        {
            "trace": ["desk", "a", "in place"],
            "main_result": {"trace": ["desk"]},
            "chain_results": [{"trace": ["desk", "a"]}, {"trace": ["desk", "a", "in place"]}],
        },
    ),
    (
        "chain_with_results without steps",
        [chain_with_results()],
        {"trace": ["desk"], "main_result": {"trace": ["desk"]}, "chain_results": []},
    ),
    ("a condition that holds", [conditional_chain(unless_timed, a, b)], {"trace": ["desk", "a", "b"]}),
    ("a condition that does not", [conditional_chain(never, a, b)], {"trace": ["desk"]}),
    (
        "a condition sees the result at its place",
        [conditional_chain(unless_timed, a), timed],
        {"trace": ["desk"], "timed": True},
    ),
    (
        "somebody else's decorator between them",
        [chain(b), timed, chain(a)],
        {"trace": ["desk", "a", "b"], "timed": True},
    ),
    ("a last step that returns no mapping", [chain(a, lambda r, c: 7)], {"result": 7}),
    (
        "chain_with_results of steps that return no mapping",
        [chain_with_results(lambda r, c: 7)],
        {"result": 7, "main_result": {"trace": ["desk"]}, "chain_results": [7]},
    ),
]


@pytest.mark.parametrize(("stack", "output"), [row[1:] for row in STACKS], ids=[row[0] for row in STACKS])
def test_a_stack(stack: list[Function], output: Any) -> None:
    for function in (desk, desk_async):
        for decorator in reversed(stack):
            function = decorator(function)
        assert called(function).value == output


def test_decorated_functions_stay_synchronous_or_asynchronous() -> None:
    assert chain(a)(desk)(None, {}, {}) == {"trace": ["desk", "a"]}
    assert asyncio.iscoroutinefunction(chain(a)(desk_async))
    assert asyncio.iscoroutinefunction(chain(async_step("a"))(desk))


def test_a_decorated_function_keeps_its_name_and_docstring() -> None:
    assert chain(a)(desk).__name__ == "desk"


# ---------------------------------------------------------------- any stack

Step = tuple[int, str]
Layer = tuple[str, Any]

STEP = st.tuples(st.integers(-5, 5), st.sampled_from(["new", "in place", "async"]))
LAYER = st.one_of(
    st.tuples(st.sampled_from(["chain", "chain_with_results", "if", "if not"]), st.lists(STEP, max_size=3)),
    st.tuples(st.just("compose"), st.sampled_from(["left", "right"])),
)


def as_function(number: int, kind: str) -> Function:
    """A step that makes n into 2n + number."""

    def new(result: Any, context: Any) -> Any:
        return {**result, "n": result["n"] * 2 + number}

    def change(result: Any, context: Any) -> Any:
        result["n"] = result["n"] * 2 + number
        return result

    async def waiting(result: Any, context: Any) -> Any:
        await asyncio.sleep(0)
        return new(result, context)

    return {"new": new, "in place": change, "async": waiting}[kind]


def decorator_of(kind: str, given: Any) -> Function:
    if kind == "compose":
        return compose(**{given: lambda result, context: {"n": result["n"]}})  # type: ignore[no-any-return]
    steps = [as_function(*each) for each in given]
    if kind.startswith("if"):
        return conditional_chain(lambda result, context: kind == "if", *steps)  # type: ignore[no-any-return]
    return (chain if kind == "chain" else chain_with_results)(*steps)  # type: ignore[no-any-return]


def by_the_documents(layers: list[Layer]) -> RawOutput:
    """Return the documented result of a stack for `{n: 1}`; the lowest layer is first."""
    result: dict[str, Any] = {"n": 1}
    shaped: dict[str, Any] = {}
    for kind, what in layers:
        if kind == "compose":
            shaped[what] = {"n": result["n"]}
        elif kind != "if not":
            stages = [result]
            for number, _ in what:
                stages.append({**stages[-1], "n": stages[-1]["n"] * 2 + number})
            result = stages[-1]
            if kind == "chain_with_results":
                result = {**result, "main_result": stages[0], "chain_results": stages[1:]}
    return RawOutput(result, shaped)


@given(st.lists(LAYER, max_size=5), st.sampled_from(["sync", "async"]))
def test_any_stack_does_what_the_documents_say(layers: list[Layer], kind: str) -> None:
    def start(first: Any, input_data: Any, context: Any) -> Any:
        return {"n": 1}

    async def start_async(first: Any, input_data: Any, context: Any) -> Any:
        return {"n": 1}

    function: Function = start if kind == "sync" else start_async
    for layer in layers:
        function = decorator_of(*layer)(function)
    assert called(function) == by_the_documents(layers)


# ---------------------------------------------------------------- compose


def test_compose_shapes_the_result_for_agents_and_leaves_it_whole() -> None:
    function = compose(left=lambda result, context: {"n": len(result["trace"])})(desk)
    assert called(function) == RawOutput({"trace": ["desk"]}, {"left": {"n": 1}})


def test_compose_shapes_the_result_as_it_is_at_its_place() -> None:
    seen = lambda result, context: {"seen": list(result["trace"])}  # noqa: E731
    function = compose(right=seen)(chain(in_place)(compose(left=seen)(desk)))
    shaped = called(function).shaped
    assert shaped == {"left": {"seen": ["desk"]}, "right": {"seen": ["desk", "in place"]}}


def test_shaped_inputs_do_not_change_with_the_result() -> None:
    function = chain(in_place)(compose(left=lambda result, context: result)(desk))
    assert called(function).shaped == {"left": {"trace": ["desk"]}}


def test_a_function_of_compose_cannot_change_the_result() -> None:
    def take(result: Any, context: Any) -> Any:
        return {"taken": result.pop("trace")}

    function = compose(left=take, right=take)(desk)
    assert called(function) == RawOutput(
        {"trace": ["desk"]}, {"left": {"taken": ["desk"]}, "right": {"taken": ["desk"]}}
    )


def test_the_upper_compose_of_an_agent_counts() -> None:
    function = compose(left=lambda r, c: {"by": "upper"})(compose(left=lambda r, c: {"by": "lower"})(desk))
    assert called(function).shaped == {"left": {"by": "upper"}}


def test_a_function_of_compose_may_be_asynchronous() -> None:
    assert called(compose(left=async_step("shaped"))(desk)).shaped == {"left": {"trace": ["desk", "shaped"]}}


def test_a_key_that_is_no_agent_puts_its_function_into_the_context() -> None:
    def using(first: Any, input_data: Any, context: Any) -> Any:
        return {"total": context["price"](2)}

    def again(result: Any, context: Any) -> Any:
        return {**result, "double": context["price"](4)}

    returned = called(chain(again)(compose(price=lambda pots: pots * 25)(using)))
    assert returned == RawOutput({"total": 50, "double": 100}, {})


# ---------------------------------------------------------------- pre_compose


def tidy(input_data: Any, context: Any) -> Any:
    return input_data["message"].strip()


async def hours(input_data: Any, context: Any) -> Any:
    return {"of": context["agent_name"]}


def test_processors_prepare_the_keys_they_are_given_for() -> None:
    function = pre_compose(context_processor=hours, input_processor=tidy)(desk)
    assert prepared(function, {"message": " hi "}, {"agent_name": "desk"}) == {
        "business_context": {"of": "desk"},
        "clean_user_input": "hi",
    }


@pytest.mark.parametrize(
    "stack",
    [
        lambda f: pre_compose(input_processor=tidy)(chain(a)(f)),
        lambda f: chain(a)(pre_compose(input_processor=tidy)(f)),
        lambda f: timed(compose(left=a)(pre_compose(None, tidy)(f))),
    ],
)
def test_pre_compose_works_before_the_model_wherever_it_stands(stack: Function) -> None:
    assert prepared(stack(desk), {"message": " hi "}, {}) == {"clean_user_input": "hi"}


def test_processors_of_several_are_called_from_the_bottom_up() -> None:
    def count(input_data: Any, context: Any) -> Any:
        context["calls"] = context.get("calls", 0) + 1
        return context["calls"]

    context: dict[str, Any] = {}
    function = pre_compose(others_processor=count)(
        pre_compose(context_processor=count, others_processor=count)(desk)
    )
    assert prepared(function, {}, context) == {"business_context": 1, "others": 3}
    assert context == {"calls": 3}, "what processors put into the context is there for the function"


def test_without_pre_compose_nothing_is_prepared() -> None:
    assert not AgentFunction("desk", chain(a)(desk)).has_processors
    assert AgentFunction("desk", pre_compose(input_processor=tidy)(desk)).has_processors


# ---------------------------------------------------------------- borders


def test_a_function_cannot_change_what_it_was_given() -> None:
    def greedy(first: Any, input_data: Any, context: Any) -> Any:
        first["words"].append("more")
        input_data["pots"].clear()
        context["memory_posts"].append("mine")
        return {"first": first}

    async def tidying(input_data: Any, context: Any) -> Any:
        input_data["pots"].clear()
        context["memory_posts"].clear()

    first, pots, posts = {"words": ["one"]}, {"pots": [1, 2]}, ["post"]
    function = pre_compose(input_processor=tidying)(greedy)
    prepared(function, pots, {"memory_posts": posts})
    called(function, first, pots, memory_posts=posts)
    assert (first, pots, posts) == ({"words": ["one"]}, {"pots": [1, 2]}, ["post"])


def test_an_output_shares_nothing_with_what_the_function_keeps() -> None:
    kept: dict[str, Any] = {"pots": []}
    returned = called(lambda first, input_data, context: kept)
    kept["pots"].append(1)
    assert returned.value == {"pots": []}


@pytest.mark.parametrize(("value", "output"), [(3.5, 3.5), (None, None), ([1], [1]), ("x", "x")])
def test_other_values_are_wrapped_as_result(value: Any, output: Any) -> None:
    assert called(lambda first, input_data, context: value).value == {"result": output}


class KilnError(Exception):
    pass


def breaking(*given: Any) -> Any:
    raise KilnError("cracked")


@pytest.mark.parametrize(
    "function",
    [
        breaking,
        chain(breaking)(desk),
        chain(async_step("a"), breaking)(desk),
        conditional_chain(breaking, a)(desk),
        compose(left=breaking)(desk_async),
    ],
)
def test_an_exception_comes_out_as_it_is(function: Function) -> None:
    with pytest.raises(KilnError):
        called(function)


@pytest.mark.parametrize("decorator", [chain, chain_with_results, conditional_chain, pre_compose])
def test_a_step_that_is_no_function_is_refused_where_it_is_written(decorator: Function) -> None:
    with pytest.raises(TypeError, match=f"@{decorator.__name__} takes functions, not 'add_vat'"):
        decorator("add_vat")
