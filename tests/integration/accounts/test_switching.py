"""A guest logs in as a user with a profile here: the guest's data moves, and the guest's profile is removed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from sync.accounts.switching import other_profiles_of
from sync.app import App
from sync.cloud import replication_store as cloud_store
from sync.cloud.contact import parse_contact
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.erasure import erasure
from sync.document.erasure.selection import ErasureSelection
from sync.document.ownership.other_profiles import park_copy
from sync.document.surfaces.notices import Notice
from sync.encryption.database_encryption import DatabaseEncryption
from sync.errors import InvalidInput, StorageError
from sync.lan.store import store_events
from sync.log.model import Query
from sync.open_app import AppMode, open_app
from sync.retention.archives import read_archived_events
from sync.settings.settings import Settings
from tests.fake_cloud.server import FakeCloud
from tests.integration.document.harness import FakeAppCache, ManualClock
from tests.support import EMAIL, PASSWORD, app_settings, new_server

LONG_AGO: Final = {"type": "memory_fact", "event_id": "evt_long_ago", "ts": "2025-01-02T03:04:05.000Z"}


@dataclass
class GuestMachine:
    """One on which an account has a profile, and a guest the file."""

    settings: Settings
    cloud: FakeCloud
    clock: ManualClock = field(default_factory=ManualClock)
    shown: str = ""  # the document that another window still shows

    @asynccontextmanager
    async def open(self) -> AsyncIterator[App]:
        async with open_app(self.settings, AppMode.HELPER, cloud=self.cloud, clock=self.clock) as app:
            yield app

    async def start(self) -> None:
        async with self.open():
            pass

    async def log_in(self) -> None:
        """The account's owner logs in after a guest."""
        async with self.open() as app:
            await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)

    def type_below(self, above: str, line: str) -> None:
        text = self.settings.memory_file.read_text("utf-8")
        assert f"{above}\n" in text
        self.settings.memory_file.write_text(text.replace(f"{above}\n", f"{above}\n{line}\n", 1), "utf-8")

    async def leave(self) -> None:
        """Another user logs in and removes their memory: a guest has the machine."""
        async with self.open() as app:
            await app.login_flow.log_in(parse_contact(email="other@example.com"), PASSWORD)
        async with self.open() as app:
            await app.login_flow.log_out(remove=True, even_unsent=True)

    async def archive(self, text: str) -> str:
        """The guest said something long ago, and retention takes it; its event id."""
        async with self.open() as app:
            (recorded,) = await app.log.append([app.draft_builder.build({**LONG_AGO, "payload": {"content": text}})])
            await app.event_files.write_pending()
            room = app.retention()
            assert (await room.apply(room.build_rules(30, None), lambda _done, _total: None)).forgotten == 1
            await app.reconcile_memory_file()
        return recorded.event.event_id

    @property
    def archives(self) -> list[Path]:
        return sorted(path for path in (self.settings.data_dir / "archive").rglob("*") if path.is_file())

    @property
    def parked(self) -> list[str]:
        return [path.read_text("utf-8") for path in sorted(self.settings.data_dir.rglob("parked/*.md"))]


@pytest.fixture
async def machine(tmp_path: Path) -> GuestMachine:
    server = new_server()
    server.add_user("other@example.com", PASSWORD)
    settings = app_settings(tmp_path)
    machine = GuestMachine(settings, FakeCloud(server))
    async with machine.open() as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await app.memory_service.update(ExchangeInput("早先说的", "好"))
    await machine.leave()
    async with machine.open() as app:
        await app.memory_service.update(ExchangeInput("客人说的", "好"))
    return machine


async def test_a_guest_s_events_keep_their_day(machine: GuestMachine) -> None:
    machine.clock.advance(days=5)
    await machine.log_in()
    async with machine.open() as app:
        said = (await app.log.read(Query(types=("exchange_recorded",)))).events
        assert [event.payload["question"] for event in said] == ["早先说的", "客人说的"]
        assert {(event.local_date, event.utc_offset) for event in said} == {("2026-01-08", 480)}
    assert "### 2026/1/13" not in machine.settings.memory_file.read_text("utf-8")


