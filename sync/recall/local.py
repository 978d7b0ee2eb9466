"""Vectors from the models of the extra, computed by a child process that comes when it is needed and goes when not."""

import asyncio
import json
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sync.recall import worker
from sync.recall.embedder import Unembedded

IDLE: Final = 900.0  # seconds without a text after which the child goes, and its memory with it
LOADS_WITHIN: Final = 120.0  # seconds; a bound for a broken machine
ANSWERS_WITHIN: Final = 60.0  # seconds for one text, which takes a hundredth of one; a bound for a child that hangs
ENDS_WITHIN: Final = 2.0
BYTES: Final = 4  # of one number

log = logging.getLogger(__name__)


class LocalEmbedder:
    """One text a call: a question waits for one text at most, where thousands are in line."""

    batch = 1

    def __init__(
        self,
        command: Sequence[str] = (sys.executable, "-P", str(Path(worker.__file__))),
        *,
        answers_within: float = ANSWERS_WITHIN,
    ) -> None:
        self._command = command
        self._answers_within = answers_within
        self._alone = asyncio.Lock()
        self._process: Process | None = None
        self._name = ""
        self._dimension = 0
        self._leaves: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def identity(self) -> str:
        if self._process is not None and self._process.returncode is None and self._name:
            return self._name  # without standing in line
        async with self._alone:
            await self._running()
            return self._name

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[bytes]:
        async with self._alone:
            process = await self._running()
            line = json.dumps({"texts": texts, "query": query}).encode() + b"\n"
            size = self._dimension * BYTES
            told = await self._asked(process, line, size * len(texts))
            return [told[at : at + size] for at in range(0, len(told), size)]

    async def close(self) -> None:
        self._is_closed = True
        async with self._alone:
            await self._end()

    async def _running(self) -> Process:
        """The child, begun if need be; it stays for another while."""
        if self._leaves is not None:
            self._leaves.cancel()
        if self._process is None or self._process.returncode is not None:
            await self._begin()
        assert self._process is not None
        self._leaves = asyncio.get_running_loop().call_later(IDLE, self._leave)
        return self._process

    async def _begin(self) -> None:
        if self._is_closed:
            raise Unembedded("the program ends")
        self._name = ""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("XIAOBAI_")}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={**kept, **worker.QUIET}
            )
            assert self._process.stdout is not None
            async with asyncio.timeout(LOADS_WITHIN):
                told = json.loads(await self._process.stdout.readline() or b"null")
            self._name, self._dimension = f"{told['name']} ({told['dimension']})", told["dimension"]
        except (OSError, TimeoutError, ValueError, TypeError, KeyError) as error:
            await self._end()
            raise Unembedded(f"the models did not load ({type(error).__name__})") from error
        except BaseException:
            await self._end()
            raise

    async def _asked(self, process: Process, line: bytes, size: int) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._answers_within):
                process.stdin.write(line)
                await process.stdin.drain()
                return await process.stdout.readexactly(size)
        except (OSError, EOFError) as error:  # a TimeoutError is an OSError
            await self._end()
            raise Unembedded(f"the process of the models gave no answer ({type(error).__name__})") from error
        except BaseException:  # cancelled between question and answer: what comes next would be the answer to this
            await self._end()
            raise

    def _leave(self) -> None:
        """Nobody has asked for a while: the end of its input ends the child."""
        if self._process is not None and self._process.stdin is not None and not self._alone.locked():
            self._process.stdin.close()
            log.debug("the models rest")

    async def _end(self) -> None:
        process, self._process = self._process, None
        if self._leaves is not None:
            self._leaves.cancel()
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        try:
            async with asyncio.timeout(ENDS_WITHIN):
                await process.wait()
        except TimeoutError:
            log.warning("the process of the models does not end")
