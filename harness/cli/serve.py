"""`harness serve`: serve the stubs of a scenario to any client."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

import click

from harness.cli import completion
from harness.report.formatting import plural
from harness.source.display import printable

if TYPE_CHECKING:
    from harness.serve import Serving
    from harness.serve.responder import StubResponder


@click.command("serve")
@click.argument("target", metavar="FILE[::NAME]", shell_complete=completion.scenario_paths)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port; 0 is any free port."
)
@click.option(
    "--allow-host",
    "allow_hosts",
    metavar="NAME",
    multiple=True,
    help="Also answer requests with this Host or Origin; '*' is any. May be repeated.",
)
@click.option("--stdio", metavar="SERVER", help="Serve only this MCP server, on standard input and output.")
def command(target: str, host: str, port: int, allow_hosts: tuple[str, ...], stdio: str | None) -> None:
    """Serve the stubs of a scenario to any client.

    FILE is a scenario file; NAME chooses one of several scenarios. Clients of OpenAI and Anthropic, of the
    scenario's MCP servers and of its HTTP services are answered by its `llm`, `mcp` and `http` stubs, until
    Ctrl-C. Prints a line for every request, and at the end the stubs that were not used.
    """
    from harness.serve.server import responder_for, serve_until_interrupted

    to_stderr = stdio is not None
    responder = responder_for(target, on_request=lambda request: click.echo(str(request), err=to_stderr))
    if stdio is not None:
        _serve_stdio(responder, stdio)
        _print_unused(_of_server(responder, stdio), to_stderr=True)
    else:
        serve_until_interrupted(responder, host=host, port=port, allow_hosts=allow_hosts, ready=_announce)
        _print_unused(responder.unused(), to_stderr=False)


def _announce(server: Serving) -> None:
    click.echo(f"OPENAI_BASE_URL={server.openai_url}")
    click.echo(f"ANTHROPIC_BASE_URL={server.anthropic_url}")
    for name, url in server.mcp_urls.items():
        click.echo(f"MCP server {printable(name)}: {url}")


def _serve_stdio(responder: StubResponder, name: str) -> None:
    import asyncio

    from harness.serve.mcp import serve_stdio

    def leave(_signal: int, _frame: FrameType | None) -> None:
        _print_unused(_of_server(responder, name), to_stderr=True)
        os._exit(0)  # nothing else ends the thread that reads standard input

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    asyncio.run(serve_stdio(responder, name))


def _of_server(responder: StubResponder, name: str) -> list[str]:
    """Return the unused stubs of this MCP server; clients could not reach the others."""
    return [text for text in responder.unused() if text.partition(": ")[2].startswith(f"mcp.{name}.")]


def _print_unused(left: Sequence[str], *, to_stderr: bool) -> None:
    click.echo(f"{plural(len(left), 'stub')} not used up{':' if left else ''}", err=to_stderr)
    for text in left:
        click.echo(f"  {printable(text)}", err=to_stderr)
