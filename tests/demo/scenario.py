"""The demo's scenario and its final check. Every number on the screen is measured live."""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.rows import TupleRow

from tests.cloud.local_cloud import LocalCloud
from tests.demo.devices import Devices
from tests.demo.display import PANEL_LINES, Display
from tests.sidecar import Home

EMAIL: Final = "demo@example.com"
PASSWORD: Final = "a password for one afternoon"
OFFLINE_UPDATES: Final = 5
INTERRUPTED: Final = 130  # as a shell calls what Ctrl-C ended
SIDECARS_LOG: Final = "sidecars.log"
LOG_TAIL: Final = 4_000  # characters
PATIENCE: Final = 30.0  # seconds for anything the demo waits for
ON_SERVER: Final = (
    "select seq, device_id, type, coalesce(payload->>'text', payload->>'question', payload->>'name', '')"
    " from ai_memory_events order by seq"
)


@dataclass
class DemoSetup:
    """Who plays."""

    cloud: LocalCloud
    devices: Devices
    homes: dict[str, Home]
    display: Display
    database: psycopg.AsyncConnection[TupleRow]
    acknowledged: list[str] = field(default_factory=list)  # acknowledged words, which must be everywhere at the end

    async def update(self, device: str, user: str, answer: str) -> float:
        """One update through the Node client; milliseconds until it was acknowledged."""
        began = time.perf_counter()
        await self.devices.call(device, "memory/update", userMessage=user, aiResponse=answer)
        self.acknowledged.append(user)
        return (time.perf_counter() - began) * 1000

    async def type_line(self, device: str, heading: str, line: str) -> None:
        """What a person does in an editor: a new line below a heading, saved."""
        file = self.homes[device].file
        await wait_until(lambda: asyncio.to_thread(file.exists))
        text = file.read_text("utf-8")
        file.write_text(text.replace(f"{heading}\n", f"{heading}\n- {line}\n", 1), "utf-8")
        self.acknowledged.append(line)

    async def server_rows(self) -> list[TupleRow]:
        return await (await self.database.execute(ON_SERVER)).fetchall()

    async def is_on_server(self, words: str) -> bool:
        return any(words in row[3] for row in await self.server_rows())

    async def is_in_log(self, device: str, words: str) -> bool:
        answer = await self.devices.call(device, "events/tail", limit=50)
        return any(words in str(event["payload"]) for event in answer["events"])

    async def is_in_digest(self, device: str, words: str) -> bool:
        answer = await self.devices.call(device, "memory/load", waitMs=0)
        return words in answer["digest"]


def run(*, once: bool, lan: bool = False) -> int:
    """Run the demo, or with `lan` that of the local network; then end, or stay until Ctrl-C.

    0 if all steps succeeded and nothing was lost.
    """
    outcome: list[int] = []
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(outcome, once=once, lan=lan))
    return outcome[0] if outcome else INTERRUPTED


async def _run(outcome: list[int], *, once: bool, lan: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="xiaobai-demo-") as folder, Display() as screen:
        try:
            await _run_scenario(Path(folder), screen, outcome, once=once, lan=lan)
        except TimeoutError as error:
            screen.step(str(error), good=False)
            log = Path(folder) / SIDECARS_LOG
            if log.exists():  # it goes with the folder
                screen.console.print(log.read_text("utf-8", "replace")[-LOG_TAIL:])
            outcome.append(1)


async def _run_scenario(folder: Path, screen: Display, outcome: list[int], *, once: bool, lan: bool) -> None:
    async with _open_demo(folder, screen, lan=lan) as stage, _windows(stage):
        if lan:
            await _edit_travels_without_the_cloud(stage)
        else:
            await _edit_travels(stage)
            await _app_calls(stage)
            await _cloud_goes_away(stage)
        await _nothing_lost(stage)
        outcome.append(1 if screen.went_wrong else 0)
        if not once:
            screen.step(f"edit this file and watch: {stage.homes['A'].file}   (Ctrl-C ends)")
            await asyncio.Event().wait()


