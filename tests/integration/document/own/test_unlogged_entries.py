"""The database is lost and the memory file is not: each line gets its id back and appears once everywhere."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from sync.app import App
from sync.cloud.contact import parse_contact
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.erasure import erasure
from sync.open_app import AppMode
from tests.integration.db.rebuild.test_salvage import (
    Damage,
    Home,
    delete_file,
    events_of,
    no_database,
    rows_on_server,
    the_versions,
    versions_and_marks,
    zero_bytes,
)
from tests.proof import first_in_test
from tests.support import EMAIL, PASSWORD

TYPED = "- 我的手机是 13800138000"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def fill(home: Home, app: App) -> None:
    for number in range(4):
        await app.memory_service.update(ExchangeInput(f"第 {number} 个问题", "好的"))
    await app.reconcile_memory_file()
    path = home.settings.memory_file
    path.write_text(path.read_text().replace("### 工作习惯\n", f"### 工作习惯\n{TYPED}\n- 早上先看日志\n"))
    await app.reconcile_memory_file()
    await app.event_files.write_pending()


def lines(home: Home) -> Counter[str]:
    text = home.settings.memory_file.read_text()
    return Counter(line for line in text.splitlines() if line.startswith("- ") and "待补充" not in line)


def by_type(home: Home) -> Counter[str]:
    return Counter(event.type for event in rows_on_server(home) if event.type != "device_registered")


async def synced(app: App) -> None:
    assert app.replicator is not None
    home_is_level = await app.replicator.sync_now()
    assert home_is_level is not None
    await app.reconcile_memory_file()
    await app.replicator.sync_now()
    await app.reconcile_memory_file()


@pytest.mark.parametrize(
    "damage", first_in_test([delete_file, no_database, versions_and_marks, zero_bytes, the_versions], 3)
)
async def test_each_line_appears_once_here_and_on_the_server(home: Home, damage: Damage) -> None:
    async with home.app(AppMode.HELPER) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await fill(home, app)
        await synced(app)
    before, sent = lines(home), by_type(home)
    damage(home.database)
    async with home.app() as app:
        await app.reconcile_memory_file()
        assert lines(home) == before, "nothing was asked yet"
        await app.memory_service.update(ExchangeInput("最后一个问题", "再说"))
        await synced(app)
        assert lines(home) == before + Counter(["- 用户问：最后一个问题", "- AI 答：再说"])
        assert by_type(home) == sent + Counter({"exchange_recorded": 1})
        assert await app.log.find_problems() == []


@pytest.mark.parametrize("damage", first_in_test([delete_file, the_versions, no_database], 2))
async def test_each_line_appears_once_without_a_cloud(home: Home, damage: Damage) -> None:
    async with home.app(AppMode.HELPER) as app:
        await fill(home, app)
        known = Counter(event.type for event in (await events_of(app)).values())
    before = lines(home)
    damage(home.database)
    async with home.app() as app:
        await app.reconcile_memory_file()
        await app.memory_service.update(ExchangeInput("最后一个问题", "再说"))
        await app.reconcile_memory_file()
        assert lines(home) == before + Counter(["- 用户问：最后一个问题", "- AI 答：再说"])
        after = Counter(event.type for event in (await events_of(app)).values())
        assert after - known == Counter({"exchange_recorded": 1})


async def test_a_later_erasure_leaves_no_copy(home: Home) -> None:
    async with home.app(AppMode.HELPER) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await fill(home, app)
        await synced(app)
    delete_file(home.database)
    async with home.app(AppMode.HELPER) as app:
        await synced(app)
        (asked,) = [event for event in (await events_of(app)).values() if "第 2 个" in str(event.payload)]
        await erasure.request(app.log, app.draft_builder, [asked.event_id])
        await app.erasure.apply()
        await synced(app)
        assert "第 2 个" not in home.settings.memory_file.read_text()
    assert not any("第 2 个" in str(event.payload) for event in rows_on_server(home))


async def test_lines_without_events_are_recorded_after_the_server_was_read(home: Home) -> None:
    async with home.app(AppMode.HELPER) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await fill(home, app)
        await synced(app)
    delete_file(home.database)
    path = home.settings.memory_file
    path.write_text(path.read_text().replace("### 工作习惯\n", "### 工作习惯\n- 谁也不知道的一行\n"))
    async with home.app(AppMode.HELPER) as app:
        await app.reconcile_memory_file()
        assert not any("谁也不知道" in str(event.payload) for event in (await events_of(app)).values())
        await synced(app)
        assert lines(home)["- 谁也不知道的一行"] == 1
    (event,) = [event for event in rows_on_server(home) if "谁也不知道" in str(event.payload)]
    assert (event.type, event.origin) == ("entry_added", "imported")


@pytest.mark.parametrize("when", ["before the next look", "later"])
async def test_a_buffer_of_a_lost_version_removes_nothing(home: Home, when: str) -> None:
    path, loaded = home.settings.memory_file, ""
    async with home.app(AppMode.HELPER) as app:
        for number in range(6):
            await app.memory_service.update(ExchangeInput(f"第 {number} 个问题", f"回答 {number}"))
            await app.reconcile_memory_file()
            loaded = path.read_text() if number == 3 else loaded
        known = set(await events_of(app))
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute("update written set entry_ids = 'x' where version > 2")
    saved = loaded.replace("### 工作习惯\n", "### 工作习惯\n- 手写的一行\n")
    if when != "later":
        path.write_text(saved)
    async with home.app(AppMode.HELPER) as app:
        await app.reconcile_memory_file()
        path.write_text(saved)
        await app.reconcile_memory_file()
        text = path.read_text()
        assert [text.count(f"用户问：第 {number} 个问题") for number in range(6)] == [1] * 6
        assert text.count("- 手写的一行") == 1
        new = [event.type for event in (await events_of(app)).values() if event.event_id not in known]
        assert new == ["entry_added"]
