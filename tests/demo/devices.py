"""Two devices as an Electron app has them: one Node process drives a sidecar for each, with the client that ships."""

import asyncio
import itertools
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

APP: Final = Path(__file__).with_name("app.mjs")
ANSWER_WITHIN: Final = 30.0  # seconds; a bound for a broken program


class Devices:
    """`await Devices.start(homes)`; then `call("A", "memory/load")`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, environments: dict[str, dict[str, str]], log: Path) -> "Devices":
        """Each device has a letter and an environment."""
        command = json.dumps([sys.executable, "-m", "bridge.cli.main", "serve"])
        environment = {**os.environ, "DEMO_DEVICES": json.dumps(environments), "DEMO_COMMAND": command}
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                "node",
                str(APP),
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                env=environment,
                limit=16 * 1024 * 1024,
                start_new_session=True,  # a Ctrl-C is for the demo, which closes the app as a person does
            )
        return cls(process)

    async def call(self, device: str, method: str, **params: Any) -> Any:
        """One JSON-RPC call through the Node client. RuntimeError with what the sidecar said."""
        number = next(self._ids)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": number, "device": device, "method": method, "params": params})
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()
        async with asyncio.timeout(ANSWER_WITHIN):
            message = await answer
        if "error" in message:
            raise RuntimeError(f"{method} on {device}: {message['error']}")
        return message["result"]

    async def stop(self) -> None:
        """Close the app as a person does; it closes its sidecars."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(10):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            answer = self._answers.pop(message["id"])
            if not answer.done():  # a Ctrl-C may have come before it
                answer.set_result(message)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(RuntimeError("the Node app ended"))
