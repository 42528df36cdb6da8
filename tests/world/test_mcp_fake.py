"""The scripted MCP server, tested through a real client session, in virtual time."""

import asyncio
import contextvars
import logging
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ExpressionError, UnscriptedCall, WorldError
from harness.time.clock import VirtualTimeLoop
from harness.world.mcp.fake import content_result, error_result, fake_session, structured_result, text_result
from harness.world.mcp.tools import MCPFailure, MCPResult, MCPSession, MCPTool

T = TypeVar("T")

REPORT = MCPTool(
    "report",
    "The weather at a place",
    {"type": "object", "required": ["place"], "properties": {"place": {"type": "string"}}},
)
ANY = MCPTool("anything")


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


def now() -> float:
    return asyncio.get_running_loop().time()


def using(
    answer: Callable[[str, dict[str, Any]], Awaitable[MCPResult]], *tools: MCPTool
) -> Callable[[Callable[[MCPSession], Awaitable[T]]], T]:
    """Return the result of `use(session)` with a scripted server of `tools` that answers with `answer`."""

    def with_session(use: Callable[[MCPSession], Awaitable[T]]) -> T:
        async def main() -> T:
            async with fake_session("weather", tools or (REPORT, ANY), answer) as session:
                return await use(session)

        return run(main)

    return with_session


def call(
    answer: Callable[[str, dict[str, Any]], Awaitable[MCPResult]], name: str = "anything", **args: Any
) -> MCPResult:
    return using(answer)(lambda session: session.call_tool(name, args))


def always(result: MCPResult) -> Callable[[str, dict[str, Any]], Awaitable[MCPResult]]:
    async def answer(name: str, args: dict[str, Any]) -> MCPResult:
        return result

    return answer


def raising(error: BaseException) -> Callable[[str, dict[str, Any]], Awaitable[MCPResult]]:
    async def answer(name: str, args: dict[str, Any]) -> MCPResult:
        raise error

    return answer


async def never(name: str, args: dict[str, Any]) -> MCPResult:
    pytest.fail("the call must not reach the answer")


# listing and calling


def test_tools_are_listed_in_order_as_they_were_declared() -> None:
    assert using(never)(lambda session: session.list_tools()) == [REPORT, ANY]


def test_a_server_without_tools_lists_none() -> None:
    async def main() -> list[MCPTool]:
        async with fake_session("empty", [], never) as session:
            return await session.list_tools()

    assert run(main) == []


def test_an_input_schema_is_an_object_schema_even_if_it_does_not_say_so() -> None:
    tools = using(never, MCPTool("t", "", {"properties": {"a": {}}}))(lambda session: session.list_tools())
    assert tools[0].input_schema == {"type": "object", "properties": {"a": {}}}


def test_a_call_gives_the_answer_its_name_and_arguments() -> None:
    async def answer(name: str, args: dict[str, Any]) -> MCPResult:
        return text_result(f"{name} {args}")

    result = call(answer, "report", place="Vardø")
    assert result == MCPResult([{"type": "text", "text": "report {'place': 'Vardø'}"}])


def test_a_null_argument_arrives_as_null() -> None:
    async def answer(name: str, args: dict[str, Any]) -> MCPResult:
        return text_result(repr(args))

    assert call(answer, at=None, list=[None]).content[0]["text"] == "{'at': None, 'list': [None]}"


def test_a_call_needs_no_listing_first_and_may_be_repeated() -> None:
    async def twice(session: MCPSession) -> list[MCPResult]:
        return [await session.call_tool("anything", {}), await session.call_tool("anything", {})]

    assert using(always(text_result("calm")))(twice) == [text_result("calm")] * 2


# what the server refuses


@pytest.mark.parametrize(
    ("args", "reason"),
    [({}, "'place' is a required property"), ({"place": 3}, "3 is not of type 'string' (argument 'place')")],
)
def test_arguments_that_break_the_input_schema_are_a_tool_error_and_ask_no_answer(
    args: Any, reason: Any
) -> None:
    assert call(never, "report", **args) == error_result(f"Input validation error: {reason}")


def test_an_external_schema_reference_is_a_tool_error_not_a_download() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "https://schemas.example/a.json"}}}
    result = using(never, MCPTool("t", "", schema))(lambda session: session.call_tool("t", {"a": 1}))
    assert result.is_error


def test_an_unknown_tool_is_a_protocol_error() -> None:
    with pytest.raises(MCPFailure, match="Unknown tool: forecast") as raised:
        call(never, "forecast")
    assert raised.value.code == -32602