@asynccontextmanager
async def _open_demo(folder: Path, screen: Display, *, lan: bool) -> AsyncIterator[DemoSetup]:
    screen.step("starting a Supabase on a real PostgreSQL on this machine")
    async with LocalCloud.start(engine="postgres") as cloud:
        assert cloud.database_url is not None
        await cloud.create_user(EMAIL, PASSWORD)
        screen.step("the cloud is up, the migrations are in, one account exists", note=cloud.url, good=True)
        homes = {name: _home(folder, name, cloud, lan=lan) for name in ("A", "B")}
        devices = await Devices.start(
            {name: home.environment for name, home in homes.items()}, log=folder / SIDECARS_LOG
        )
        try:
            for name in homes:
                answer = await devices.call(name, "auth/password", email=EMAIL, password=PASSWORD)
                screen.step(f"device {name} runs and is logged in as {answer['account']['label']}", good=True)
            async with await psycopg.AsyncConnection.connect(cloud.database_url, autocommit=True) as database:
                yield DemoSetup(cloud, devices, homes, screen, database)
        finally:
            await devices.stop()


class ViewersHome(Home):
    """A home whose dates are those of the viewer's zone; the tests have one of their own."""

    @property
    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in super().environment.items() if name != "TZ"}
        return own | ({"TZ": os.environ["TZ"]} if "TZ" in os.environ else {})


def _home(folder: Path, name: str, cloud: LocalCloud, *, lan: bool) -> Home:
    settings = {"LAN__ENABLED": "auto", "LAN__ADDRESS": "127.0.0.1"} if lan else {}
    return ViewersHome(
        folder / name,
        device=f"device-{name.lower()}",
        SUPABASE_URL=cloud.url,
        SUPABASE_KEY=cloud.publishable_key,
        DEVICE_NAME=f"device {name}",
        SYNC__POLL_SECONDS="0.5",
        **settings,
    )


async def _edit_travels(stage: DemoSetup) -> None:
    """A line typed into a file on one device becomes an event, reaches the cloud, shows up on the other device."""
    await stage.update("A", "你好，我叫晓力", "很高兴认识你，晓力！")
    line = "我喜欢简洁的代码，不要写太多注释"
    stage.display.step(f"typing into A's file: - {line}")
    began = time.perf_counter()
    await stage.type_line("A", "### 技术偏好", line)
    await wait_until(lambda: stage.is_in_log("A", line))
    stage.display.step("it is an event in A's log", note=_seconds_since(began), good=True)
    await wait_until(lambda: stage.is_on_server(line))
    stage.display.step("it is a numbered row on the server", note=_seconds_since(began), good=True)
    await wait_until(lambda: stage.is_in_digest("B", line))
    stage.display.step("device B's load shows it", note=_seconds_since(began), good=True)


async def _app_calls(stage: DemoSetup) -> None:
    """The Electron side: the Node client updates and loads on both devices."""
    for device, user, answer in (
        ("A", "设置里，帮我打开自动更新", "已经打开自动更新"),
        ("B", "我之前设置过什么？", "你在 device A 上打开过自动更新"),
    ):
        took = await stage.update(device, user, answer)
        began = time.perf_counter()
        loaded = await stage.devices.call(device, "memory/load")
        note = f"update {took:.1f} ms, load {_seconds_since(began)}, source {loaded['source']}"
        stage.display.step(f"Node client on {device}: update and load", note=note, good=user in loaded["content"])


async def _cloud_goes_away(stage: DemoSetup) -> None:
    """Without a network everything goes on; when it returns the queue empties by itself."""
    await stage.cloud.stop_http()
    stage.display.step("the cloud is gone: connections are refused")
    slowest = max([await stage.update("A", f"离线时的问题 {number}", "照样记住") for number in range(OFFLINE_UPDATES)])
    await stage.type_line("B", "### 常用命令", "离线时手写的一行")
    began = time.perf_counter()
    loaded = await stage.devices.call("B", "memory/load")
    stage.display.step(
        f"{OFFLINE_UPDATES} updates acknowledged, a line typed on B",
        note=f"slowest {slowest:.1f} ms; load {_seconds_since(began)}, "
        f"source {loaded['source']}, stale {loaded['stale']}",
        good=True,
    )
    status = await stage.devices.call("A", "sync/status")
    stage.display.step(f"waiting on A: {status['pending']} events, on disk", good=status["pending"] >= OFFLINE_UPDATES)
    await stage.cloud.start_http()
    began = time.perf_counter()
    stage.display.step("the cloud is back")
    for device in stage.homes:
        await wait_until(lambda name=device: _is_synced(stage, name))  # type: ignore[misc]
    stage.display.step("both queues are empty, nobody had to ask", note=_seconds_since(began), good=True)