@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "not paired"])
async def test_what_other_devices_have_of_a_guest_keeps_its_author_number_and_clock(
    machine: GuestMachine, is_paired: bool
) -> None:
    """The same event with another number or clock would stand elsewhere there."""
    async with machine.open() as app:
        if is_paired:
            await app.devices.paired.add("ed25519:AA", "device-b", "书房", "secret")
        (own,) = await app.log.newest(("exchange_recorded",), 1)
        of_other = replace(own, event_id="evt_other", device_id="device-b", replica_id="rep_b", replica_seq=7)
        await app.log.database.write(store_events, [of_other], machine.clock, own_device_ids=["device-a"])
    await machine.log_in()
    async with machine.open() as app:
        found = {event.event_id: event for event in (await app.log.read(Query(types=("exchange_recorded",)))).events}
        assert len(found) == 3
        for before in (own, of_other)[not is_paired :]:
            after = found[before.event_id]
            assert (after.device_id, after.replica_key, after.hlc) == (
                before.device_id,
                before.replica_key,
                before.hlc,
            )
        assert app.replicator is not None
        await app.replicator.sync_now()
        assert (await app.log.outbox()).pending == 0
        synced = {event.event_id: event for event in await app.log.newest(("exchange_recorded",), 3)}
        assert synced[own.event_id].server_seq is not None
        assert synced["evt_other"].server_seq is None, "its author sends it"


@pytest.mark.parametrize(
    ("above", "line"),
    [
        ("### 工作习惯", "- 我的手机 13812345678，密码: Hunter2abcX9"),
        ("### 常用命令", f"- {'很长的命令' * 5_000}"),
        ("---", "\n## 还没有内容的标题\n"),
    ],
    ids=["redacted", "too large for an event", "a heading without lines"],
)
async def test_a_document_that_says_more_than_its_events_is_parked_for_him(
    machine: GuestMachine, above: str, line: str
) -> None:
    machine.type_below(above, line)
    await machine.log_in()
    async with machine.open() as app:
        (warning,) = [text for text in (await app.status()).warnings if text.startswith("documents_parked")]
        assert str(app.profile.parked_folder) in warning
    (parked,) = machine.parked
    assert line in parked
    assert "客人说的" in machine.settings.memory_file.read_text("utf-8")


async def test_one_whose_events_say_all_of_it_is_not(machine: GuestMachine) -> None:
    machine.type_below("### 工作习惯", "- 客人打的一行")
    machine.type_below("---", "\n## 客人的标题\n\n- 标题下的一行")
    await machine.log_in()
    async with machine.open() as app:
        assert not [text for text in (await app.status()).warnings if text.startswith("documents_parked")]
    text = machine.settings.memory_file.read_text("utf-8")
    assert all(line in text for line in ("- 客人打的一行\n", "## 客人的标题\n", "- 标题下的一行\n", "客人说的"))
    assert machine.parked == []


async def test_a_document_parked_for_the_guest_stays_the_user_s(machine: GuestMachine) -> None:
    async with machine.open() as app:
        park_copy(app.profile.parked_folder, "- 早先替客人收好的\n".encode())
    await machine.log_in()
    async with machine.open():
        assert machine.parked == ["- 早先替客人收好的\n"]


async def test_a_guest_s_lesson_files_go_and_what_was_typed_in_them_is_taken_over(machine: GuestMachine) -> None:
    async with machine.open() as app:
        await app.lessons().learn("error", {"error": {"message": "客人的错误"}, "tags": ["标签"]})
        await app.lesson_files().reconcile()
        (folder,) = (machine.settings.data_dir / "lessons").iterdir()
    (file,) = (folder / "errors").glob("*.json")
    file.write_text(file.read_text("utf-8").replace("标签", "打的标签"), "utf-8")
    await machine.log_in()
    async with machine.open() as app:
        (lesson,) = await app.lessons().all()
    assert (lesson.tags, folder.exists()) == (["打的标签"], False)


