"""Others who answer JSON-RPC on stdio with the bytes of a `load`, without doing anything for them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.bench.process_client import Program, request

HERE: Final = Path(__file__).parent
PYTHON: Final = HERE.parents[1] / ".venv/bench/bin/python"  # made by `tests/bench/setup`
_INITIALIZE: Final = request(
    "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "bench", "version": "1"}
)
MCP_OPENING: Final = (_INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"})


def echo(result: Any) -> Program:
    """The floor: a bare asyncio loop that writes the answer for each line."""
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}, ensure_ascii=False)
    return Program([sys.executable, "-m", "tests.bench.echo_process", answer], request("memory/load", waitMs=0))


def peers(result: Any) -> Mapping[str, Program]:
    """The peers by name; empty if they are not installed."""
    if not PYTHON.exists():
        return {}
    body = json.dumps(result, ensure_ascii=False)
    pygls = Program([str(PYTHON), str(HERE / "peer_pygls.py"), body], request("memory/load", waitMs=0), headers=True)
    mcp = Program(
        [str(PYTHON), str(HERE / "peer_mcp.py"), body],
        request("tools/call", name="load", arguments={}),
        MCP_OPENING,
    )
    return {"pygls": pygls, "mcp": mcp}
