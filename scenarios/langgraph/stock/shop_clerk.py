"""A clerk of a shop: its tools use a database, and a carrier's MCP server lists more tools while it is imported."""

import asyncio
import os
import sqlite3
from contextlib import asynccontextmanager

from langchain.agents import create_agent
from langchain_core.tools import StructuredTool, tool
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

database = sqlite3.connect(os.environ["STOCK_DB"], check_same_thread=False)
database.execute("create table if not exists stock (item text primary key, left integer)")
database.execute("insert or ignore into stock values ('kettle', 3), ('lamp', 1)")


@tool
def stock(item: str) -> str:
    """Say how many of an item are left."""
    (left,) = database.execute("select left from stock where item = ?", [item]).fetchone()
    return f"{left} left"


@tool
def reserve(item: str, count: int) -> str:
    """Reserve some of an item."""
    changed = database.execute(
        "update stock set left = left - :count where item = :item and left >= :count",
        {"item": item, "count": count},
    )
    return "reserved" if changed.rowcount else "there are not enough"


@asynccontextmanager
async def carrier():
    parameters = StdioServerParameters(command="carrier-server")
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session


async def offers():
    async with carrier() as session:
        return (await session.list_tools()).tools


def tool_of(offer) -> StructuredTool:
    async def call(**arguments):
        async with carrier() as session:
            result = await session.call_tool(offer.name, arguments)
        return " ".join(block.text for block in result.content)

    fields = offer.model_dump()
    schema = fields.get("input_schema") or fields["inputSchema"]  # by the version of the SDK
    return StructuredTool.from_function(
        coroutine=call, name=offer.name, description=offer.description or offer.name, args_schema=schema
    )


tools = [stock, reserve, *map(tool_of, asyncio.run(offers()))]
graph = create_agent("openai:gpt-4o-mini", tools, system_prompt="You sell kettles and lamps.")
