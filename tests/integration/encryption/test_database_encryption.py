"""Profile databases encrypted at rest: nothing of a word on the disk, nothing lost on the way there and back."""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from sync.accounts.profiles import Profile, change_installation
from sync.app import App
from sync.cloud.contact import parse_contact
from sync.db.engine import Database
from sync.db.rebuild import convert
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.ownership.other_profiles import OtherProfiles
from sync.document.read.cold_load import ColdLoad
from sync.encryption import encrypted_marker
from sync.encryption.database_encryption import KEY_FILE, KEY_SERVICE, DatabaseEncryption
from sync.encryption.driver import cipher_driver
from sync.encryption.sqlcipher_pages import decrypt_database
from sync.errors import KeyLost, SettingsError, StorageError
from sync.log.projections.registry import JSONL
from sync.open_app import AppMode, open_app
from sync.recall.model import SearchRequest
from sync.retention.store import read_consumer_offsets
from sync.settings.sections import PrivacySettings
from sync.settings.settings import Settings
from sync.startup.checks import HealthCheck
from sync.startup.doctor import check_environment
from tests.fake_cloud.server import FakeCloud
from tests.integration.db.rebuild import test_salvage
from tests.integration.db.rebuild.test_salvage import (
    MANY,
    PAGE,
    events_of,
    has_salvage_warning,
    leaf_pages,
    overwrite,
    surviving_event_ids,
    zero_bytes,
)
from tests.proof import first_in_test
from tests.support import EMAIL, PASSWORD, draft
from tests.unit.cloud.auth.test_session_storage import Keychain, keychain

__all__ = ["keychain"]  # a fixture

CANARY: Final = "金丝雀 canary-7f3e"
HOLDER: Final = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("select count(*) from events").fetchone()[0], flush=True)
sys.stdin.read()
"""


class Home(test_salvage.Home):
    """One whose setting can be turned."""

    def __init__(self, folder: Path, *, encrypts: bool = True) -> None:
        super().__init__(folder)
        self.turn(encrypts)

    def turn(self, encrypts: bool, **more: Any) -> None:
        privacy = PrivacySettings(encrypt_at_rest=encrypts)
        self.settings: Settings = replace(self.settings, privacy=privacy, **more)

    @property
    def vault(self) -> DatabaseEncryption:
        """As a process of its own would have it."""
        return DatabaseEncryption.of(self.settings)

    @property
    def key_file(self) -> Path:
        return self.database.with_name(KEY_FILE)

    def on_disk(self) -> bytes:
        """Everything that lies in the profile's folder."""
        return b"".join(path.read_bytes() for path in self.database.parent.rglob("*") if path.is_file())

    async def check(self, name: str) -> HealthCheck:
        return next(check for check in await check_environment(self.settings, is_sidecar=False) if check.name == name)

    async def start(self) -> None:
        async with self.app():
            pass


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def plain(tmp_path: Path) -> Home:
    return Home(tmp_path, encrypts=False)