def test_a_tool_whose_schema_is_no_json_schema_stops_the_server_from_starting() -> None:
    with pytest.raises(WorldError, match="tool 'broken'"):
        using(never, MCPTool("broken", "", {"type": 5}))(lambda session: session.list_tools())


def test_structured_content_that_breaks_the_output_schema_is_refused_by_the_client() -> None:
    tool = MCPTool(
        "t",
        output_schema={"type": "object", "properties": {"speed": {"type": "integer"}}, "required": ["speed"]},
    )
    calling = using(always(structured_result({"speed": "fast"})), tool)
    with pytest.raises(MCPFailure, match="'fast' is not of type 'integer'"):
        calling(lambda session: session.call_tool("t", {}))


# results


def test_text_is_one_text_block() -> None:
    assert call(always(text_result("calm"))) == MCPResult([{"type": "text", "text": "calm"}], None, False)


def test_an_error_result_keeps_its_text_and_says_so() -> None:
    assert call(always(error_result("no signal"))) == MCPResult(
        [{"type": "text", "text": "no signal"}], None, True
    )


def test_a_mapping_is_structured_content_with_its_compact_json_as_text() -> None:
    result = call(always(structured_result({"wind": [1, None], "place": "Vardø"})))
    assert result.structured == {"wind": [1, None], "place": "Vardø"}
    assert result.content == [{"type": "text", "text": '{"wind":[1,null],"place":"Vardø"}'}]


def test_a_value_that_is_no_mapping_is_wrapped_because_structured_content_is_an_object() -> None:
    result = call(always(structured_result([1, 2])))
    assert result.structured == {"result": [1, 2]}
    assert result.content == [{"type": "text", "text": "[1,2]"}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_any_json_object_arrives_as_it_was_sent(value: Any) -> None:
    assert call(always(structured_result(value))).structured == value


def test_content_blocks_arrive_as_they_were_written() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "see chart"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///chart.txt", "text": "rocks"}},
    ]
    assert call(always(content_result(blocks))) == MCPResult(blocks)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ({"type": "picture"}, "'picture' is not a type of MCP content block; expected one of text, image"),
        ({"text": "calm"}, "None is not a type"),
        ({"type": "image", "data": "aGk="}, "mimeType: Field required"),
    ],
)
def test_a_block_the_protocol_does_not_know_is_an_error_of_the_world(block: Any, reason: Any) -> None:
    with pytest.raises(WorldError, match=reason):
        content_result([block])


# what the answer raises


@pytest.mark.parametrize(
    "error", [UnscriptedCall("report({})", None), WorldError("no"), ExpressionError("bad", source="1 +")]
)
def test_an_error_of_the_harness_reaches_the_caller_as_the_same_object(error: Any) -> None:
    with pytest.raises(type(error)) as raised:
        call(raising(error))
    assert raised.value is error


def test_any_other_exception_is_a_tool_error_with_its_text() -> None:
    assert call(raising(RuntimeError("the mast broke"))) == error_result("the mast broke")


def test_an_exception_without_text_gives_its_name() -> None:
    assert call(raising(TimeoutError())) == error_result("TimeoutError")


def test_an_mcp_failure_arrives_as_a_protocol_error_with_its_code() -> None:
    with pytest.raises(MCPFailure, match="server is busy") as raised:
        call(raising(MCPFailure("server is busy", -32000)))
    assert raised.value.code == -32000


def test_a_session_goes_on_after_an_error_of_the_harness() -> None:
    async def answer(name: str, args: dict[str, Any]) -> MCPResult:
        if args.get("fail"):
            raise WorldError("no")
        return text_result("calm")

    async def use(session: MCPSession) -> MCPResult:
        with pytest.raises(WorldError):
            await session.call_tool("anything", {"fail": True})
        return await session.call_tool("anything", {})

    assert using(answer)(use) == text_result("calm")


def test_an_exception_in_the_context_is_raised_unchanged() -> None:
    error = UnscriptedCall("elsewhere", None)

    async def use(session: MCPSession) -> None:
        raise error

    with pytest.raises(UnscriptedCall) as raised:
        using(never)(use)
    assert raised.value is error


# several tasks, and time


async def slow_echo(name: str, args: dict[str, Any]) -> MCPResult:
    await asyncio.sleep(args["after"])
    if args.get("fail"):
        raise WorldError(str(args["after"]))
    return text_result(f"after {args['after']}")


