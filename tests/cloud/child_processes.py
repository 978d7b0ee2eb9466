"""Child processes that never outlive their launcher.

A child's standard input is open as long as its launcher lives, even if that is killed with -9. Our own programs watch
their input; any other runs under TETHER, a shell that watches for it.
"""

import asyncio
import contextlib
import logging
import os
import re
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from tests.cloud.prerequisites import Account, LocalCloudError

log = logging.getLogger("tests.cloud")

STOP = "stop"  # ends a child; an input that closes without it means that the launcher died

# SIGQUIT is PostgreSQL's immediate shutdown. If the launcher died, $1 is deleted as well.
TETHER = """
directory=$1; shift
exec 3<&0
"$@" </dev/null 3<&- & child=$!
trap 'kill -QUIT "$child"' TERM
trap 'alone=yes; kill -QUIT "$child"' USR1
(if read -r _ <&3; then kill -TERM $$; else kill -USR1 $$; fi) & watcher=$!
wait "$child"; status=$?
wait "$child" 2>/dev/null
kill "$watcher" 2>/dev/null
[ -z "$alone" ] || [ -z "$directory" ] || rm -rf "$directory"
exit "$status"
"""

LINE_LIMIT = 1 << 24  # bytes; lite logs a failed statement with its parameters, and those hold whole documents
REMEMBERED_LINES = 40  # enough to show why a child did not start
STOP_WITHIN = 10.0  # seconds; both servers need well under one


def tethered(command: Sequence[str], *, remove: str = "") -> list[str]:
    return ["/bin/sh", "-c", TETHER, "tether", remove, *command]


@dataclass(eq=False)
class Child:
    """A running program whose output is logged; callers can wait for a line of it."""

    name: str
    process: Process
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED_LINES))
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _readers: list[asyncio.Task[None]] = field(default_factory=list)

    @classmethod
    async def start(cls, name: str, command: Sequence[str], *, account: Account | None = None) -> Self:
        as_account = {} if account is None else {"user": account.uid, "group": account.gid, "extra_groups": []}
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=LINE_LIMIT,
            env=os.environ | {"LC_ALL": "C", "DO_NOT_TRACK": "1"},
            start_new_session=True,  # the launcher handles Ctrl-C
            **as_account,  # type: ignore[arg-type]
        )
        child = cls(name, process)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            reader = asyncio.create_task(child._read_lines(stream))
            reader.add_done_callback(lambda _: child._news.set())
            child._readers.append(reader)
        return child

    @property
    def pid(self) -> int:
        return self.process.pid

    async def write_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        await self.process.stdin.drain()

    async def wait_for_line(self, pattern: str, *, timeout: float) -> re.Match[str]:
        """Wait for the first line, past or future, that matches the pattern."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    self._news.clear()
                    for line in self._lines:
                        if found := re.search(pattern, line):
                            return found
                    if all(reader.done() for reader in self._readers):
                        raise LocalCloudError(f"{self.name} ended before it was ready:\n{self.recent_output()}")
                    await self._news.wait()
        except TimeoutError:
            raise LocalCloudError(f"{self.name} was not ready in {timeout:g} s:\n{self.recent_output()}") from None

    async def wait_for_exit(self, *, timeout: float) -> int:
        async with asyncio.timeout(timeout):
            return await self.process.wait()

    async def stop(self) -> None:
        """Ask it to end, and kill it if it does not."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended already
            await self.write_line(STOP)
        self.process.stdin.close()
        try:
            await self.wait_for_exit(timeout=STOP_WITHIN)
        except TimeoutError:
            log.warning("%s (%d) did not stop by itself", self.name, self.pid)
            self.process.kill()
            await self.process.wait()
        await asyncio.gather(*self._readers)

    async def _read_lines(self, stream: asyncio.StreamReader) -> None:
        while line := await _line(stream):
            log.info("%s: %s", self.name, line.rstrip("\n"))
            self._lines.append(line)
            self._news.set()

    def recent_output(self) -> str:
        return "".join(self._lines) or "(it said nothing)"


async def _line(stream: asyncio.StreamReader) -> str:
    with contextlib.suppress(ValueError):  # longer than LINE_LIMIT
        return (await stream.readline()).decode(errors="replace")
    return "…\n"
