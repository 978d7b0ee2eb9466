"""Who comes in, also several at once, has one profile on this machine; who leaves loses nothing he did not give up."""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bridge.methods.door import Door, OpenDoor
from bridge.methods.registry import TABLE
from bridge.methods.table import Context
from sync.app import App, Role, open_app
from sync.cloud.contact import contact_of
from sync.cloud.memory import MemoryCloud
from sync.document.capture import Exchange
from sync.document.neighbours import park
from sync.errors import NotSynced, StorageBusy
from sync.profiles import Profile, open_installation
from sync.settings import Settings
from tests.support import EMAIL, PASSWORD, WatchedCloud, new_server

NEWCOMER = "other@example.com"
THIRD = "third@example.com"


def at(folder: Path) -> Settings:
    return Settings(
        data_dir=folder / "data", memory_file=folder / "memory.md", device_id="device-a", token_store="file"
    )


def of_two() -> MemoryCloud:
    server = new_server()
    server.add_user(NEWCOMER, PASSWORD)
    server.add_user(THIRD, PASSWORD)
    return MemoryCloud(server)


def active(settings: Settings) -> Profile:
    return Profile.of(settings.data_dir, open_installation(settings.data_dir, lambda: None))


async def test_two_logins_of_a_newcomer_at_once_make_him_one_profile(tmp_path: Path) -> None:
    settings, cloud, newcomer = at(tmp_path), of_two(), contact_of(email=NEWCOMER)
    async with open_app(settings, Role.HELPER, cloud=cloud) as app:
        await app.entrance.log_in(contact_of(email=EMAIL), PASSWORD)
        states = await asyncio.gather(*(app.entrance.log_in(newcomer, PASSWORD) for _ in range(2)))
        assert [state.user_id for state in states] == ["user-2", "user-2"]
        (his,) = app.profile.others()
    assert active(settings) == his


async def test_nor_do_they_by_way_of_two_programs(tmp_path: Path) -> None:
    settings, cloud, newcomer = at(tmp_path), of_two(), contact_of(email=NEWCOMER)
    async with (
        open_app(settings, Role.HELPER, cloud=cloud) as one,
        open_app(settings, Role.HELPER, cloud=cloud) as two,
    ):
        await one.entrance.log_in(contact_of(email=EMAIL), PASSWORD)
        await asyncio.gather(*(app.entrance.log_in(newcomer, PASSWORD) for app in (one, two)))
        (his,) = one.profile.others()
    assert active(settings) == his


async def test_who_comes_back_before_another_s_application_is_opened_stays(tmp_path: Path) -> None:
    settings, cloud = at(tmp_path), of_two()
    async with open_app(settings, Role.HELPER, cloud=cloud) as app:
        for email in (EMAIL, NEWCOMER, EMAIL):
            await app.entrance.log_in(contact_of(email=email), PASSWORD)
        assert active(settings) == app.profile
    async with open_app(settings, Role.HELPER, cloud=cloud) as app:
        assert (await app.account.state()).user_id == "user-1"


async def test_what_is_said_after_the_last_look_before_a_removal_is_not_acknowledged(tmp_path: Path) -> None:
    """It would go with the memory (simulated as seed 15417). Where the removal is refused everything goes on."""
    async with open_app(at(tmp_path), Role.HELPER, cloud=of_two()) as app:
        await app.entrance.log_in(contact_of(email=EMAIL), PASSWORD)
        await app.conversation.update(Exchange("没上传的一句", "好"))
        with pytest.raises(NotSynced):
            await app.entrance.log_out(remove=True)
        await app.conversation.update(Exchange("再说一句", "好"))
        await app.entrance.log_out(remove=True, even_unsent=True)
        with pytest.raises(StorageBusy):
            await app.conversation.update(Exchange("太晚的一句", "好"))


async def test_of_a_guest_s_two_at_once_the_second_leaves_for_a_profile_of_his_own(tmp_path: Path) -> None:
    settings, cloud = at(tmp_path), of_two()
    async with open_app(settings, Role.HELPER, cloud=cloud) as app:
        states = await asyncio.gather(
            *(app.entrance.log_in(contact_of(email=email), PASSWORD) for email in (EMAIL, NEWCOMER))
        )
        assert {state.user_id for state in states} == {"user-1", "user-2"}
        (other,) = app.profile.others()
    assert active(settings) == other


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Somebody else has it for himself."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("pragma locking_mode = exclusive")
        connection.execute("begin exclusive")
        yield


async def two_profiles(settings: Settings, cloud: WatchedCloud) -> Profile:
    """Of the first user, with words that were never sent, and of the newcomer, who is logged in; the first's."""
    async with open_app(settings, Role.HELPER, cloud=cloud) as app:
        await app.entrance.log_in(contact_of(email=EMAIL), PASSWORD)
        await app.conversation.update(Exchange("没上传的一句", "好"))
        await app.entrance.log_in(contact_of(email=NEWCOMER), PASSWORD)
        return app.profile