def test_concurrent_calls_are_kept_apart_and_cost_the_longest_of_them() -> None:
    async def use(session: MCPSession) -> tuple[list[Any], float]:
        calls = [session.call_tool("anything", {"after": n, "fail": n % 2 == 1}) for n in (4, 3, 2, 1)]
        return await asyncio.gather(*calls, return_exceptions=True), now()

    (four, three, two, one), elapsed = using(slow_echo)(use)
    assert (four, two) == (text_result("after 4"), text_result("after 2"))
    assert [str(three), str(one)] == ["3", "1"]
    assert elapsed == 4


def test_an_answer_runs_in_the_context_of_its_call() -> None:
    node = contextvars.ContextVar[str]("node")

    async def answer(name: str, args: dict[str, Any]) -> MCPResult:
        return text_result(node.get())

    async def use(session: MCPSession) -> list[MCPResult]:
        async def call_from(name: str) -> MCPResult:
            node.set(name)
            return await session.call_tool("anything", {})

        return list(await asyncio.gather(call_from("plan"), call_from("check")))

    assert using(answer)(use) == [text_result("plan"), text_result("check")]


def test_opening_listing_calling_and_closing_take_no_virtual_time() -> None:
    async def main() -> float:
        async with fake_session("weather", [ANY], always(text_result("calm"))) as session:
            await session.list_tools()
            await session.call_tool("anything", {})
        return now()

    assert run(main) == 0


def test_a_session_may_be_closed_by_a_task_that_did_not_open_it() -> None:
    async def main() -> int:
        opening = fake_session("weather", [ANY], never)
        session = await asyncio.create_task(opening.__aenter__())
        await session.list_tools()
        await asyncio.create_task(opening.__aexit__(None, None, None))
        return len(asyncio.all_tasks())

    assert run(main) == 1


def test_sessions_may_be_closed_in_the_order_they_were_opened() -> None:
    async def main() -> int:
        first, second = fake_session("a", [], never), fake_session("b", [], never)
        await first.__aenter__()
        await second.__aenter__()
        await first.__aexit__(None, None, None)
        await second.__aexit__(None, None, None)
        return len(asyncio.all_tasks())

    assert run(main) == 1


# the end


def test_closing_leaves_no_tasks() -> None:
    async def main() -> int:
        async with fake_session("weather", [ANY], always(text_result("calm"))) as session:
            await session.call_tool("anything", {})
        return len(asyncio.all_tasks())

    assert run(main) == 1


def test_a_call_that_times_out_cancels_its_answer_and_leaves_the_session_usable() -> None:
    cancelled_at: list[float] = []

    async def answer(name: str, args: dict[str, Any]) -> MCPResult:
        if args:
            return text_result("calm")
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            cancelled_at.append(now())
            raise
        return await never(name, args)

    async def use(session: MCPSession) -> MCPResult:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await session.call_tool("anything", {})
        await asyncio.sleep(5)
        return await session.call_tool("anything", {"again": True})

    assert using(answer)(use) == text_result("calm")
    assert cancelled_at == [2]


def test_a_run_timeout_during_a_call_closes_everything_at_once() -> None:
    async def main() -> tuple[float, int]:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30), fake_session("weather", [ANY], slow_echo) as session:
                await session.call_tool("anything", {"after": 1000})
        return now(), len(asyncio.all_tasks())

    assert run(main) == (30, 1)


def test_a_call_still_waiting_when_the_session_closes_fails_at_once() -> None:
    async def main() -> tuple[Any, float, int]:
        async with fake_session("weather", [ANY], slow_echo) as session:
            waiting = asyncio.create_task(session.call_tool("anything", {"after": 1000}))
            await asyncio.sleep(1)
        (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
        return outcome, now(), len(asyncio.all_tasks())

    outcome, elapsed, tasks = run(main)
    assert isinstance(outcome, MCPFailure)
    assert (elapsed, tasks) == (1, 1)


def test_a_call_after_the_end_fails() -> None:
    async def main() -> None:
        async with fake_session("weather", [ANY], never) as session:
            pass
        await session.call_tool("anything", {})

    with pytest.raises(MCPFailure, match=r"(?i)connection.*closed"):
        run(main)


def test_nothing_is_logged_or_warned(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        call(always(structured_result([1])))
        call(raising(RuntimeError("the mast broke")))
        with pytest.raises(UnscriptedCall):
            call(raising(UnscriptedCall("report({})", None)))
    assert (caplog.records, [str(w.message) for w in warned]) == ([], [])
