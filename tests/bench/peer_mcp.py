"""A peer of the bridge: a low-level MCP server; its one tool says the text given as the argument. Runs where mcp is."""

import asyncio
import sys

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TEXT = sys.argv[1]


async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="load", input_schema={"type": "object"})])


async def call_tool(_context: object, _params: object) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=TEXT)])


async def main() -> None:
    server = Server("peer", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
