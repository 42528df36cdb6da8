"""MCP clients of an app: sessions that are opened while the graph is made, and used by its nodes later."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.dialects.apps.conftest import RunApp, error_of

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the SDK of MCP is not installed")

APP = {
    "app.py": """
        import asyncio
        import os
        from contextlib import asynccontextmanager
        from pathlib import Path

        from langgraph.graph import MessagesState, START, StateGraph
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client


        @asynccontextmanager
        async def make_graph():
            async with stdio_client(StdioServerParameters(command="weather-server")) as streams:
                async with ClientSession(*streams) as session:
                    await session.initialize()
                    listed = [tool.name for tool in (await session.list_tools()).tools]
                    await asyncio.sleep(7)

                    async def ask(city):
                        return (await session.call_tool("forecast", {"city": city})).content[0].text

                    async def one(state):
                        return {"messages": [("ai", f"{listed} {await ask('Oslo')}")]}

                    async def other(state):
                        return {"messages": [("ai", await ask("Rome"))]}

                    builder = StateGraph(MessagesState)
                    builder.add_node("one", one)
                    builder.add_node("other", other)
                    builder.add_edge(START, "one")
                    builder.add_edge("one", "other")
                    try:
                        yield builder.compile()
                    finally:
                        Path(os.environ["LEFT"]).touch()
    """,
    "langgraph.json": '{"graphs": {"agent": "./app.py:make_graph"}, "dependencies": ["."]}',
}


def test_a_session_of_the_factory_serves_the_nodes(run_app: RunApp, tmp_path: Path) -> None:
    """A context manager stays open during the run, in its loop, and is left after it."""
    left = tmp_path / "left"
    (outcome,) = run_app(
        f"""
        manifest: langgraph.json
        defaults: {{env: {{LEFT: '{left}'}}}}
        scenarios:
          - name: it
            input: hi
            mcp:
              weather-server:
                tools:
                  - name: forecast
                    input_schema: {{type: object, properties: {{city: {{type: string}}}}}}
                    stubs:
                      - {{args: {{city: Oslo}}, return: rain, latency: 2}}
                      - {{args: {{city: Rome}}, return: sun, latency: 1}}
            expect:
              path: [one, other]
              calls: [{{mcp: forecast, node: one, args: {{city: Oslo}}}}, {{mcp: forecast, node: other}}]
              output: sun
              state: {{messages: {{$some: {{content: "['forecast'] rain"}}}}}}
              latency: {{total: 3, nodes: {{one: 2, other: 1}}}}
        """,
        APP,
    ).values()
    assert outcome.passed, outcome.checks
    assert left.exists()


def test_a_server_that_is_connected_and_not_called_is_known(run_app: RunApp) -> None:
    app = APP["app.py"].replace(
        '(await session.call_tool("forecast", {"city": city})).content[0].text', "city"
    )
    (outcome,) = run_app(
        """
        manifest: langgraph.json
        defaults: {env: {LEFT: /dev/null}, mcp: {weather-server: {tools: []}}}
        scenarios: [{name: it, input: hi, expect: {output: Rome}}]
        """,
        {**APP, "app.py": app},
    ).values()
    assert outcome.passed, outcome.checks
    assert outcome.observed.warnings == []


def test_a_factory_whose_server_nobody_scripts_tells_so(run_app: RunApp) -> None:
    found = run_app("manifest: langgraph.json\nscenarios: [{name: it, input: hi}]", APP)
    assert "weather-server" in error_of(found["it"])


def test_a_server_is_asked_in_every_loop_of_an_app(run_app: RunApp) -> None:
    """Many apps list the tools of a server by `asyncio.run` while they are imported, and call them in the run."""
    app = """
        import asyncio
        import logging

        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        async def ask(city):
            async with stdio_client(StdioServerParameters(command="weather-server")) as streams:
                async with ClientSession(*streams) as session:
                    await session.initialize()
                    if city is None:
                        return [tool.name for tool in (await session.list_tools()).tools]
                    return (await session.call_tool("forecast", {"city": city})).content[0].text

        told = []
        logging.getLogger("asyncio").addFilter(lambda record: told.append(record.getMessage()))
        NAMES = [asyncio.run(ask(None)) for _ in range(8)][-1]

        async def agent(input):
            in_thread = await asyncio.to_thread(lambda: asyncio.run(ask("Rome")))
            return [NAMES, await ask("Oslo"), in_thread, await ask("Bern"), told]
    """
    (outcome,) = run_app(
        """
        manifest: app.py:agent
        scenarios:
          - name: it
            input: hi
            mcp: {weather-server: {tools: [{name: forecast, stubs: [{return: sunny, latency: 3}]}]}}
            expect: {output: [[forecast], sunny, sunny, sunny, []], call_counts: {mcp: 3}}
        """,
        {"app.py": app},
    ).values()
    assert outcome.passed, (outcome.observed.error, outcome.checks)
    assert outcome.observed.latency["total"] == 9
