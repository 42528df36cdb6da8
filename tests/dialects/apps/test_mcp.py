"""MCP clients of apps: the SDK's own, and LangChain's `MultiServerMCPClient`, which names its servers."""

from importlib.util import find_spec

import pytest

from tests.dialects.apps.conftest import RunApp, error_of

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the SDK of MCP is not installed")

SDK = """
    from mcp import ClientSession, StdioServerParameters
    from mcp.client import sse, stdio, streamable_http

    COMMAND = StdioServerParameters(command="tide-server", args=["--port", "Brest"])
    over_http = getattr(streamable_http, "streamablehttp_client", None) or streamable_http.streamable_http_client
    CLIENTS = {
        "stdio": lambda: stdio.stdio_client(COMMAND),
        "http": lambda: over_http("https://tides.example.com/mcp"),
        "sse": lambda: sse.sse_client(url="https://tides.example.com/sse"),
    }


    async def agent(input):
        try:
            async with CLIENTS[input["over"]]() as streams, ClientSession(*streams[:2]) as session:
                await session.initialize()
                listed = [tool.name for tool in (await session.list_tools()).tools]
                results = [await session.call_tool(name, args) for name, args in input["calls"]]
            return {"listed": listed, "said": [result.content[0].text for result in results]}
        except Exception as error:
            return {"caught": type(error).__name__}
"""
SCHEMA = "input_schema: {properties: {hours: {type: integer}}}"
TIDES = f"{{tools: [{{name: tide, {SCHEMA}, stubs: [{{return: 5.1 m}}]}}], latency: 2}}"


@pytest.mark.parametrize(
    ("over", "server"),
    [
        ("stdio", "tide-server"),
        ("http", "https://tides.example.com/mcp"),
        ("sse", "https://tides.example.com/sse"),
    ],
)
def test_a_client_of_the_sdk_is_answered_over_every_transport(
    run_app: RunApp, over: str, server: str
) -> None:
    (outcome,) = run_app(
        f"""
        manifest: app.py:agent
        scenarios:
          - name: it
            input: {{over: {over}, calls: [[tide, {{hours: 6}}]]}}
            mcp: {{"{server}": {TIDES}}}
            expect:
              output: {{listed: [tide], said: [5.1 m]}}
              calls: [{{mcp: tide, node: agent, args: {{hours: 6}}, ok: true}}]
              latency: {{total: 2}}
        """,
        {"app.py": SDK},
    ).values()
    assert outcome.passed, (outcome.observed, outcome.checks)


def test_what_the_server_refuses_is_told_and_recorded(run_app: RunApp) -> None:
    found = run_app(
        f"""
        manifest: app.py:agent
        defaults: {{mcp: {{tide-server: {TIDES}}}}}
        scenarios:
          - name: arguments that do not fit the schema
            input: {{over: stdio, calls: [[tide, {{hours: six}}]]}}
            expect:
              unused: true
              output: {{said: [{{$contains: "'six' is not of type 'integer'"}}]}}
              calls: [{{mcp: tide, args: {{hours: six}}, ok: false}}]
          - name: a tool that the server does not have
            input: {{over: stdio, calls: [[depth, {{}}]]}}
            expect:
              unused: true
              output: {{caught: {{$regex: Error|Group}}}}
              calls: [{{mcp: depth, ok: false}}]
          - name: an error of a tool
            input: {{over: stdio, calls: [[tide, {{}}]]}}
            mcp: {{tide-server: {{tools: [{{name: tide, stubs: [{{error: {{kind: exception, message: dry}}}}]}}]}}}}
            expect: {{output: {{said: [{{$contains: dry}}]}}, calls: [{{mcp: tide, ok: false}}]}}
          - name: faults reach it
            input: {{over: stdio, calls: [[tide, {{}}]]}}
            faults: [{{effect: mcp, nth: 1, latency: 20}}]
            expect: {{output: {{said: [5.1 m]}}, latency: {{total: 22}}}}
        """,
        {"app.py": SDK},
    )
    assert {name: one.checks for name, one in found.items() if not one.passed} == {}


