"""Fixtures of the acceptance tests: homes, a network that a test can cut, and access to the server's rows."""

import asyncio
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row

from sync.encryption.database_encryption import DatabaseEncryption
from tests.cloud.fixtures import Cloud
from tests.cloud.proxy.fault_proxy import FaultProxy
from tests.sidecar import Home, Sidecar, wait_until

T = TypeVar("T")

POLL_SECONDS = "0.3"  # seconds: a device that only reads soon receives the others' events
BUSY_TIMEOUT_SECONDS = 5.0  # a reader waits this long for the writer of a database


class _RecordingProxy(FaultProxy):
    """A fault proxy that remembers what clients sent."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self.received = bytearray()

    async def _carry_requests(self, source: asyncio.StreamReader, *others: Any) -> None:
        await super()._carry_requests(_RecordingReader(source, self.received), *others)  # type: ignore[arg-type]


class _RecordingReader:
    """A reader that records what it reads."""

    def __init__(self, source: asyncio.StreamReader, received: bytearray) -> None:
        self._source = source
        self._received = received

    async def read(self, count: int) -> bytes:
        piece = await self._source.read(count)
        self._received += piece
        return piece


class Network:
    """A fault proxy before a cloud, in a thread of its own, so that tests need not be coroutines."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._proxy = _RecordingProxy("127.0.0.1", cloud.port)

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._proxy.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._proxy.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return self._proxy.url

    @property
    def requests(self) -> list[tuple[str, dict[str, str]]]:
        """Request line and headers of every received request, in order."""
        found = []
        for line in bytes(self._proxy.received).split(b"\r\n\r\n"):
            lines = line.decode("utf-8", errors="replace").split("\r\n")
            first = next((at for at, text in enumerate(lines) if text.endswith("HTTP/1.1")), None)
            if first is not None:
                headers = dict(text.split(": ", 1) for text in lines[first + 1 :] if ": " in text)
                found.append((lines[first], {name.lower(): value for name, value in headers.items()}))
        return found

    @property
    def received(self) -> bytes:
        """Every byte that clients sent."""
        return bytes(self._proxy.received)

    def clear_requests(self) -> None:
        self._proxy.received.clear()

    def disconnect(self) -> None:
        self._run(self._proxy.disconnect())

    def reconnect(self) -> None:
        self._run(self._proxy.reconnect())

    def half_open(self) -> None:
        self._run(self._proxy.half_open())

    def respond_with(self, status: int, body: bytes, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._run(self._proxy.respond_with(status, named, body))

    def drop_responses(self, count: int, *, matching: str) -> None:
        self._run(self._proxy.drop_response_after_request(count, matching=matching))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)


def cloud_settings(cloud: Cloud, url: str | None = None) -> dict[str, str]:
    """The settings that lead to a cloud, directly or through a `Network`."""
    return {
        "SUPABASE_URL": url or cloud.url,
        "SUPABASE_KEY": cloud.publishable_key,
        "SYNC__POLL_SECONDS": POLL_SECONDS,
    }


def unreachable_cloud_settings() -> dict[str, str]:
    """The settings of a project that no server answers for."""
    return {"SUPABASE_URL": "http://127.0.0.1:9", "SUPABASE_KEY": "sb_publishable_x"}


def unique_text(word: str) -> str:
    """Return a text that occurs nowhere else and matches no redaction rule."""
    letters = str.maketrans("0123456789abcdef", "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳")
    return f"{word}{uuid4().hex[:12].translate(letters)}"