async def _edit_travels_without_the_cloud(stage: DemoSetup) -> None:
    """The cloud stops; the devices find each other on the network, and what is typed on one shows up on the other."""
    for device in stage.homes:
        await wait_until(lambda name=device: _knows_the_other(stage, name))  # type: ignore[misc]
    await stage.cloud.stop_http()
    stage.display.step("the cloud is gone: connections are refused")
    began = time.perf_counter()
    await wait_until(lambda: _is_connected(stage, "A"))
    stage.display.step("A and B have found each other by multicast DNS", note=_seconds_since(began), good=True)
    line = "我喜欢简洁的代码，不要写太多注释"
    await stage.update("A", "设置里，帮我打开自动更新", "已经打开自动更新")
    await stage.update("B", "没有云的时候也记得", "照样记住")
    await wait_until(lambda: stage.is_in_log("A", "没有云的时候也记得"))
    stage.display.step(f"typing into A's file: - {line}")
    began = time.perf_counter()
    await stage.type_line("A", "### 技术偏好", line)
    await wait_until(lambda: stage.is_in_digest("B", line))
    stage.display.step("device B's load shows it, without any cloud", note=_seconds_since(began), good=True)
    await stage.cloud.start_http()
    stage.display.step("the cloud is back")
    for device in stage.homes:
        await wait_until(lambda name=device: _is_synced(stage, name))  # type: ignore[misc]


async def _knows_the_other(stage: DemoSetup, device: str) -> bool:
    return bool((await stage.devices.call(device, "lan/status"))["state"] == "listening")


async def _is_connected(stage: DemoSetup, device: str) -> bool:
    return bool((await stage.devices.call(device, "lan/peers"))["peers"])


async def _is_synced(stage: DemoSetup, device: str) -> bool:
    status = await stage.devices.call(device, "sync/status")
    return bool(status["pending"] == 0 and status["cloud"]["state"] == "synced")


async def _nothing_lost(stage: DemoSetup) -> None:
    """Everything that was acknowledged is on the server exactly once and in both logs."""
    for device in stage.homes:
        await stage.devices.call(device, "sync/now")
    texts = [row[3] for row in await stage.server_rows()]
    logs = {
        device: str((await stage.devices.call(device, "events/read", limit=1000))["events"]) for device in stage.homes
    }
    lost = [
        words
        for words in stage.acknowledged
        if sum(words in text for text in texts) != 1 or any(words not in log for log in logs.values())
    ]
    if lost:
        stage.display.step(f"LOST OR DOUBLED: {lost}", good=False)
    else:
        said = (
            f"checked: all {len(stage.acknowledged)} things said "
            "are on the server exactly once and in both devices' logs"
        )
        stage.display.step(said, good=True)
        stage.display.step("nothing was lost", good=True)


@asynccontextmanager
async def _windows(stage: DemoSetup) -> AsyncIterator[None]:
    """Keep the three windows of the screen up to date."""
    task = asyncio.create_task(_look(stage)) if stage.display.console.is_terminal else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _look(stage: DemoSetup) -> None:
    while True:
        file = stage.homes["A"].file
        text = await asyncio.to_thread(file.read_text, "utf-8") if file.exists() else ""
        stage.display.windows["A"] = [line for line in text.splitlines() if line.strip() and "待补充" not in line]
        rows = await stage.server_rows()
        stage.display.windows["cloud"] = [
            f"{seq:>3} {device[-1].upper()} {said or kind}" for seq, device, kind, said in rows
        ]
        digest: str = (await stage.devices.call("B", "memory/load", waitMs=0))["digest"]
        stage.display.windows["B"] = digest.splitlines()[:PANEL_LINES]  # newest first
        await asyncio.sleep(0.4)  # how often a person's eye needs news


async def wait_until(condition: Callable[[], Awaitable[Any]]) -> None:
    """Wait until a condition is true. Raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE
    while not await condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the demo waited in vain; below is what the sidecars logged last")
        await asyncio.sleep(0.01)  # a pause between looks


def _seconds_since(began: float) -> str:
    return f"{(time.perf_counter() - began) * 1000:.0f} ms"