def test_a_call_that_nothing_answers_ends_the_run_whatever_the_app_catches(run_app: RunApp) -> None:
    found = run_app(
        f"""
        manifest: app.py:agent
        defaults: {{input: {{over: stdio, calls: [[tide, {{hours: 6}}], [level, {{hours: 7}}]]}}}}
        scenarios:
          - name: a tool
            mcp:
              tide-server:
                tools:
                  - {{name: tide, stubs: [{{return: 5.1 m}}]}}
                  - {{name: level, stubs: [{{args: {{hours: 6}}, return: 3.9 m}}]}}
          - {{name: a server, mcp: {{tide-servers: {TIDES}}}}}
          - {{name: no server at all}}
        """,
        {"app.py": SDK},
    )
    assert {one.observed.status for one in found.values()} == {"failed"}
    assert "MCP tool 'level' of server 'tide-server' with {'hours': 7}" in error_of(found["a tool"])
    assert "nothing answers MCP server 'tide-server'" in error_of(found["a server"])
    assert "did you mean 'tide-servers'" in error_of(found["a server"])
    assert "`mcp: {tide-server: {tools: " in error_of(found["no server at all"])


ADAPTERS = """
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_mcp_adapters.tools import load_mcp_tools

    CLIENT = MultiServerMCPClient(
        {
            "tides": {"transport": "stdio", "command": "python", "args": ["tides.py"]},
            "berths": {"transport": "streamable_http", "url": "https://berths.example.com/mcp"},
            "pilots": {"transport": "sse", "url": "https://pilots.example.com/sse"},
        }
    )


    async def all_tools(input):
        tools = {tool.name: tool for tool in await CLIENT.get_tools()}
        return [str(await tools[name].ainvoke(args)) for name, args in input["calls"]]


    async def one_session(input):
        async with CLIENT.session("berths") as session:
            tools = {tool.name: tool for tool in await load_mcp_tools(session)}
            return [str(await tools[name].ainvoke(args)) for name, args in input["calls"]]


    async def guarded(input):
        try:
            return await all_tools(input)
        except Exception as error:
            return [str(error)]
"""


@pytest.mark.skipif(
    find_spec("langchain_mcp_adapters") is None, reason="langchain-mcp-adapters is not installed"
)
def test_servers_have_the_names_that_the_client_of_langchain_gives_them(run_app: RunApp) -> None:
    schema = "input_schema: {properties: {n: {type: integer}}}"
    found = run_app(
        f"""
        manifest: app.py:all_tools
        defaults:
          mcp:
            tides: {{tools: [{{name: tide, {schema}, stubs: [{{return: 5.1 m}}]}}], latency: 1}}
            berths: {{tools: [{{name: find, {schema}, stubs: [{{args: {{n: 1}}, return: berth 7}}]}}], latency: 2}}
            pilots: {{tools: [{{name: call, {schema}, stubs: [{{return: Ines}}]}}], latency: 4}}
          expect: {{unused: true}}
        scenarios:
          - name: every tool
            input: {{calls: [[tide, {{n: 1}}], [find, {{n: 1}}], [call, {{n: 1}}]]}}
            expect:
              output: [{{$contains: 5.1 m}}, {{$contains: berth 7}}, {{$contains: Ines}}]
              calls:
                - {{tool: tide, args: {{n: 1}}}}
                - {{mcp: tide, args: {{n: 1}}}}
                - {{mcp: find, args: {{n: 1}}}}
                - {{mcp: call, args: {{n: 1}}}}
              latency: {{total: 7}}
          - name: a session of one server
            manifest: app.py:one_session
            input: {{calls: [[find, {{n: 1}}]]}}
            expect: {{output: [{{$contains: berth 7}}], latency: {{total: 2}}}}
          - name: an error of a tool is the client's own
            manifest: app.py:guarded
            input: {{calls: [[find, {{n: 1}}]]}}
            mcp: {{berths: {{tools: [{{name: find, stubs: [{{error: {{kind: exception, message: full}}}}]}}]}}}}
            expect: {{output: [{{$contains: full}}], calls: [{{mcp: find, ok: false}}]}}
          - name: a call that nothing answers
            manifest: app.py:guarded
            input: {{calls: [[find, {{n: 2}}]]}}
            expect: {{status: failed, error: {{message: {{$contains: MCP tool 'find' of server 'berths'}}}}}}
        """,
        {"app.py": ADAPTERS},
    )
    assert {name: one.checks for name, one in found.items() if not one.passed} == {}
