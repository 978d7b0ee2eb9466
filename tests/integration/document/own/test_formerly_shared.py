"""A home of an earlier version, whose document was one of several devices: `formerly_shared.json`, which it made.

The document becomes the device's own as it is.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.sidecar import _cold_loader
from sync.app import App
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.erasure import erasure
from sync.log import store as log_store
from sync.log.local_state import is_local_state
from sync.log.model import Event
from sync.log.projections.registry import projection_of
from sync.open_app import AppMode
from sync.settings.sections import DocumentSettings
from sync.settings.values import KeepLimit
from tests.integration.db.rebuild.test_salvage import Home
from tests.integration.document.harness import open_document_harness

STORED = json.loads((Path(__file__).parent / "formerly_shared.json").read_text("utf-8"))
FOREIGN = "- 晚上不开会"  # typed on the device 手机
LABELLED = "- 【来自 手机】晚上不开会"
KEEP_ALL = KeepLimit(-1)
COPY = "- 早上喝红茶"  # that device's edit, beside the one of this device that it conflicts with


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.settings = replace(home.settings, document=DocumentSettings(sharing="user", keep_days=KEEP_ALL))
    await home.open_and_close(AppMode.GUEST)
    with closing(sqlite3.connect(home.database)) as database, database:
        for table in ("events", "written", "watermarks"):
            database.execute(f"delete from {table}")
            for row in STORED[table]:
                values = [bytes.fromhex(value["hex"]) if isinstance(value, dict) else value for value in row.values()]
                names, marks = ", ".join(row), ", ".join("?" * len(row))
                database.execute(f"insert into {table} ({names}) values ({marks})", values)
    home.settings.memory_file.write_text(STORED["file"], "utf-8")
    return home


def text(home: Home) -> str:
    return home.settings.memory_file.read_text("utf-8")


async def edit(home: Home, app: App, old: str, new: str) -> None:
    assert old in text(home)
    home.settings.memory_file.write_text(text(home).replace(old, new), "utf-8")
    await app.reconcile_memory_file()


async def test_the_file_keeps_its_bytes_and_status_says_that_the_setting_has_no_effect(home: Home) -> None:
    async with home.app() as app:
        await app.reconcile_memory_file()
        assert text(home) == STORED["file"]
        assert (await app.status()).warnings == ("document_sharing_ended",)
    home.settings = replace(home.settings, document=DocumentSettings(keep_days=KEEP_ALL))
    async with home.app() as app:
        assert (await app.status()).warnings == ()


async def test_lines_of_other_devices_stay_with_their_label_and_are_edited_as_own_ones(home: Home) -> None:
    async with home.app() as app:
        await app.memory_service.update(ExchangeInput("丙问", "好的"))
        await app.reconcile_memory_file()
        assert {FOREIGN, COPY, "- 用户问：乙问", "- 用户问：丙问"} <= set(text(home).splitlines())
        loaded = await app.memory_service.load(wait_ms=0)
        assert LABELLED in loaded.content
        assert "- 【来自 手机】用户问：乙问" in loaded.content
        assert "\n- 用户问：丙问" in loaded.content
        await edit(home, app, f"{COPY}\n", "")
        await edit(home, app, FOREIGN, "- 晚上不开会，除了周一")
        assert COPY not in text(home)
        assert "\n- 晚上不开会，除了周一" in (await app.memory_service.load(wait_ms=0)).content


async def test_the_first_answer_of_a_starting_sidecar_has_the_labels_too(home: Home) -> None:
    async with home.app() as app:
        await app.reconcile_memory_file()
    cold = _cold_loader(home.settings)
    assert cold is not None
    first = cold.load(scope="user", max_chars=None)
    async with home.app() as app:
        loaded = await app.memory_service.load(wait_ms=0)
    assert first is not None
    assert (first.document, first.content) == (loaded.document, loaded.content)
    assert first.content.count("【来自 手机】") == 6  # with the heading that only that device wrote
    assert LABELLED in first.content


async def test_what_other_devices_record_now_is_in_the_digest_and_not_in_the_document(home: Home) -> None:
    async with home.app() as app:
        await app.reconcile_memory_file()
        (said,) = [event for event in await events_of(app, "exchange_recorded") if event.device_id == "device-b"]
        (typed,) = [event for event in await events_of(app, "entry_added") if event.payload["text"] == FOREIGN]
        later = replace(said, event_id="evt_later", replica_seq=90, payload={"question": "丁问", "answer": "好的"})
        own_edit = {"entry_id": typed.payload["entry_id"], "section": typed.payload["section"], "text": "- 早上开会"}
        edited = replace(typed, event_id="evt_edit", type="entry_edited", replica_seq=91, payload=own_edit)
        await app.log.database.write(lambda connection: log_store.insert_events(connection, [later, edited]))
        await app.reconcile_memory_file()
        assert text(home) == STORED["file"]
        loaded = await app.memory_service.load(wait_ms=0)
        assert "丁问" in loaded.content
        assert LABELLED in loaded.content


async def test_an_erasure_takes_the_line_that_a_conflicting_edit_added(home: Home) -> None:
    async with home.app() as app:
        await app.reconcile_memory_file()
        (edited,) = [event for event in await events_of(app, "entry_edited") if event.payload["text"] == COPY]
        await erasure.request(app.log, app.draft_builder, [edited.event_id])
        await app.erasure.apply()
        await app.reconcile_memory_file()
        assert COPY not in text(home)


async def test_an_empty_home_gets_this_devices_lines_back_from_the_events(home: Home, tmp_path: Path) -> None:
    async with home.app() as app:
        own = [event for event in await events_of(app) if event.device_id == "device-a"]
    async with open_document_harness(tmp_path / "empty") as empty:
        await empty.database.write(lambda connection: log_store.insert_events(connection, own))
        await empty.memory.reconcile()
        lines = [line for line in empty.text.splitlines() if line.startswith("- ") and "待补充" not in line]
        assert lines == ["- 电话 [手机号]", "- 早上喝绿茶", "- 用户问：甲问", "- AI 答：好的"]


def test_its_watermarks_hold_back_no_retention() -> None:
    names = {row["name"] for row in STORED["watermarks"]}
    assert {"document.shared", "document.shared.order"} <= names
    assert all(is_local_state(name) or projection_of(name).name == "document" for name in names)


async def events_of(app: App, kind: str | None = None) -> list[Event]:
    read = await app.log.database.read(lambda connection: log_store.read_at_positions(connection, range(1, 100)))
    return [event for event in read if kind in {None, event.type}]
