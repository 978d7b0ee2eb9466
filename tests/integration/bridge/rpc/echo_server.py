"""A sidecar without a memory: the real transport around methods that only echo, wait, fail and print.

`--open-seconds N` makes the application slow to open, `--fail-to-open` makes it fail, `--openrpc` prints the schema.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bridge.api.method_table import Context, Method, MethodTable, NoParams, Notify, Params
from bridge.rpc.stdio_transport import serve_stdio
from sync.errors import StorageFull


@dataclass
class EchoApp:
    """What the methods share: who cares hears everything, who waits can be let go."""

    notify: Notify
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    done: list[str] = field(default_factory=list)


class EchoParams(Params, frozen=True):
    value: object = None


class WaitParams(Params, frozen=True):
    seconds: float = 0.0
    label: str = ""


class SizeParams(Params, frozen=True):
    size: int


class InitializeParams(Params, frozen=True):
    protocol_version: int = 1
    parent_pid: int | None = None


async def echo(_context: Context[EchoApp], params: EchoParams) -> object:
    return params.value


async def respond_slowly(context: Context[EchoApp], params: WaitParams) -> str:
    await asyncio.sleep(params.seconds)
    context.app.done.append(params.label)
    return params.label


async def wait_for_release(context: Context[EchoApp], params: WaitParams) -> str:
    """Wait until a client calls `release`."""
    context.notify("test/held", {"label": params.label})
    await context.app.gate.wait()
    return params.label


async def release(context: Context[EchoApp], _params: NoParams) -> None:
    context.app.gate.set()


async def done(context: Context[EchoApp], _params: NoParams) -> list[str]:
    return context.app.done


async def fail(_context: Context[EchoApp], _params: NoParams) -> None:
    raise StorageFull("no space left")


async def crash(_context: Context[EchoApp], _params: NoParams) -> None:
    raise RuntimeError("the secret is 13812345678")


async def return_unserialisable(_context: Context[EchoApp], _params: NoParams) -> object:
    return object()


async def return_large(_context: Context[EchoApp], params: SizeParams) -> str:
    return "记" * (params.size // 3)


async def print_noise(_context: Context[EchoApp], _params: NoParams) -> str:
    """Everything that usually corrupts a wire: print, a raw write, a child process that reads and writes."""
    print("stray print")
    os.write(1, b"stray write\n")
    program = "import sys; print(f'stray child, read {len(sys.stdin.read())}')"
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], check=True)
    return "quiet"


async def tell(context: Context[EchoApp], params: EchoParams) -> None:
    context.notify("memory/changed", {"value": params.value})
    context.report_progress("token", {"done": 1})


async def never_answer(_context: Context[EchoApp], _params: NoParams) -> None:
    await asyncio.Event().wait()


async def block(_context: Context[EchoApp], params: WaitParams) -> None:
    """Keeps the loop from turning, as a defect would."""
    time.sleep(params.seconds)  # noqa: ASYNC251 - that is the defect


async def initialize(context: Context[EchoApp], params: InitializeParams) -> dict[str, object]:
    if params.parent_pid is not None:
        context.watch_parent(params.parent_pid)
    return {"protocolVersion": 1, "serverInfo": {"name": "echo", "version": "0.0.0"}}


TABLE: MethodTable[EchoApp] = MethodTable(
    [
        Method("test/echo", EchoParams, echo, "Answers what it is given."),
        Method("test/slow", WaitParams, respond_slowly, "Answers after a while."),
        Method("test/held", WaitParams, wait_for_release, "Answers when released."),
        Method("test/release", NoParams, release, "Lets go whoever is held."),
        Method("test/done", NoParams, done, "Which slow calls came to their end."),
        Method("test/fail", NoParams, fail, "Fails as it should."),
        Method("test/crash", NoParams, crash, "Fails as it should not."),
        Method("test/unsayable", NoParams, return_unserialisable, "Answers something that is not JSON."),
        Method("test/large", SizeParams, return_large, "Answers so many bytes."),
        Method("test/noisy", NoParams, print_noise, "Writes to standard output."),
        Method("test/tell", EchoParams, tell, "Sends a notification and a progress."),
        Method("test/overdue", NoParams, never_answer, "Never answers by itself.", timeout=0.05),
        Method("test/block", WaitParams, block, "Keeps the loop busy.", timeout=None),
        Method("initialize", InitializeParams, initialize, "Names both sides."),
    ]
)


@asynccontextmanager
async def open_echo(notify: Notify, open_seconds: float = 0.0, *, fail_to_open: bool = False) -> AsyncIterator[EchoApp]:
    await asyncio.sleep(open_seconds)
    if fail_to_open:
        raise StorageFull("no space left for opening")
    yield EchoApp(notify)
    print("closed", file=sys.stderr, flush=True)


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--open-seconds", type=float, default=0.0)
    options.add_argument("--fail-to-open", action="store_true")
    chosen = options.parse_args()
    return asyncio.run(
        serve_stdio(TABLE, lambda notify: open_echo(notify, chosen.open_seconds, fail_to_open=chosen.fail_to_open))
    )


if __name__ == "__main__":
    sys.exit(main())
