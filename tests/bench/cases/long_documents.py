"""What a long document costs: an update with its rendering, the first load of a large file, a line typed into it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bench import process_client
from tests.bench.measurement import Measurement
from tests.sidecar import Home, Sidecar, TimedSidecar, wait_until

FEW: Final = 100  # exchanges in a document
MANY: Final = 3_000
UPDATES: Final = 20
LINES: Final = 20_000
AT_LEAST: Final = 3.0  # seconds after the last call in which a sidecar ends what it does beside its answers


def long_documents(folder: Path) -> Iterator[Measurement]:
    """Processor time, since it says the same on a busy machine; the waits of a person are real time."""
    few, many = (_update_cpu_ms(folder / str(count), count) for count in (FEW, MANY))
    name = f"update and rendering, {MANY:,} exchanges"
    yield Measurement(name, many, "ms CPU", few, f"<= 1.5 x with {FEW}", many <= 1.5 * few)
    yield from _large_file(folder / "large")


def _update_cpu_ms(folder: Path, exchanges: int) -> float:
    home = Home(folder)
    with TimedSidecar(home) as sidecar:
        for number in range(exchanges):
            sidecar.update(f"第 {number} 个问题是什么", f"第 {number} 个回答")
        _wait_for_file(home, f"第 {exchanges - 1} 个回答")
        time.sleep(AT_LEAST)
        before = process_client.cpu_seconds(sidecar.process.pid)
        for number in range(UPDATES):
            sidecar.update(f"又 {number} 个问题", f"又 {number} 个回答")
            _wait_for_file(home, f"又 {number} 个回答")
        return (process_client.cpu_seconds(sidecar.process.pid) - before) / UPDATES * 1000


def _wait_for_file(home: Home, words: str) -> None:
    wait_until(lambda: home.file.exists() and words in home.file.read_text("utf-8"))


def _large_file(folder: Path) -> Iterator[Measurement]:
    home = Home(folder)
    lines = "".join(f"- 第 {number} 行，关于这件事的几个字\n" for number in range(LINES))
    home.file.write_text(f"# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n{lines}", "utf-8")
    began = time.perf_counter()
    with TimedSidecar(home) as sidecar:
        assert f"第 {LINES - 1} 行" in sidecar.load(waitMs=0)["document"]
        first = (time.perf_counter() - began) * 1000
        wait_until(lambda: sidecar.call("events/tail", limit=1)["nextOffset"] >= LINES)  # all of it is taken in
        before = time.perf_counter()
        home.file.write_text(home.file.read_text("utf-8").replace("- 第 7 行", "- 手写的一行\n- 第 7 行"), "utf-8")
        _wait_for_load(sidecar, "- 手写的一行")
        typed = (time.perf_counter() - before) * 1000
    yield Measurement(f"first load of a {LINES:,}-line file", first, "ms", None, "<= 1500 ms", first <= 1500)
    yield Measurement("a line typed into it until load has it", typed, "ms", None, "<= 2000 ms", typed <= 2000)


def _wait_for_load(sidecar: Sidecar, words: str) -> None:
    wait_until(lambda: words in sidecar.load(waitMs=0)["document"])