async def test_what_is_forgotten_later_leaves_the_document_that_was_parked(machine: GuestMachine) -> None:
    machine.type_below("### 工作习惯", "- 我的手机 13812345678")
    await machine.log_in()
    async with machine.open() as app:
        said = (await app.log.read(Query(types=("exchange_recorded",)))).events[-1]
        await erasure.request(app.log, app.draft_builder, [said.event_id])
        await app.reconcile_memory_file()
    (parked,) = machine.parked
    assert "客人说的" not in parked
    assert "13812345678" in parked


async def test_a_guest_s_archives_move_along_and_erasures_apply_to_them(machine: GuestMachine) -> None:
    told = await machine.archive("去年的斑马")
    await machine.log_in()
    async with machine.open() as app:
        (path,) = machine.archives
        assert path.parent == app.profile.archives_folder
        assert [folder.name for folder in path.parent.parent.iterdir()] == [app.profile.name]
        waiting = await app.log.database.read(lambda connection: cloud_store.pending_batch(connection, 100))
        assert told not in [event.event_id for event in waiting.events], "no blank row of it is sent"

        room = app.retention()
        assert [event.event_id for event in await room.find_archived(ErasureSelection("斑马"))] == [told]
        assert await erasure.request(app.log, app.draft_builder, [told]) == [told]
        await app.reconcile_memory_file()
        assert await room.apply_retractions() == 1
        assert list(read_archived_events(path, {})) == []


async def test_a_guest_s_archives_can_be_imported_with_their_payloads(machine: GuestMachine) -> None:
    told = await machine.archive("去年的斑马")
    await machine.log_in()
    async with machine.open() as app:
        (path,) = machine.archives
        taken = await app.archive().import_path(
            path, passphrase=None, dry_run=False, on_progress=lambda _done, _total: None
        )
        waiting = await app.log.database.read(lambda connection: cloud_store.pending_batch(connection, 100))
        sent = {event.event_id: event.payload for event in waiting.events}
    assert (taken.recorded, sent[told]) == (1, {"content": "去年的斑马"})


async def test_earlier_erasures_apply_to_a_guest_s_archives(machine: GuestMachine) -> None:
    told = await machine.archive("去年的斑马")
    before = machine.archives[0].read_bytes()
    await machine.log_in()
    async with machine.open() as app:
        await erasure.request(app.log, app.draft_builder, [told])
        await app.reconcile_memory_file()
        assert await app.retention().apply_retractions() == 1
    await machine.leave()
    async with machine.open() as guest:  # another one, who has a copy of it
        guest.profile.archives_folder.mkdir(parents=True)
        (guest.profile.archives_folder / "copy.xbm").write_bytes(before)
    await machine.log_in()
    async with machine.open() as app:
        assert await app.retention().find_archived(ErasureSelection("斑马")) == []
        assert await app.retention().apply_retractions() == 1


async def test_killed_before_the_archives_have_moved_the_next_start_moves_them(machine: GuestMachine) -> None:
    await machine.archive("去年的斑马")
    (path,) = machine.archives
    async with machine.open() as app:
        (heir,) = app.profile.other_profiles()
    heir.archives_folder.write_text("in the way")  # dies after the events were copied
    await machine.log_in()
    with pytest.raises(StorageError):
        await machine.start()
    assert path.is_file()
    heir.archives_folder.unlink()

    async with machine.open() as app:
        assert app.profile == heir
        assert [found.parent for found in machine.archives] == [heir.archives_folder]
        assert len((await app.log.read(Query(types=("memory_fact",)))).events) == 1


async def test_the_account_keeps_the_words_that_a_guest_said_too_and_had_archived(machine: GuestMachine) -> None:
    await machine.log_in()
    async with machine.open() as app:
        await app.log.append([app.draft_builder.build({**LONG_AGO, "payload": {"content": "去年的斑马"}})])
    await machine.leave()
    told = await machine.archive("去年的斑马")
    await machine.log_in()
    async with machine.open() as app:
        await app.reconcile_memory_file()
        (found,) = (await app.log.read(Query(types=("memory_fact",)))).events
        assert (found.event_id, found.payload) == (told, {"content": "去年的斑马"})


