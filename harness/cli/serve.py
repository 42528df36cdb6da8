"""`harness serve`: the stubs of a scenario as a server, for any client."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

import click

from harness.errors import ExtraMissing, FormatError, Problem
from harness.report.formatting import plural
from harness.source.display import printable

if TYPE_CHECKING:
    from harness.serve import Serving
    from harness.serve.responder import StubResponder


@click.command("serve")
@click.argument("target", metavar="FILE[::NAME]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port; 0 is any that is free."
)
@click.option(
    "--allow-host",
    "allow_hosts",
    metavar="NAME",
    multiple=True,
    help="Answer requests to, or from pages of, this host too; '*' is any. May be repeated.",
)
@click.option("--stdio", metavar="SERVER", help="Serve this MCP server on standard input and output instead.")
def command(target: str, host: str, port: int, allow_hosts: tuple[str, ...], stdio: str | None) -> None:
    """Answer any client from the stubs of a scenario.

    FILE is a scenario file; NAME chooses one of several scenarios. Clients of OpenAI and Anthropic, of the
    scenario's MCP servers and of its HTTP services are answered by its `llm`, `mcp` and `http` stubs, until
    Ctrl-C. Prints a line for every request, and at the end the stubs that were not used.
    """
    from harness.serve.server import responder_for, serve_until_interrupted

    responder = responder_for(
        target, on_request=lambda request: _say(str(request), to_stderr=stdio is not None)
    )
    if stdio is not None:
        _serve_stdio(responder, stdio)
        _tell_unused(_of_server(responder, stdio), to_stderr=True)
    else:
        try:
            serve_until_interrupted(responder, host=host, port=port, allow_hosts=allow_hosts, ready=_announce)
        except ExtraMissing as error:
            raise FormatError(Problem(error.code, str(error))) from None
        _tell_unused(responder.unused(), to_stderr=False)


def _say(line: str, *, to_stderr: bool = False) -> None:
    click.echo(line, err=to_stderr)


def _announce(server: Serving) -> None:
    _say(f"OPENAI_BASE_URL={server.openai_url}")
    _say(f"ANTHROPIC_BASE_URL={server.anthropic_url}")
    for name, url in server.mcp_urls.items():
        _say(f"MCP server {printable(name)}: {url}")


def _serve_stdio(responder: StubResponder, name: str) -> None:
    import asyncio

    from harness.serve.mcp import serve_stdio

    def leave(_signal: int, _frame: FrameType | None) -> None:
        _tell_unused(_of_server(responder, name), to_stderr=True)
        os._exit(0)  # a thread reads standard input, and nothing else would end that

    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, leave)
    asyncio.run(serve_stdio(responder, name))


def _of_server(responder: StubResponder, name: str) -> list[str]:
    """The stubs of this MCP server that were not used: nobody could ask for the others."""
    return [text for text in responder.unused() if text.startswith(f"mcp.{name}.")]


def _tell_unused(left: Sequence[str], *, to_stderr: bool) -> None:
    _say(f"{plural(len(left), 'stub')} not used{':' if left else ''}", to_stderr=to_stderr)
    for text in left:
        _say(f"  {printable(text)}", to_stderr=to_stderr)