@pytest.mark.parametrize("is_guest", [False, True], ids=["while another is logged in", "while nobody is"])
async def test_nobody_gets_a_second_profile_because_his_own_cannot_be_asked_just_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_guest: bool
) -> None:
    monkeypatch.setattr("sync.profiles.OWNER_PATIENCE", 0.05)
    settings, cloud = at(tmp_path), WatchedCloud(of_two())
    his = await two_profiles(settings, cloud)
    if is_guest:
        async with open_app(settings, Role.HELPER, cloud=cloud) as app:
            await app.entrance.log_out(remove=True, even_unsent=True)
    async with open_app(settings, Role.HELPER, cloud=cloud) as app:
        profiles, before = his.others(), open_installation(settings.data_dir, lambda: None)
        state, cloud.calls[:] = await app.account.state(), []
        with locked(his.database), pytest.raises(StorageBusy) as refused:
            await app.entrance.log_in(contact_of(email=EMAIL), PASSWORD)
        assert refused.value.retryable
        assert (his.others(), open_installation(settings.data_dir, lambda: None)) == (profiles, before)
        assert (await app.account.state(), app.entrance.left.is_set()) == (state, False)
        assert cloud.calls[-1] == "sign_out", "a session that nobody uses is not left open"
        await app.entrance.log_in(contact_of(email=EMAIL), PASSWORD)
    assert active(settings) == his
    async with open_app(settings, Role.HELPER, cloud=cloud) as app:
        assert "没上传的一句" in (await app.document.view()).text


async def test_a_damaged_profile_of_somebody_keeps_nobody_out(tmp_path: Path) -> None:
    settings, cloud = at(tmp_path), WatchedCloud(of_two())
    damaged = await two_profiles(settings, cloud)
    damaged.database.write_bytes(b"this is no database, and longer than a header" * 10)
    async with open_app(settings, Role.HELPER, cloud=cloud) as app:
        await app.entrance.log_in(contact_of(email=THIRD), PASSWORD)
    async with open_app(settings, Role.HELPER, cloud=cloud) as app:
        assert (await app.account.state()).user_id == "user-3"
    assert damaged.database.read_bytes().startswith(b"this is no database"), "for who can still make something of it"


async def logged_in(app: App) -> None:
    """With one exchange that the cloud has, and the file too."""
    await app.entrance.log_in(contact_of(email=EMAIL), PASSWORD)
    await app.conversation.update(Exchange("云端有的一句", "好"))
    await synced(app)


async def synced(app: App) -> None:
    await app.settle()
    assert app.replicator is not None
    await app.replicator.sync_now()


def typed(text: str, line: str) -> bytes:
    return text.replace("### 工作习惯\n", f"### 工作习惯\n{line}\n", 1).encode()


@pytest.mark.parametrize(
    ("saved", "looked"),
    [
        (lambda text: typed(text, "- 刚刚打的一行"), False),
        (lambda text: typed(text, f"- {'很长的一行' * 5_000}"), True),
        (lambda text: typed(text, "- 打坏了的一行\0"), True),
        (lambda text: typed(re.sub("- (用户问|AI 答).*\n", "", text), "- 只剩这一行"), True),
    ],
    ids=["not taken in yet", "too large for an event", "not understood", "looks lost"],
)
async def test_a_removal_is_refused_while_the_file_holds_what_no_event_does(
    tmp_path: Path, saved: Callable[[str], bytes], *, looked: bool
) -> None:
    settings = at(tmp_path)
    async with open_app(settings, Role.HELPER, cloud=of_two()) as app:
        await logged_in(app)
        for number in range(8):
            await app.conversation.update(Exchange(f"第 {number} 句", "好"))
        await synced(app)
        settings.memory_file.write_bytes(saved(settings.memory_file.read_text("utf-8")))
        if looked:
            await synced(app)
        before = settings.memory_file.read_bytes()
        with pytest.raises(NotSynced) as refused:
            await app.entrance.log_out(remove=True)
        assert "--even-unsent" in refused.value.hint
        assert (await app.account.state()).state == "logged_in"
        assert settings.memory_file.read_bytes() == before
        assert (await app.entrance.log_out(remove=True, even_unsent=True)).state == "guest"


async def test_nor_is_what_was_parked_for_him_removed_unasked(tmp_path: Path) -> None:
    async with open_app(at(tmp_path), Role.HELPER, cloud=of_two()) as app:
        await logged_in(app)
        park(app.profile.parked, "- 替他收好的一行\n".encode())
        with pytest.raises(NotSynced, match="parked"):
            await app.entrance.log_out(remove=True)


@pytest.mark.parametrize(
    "saved", [lambda text: typed(text, "- 手机 13812345678"), lambda _: b"\n"], ids=["redacted in the cloud", "emptied"]
)
async def test_what_the_cloud_has_as_far_as_it_may_goes_without_a_question(
    tmp_path: Path, saved: Callable[[str], bytes]
) -> None:
    settings = at(tmp_path)
    async with open_app(settings, Role.HELPER, cloud=of_two()) as app:
        await logged_in(app)
        settings.memory_file.write_bytes(saved(settings.memory_file.read_text("utf-8")))
        await synced(app)
        assert (await app.entrance.log_out(remove=True)).state == "guest"


async def test_a_line_that_was_saved_just_before_the_call_is_taken_in_by_it_and_waits_for_the_cloud(
    tmp_path: Path,
) -> None:
    settings, cloud = at(tmp_path), of_two()
    async with open_app(settings, Role.HELPER, cloud=cloud) as app:
        await logged_in(app)
        settings.memory_file.write_bytes(typed(settings.memory_file.read_text("utf-8"), "- 刚刚打的一行"))
        door = Context[Door](OpenDoor(app))
        with pytest.raises(NotSynced, match="1 events"):
            await TABLE.call("auth/logout", door, {"localCopy": "remove"})
        await synced(app)
        await TABLE.call("auth/logout", door, {"localCopy": "remove"})
    async with open_app(settings, Role.HELPER, cloud=cloud):
        assert not settings.memory_file.exists()