class ServerRows:
    """One user's rows on the server, read by the superuser."""

    def __init__(self, cloud: Cloud, user_id: str) -> None:
        self._url = cloud.database_url
        self._user_id = user_id

    @property
    def events(self) -> list[dict[str, Any]]:
        return self._rows("select * from public.ai_memory_events where user_id = %s order by seq")

    @property
    def documents(self) -> list[dict[str, Any]]:
        return self._rows("select * from public.ai_memory where user_id = %s order by device_id")

    @property
    def devices(self) -> list[dict[str, Any]]:
        return self._rows("select * from public.ai_memory_devices where user_id = %s order by device_id")

    def event_ids(self, event_type: str = "exchange_recorded") -> list[str]:
        return [row["event_id"] for row in self.events if row["type"] == event_type]

    def all_rows_as_text(self) -> str:
        """All rows as text, for a search."""
        return json.dumps([self.events, self.documents, self.devices], ensure_ascii=False, default=str)

    def _rows(self, statement: str) -> list[dict[str, Any]]:
        with psycopg.connect(self._url, row_factory=dict_row) as connection:
            return connection.execute(statement, [self._user_id]).fetchall()


def question_counts(document: str) -> Counter[str]:
    """Count how often each question occurs in a document."""
    mark = "- 用户问："
    return Counter(line.removeprefix(mark) for line in document.splitlines() if line.startswith(mark))


def wait_for_lines(home: Home, *texts: str) -> None:
    """Wait until the memory file holds all of these."""
    wait_until(lambda: home.file.exists() and all(text in home.file.read_text("utf-8") for text in texts))


def events_of(sidecar: Sidecar, *types: str) -> list[dict[str, Any]]:
    """The events of the local log, of some types or of all."""
    events: list[dict[str, Any]] = sidecar.call("events/read", types=list(types))["events"]
    return events


def exchanges(sidecar: Sidecar) -> list[dict[str, Any]]:
    return events_of(sidecar, "exchange_recorded")


def manual_edit_events(sidecar: Sidecar, count: int) -> list[dict[str, Any]]:
    """Wait for exactly `count` events of manual edits, and return them."""
    wait_until(lambda: len(_manual_edits(sidecar)) >= count)
    edits = _manual_edits(sidecar)
    assert len(edits) == count, [(event["type"], event["payload"]) for event in edits]
    return edits


def printed(home: Home, expected: str, *command: str) -> str:
    """What a command prints, as soon as the sidecar carries it out: one that starts or is busy does not answer."""
    outputs = [""]

    def is_printed() -> bool:
        outputs.append(home.run(*command, check=False).stdout)
        return expected in outputs[-1]

    wait_until(is_printed)
    return outputs[-1]


def wait_until_reconciled(sidecar: Sidecar) -> None:
    """Wait until the sidecar has read the file as it is now: a load reads it before answering."""
    sidecar.call("sync/status")  # a first load may be answered before the program is open
    sidecar.load(waitMs=1)


def wait_until_synced(sidecar: Sidecar) -> Any:
    """Wait until everything is on the server."""
    return sidecar.call_until(
        "sync/status", lambda status: status["pending"] == 0 and status["cloud"]["state"] == "synced"
    )


def local_rows(home: Home, statement: str) -> list[tuple[Any, ...]]:
    """Open the home's database to read."""
    with DatabaseEncryption().read_only_connection(home.database, BUSY_TIMEOUT_SECONDS) as connection:
        return [tuple(row) for row in connection.execute(statement)]


def integrity(home: Home) -> str:
    return str(local_rows(home, "pragma integrity_check")[0][0])


def files_below(folder: Path) -> list[Path]:
    """Also while a program takes folders away."""
    paths = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return [path for path in paths if path.is_file()]


def files_containing(
    folder: Path, text: str, *, unpack: Callable[[Path, bytes], bytes] = lambda _, data: data
) -> list[Path]:
    """Return the files below a folder that contain a text, even while a program writes or deletes there."""
    paths = []
    for path in files_below(folder):
        with suppress(FileNotFoundError):
            if text.encode() in unpack(path, path.read_bytes()):
                paths.append(path)
    return paths


def _manual_edits(sidecar: Sidecar) -> list[dict[str, Any]]:
    return events_of(sidecar, "entry_added", "entry_edited", "entry_removed")