def everything(home: Home) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, and the schema without its root pages."""
    with home.vault.read_only_connection(home.database, 1.0) as connection:
        connection.row_factory = None
        schema = sorted(connection.execute("select type, name, tbl_name, sql from sqlite_master").fetchall(), key=str)
        tables = [name for kind, name, _, sql in schema if kind == "table" and "virtual" not in str(sql).lower()]
        rows = {name: sorted(connection.execute(f"select * from '{name}'").fetchall(), key=str) for name in tables}
        marks = [connection.execute(f"pragma {name}").fetchone() for name in ("user_version", "application_id")]
        return {**rows, "the schema": schema, "marks": marks}


# --- what lies on the disk ---------------------------------------------------------------------------------


@pytest.mark.parametrize("made", ["new", "converted"])
async def test_nothing_of_a_word_is_in_the_database_or_its_log_and_sqlite_reads_neither(home: Home, made: str) -> None:
    if made == "converted":
        home.turn(encrypts=False)
        await home.fill(20)
        home.turn(encrypts=True)
    async with home.app() as app:
        await app.log.append([draft(f"{CANARY} {number} 记" * 20) for number in range(50)])
        assert home.database.with_name("memory.db-wal").stat().st_size > 0
        on_disk = home.on_disk()
    for data in (on_disk, home.on_disk()):
        assert not [
            word for word in ("canary", "金丝雀", "记记", "note_taken", "create table") if word.encode() in data
        ]
    with closing(sqlite3.connect(home.database)) as stranger, pytest.raises(sqlite3.DatabaseError, match="not a data"):
        stranger.execute("select * from events")
    assert {path.stat().st_mode & 0o777 for path in home.database.parent.iterdir() if path.is_file()} == {0o600}


async def test_turned_on_and_off_again_every_row_of_every_table_is_what_it_was(plain: Home) -> None:
    await plain.fill(40)
    async with plain.app() as app:
        await app.log.append([draft(CANARY)])
        assert len((await app.recall().search(SearchRequest("canary"))).hits) == 1  # the word index has its tables, too
    before, key = everything(plain), None
    for encrypts in (True, False):
        plain.turn(encrypts)
        vault = plain.vault
        await asyncio.to_thread(convert.convert_database, plain.database, vault.resolve_access(plain.database), vault)
        assert everything(plain) == before
        assert (
            (plain.database.read_bytes()[:15] != b"SQLite format 3")
            == encrypts
            == encrypted_marker.is_marked(plain.database)
        )
        assert key in {None, plain.key_file.read_bytes()}, "a key is made once"
        key = plain.key_file.read_bytes()
    assert {path.name for path in plain.database.parent.glob("memory.db*")} == {"memory.db", "memory.db.begun"}
    async with plain.app() as app:
        assert len((await app.recall().search(SearchRequest("canary"))).hits) == 1


async def test_a_setting_takes_hold_at_the_next_start_of_who_holds_the_role(plain: Home) -> None:
    before = await plain.fill(30)
    plain.turn(encrypts=True)
    async with plain.app(AppMode.GUEST) as hook:
        assert await events_of(hook) == before
    assert not encrypted_marker.is_marked(plain.database), "a guest converts nothing"
    for encrypts, role in ((True, AppMode.SIDECAR), (False, AppMode.HELPER), (True, AppMode.HELPER)):
        plain.turn(encrypts)
        async with plain.app(role) as app:
            assert await surviving_event_ids(app, before) == set(before)
            assert app.start_warnings == ()
        assert encrypted_marker.is_marked(plain.database) == encrypts
    async with plain.app(AppMode.GUEST) as hook:
        await hook.log.append([draft(CANARY)])
        assert len(await events_of(hook)) == 31
    assert b"canary" not in plain.on_disk()


async def test_a_database_that_another_process_has_open_waits_for_the_next_start(
    plain: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await plain.fill(5)
    plain.turn(encrypts=True)
    monkeypatch.setattr("sync.db.rebuild.convert.BUSY_TIMEOUT_MS", 50)
    held = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here
        [sys.executable, "-c", HOLDER, str(plain.database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert held.stdout is not None
    assert int(held.stdout.readline()) == 5
    async with plain.app() as app:
        assert [warning.split(":")[0] for warning in app.start_warnings] == ["encryption_waits"]
        assert await surviving_event_ids(app, before) == set(before)
        await app.log.append([draft("said meanwhile")])
    held.communicate()
    async with plain.app() as app:
        assert app.start_warnings == ()
        assert len(await events_of(app)) == 6
    assert plain.database.read_bytes()[:15] != b"SQLite format 3"


async def test_no_room_for_the_copy_leaves_the_database_as_it_is(plain: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await plain.fill(5)
    plain.turn(encrypts=True)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("sync.db.rebuild.convert.sync_to_disk", full)
        async with plain.app() as app:
            assert app.start_warnings[0].startswith("encryption_waits: storage_full")
            assert await surviving_event_ids(app, before) == set(before)
    assert [path.name for path in plain.database.parent.glob(f"{convert.CONVERSION_PREFIX}*")] == []
    await plain.start()
    assert plain.database.read_bytes()[:15] != b"SQLite format 3"


async def test_without_a_folder_named_for_them_the_jsonl_files_go_and_retention_waits_for_none(plain: Home) -> None:
    async with plain.app() as app:
        await app.memory_service.update(exchange(CANARY))
        assert await app.event_files.write_all(5.0)
        before, root = await events_of(app), app.event_files.projection.root
    assert CANARY in b"".join(path.read_bytes() for path in root.rglob("*.jsonl")).decode()
    (root / "events.damaged-20260101T000000Z").mkdir()
    plain.turn(encrypts=True)
    async with plain.app() as app:
        await app.log.append([draft("later")])
        assert await app.event_files.write_all(5.0)
        assert [path.name for path in root.iterdir()] == ["events.damaged-20260101T000000Z"], "what was kept stays"
        assert before.keys() <= (await events_of(app)).keys()
        offsets = await app.log.database.read(read_consumer_offsets)
        assert JSONL.name not in [offset.consumer.name for offset in offsets]
        with pytest.raises(SettingsError, match="no JSONL files"):
            await app.event_files.rebuild(None)
    assert (await plain.check("event files")).found.startswith("off")
    plain.turn(encrypts=True, events_dir=root.parent)
    async with plain.app() as app:
        assert await app.event_files.write_all(5.0)
    assert CANARY in b"".join(path.read_bytes() for path in root.rglob("*.jsonl")).decode()


# --- the key -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, b"", b"sqlcipher4:" + b"ab" * 48], ids=["lost", "emptied", "another's"])
@pytest.mark.parametrize("role", [AppMode.SIDECAR, AppMode.GUEST])
async def test_without_its_key_it_says_so_and_nothing_is_touched_until_the_key_is_back(
    home: Home, role: AppMode, key: bytes | None
) -> None:
    before = await home.fill(5)
    kept, database = home.key_file.read_bytes(), home.database.read_bytes()
    home.key_file.unlink() if key is None else home.key_file.write_bytes(key)
    for encrypts in (True, False):
        home.turn(encrypts)
        with pytest.raises(KeyLost) as caught:
            async with home.app(role):
                pass
        assert "Bring the key back" in caught.value.hint
    home.turn(encrypts=True)
    assert home.database.read_bytes() == database
    assert home.kept == []
    assert (await home.check("encryption")).ok is False
    assert (await home.check("database")).ok is False
    home.key_file.write_bytes(kept)
    async with home.app() as app:
        assert await surviving_event_ids(app, before) == set(before)
        assert not has_salvage_warning(app)


@pytest.mark.parametrize("encrypts", [True, False])
async def test_without_its_mark_it_is_no_damaged_one_whether_or_not_its_key_is_there(
    home: Home, encrypts: bool
) -> None:
    before = await home.fill(5)
    kept, database = home.key_file.read_bytes(), home.database.read_bytes()
    home.turn(encrypts)
    encrypted_marker.remove_marker(home.database)
    home.key_file.unlink()
    with pytest.raises(KeyLost):
        await home.start()
    assert (home.database.read_bytes(), home.kept) == (database, [])
    home.key_file.write_bytes(kept)
    async with home.app() as app:
        assert await surviving_event_ids(app, before) == set(before)
        assert not has_salvage_warning(app)
    assert encrypted_marker.is_marked(home.database) == encrypts
    assert home.key_file.read_bytes() == kept


@pytest.mark.parametrize("encrypts", [True, False])
async def test_where_the_key_is_gone_for_good_the_files_moved_away_make_room_for_a_new_start(
    home: Home, encrypts: bool, tmp_path: Path
) -> None:
    async with home.app() as app:
        await app.memory_service.update(exchange("还记得吗"))
    home.key_file.unlink()
    for path in home.database.parent.glob("memory.db*"):
        shutil.move(path, tmp_path / path.name)
    home.turn(encrypts)
    profile = next((home.settings.data_dir / "profiles").iterdir())
    async with open_app(home.settings, AppMode.SIDECAR) as app:
        await app.reconcile_memory_file()
        assert "还记得吗" in (await app.memory_service.load(wait_ms=0, scope="user", max_chars=None)).document
    assert encrypted_marker.is_marked(profile / "memory.db") == encrypts


async def test_a_key_in_the_keychain_leaves_nothing_beside_the_database_and_is_found_whatever_the_setting(
    home: Home, keychain: Keychain
) -> None:
    home.turn(encrypts=True, token_store="auto")
    before = await home.fill(5)
    assert not home.key_file.exists()
    entry = (KEY_SERVICE, home.database.parent.name)
    key = keychain.held[entry]
    assert key.removeprefix("sqlcipher4:").encode() not in home.on_disk()
    assert "keychain" in (await home.check("encryption")).found
    home.turn(encrypts=True, token_store="file")
    async with home.app() as app:
        assert await surviving_event_ids(app, before) == set(before)
    keychain.locked = True
    with pytest.raises(StorageError) as caught:
        await home.start()
    assert not isinstance(caught.value, KeyLost), "it is there, and somebody has to open the keychain"
    assert "Unlock" in caught.value.hint
    keychain.locked = False
    home.vault.delete_key(home.database)
    assert entry not in keychain.held


async def test_without_the_extra_a_setting_is_refused_and_a_plain_database_stays_usable(
    plain: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await plain.fill(5)
    database = plain.database.read_bytes()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlcipher3.dbapi2", None)
        cipher_driver.cache_clear()
        plain.turn(encrypts=True)
        for role in (AppMode.SIDECAR, AppMode.GUEST):
            with pytest.raises(SettingsError) as caught:
                async with plain.app(role):
                    pass
            assert "pip install '.[encryption]'" in caught.value.hint
        check = await plain.check("encryption")
        assert (check.ok, "pip install '.[encryption]'" in check.hint) == (False, True)
        assert plain.database.read_bytes() == database
        assert {path.name for path in plain.database.parent.iterdir()} == {"memory.db", "memory.db.begun"}
        plain.turn(encrypts=False)
        encrypted_marker.write_marker(plain.database)  # as a start leaves it that was killed in between
        async with plain.app() as app:
            assert await surviving_event_ids(app, before) == set(before)
        assert not encrypted_marker.is_marked(plain.database)
    cipher_driver.cache_clear()


async def test_doctor_says_what_is_encrypted_and_where_the_keys_are(plain: Home) -> None:
    await plain.fill(1)
    assert (await plain.check("encryption")).ok is None
    plain.turn(encrypts=True)
    assert "next start of the sidecar encrypts" in (await plain.check("encryption")).found
    await plain.start()
    check = await plain.check("encryption")
    assert (check.ok, check.found) == (
        True,
        "1 of 1 databases are encrypted; the keys are there (in a file beside the database)",
    )
    assert (await plain.check("database")).ok is True


# --- who else opens it -------------------------------------------------------------------------------------


@asynccontextmanager
async def spoken(home: Home) -> AsyncIterator[App]:
    async with home.app() as app:
        await app.memory_service.update(exchange("第一句"))
        await app.reconcile_memory_file()
        yield app


def exchange(words: str) -> ExchangeInput:
    return ExchangeInput(words, "好")


async def test_the_first_answer_of_a_start_is_the_program_s_own_and_no_keychain_is_asked_for_it(
    home: Home, keychain: Keychain
) -> None:
    async with spoken(home) as app:
        wanted = await app.memory_service.load(wait_ms=0, scope="user", max_chars=None)
        database = app.profile.database

    def glimpse() -> ColdLoad:
        return ColdLoad(database, home.settings.memory_file, "device-a", True, False, home.vault)

    found = glimpse().load(scope="user", max_chars=None)
    assert found is not None
    assert found.document == wanted.document
    keychain.held[KEY_SERVICE, database.parent.name] = home.key_file.read_text()
    home.key_file.unlink()
    keychain.locked = True
    assert glimpse().load(scope="user", max_chars=None) is None


async def test_another_account_gets_an_encrypted_profile_and_each_knows_the_other_s(home: Home) -> None:
    home.server.add_user("other@example.com", PASSWORD)
    async with open_app(home.settings, AppMode.HELPER, cloud=FakeCloud(home.server)) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await app.memory_service.update(exchange("安的秘密"))
        await app.reconcile_memory_file()
        first = app.profile
        await app.login_flow.log_in(parse_contact(email="other@example.com"), PASSWORD)
        assert app.login_flow.profile_left.is_set()
    async with open_app(home.settings, AppMode.SIDECAR, cloud=FakeCloud(home.server)) as app:
        second = app.profile
        assert second != first
        vault = home.vault
        assert {encrypted_marker.is_marked(profile.database) for profile in (first, second)} == {True}
        owners = [await asyncio.to_thread(profile.read_owner, vault) for profile in (first, second)]
        assert None not in owners
        assert owners[0] != owners[1]
        neighbours = OtherProfiles(second.database, list, vault)
        assert neighbours._lines(first.database)
        vault.delete_key(first.database)
        with pytest.raises(KeyLost):  # without its key it is not taken for a guest's
            await asyncio.to_thread(first.read_owner, vault)


async def test_who_logs_in_while_the_key_of_his_profile_is_not_to_be_had_is_refused_and_finds_it_again(
    home: Home, tmp_path: Path
) -> None:
    home.server.add_user("other@example.com", PASSWORD)
    async with home.app(AppMode.HELPER) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await app.memory_service.update(exchange("没上传的秘密"))
        his = app.profile
        await app.login_flow.log_in(parse_contact(email="other@example.com"), PASSWORD)
    key = shutil.move(his.database.with_name(KEY_FILE), tmp_path / "the key")
    async with home.app(AppMode.HELPER) as app:
        profiles = his.other_profiles()
        with pytest.raises(KeyLost) as refused:
            await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        assert "Bring the key back" in refused.value.hint
        assert his.other_profiles() == profiles
        assert not app.login_flow.profile_left.is_set()
    shutil.move(key, his.database.with_name(KEY_FILE))
    async with home.app(AppMode.HELPER) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
    async with home.app(AppMode.HELPER) as app:
        assert app.profile == his
        assert "没上传的秘密" in (await app.document.view()).text


async def test_a_profile_that_is_to_go_and_whose_key_has_gone_already_keeps_nobody_out(home: Home) -> None:
    """A kill between the two, or a file that Windows did not let go of."""
    home.server.add_user("other@example.com", PASSWORD)
    async with home.app(AppMode.HELPER) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        going = app.profile
        await app.login_flow.log_out(remove=True, even_unsent=True)
    change_installation(home.settings.data_dir, lambda now: replace(now, document_of=None))
    home.vault.delete_key(going.database)
    async with home.app(AppMode.GUEST) as app:
        await app.login_flow.log_in(parse_contact(email="other@example.com"), PASSWORD)
    async with home.app(AppMode.HELPER) as app:
        assert (await app.account.state()).user_id == "user-2"
        assert not going.folder.exists()


async def test_a_memory_that_is_taken_off_the_machine_takes_its_key_along(home: Home, keychain: Keychain) -> None:
    home.turn(encrypts=True, token_store="auto")
    async with home.app(AppMode.HELPER) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        assert app.replicator is not None
        await app.replicator.sync_now()
        going = app.profile
        await app.login_flow.log_out(remove=True)
    assert (KEY_SERVICE, going.name) in keychain.held
    async with home.app() as app:
        assert not going.folder.exists()
        assert [name for service, name in keychain.held if service == KEY_SERVICE] == [app.profile.name]


# --- damage ------------------------------------------------------------------------------------------------


def salt_gone(path: Path) -> None:
    overwrite(path, 0, bytes(16))


def first_page_gone(path: Path) -> None:
    overwrite(path, 0, bytes(PAGE))


def part_of_the_first_page_gone(path: Path) -> None:
    overwrite(path, 48, bytes(16))


def a_page_in_the_middle_gone(path: Path) -> None:
    overwrite(path, path.stat().st_size // PAGE // 2 * PAGE + 100, bytes(64))


def cut_short(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 7)


@pytest.mark.parametrize("converted", first_in_test([False, True]))
@pytest.mark.parametrize(
    ("damage", "least"),
    [
        (salt_gone, MANY),
        (first_page_gone, MANY),
        (part_of_the_first_page_gone, MANY),
        (a_page_in_the_middle_gone, MANY - 20),
        (cut_short, 1),
        (zero_bytes, 0),
    ],
)
async def test_what_can_be_read_of_a_damaged_one_lives_on_encrypted_and_it_is_kept(
    home: Home, damage: Callable[[Path], None], least: int, converted: bool
) -> None:
    home.turn(encrypts=not converted)
    before = await home.fill()
    home.turn(encrypts=True)
    await home.start()
    damage(home.database)
    damaged = home.database.read_bytes()
    async with home.app() as app:
        assert least <= len(await surviving_event_ids(app, before)) <= MANY
        assert has_salvage_warning(app) == (damage is not salt_gone), "the salt is in the key"
        await app.log.append([draft(CANARY)])
    assert [path.read_bytes() for path in home.kept if path.name.endswith("Z")] == [damaged] * has_salvage_warning(app)
    assert b"canary" not in home.on_disk()
    assert "记记记".encode() not in home.on_disk()
    async with home.app() as app:
        assert not has_salvage_warning(app), "the second start finds nothing to do"


async def test_the_write_ahead_log_of_a_damaged_database_is_salvaged_too(home: Home, tmp_path: Path) -> None:
    await home.fill(100)
    async with home.app(AppMode.GUEST) as app:
        await app.log.append([draft("only in the WAL")])
        before = await events_of(app)
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{home.database}{suffix}", tmp_path / f"copy{suffix}")
    for suffix in ("", "-wal"):
        shutil.copyfile(tmp_path / f"copy{suffix}", f"{home.database}{suffix}")
    first_page_gone(home.database)
    async with home.app() as app:
        assert await surviving_event_ids(app, before) == set(before)


def a_leaf_of_the_events_gone(home: Home) -> int:
    """Overwrite one leaf page of the table; how many there are."""
    vault = home.vault
    with vault.read_only_connection(home.database, 1.0) as connection:
        root = connection.execute("select rootpage from sqlite_master where name = 'events'").fetchone()[0]
    plain = home.database.with_name("look.db")
    key = vault.access_for(home.database).key
    assert key is not None
    plain.write_bytes(decrypt_database(home.database.read_bytes(), b"", key))
    found = list(leaf_pages(plain, root))
    plain.unlink()
    overwrite(home.database, (found[3] - 1) * PAGE, b"\xa5" * PAGE)
    return len(found)


async def test_one_bad_page_costs_its_own_rows_only(home: Home) -> None:
    before = await home.fill()
    rows = -(-MANY // a_leaf_of_the_events_gone(home)) + 2
    async with home.app() as app:
        assert MANY - rows <= len(await surviving_event_ids(app, before)) < MANY


async def test_a_leaf_that_is_only_read_late_is_told_as_corruption_by_its_kind(home: Home) -> None:
    await home.fill()
    vault = home.vault
    access = vault.resolve_access(home.database)
    a_leaf_of_the_events_gone(home)
    database = await Database.open(home.database, access)
    try:
        with pytest.raises(StorageError) as caught:
            await database.read(lambda connection: connection.exec_driver_sql("select * from events").all())
        assert caught.value.kind == "storage_corrupt"
    finally:
        await database.close()


def test_no_setting_leaves_no_trace(tmp_path: Path) -> None:
    folder = tmp_path / "0123456789abcdef"
    folder.mkdir()
    profile = Profile(folder)
    vault = DatabaseEncryption()
    assert vault.resolve_access(profile.database).key is None
    assert list(folder.iterdir()) == []
