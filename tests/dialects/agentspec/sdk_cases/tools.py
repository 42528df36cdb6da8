"""Tools, MCP servers and requests to other servers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from pyagentspec.flows.nodes import (
    ApiNode,
    EndNode,
    StartNode,
    ToolNode,
)
from pyagentspec.mcp import (
    MCPTool,
    SessionParameters,
    SSEmTLSTransport,
    SSETransport,
    StdioTransport,
    StreamableHTTPmTLSTransport,
    StreamableHTTPTransport,
)
from pyagentspec.property import (
    BooleanProperty,
)
from pyagentspec.tools import ClientTool, RemoteTool

from tests.dialects.agentspec.sdk_cases.case import (
    Case,
    case,
    in_a_row,
    integer,
    number,
    text,
)


@case
def requests_to_other_servers() -> Case:
    nodes = [
        StartNode(name="start", inputs=[text("harbour"), integer("hours")]),
        ApiNode(
            name="tides",
            url="https://tides.example.test/{{harbour}}",
            http_method="POST",
            api_spec_uri="https://tides.example.test/openapi.json",
            data={"window": {"hours": "{{hours}}", "steps": [1, 2.5, None]}, "raw": True},
            query_params={"unit": "m"},
            headers={"X-Desk": "{{harbour}}"},
            outputs=[number("high")],
        ),
        ToolNode(
            name="book",
            tool=RemoteTool(
                name="book_berth",
                description="Books a berth",
                url="https://berths.example.test/book",
                http_method="PUT",
                data={"depth": "{{depth}}"},
                outputs=[text("stamp")],
            ),
        ),
        ApiNode(name="ring", url="https://bell.example.test/ring", http_method="GET"),
        EndNode(name="end", outputs=[number("high"), text("stamp"), text("answer")]),
    ]
    berths = in_a_row(
        "berths",
        nodes,
        """
        start.harbour -> tides.harbour
        start.hours -> tides.hours
        tides.high -> book.depth
        tides.high -> end.high
        book.stamp -> end.stamp
        ring.response -> end.answer
        """,
    )
    return Case(
        berths,
        """
        - name: requests are rendered, and their answers read
          input: {harbour: brest, hours: 6}
          http:
            - method: POST
              url: https://tides.example.test/brest*
              args:
                json: {$exact: {window: {hours: "6", steps: [1, 2.5, null]}, raw: true}}
                query: {unit: m}
                headers: {x-desk: brest}
              json: {high: 7, low: 1}
            - method: PUT
              url: https://berths.example.test/book
              args: {json: {depth: "7.0"}}
              json: {stamp: b-1}
            - {method: GET, url: "https://bell.example.test/ring", json: {rung: true}}
          expect:
            path: [start, tides, book, ring, end]
            output: {$exact: {high: 7.0, stamp: b-1, answer: '{"rung": true}'}}
        """,
    )


@case
def a_client_tool_waits_for_the_client() -> Case:
    held = [text("holder"), BooleanProperty(title="allowed")]
    nodes = [
        StartNode(name="start", inputs=[text("door")]),
        ToolNode(name="scan", tool=ClientTool(name="scan_badge", inputs=[text("door")], outputs=held)),
        EndNode(name="end", outputs=held),
    ]
    return Case(
        in_a_row("door", nodes),
        """
        - name: the client resumes with the result
          turns:
            - input: {door: D7}
              expect: {status: interrupted, path: [start, scan]}
            - resume: {holder: Kim, allowed: true}
              expect: {output: {$exact: {holder: Kim, allowed: true}}}
        """,
    )


@case
def mcp_tools_over_every_transport() -> Case:
    files: dict[str, Any] = {"key_file": "client.key", "cert_file": "client.crt", "ca_file": "ca.crt"}
    sse, http = "https://sse.example.test", "https://http.example.test"
    transports = [
        StdioTransport(
            id="stdio",
            name="stdio",
            command="python",
            args=["-m", "server"],
            env={"LEVEL": "info"},
            cwd="servers",
        ),
        SSETransport(id="sse", name="sse", url=sse, headers={"X-Desk": "7"}),
        StreamableHTTPTransport(
            id="http", name="http", url=http, session_parameters=SessionParameters(read_timeout_seconds=5)
        ),
        SSEmTLSTransport(id="sse_mtls", name="sse_mtls", url=sse, **files),
        StreamableHTTPmTLSTransport(id="http_mtls", name="http_mtls", url=http, **files),
    ]
    tools = [
        MCPTool(name="pass_on", client_transport=transport, inputs=[text("word")], outputs=[text("word")])
        for transport in transports
    ]
    nodes = [
        StartNode(name="start", inputs=[text("word")]),
        *(ToolNode(name=f"by_{tool.client_transport.id}", tool=tool) for tool in tools),
        EndNode(name="end", outputs=[text("word")]),
    ]
    data = "\n".join(f"{one.name}.word -> {other.name}.word" for one, other in pairwise(nodes))
    servers = "".join(
        f"""
            {transport.id}:
              tools:
                - name: pass_on
                  input_schema: {{type: object, properties: {{word: {{type: string}}}}, required: [word]}}
                  stubs: [{{args: {{word: "{at}"}}, return: "{at + 1}"}}]"""
        for at, transport in enumerate(transports)
    )
    return Case(
        in_a_row("relay", nodes, data),
        f"""
        - name: a word goes from server to server
          input: {{word: "0"}}
          mcp: {servers}
          expect:
            path: [start, by_stdio, by_sse, by_http, by_sse_mtls, by_http_mtls, end]
            output: {{word: "5"}}
        """,
        supplied={
            f"{transport}.{name}": value
            for transport in ("sse_mtls", "http_mtls")
            for name, value in files.items()
        },
    )
