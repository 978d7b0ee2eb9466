"""A damaged database is kept and its readable rows are salvaged. Real files, damaged byte by byte."""

import os
import random
import shutil
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import pytest

from sync.accounts.profiles import Profile, create_profile_folder, open_installation
from sync.app import App
from sync.cloud.contact import parse_contact
from sync.db.engine import Database
from sync.db.migrate import APPLICATION_ID, known_migrations
from sync.db.rebuild import salvage
from sync.document.capture.exchange_events import ExchangeInput
from sync.encryption.database_encryption import DatabaseEncryption
from sync.errors import DifferentUser, SchemaTooNew, StorageBusy, StorageCorrupt, StorageError
from sync.log.event_types import DEVICE_REGISTERED
from sync.log.model import Event, Query
from sync.open_app import AppMode, open_app
from sync.recall.model import SearchRequest
from sync.startup.doctor import check_environment
from tests.bulk_log import fill_log
from tests.fake_cloud.server import FakeCloud, FakeServer
from tests.proof import first_in_test
from tests.support import EMAIL, PASSWORD, START, app_settings, draft, new_server

PAGE: Final = 4096
MANY: Final = 300

Damage = Callable[[Path], None]


class Home:
    """One data directory with its memory file, and a cloud that it may log in to."""

    def __init__(self, folder: Path) -> None:
        self.settings = app_settings(folder)
        self.server: FakeServer = new_server()

    @property
    def database(self) -> Path:
        (found,) = (self.settings.data_dir / "profiles").glob("*/memory.db")
        return found

    @property
    def kept(self) -> list[Path]:
        return sorted(self.database.parent.glob("memory.db.damaged-*"))

    @asynccontextmanager
    async def app(self, role: AppMode = AppMode.SIDECAR) -> AsyncIterator[App]:
        async with open_app(self.settings, role, cloud=FakeCloud(self.server)) as app:
            yield app

    async def open_and_close(self, role: AppMode = AppMode.SIDECAR) -> None:
        async with self.app(role):
            pass

    async def fill(self, count: int = MANY) -> dict[str, Event]:
        """Record events; everything in the log by id."""
        async with self.app(AppMode.GUEST) as app:
            await app.log.append([draft(f"{number} " + "记" * 60) for number in range(count)])
            return await events_of(app)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def events_of(app: App) -> dict[str, Event]:
    found: dict[str, Event] = {}
    after = 0
    while events := (await app.log.read(Query(after=after))).events:
        found |= {event.event_id: event for event in events}
        after = events[-1].position
    return found


def comparable_content(event: Event) -> tuple[Any, ...]:
    return event.event_id, event.type, dict(event.payload), event.ts, event.position, event.hlc


async def surviving_event_ids(app: App, before: dict[str, Event]) -> set[str]:
    """The surviving ids; the events are unchanged, none is new, and the log is intact."""
    after = await events_of(app)
    assert {after[name].type for name in set(after) - set(before)} <= {DEVICE_REGISTERED}, "none is invented"
    after = {name: event for name, event in after.items() if name in before}
    assert [comparable_content(after[name]) for name in after] == [comparable_content(before[name]) for name in after]
    assert await app.log.find_problems() == []
    return set(after)


def has_salvage_warning(app: App) -> bool:
    return any(warning.startswith("database_salvaged") for warning in app.start_warnings)


# --- damage ------------------------------------------------------------------------------------------------


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def overwrite_page(path: Path, page: int) -> None:
    overwrite(path, (page - 1) * PAGE, b"\xa5" * PAGE)


def root_page_of(path: Path, name: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("select rootpage from sqlite_master where name = ?", (name,)).fetchone()[0])


def leaf_pages(path: Path, root: int) -> Iterator[int]:
    """The leaf pages of a tree, in order (https://www.sqlite.org/fileformat2.html#b_tree_pages)."""
    page = path.read_bytes()[(root - 1) * PAGE : root * PAGE]
    head = page[100:] if root == 1 else page
    if head[0] not in {2, 5}:
        yield root
        return
    for cell in range(int.from_bytes(head[3:5], "big")):
        at = int.from_bytes(head[12 + 2 * cell : 14 + 2 * cell], "big")
        yield from leaf_pages(path, int.from_bytes(page[at : at + 4], "big"))
    yield from leaf_pages(path, int.from_bytes(head[8:12], "big"))


