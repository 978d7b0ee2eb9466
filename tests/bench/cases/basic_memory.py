"""A program from PyPI that does part of the job, on the same notes: basic-memory keeps Markdown notes behind MCP.

It has no cloud of one's own, no log and no redaction, but links and a search that are none of our job; the common part
is to start, to take a note down, and to show the newest. Its vectors are off: they would load a model.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.bench import process_client
from tests.bench.cases.one_device import serve
from tests.bench.process_client import Program, measure_ms, request, run_program
from tests.bench.rpc_peers import MCP_OPENING
from tests.sidecar import REPOSITORY, Home

COMMAND: Final = REPOSITORY / ".venv/peers/bin/basic-memory"  # made by `tests/bench/setup peers`
NOTES: Final = 100
STARTS: Final = 3
READS: Final = 50


@dataclass(frozen=True)
class PeerMeasurement:
    """Medians in milliseconds, and MB of the process after these calls."""

    name: str
    notes: int
    start_ms: float
    write_ms: float
    read_ms: float
    rss_mb: float


def compare_with_peers(folder: Path) -> list[PeerMeasurement]:
    """Measure this program and basic-memory; nothing if it is not installed."""
    if not COMMAND.exists():
        return []
    exchanges = [(f"第 {number} 个问题", f"第 {number} 个回答" + "回答" * 30) for number in range(NOTES)]
    ours = [request("memory/update", userMessage=question, aiResponse=answer) for question, answer in exchanges]
    theirs = [
        _tool("write_note", title=question, content=f"{question}\n\n{answer}", directory="notes", project="main")
        for question, answer in exchanges
    ]
    return [
        _measure("xiaobai-memory", serve(Home(folder / "ours")), ours),
        _measure("basic-memory", _basic_memory(folder / "theirs"), theirs),
    ]


def _measure(name: str, program: Program, writes: Sequence[Mapping[str, Any]]) -> PeerMeasurement:
    with run_program(program) as first:  # makes its tables, compiles its modules
        first.ask()
    with run_program(program) as asked:
        asked.ask()
        written = statistics.median([measure_ms(partial(asked.ask, write)) for write in writes])
        read = statistics.median([measure_ms(asked.ask) for _ in range(READS)])
        rss = process_client.rss_mb(asked.pid)
    return PeerMeasurement(name, len(writes), process_client.first_answer_ms(program, STARTS), written, read, rss)


def _basic_memory(folder: Path) -> Program:
    home = Home(folder)
    environment = {
        **home.environment,
        "BASIC_MEMORY_CONFIG_DIR": str(folder / "config"),
        "BASIC_MEMORY_HOME": str(folder / "notes"),
        "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
        "BASIC_MEMORY_AUTO_UPDATE": "false",
        "FASTMCP_CHECK_FOR_UPDATES": "off",
        "FASTMCP_SHOW_SERVER_BANNER": "false",
    }
    newest = _tool("recent_activity", project="main")
    return Program([str(COMMAND), "mcp"], newest, MCP_OPENING, environment=environment)


def _tool(tool: str, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", name=tool, arguments=arguments)
