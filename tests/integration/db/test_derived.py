"""One invalid row of derived data, in any column and with any value: the memory keeps working."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from sync.app import App
from sync.cloud.contact import parse_contact
from sync.document.capture.exchange_events import ExchangeInput
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.local_state import MODEL_CALLS, MODEL_DAY, MODEL_TOKENS
from sync.log.model import CLOUD, RefusedEvent
from sync.open_app import AppMode
from sync.recall.model import SearchRequest
from sync.settings.sections import RedactionSettings
from tests.integration.db.rebuild.test_salvage import Home, events_of, has_salvage_warning
from tests.proof import first_in_test
from tests.support import EMAIL, PASSWORD, draft

GARBAGE: Final = ("'x'", "''", "x'00ff'", "-1", "1.5", "9223372036854775807", "cast(x'ff' as text)", "null")

TABLES: Final = (
    "accounts",
    "captured",
    "cursors",
    "deliveries",
    "delivery_counts",
    "device_keys",
    "erased_lines",
    "erasure_key",
    "paired_devices",
    "quarantine",
    "replica",
    "sqlite_sequence",
    "waiting_exchanges",
    "watermarks",
    "written",
)

DERIVED: Final = (
    "recall_items",
    "recall_model",
    "recall_totals",
    "recall_vectors",
    "recall_words_config",
    "recall_words_data",
    "recall_words_idx",
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.settings = replace(home.settings, redaction=RedactionSettings(enabled=False))
    return home


async def fill_tables(app: App) -> None:
    """A row in every table."""
    await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
    for number in range(3):
        await app.memory_service.update(ExchangeInput(f"第 {number} 个问题", f"回答 {number}"))
    assert app.replicator is not None
    await app.replicator.sync_now()
    await app.reconcile_memory_file()
    await app.event_files.write_pending()
    assert (await app.recall().search(SearchRequest("问题"))).hits
    await app.memory_service.update(ExchangeInput("打给 13800138000", "好"))
    (refused,) = await app.log.append([draft("refused")])
    with closing(sqlite3.connect(app.log.database.path)) as connection, connection:
        connection.execute("insert into waiting_exchanges values ('evt_1', 0)")
        connection.execute("insert into erasure_key values (1, 'a key')")
        connection.execute("insert into erased_lines values ('a hash', 'ent_gone', 0, 1)")
        connection.execute("insert into device_keys values ('a public key', 'device-b', '2026-02-02T10:00:00.000Z')")
        connection.execute(
            "insert into paired_devices values ('another key', 'device-c', '书房', 'a secret', '2026-02-02')"
        )
    refusal = RefusedEvent(refused.event.event_id, "23514", "refused", "2026-02-02T10:00:00.000Z")
    await app.log.database.write(lambda connection: outbox_store.quarantine_event(connection, CLOUD, refusal))


def columns(path: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[1] for row in connection.execute(f"pragma table_info({table})")]


def corrupt_column(path: Path, table: str, column: str, garbage: str, *, all_rows: bool = False) -> bool:
    """Put garbage into the newest row; whether SQLite took it."""
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.IntegrityError), connection:
        connection.execute("pragma ignore_check_constraints = on")
        keys = [row[1] for row in connection.execute(f"pragma table_info({table})") if row[5]] or ["rowid"]
        order = ", ".join(f"{key} desc" for key in keys)
        names = ", ".join(keys)
        which = "" if all_rows else f" where ({names}) = (select {names} from {table} order by {order} limit 1)"
        return connection.execute(f"update {table} set {column} = {garbage}{which}").rowcount > 0
    return False


async def check_usable(app: App, words: str) -> None:
    await app.memory_service.update(ExchangeInput(words, f"回答{words}"))
    loaded = await app.memory_service.load(wait_ms=0)
    assert loaded.document.count(f"用户问：{words}\n") == 1, "what was just said is there, once"
    await app.reconcile_memory_file()
    assert app.settings.memory_file.read_text().count(f"用户问：{words}\n") == 1
    await app.status()
    assert await app.check_health()


async def check_complete(app: App, count: int) -> None:
    """Every exchange is in the document once, nothing was taken for a hand edit, and the server has it all."""
    if (await app.account.state()).state == "logged_in":  # not with another user's id in the place of the owner's
        assert app.replicator is not None
        await app.replicator.sync_now()
    await app.recall().search(SearchRequest("再问"))  # it may have to begin the index again
    assert (await app.recall().search(SearchRequest("再问"))).hits
    assert await app.log.find_problems() == []
    text = app.settings.memory_file.read_text()
    assert [text.count(f"用户问：再问{number}号\n") for number in range(count)] == [1] * count
    events = (await events_of(app)).values()
    assert {event.type for event in events} == {"exchange_recorded", "device_registered", "note_taken"}


async def test_what_is_no_offset_is_not_taken_for_one_beyond_the_log(home: Home) -> None:
    numbers = {MODEL_DAY: 739_000, MODEL_CALLS: 20, MODEL_TOKENS: 90_000}
    async with home.app(AppMode.HELPER) as app:
        await app.memory_service.update(ExchangeInput("问", "答"))
        for name, number in numbers.items():
            await app.log.database.write(log_store.set_watermark, name, number, app.clock)
    async with home.app(AppMode.HELPER) as app:
        left = {name: await app.log.database.read(log_store.watermark, name) for name in numbers}
        assert left == numbers, "calls of a model are counted by day, whatever starts meanwhile"
        assert not has_salvage_warning(app)


@pytest.mark.parametrize("table", first_in_test(DERIVED, 2))
async def test_a_bad_row_of_the_index_stops_nothing_while_the_memory_runs(home: Home, table: str) -> None:
    count = 0
    async with home.app(AppMode.HELPER) as app:
        await fill_tables(app)
        for column in columns(home.database, table):
            for garbage in GARBAGE:
                corrupt_column(home.database, table, column, garbage)
                await check_usable(app, f"再问{count}号")
                count += 1
                found = await app.recall().search(SearchRequest("再问"))
                assert found.hits or found.partial


@pytest.mark.parametrize("table", first_in_test((*TABLES, *DERIVED), 3))
async def test_a_bad_row_stops_no_start_whatever_it_says(home: Home, table: str) -> None:
    count = 0
    async with home.app(AppMode.HELPER) as app:
        await fill_tables(app)
    taken = [(column, garbage) for column in columns(home.database, table) for garbage in GARBAGE]
    for column, garbage in taken[:: len(taken) // 6 or 1]:
        corrupt_column(home.database, table, column, garbage)
        async with home.app(AppMode.HELPER) as app:
            await check_usable(app, f"再问{count}号")
            count += 1
            await check_complete(app, count)
        async with home.app() as app:
            assert not has_salvage_warning(app), "the next start finds nothing to do"
    assert count > 0


async def test_no_table_is_left_out(home: Home) -> None:
    async with home.app(AppMode.HELPER) as app:
        await fill_tables(app)
    with closing(sqlite3.connect(home.database)) as connection:
        tables = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
    assert tables - {"events", "recall_words"} <= {*TABLES, *DERIVED}, "the truth, and a table that stands for others"
