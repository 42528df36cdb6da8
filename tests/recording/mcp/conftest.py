import pytest

from harness.recording.interactions import Exchange
from harness.world.mcp.tools import MCPSession
from tests.recording.mcp.sessions import over_http, recording


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="session")
def day() -> tuple[Exchange, ...]:
    """A recorded session: a list of tools, and a report of Vardø."""

    async def use(session: MCPSession) -> None:
        await session.list_tools()
        await session.call_tool("report", {"place": "Vardø", "when": "today or tomorrow", "knots": 2})

    with over_http() as endpoint:  # a process might take long to start, and so would each replay
        return recording(use, endpoint)[0]