def no_database(path: Path) -> None:
    path.write_text("this is a text file, and a long one\n" * 2000)


def header_gone(path: Path) -> None:
    overwrite(path, 0, b"\xa5" * 100)


def first_page_gone(path: Path) -> None:
    overwrite_page(path, 1)


def middle_of_events(path: Path) -> None:
    found = list(leaf_pages(path, root_page_of(path, "events")))
    overwrite_page(path, found[len(found) // 2])


def last_of_events(path: Path) -> None:
    overwrite_page(path, list(leaf_pages(path, root_page_of(path, "events")))[-1])


def an_index(path: Path) -> None:
    found = list(leaf_pages(path, root_page_of(path, "events_by_type")))
    overwrite_page(path, found[len(found) // 2])


def the_deliveries(path: Path) -> None:
    for root in ("deliveries", "deliveries_by_state"):
        for page in leaf_pages(path, root_page_of(path, root)):
            overwrite_page(path, page)


def the_replica(path: Path) -> None:
    overwrite_page(path, root_page_of(path, "replica"))


def the_accounts(path: Path) -> None:
    overwrite_page(path, root_page_of(path, "accounts"))


def the_versions(path: Path) -> None:
    overwrite_page(path, root_page_of(path, "written"))


def the_marks(path: Path) -> None:
    overwrite_page(path, root_page_of(path, "watermarks"))


def versions_and_marks(path: Path) -> None:
    the_versions(path)
    the_marks(path)


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // PAGE // 2 * PAGE)


def zero_bytes(path: Path) -> None:
    path.write_bytes(b"")


def one_byte(path: Path) -> None:
    path.write_bytes(b"\0")


def delete_file(path: Path) -> None:
    path.unlink()


def names_gone(path: Path) -> None:
    """A page of table names that page 1 goes on to; it lies after the tables of the first schema."""
    overwrite_page(path, next(iter(leaf_pages(path, 1))))


def first_page_and_names_gone(path: Path) -> None:
    names_gone(path)
    first_page_gone(path)


# --- what survives -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [first_page_gone, names_gone, first_page_and_names_gone])
async def test_a_database_of_an_earlier_schema_is_saved_without_its_first_page(tmp_path: Path, damage: Damage) -> None:
    """It grew before it was upgraded: what the upgrade added lies on other pages than in a new database."""
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as connection:
        for statement in (
            *known_migrations()[0].statements,
            f"pragma application_id = {APPLICATION_ID}",
            "pragma user_version = 1",
        ):
            connection.execute(statement)
        connection.execute("insert into replica (one, replica_id, next_seq) values (1, 'rep_old', 1)")
        connection.commit()
    fill_log(path, "device-a", MANY)
    await (await Database.open(path)).close()
    damage(path)
    opened, saved = await salvage.open_or_salvage(
        path,
        sidecar=True,
        thorough=True,
        destination="cloud",
        now=START,
        complete_log=lambda *_: salvage.LogCompletion("", 0),
    )
    assert saved is not None
    assert saved.copied["events"] == MANY
    await opened.close()


@pytest.mark.parametrize(
    "case",
    first_in_test(
        [
            (header_gone, MANY),
            (names_gone, MANY),
            (middle_of_events, MANY - 20),
            (the_deliveries, MANY),
            (cut_short, 1),
            (no_database, 0),
            (first_page_gone, MANY),
            (last_of_events, MANY - 20),
            (an_index, MANY),
            (the_replica, MANY),
            (the_accounts, MANY),
        ],
        6,
    ),
)
async def test_what_can_be_read_lives_on_and_the_damaged_file_is_kept(home: Home, case: tuple[Damage, int]) -> None:
    damage, least = case
    before = await home.fill()
    damage(home.database)
    damaged = home.database.read_bytes()
    async with home.app() as app:
        assert least <= len(await surviving_event_ids(app, before)) <= MANY
        assert has_salvage_warning(app)
        assert any("database_salvaged" in warning for warning in (await app.status()).warnings)
        await app.log.append([draft("the next one")])
        newest = await app.log.newest_position()
        assert newest > max(event.position for event in before.values()) or damage is no_database
    assert [path.read_bytes() for path in home.kept if path.name.endswith("Z")] == [damaged]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home.database, *home.kept)} == {0o600}
    async with home.app() as app:
        assert not has_salvage_warning(app), "the second start finds nothing to do"


async def test_what_recall_finds_is_found_again(home: Home) -> None:
    async with home.app(AppMode.HELPER) as app:
        await app.log.append([draft("国庆节去黄山爬山")])
        assert len((await app.recall().search(SearchRequest("爬山"))).hits) == 1
    an_index(home.database)
    async with home.app() as app:
        assert has_salvage_warning(app)
        await app.log.append([draft("又去了泰山")])
        found = [hit.item.text for hit in (await app.recall().search(SearchRequest("爬山 泰山"))).hits]
        assert set(found) == {"国庆节去黄山爬山", "又去了泰山"}


async def test_one_bad_page_costs_its_own_rows_only(home: Home) -> None:
    before = await home.fill()
    found = list(leaf_pages(home.database, root_page_of(home.database, "events")))
    for page in (found[3], found[5], found[-3]):
        overwrite_page(home.database, page)
    rows = -(-MANY // len(found)) + 2
    async with home.app() as app:
        assert MANY - 3 * rows <= len(await surviving_event_ids(app, before)) < MANY


async def test_the_rows_next_to_a_bad_page_are_saved(home: Home) -> None:
    before = await home.fill()
    found = list(leaf_pages(home.database, root_page_of(home.database, "events")))
    bad = found[len(found) // 2]
    overwrite_page(home.database, bad)
    lost = []
    with closing(sqlite3.connect(home.database)) as connection:
        for event in before.values():
            try:
                connection.execute("select payload from events where position = ?", [event.position]).fetchone()
            except sqlite3.DatabaseError:
                lost.append(event.event_id)
    async with home.app() as app:
        assert await surviving_event_ids(app, before) == set(before) - set(lost)


@pytest.mark.parametrize("seed", first_in_test(range(8), 2))
async def test_wherever_the_damage_is_nothing_is_invented(home: Home, seed: int) -> None:
    chance = random.Random(seed)
    async with home.app(AppMode.GUEST) as app:
        await app.log.append([draft("记" * chance.choice([10, 100, 3000])) for _ in range(100)])
        before = await events_of(app)
    pages = home.database.stat().st_size // PAGE
    for _ in range(chance.choice([1, 5, 20])):
        overwrite(home.database, chance.randrange(pages) * PAGE, chance.choice([bytes(PAGE), chance.randbytes(PAGE)]))
    async with home.app() as app:
        # How many depends on the pages: below a lost root nothing is found again.
        await surviving_event_ids(app, before)


@pytest.mark.parametrize("damage", [zero_bytes, one_byte, delete_file])
async def test_where_a_memory_was_an_empty_file_is_no_new_one(home: Home, damage: Damage) -> None:
    await home.fill(3)
    path = home.database
    damage(path)
    with pytest.raises(StorageCorrupt, match="held a memory"):
        await home.open_and_close(AppMode.GUEST)
    async with home.app() as app:
        assert await events_of(app) == {}
        assert any("lost: accounts, events" in warning for warning in app.start_warnings)
        assert (await app.account.state()).state == "logged_out", "nobody knows whose it was"
    assert len(home.kept) == 1
    async with home.app() as app:
        assert not has_salvage_warning(app)


async def test_a_database_whose_making_was_cut_short_is_new(home: Home) -> None:
    data_dir = home.settings.data_dir
    folder = create_profile_folder(data_dir, open_installation(data_dir, lambda: None)).folder
    (folder / "memory.db").touch(0o600)
    async with home.app() as app:
        assert not has_salvage_warning(app)
        assert (await app.account.state()).state == "guest"


@pytest.mark.parametrize("damage", [zero_bytes, delete_file])
async def test_the_log_of_an_emptied_database_is_kept_and_its_words_live_on(
    home: Home, damage: Damage, tmp_path: Path
) -> None:
    await home.fill(0)
    path = home.database
    async with home.app(AppMode.GUEST) as app:
        await app.log.append([draft("only in the WAL")])
        before = await events_of(app)
        shutil.copyfile(f"{path}-wal", tmp_path / "wal")
    damage(path)
    shutil.copyfile(tmp_path / "wal", f"{path}-wal")
    assert Profile(path.parent).read_owner(DatabaseEncryption()) is None
    (found,) = [check for check in await check_environment(home.settings, is_sidecar=False) if check.name == "database"]
    assert found.hint == StorageCorrupt.default_hint, "and whoever looks deletes nothing"
    async with home.app() as app:
        assert await surviving_event_ids(app, before) == set(before)
        assert has_salvage_warning(app)
    assert [file.read_bytes() for file in home.kept] == [b"", (tmp_path / "wal").read_bytes()]


@pytest.mark.parametrize("damage", [zero_bytes, middle_of_events])
async def test_the_event_files_are_kept_aside_and_written_again(home: Home, damage: Damage) -> None:
    await home.fill()
    async with home.app() as app:
        await app.event_files.write_pending()
        lines = {path.name: path.read_bytes() for path in home.settings.jsonl_root.rglob("*.jsonl")}
    damage(home.database)
    async with home.app() as app:
        (folder,) = home.settings.jsonl_root.glob("*/events.damaged-*")
        assert any(str(folder) in warning for warning in app.start_warnings)
        await app.event_files.write_pending()
    assert lines == {path.name: path.read_bytes() for path in folder.rglob("*.jsonl")} != {}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*.jsonl")} == {0o600}


async def test_a_log_that_is_not_its_own_costs_a_sound_database_nothing(home: Home, tmp_path: Path) -> None:
    await home.fill(30)
    async with home.app(AppMode.GUEST) as app:
        await app.log.append([draft("and one more")])
        shutil.copyfile(f"{home.database}-wal", tmp_path / "wal")
    before = await home.fill(30)
    sound = home.database.read_bytes()
    shutil.copyfile(tmp_path / "wal", f"{home.database}-wal")
    async with home.app() as app:
        assert await surviving_event_ids(app, before) == set(before)
        assert any("lost: the write-ahead log" in warning for warning in app.start_warnings)
    kept = [path.read_bytes() for path in home.kept if not path.name.endswith("-shm")]
    assert kept == [sound, (tmp_path / "wal").read_bytes()]


async def test_a_wal_that_was_cut_leaves_its_committed_prefix(home: Home, tmp_path: Path) -> None:
    await home.fill(0)
    async with home.app(AppMode.GUEST) as app:
        for number in range(20):
            await app.log.append([draft(str(number))])
        before = await events_of(app)
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{home.database}{suffix}", tmp_path / f"copy{suffix}")
    wal = tmp_path / "copy-wal"
    os.truncate(wal, wal.stat().st_size // 2)
    for suffix in ("", "-wal"):
        shutil.copyfile(tmp_path / f"copy{suffix}", f"{home.database}{suffix}")
    async with home.app() as app:
        survived = await surviving_event_ids(app, before)
        assert survived == set(list(before)[: len(survived)])
        assert 0 < len(survived) < len(before)
        assert not has_salvage_warning(app)


async def test_what_is_only_in_the_wal_is_salvaged_too(home: Home, tmp_path: Path) -> None:
    await home.fill(100)
    async with home.app(AppMode.GUEST) as app:
        await app.log.append([draft("only in the WAL")])
        before = await events_of(app)
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{home.database}{suffix}", tmp_path / f"copy{suffix}")
    for suffix in ("", "-wal"):
        shutil.copyfile(tmp_path / f"copy{suffix}", f"{home.database}{suffix}")
    overwrite_page(home.database, next(leaf_pages(tmp_path / "copy", root_page_of(tmp_path / "copy", "events"))))
    async with home.app() as app:
        survived = await surviving_event_ids(app, before)
        assert list(before)[-1] in survived
        assert 80 < len(survived) < len(before)


# --- the cloud ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [the_deliveries, the_replica, header_gone])
async def test_what_waited_is_sent_and_nothing_is_doubled(home: Home, damage: Damage) -> None:
    async with home.app() as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await app.log.append([draft("sent before")])
        assert app.replicator is not None
        await app.replicator.sync_now()
    before = await home.fill(50)
    damage(home.database)
    async with home.app() as app:
        assert app.replicator is not None
        await app.replicator.sync_now()
        assert (await app.log.outbox()).pending == 0
        assert await surviving_event_ids(app, before) == set(before)
    assert sorted(event.event_id for event in rows_on_server(home)) == sorted(before)


async def test_what_the_server_has_comes_back(home: Home) -> None:
    before = await home.fill(60)
    async with home.app() as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        assert app.replicator is not None
        await app.replicator.sync_now()
        before = await events_of(app)
    middle_of_events(home.database)
    async with home.app() as app:
        assert app.replicator is not None
        await app.replicator.sync_now()
        assert await surviving_event_ids(app, before) == set(before)
    assert {event.event_id for event in rows_on_server(home)} == set(before)


def rows_on_server(home: Home) -> list[Event]:
    """Without the later introductions of a device."""
    (memory,) = home.server.user_logs.values()
    first = next((event for event in memory.events if event.type == DEVICE_REGISTERED), None)
    return [event for event in memory.events if event.type != DEVICE_REGISTERED or event is first]


async def test_killed_right_after_the_new_one_was_put_in_place_the_next_start_goes_on_as_the_new_replica(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """The process ended here."""

    async with home.app() as app:
        owner = (await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)).user_id
        former = app.replica_id
    before = await home.fill(60)
    middle_of_events(home.database)
    the_accounts(home.database)
    follow = salvage._move_companion_files

    def follow_and_die(path: Path, aside: Path) -> None:
        follow(path, aside)
        raise Killed

    with monkeypatch.context() as process:
        process.setattr(salvage, "_move_companion_files", follow_and_die)
        with pytest.raises(Killed):
            await home.open_and_close()
    async with home.app() as app:
        await surviving_event_ids(app, before)
        assert app.replica_id != former
        state = await app.account.state()
        assert (state.state, state.user_id) == ("logged_in", owner)
        assert open_installation(home.settings.data_dir, lambda: None).former == former


@pytest.mark.parametrize("damage", [b"\xff", b'"'], ids=["no text", "no JSON"])
async def test_damage_within_a_text_costs_that_row_alone(home: Home, damage: bytes) -> None:
    before = await home.fill(20)
    at = home.database.read_bytes().index("7 记".encode()) + 2
    overwrite(home.database, at, damage * 2)
    async with home.app() as app:
        assert len(await surviving_event_ids(app, before)) == 19
        assert any("lost: events (up to 1)" in warning for warning in app.start_warnings)


async def test_a_schema_that_is_no_text_any_more_is_damage_like_another(home: Home) -> None:
    before = await home.fill(20)
    overwrite(home.database, home.database.read_bytes().index(b"CREATE TABLE deliveries") + 8, b"\xc4")
    with pytest.raises(StorageCorrupt):
        await home.open_and_close(AppMode.GUEST)
    async with home.app() as app:
        assert await surviving_event_ids(app, before) == set(before)
        assert has_salvage_warning(app)


async def test_reading_a_schema_that_is_no_text_raises_corruption(home: Home) -> None:
    await home.fill(1)
    overwrite(home.database, home.database.read_bytes().index(b"CREATE TABLE deliveries") + 8, b"\xc4")
    with pytest.raises(StorageCorrupt):
        await Database.open_read_only(home.database)


async def test_an_invalid_replica_row_is_not_carried_over(home: Home) -> None:
    before = await home.fill(20)
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute("update replica set replica_id = 'another table''s', hlc = 'and its words'")
    an_index(home.database)
    async with home.app() as app:
        assert await surviving_event_ids(app, before) == set(before)
        assert app.replica_id != "another table's"
        (recorded,) = await app.log.append([draft("然后")])
        assert not recorded.duplicate


# --- whose memory it is ------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [the_accounts, zero_bytes])
async def test_the_stored_session_identifies_a_lost_owner(home: Home, damage: Damage) -> None:
    async with home.app() as app:
        owner = (await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)).user_id
    damage(home.database)
    async with home.app() as app:
        state = await app.account.state()
        assert (state.state, state.user_id) == ("logged_in", owner)


@pytest.mark.parametrize("damage", first_in_test([the_accounts, zero_bytes, one_byte], 2))
async def test_the_next_login_does_not_adopt_a_memory_with_unknown_owner(home: Home, damage: Damage) -> None:
    async with home.app() as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await app.login_flow.log_out()
    await home.fill(5)
    damage(home.database)
    home.server.add_user("other@example.com", PASSWORD)
    async with home.app() as app:
        assert (await app.account.state()).state == "logged_out"
        with pytest.raises(DifferentUser, match="no longer tells") as caught:
            await app.login_flow.log_in(parse_contact(email="other@example.com"), PASSWORD)
        assert "--accept" in caught.value.hint
    async with home.app() as app:
        with pytest.raises(DifferentUser):
            await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        assert (await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD, accept=True)).state == "logged_in"
    async with home.app() as app:  # once it has an owner again, another user gets a profile of their own
        owner = await app.account.owner_id()
        other = await app.login_flow.log_in(parse_contact(email="other@example.com"), PASSWORD, accept=True)
        assert other.user_id != owner
        assert await app.account.owner_id() == owner
        assert app.login_flow.profile_left.is_set()


async def test_a_guests_memory_stays_a_guests(home: Home) -> None:
    await home.fill(50)
    middle_of_events(home.database)
    async with home.app() as app:
        assert (await app.account.state()).state == "guest"
        assert (await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)).state == "logged_in"


# --- the document ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage", first_in_test([header_gone, zero_bytes, versions_and_marks, no_database, the_versions, the_marks], 3)
)
async def test_the_memory_file_keeps_its_bytes(home: Home, damage: Damage) -> None:
    async with home.app() as app:
        await app.memory_service.update(ExchangeInput("记住我喜欢简洁的回答", "好的，我记住了"))
        await app.reconcile_memory_file()
    text = home.settings.memory_file.read_text()
    assert "简洁" in text
    damage(home.database)
    async with home.app() as app:
        await app.reconcile_memory_file()
    assert home.settings.memory_file.read_text() == text


@pytest.mark.parametrize("also", [None, middle_of_events, first_page_gone])
async def test_a_newer_schema_is_not_touched(home: Home, also: Damage | None) -> None:
    await home.fill()
    if also is middle_of_events:
        middle_of_events(home.database)
    overwrite(home.database, 60, (known_migrations()[-1].version + 1).to_bytes(4, "big"))
    if also is first_page_gone:
        overwrite(home.database, 100, b"\xa5" * (PAGE - 100))
    before = home.database.read_bytes()
    with pytest.raises(SchemaTooNew):
        await home.open_and_close()
    assert home.database.read_bytes() == before
    assert home.kept == []


async def test_a_database_of_another_program_is_not_touched(home: Home) -> None:
    await home.fill(1)
    path = home.database
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table theirs (x)")
    with pytest.raises(StorageCorrupt, match="another program"):
        await home.open_and_close()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("select name from sqlite_master").fetchall() == [("theirs",)]
    assert home.kept == []


@pytest.mark.parametrize("damage", [None, middle_of_events])
async def test_a_lock_held_by_another_is_no_damage(
    home: Home, damage: Damage | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await home.fill()
    if damage:
        damage(home.database)
    for module in ("engine", "rebuild.salvage"):
        monkeypatch.setattr(f"sync.db.{module}.BUSY_TIMEOUT_MS", 50)
    with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(StorageBusy):
            await home.open_and_close()
        assert home.kept == []


@pytest.mark.parametrize("damage", first_in_test([header_gone, zero_bytes, no_database], 2))
async def test_a_process_without_the_role_repairs_nothing_and_says_who_does(home: Home, damage: Damage) -> None:
    await home.fill(5)
    damage(home.database)
    before = home.database.read_bytes()
    with pytest.raises(StorageCorrupt) as caught:
        await home.open_and_close(AppMode.GUEST)
    assert "sidecar" in caught.value.hint
    assert home.database.read_bytes() == before
    assert home.kept == []


async def test_a_process_with_the_old_file_open_fails_at_its_next_write(home: Home) -> None:
    before = await home.fill()
    middle_of_events(home.database)
    async with home.app(AppMode.GUEST) as hook, home.app() as app:
        with pytest.raises(StorageError, match="moved aside"):
            await hook.log.append([draft("into a file that no process reads")])
        await surviving_event_ids(app, before)


@pytest.mark.parametrize("steps", [1, 2])
async def test_a_start_that_was_killed_between_the_renames_is_ended_by_the_next(
    home: Home, steps: int, tmp_path: Path
) -> None:
    before = await home.fill(20)
    path = home.database
    shutil.copyfile(path, salvage._finished_path(path))
    aside = path.with_name("memory.db.damaged-20260202T100000Z")
    Path(f"{path}-wal").write_bytes(b"what the damaged one had not taken in yet")
    path.rename(aside)
    if steps == 2:
        Path(f"{path}-wal").rename(f"{aside}-wal")
    async with open_app(home.settings, AppMode.SIDECAR) as app:
        assert await surviving_event_ids(app, before) == set(before)
    assert [kept.name for kept in home.kept] == [aside.name, f"{aside.name}-wal"]