async def remove_account(settings: Settings) -> GuestMachine:
    """Remove an account from a machine, while an editor, the app's page and its cache still show the document."""
    machine = GuestMachine(settings, FakeCloud(new_server()))
    async with machine.open() as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await app.memory_service.update(ExchangeInput("安说的", "好"))
        await app.lessons().learn("error", {"error": {"message": "安的错误"}, "tags": ["安"]})
    async with machine.open() as app:
        await app.lesson_files().reconcile()
        machine.shown = settings.memory_file.read_text("utf-8").replace("安说的", "安后来打的")
        await app.login_flow.log_out(remove=True, even_unsent=True)
    machine.clock.advance(hours=1)
    await machine.start()
    return machine


@pytest.fixture
async def removed(tmp_path: Path) -> GuestMachine:
    return await remove_account(app_settings(tmp_path))


class TestRemovedAccounts:
    async def test_nothing_of_it_is_left_but_what_recognises_its_document(self, removed: GuestMachine) -> None:
        files = [path.read_bytes() for path in removed.settings.data_dir.rglob("*") if path.is_file()]
        assert not [data for data in files if "安".encode() in data or b"2026/1/8" in data]

    async def test_what_its_editor_saves_is_parked_and_recorded_for_nobody(self, removed: GuestMachine) -> None:
        removed.settings.memory_file.write_text(removed.shown, "utf-8")
        async with removed.open() as app:
            await app.reconcile_memory_file()
            assert (await app.log.read(Query())).events == ()
            warnings = [
                text for text in (await app.status()).warnings if text.startswith("removed_account_parked: 1 in")
            ]
            with pytest.raises(InvalidInput, match="another account"):
                await app.document.save(removed.shown, None, confirmed=False)
        assert not removed.settings.memory_file.exists()
        assert [Path(text.partition(" in ")[2]) for text in warnings] == [removed.settings.data_dir / "parked"]
        assert removed.parked == [removed.shown]

    async def test_what_the_app_s_cache_holds_of_it_is_left_there(self, removed: GuestMachine, tmp_path: Path) -> None:
        cache = FakeAppCache(tmp_path / "app.db")
        cache.save(removed.shown)
        removed.settings = replace(removed.settings, app_db=cache.path)
        async with removed.open() as app:
            await app.reconcile_memory_file()
            assert (await app.log.read(Query())).events == ()
            assert Notice.STRANGER in app.document.notices

    async def test_what_its_editor_saves_after_the_same_user_s_next_login_is_an_edit(
        self, removed: GuestMachine
    ) -> None:
        await removed.log_in()
        removed.settings.memory_file.write_text(removed.shown, "utf-8")
        async with removed.open() as app:
            await app.reconcile_memory_file()
            assert "安后来打的" in (await app.document.view()).text
        assert removed.parked == []

    async def test_while_its_owner_cannot_be_read_no_document_is_another_s(self, removed: GuestMachine) -> None:
        """It may be the same user's own: removed, and logged in again."""
        await removed.log_in()
        async with removed.open() as app:
            profile = app.profile
        profile.database.unlink()
        profile.database.mkdir()
        others = other_profiles_of(profile, DatabaseEncryption.of(removed.settings))
        assert not others.exist()

    async def test_a_document_of_another_machine_is_still_taken_over(self, removed: GuestMachine) -> None:
        removed.settings.memory_file.write_text(removed.shown.replace("2026/1/8 ", "2025/12/31 "), "utf-8")
        async with removed.open() as app:
            await app.reconcile_memory_file()
            assert "安后来打的" in (await app.document.view()).text
        assert removed.parked == []

    async def test_its_lessons_in_a_folder_of_the_user_s_are_not_the_next_account_s(self, tmp_path: Path) -> None:
        settings = app_settings(tmp_path)
        machine = await remove_account(replace(settings, lessons=replace(settings.lessons, dir=tmp_path / "lessons")))
        async with machine.open() as app:
            await app.lesson_files().reconcile()
            assert await app.lessons().all() == []
        assert not [path for path in (tmp_path / "lessons").rglob("*.json") if "安" in path.read_text("utf-8")]
