"""Vectors from the local models, computed by a child process that starts on demand and stops when idle."""

import asyncio
import json
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sync.recall.semantic import embedding_worker
from sync.recall.semantic.embedder import EmbeddingFailed

IDLE_SECONDS: Final = 900.0  # without a text, after which the child stops
LOAD_TIMEOUT: Final = 120.0
REPLY_TIMEOUT: Final = 60.0  # for one text, which takes 10 ms; for a child that hangs
EXIT_TIMEOUT: Final = 2.0
FLOAT_BYTES: Final = 4

log = logging.getLogger(__name__)


class LocalEmbedder:
    """Embeds one text a call, so that a query waits for one text at most, even if thousands are pending."""

    batch = 1

    def __init__(
        self,
        command: Sequence[str] = (sys.executable, "-P", str(Path(embedding_worker.__file__))),
        *,
        reply_timeout: float = REPLY_TIMEOUT,
    ) -> None:
        self._command = command
        self._reply_timeout = reply_timeout
        self._lock = asyncio.Lock()
        self._process: Process | None = None
        self._name = ""
        self._dimension = 0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        return self._process is not None and self._process.returncode is None and bool(self._name)

    async def identity(self) -> str:
        if self.is_ready:
            return self._name  # without waiting for the lock
        async with self._lock:
            await self._ensure_process()
            return self._name

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[bytes]:
        async with self._lock:
            process = await self._ensure_process()
            line = json.dumps({"texts": texts, "query": query}).encode() + b"\n"
            size = self._dimension * FLOAT_BYTES
            data = await self._request(process, line, size * len(texts))
            return [data[at : at + size] for at in range(0, len(data), size)]

    async def close(self) -> None:
        self._is_closed = True
        async with self._lock:
            await self._kill_process()

    async def _ensure_process(self) -> Process:
        """The running child, started if necessary; its idle time begins again."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._process is None or self._process.returncode is not None:
            await self._start_process()
        assert self._process is not None
        self._idle_timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._stop_when_idle)
        return self._process

    async def _start_process(self) -> None:
        if self._is_closed:
            raise EmbeddingFailed("the program ends")
        self._name = ""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("XIAOBAI_")}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env={**environment, **embedding_worker.WORKER_ENVIRONMENT},
            )
            assert self._process.stdout is not None
            async with asyncio.timeout(LOAD_TIMEOUT):
                models = json.loads(await self._process.stdout.readline() or b"null")
            self._name, self._dimension = f"{models['name']} ({models['dimension']})", models["dimension"]
        except (OSError, TimeoutError, ValueError, TypeError, KeyError) as error:
            await self._kill_process()
            raise EmbeddingFailed(f"the models did not load ({type(error).__name__})") from error
        except BaseException:
            await self._kill_process()
            raise

    async def _request(self, process: Process, line: bytes, size: int) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._reply_timeout):
                process.stdin.write(line)
                await process.stdin.drain()
                return await process.stdout.readexactly(size)
        except (OSError, EOFError) as error:  # a TimeoutError is an OSError
            await self._kill_process()
            raise EmbeddingFailed(f"the process of the models gave no answer ({type(error).__name__})") from error
        except BaseException:  # cancelled: the next reply would be the one to this request
            await self._kill_process()
            raise

    def _stop_when_idle(self) -> None:
        """Stop the idle child by closing its input."""
        if self._process is not None and self._process.stdin is not None and not self._lock.locked():
            self._process.stdin.close()
            log.debug("the models rest")

    async def _kill_process(self) -> None:
        process, self._process = self._process, None
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        try:
            async with asyncio.timeout(EXIT_TIMEOUT):
                await process.wait()
        except TimeoutError:
            log.warning("the process of the models does not end")
