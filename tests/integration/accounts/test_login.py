"""A user has one profile on this machine, also after several logins at once; a logout loses nothing unconfirmed."""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bridge.api.app_provider import AppProvider, OpenAppProvider
from bridge.api.method_table import Context
from bridge.methods.registry import METHOD_TABLE
from sync.accounts.profiles import Profile, open_installation
from sync.app import App
from sync.cloud.contact import parse_contact
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.ownership.other_profiles import park_copy
from sync.errors import NotSynced, StorageBusy
from sync.open_app import AppMode, open_app
from sync.settings.settings import Settings
from tests.fake_cloud.server import FakeCloud
from tests.support import EMAIL, PASSWORD, SpyCloud, app_settings, new_server

NEWCOMER = "other@example.com"
THIRD = "third@example.com"


def settings_at(folder: Path) -> Settings:
    return app_settings(folder)


def server_with_two_users() -> FakeCloud:
    server = new_server()
    server.add_user(NEWCOMER, PASSWORD)
    server.add_user(THIRD, PASSWORD)
    return FakeCloud(server)


def active_profile(settings: Settings) -> Profile:
    return Profile.of(settings.data_dir, open_installation(settings.data_dir, lambda: None))


async def test_two_logins_of_a_new_user_at_once_create_one_profile(tmp_path: Path) -> None:
    settings, cloud, newcomer = settings_at(tmp_path), server_with_two_users(), parse_contact(email=NEWCOMER)
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        states = await asyncio.gather(*(app.login_flow.log_in(newcomer, PASSWORD) for _ in range(2)))
        assert [state.user_id for state in states] == ["user-2", "user-2"]
        (his,) = app.profile.other_profiles()
    assert active_profile(settings) == his


async def test_nor_do_they_by_way_of_two_programs(tmp_path: Path) -> None:
    settings, cloud, newcomer = settings_at(tmp_path), server_with_two_users(), parse_contact(email=NEWCOMER)
    async with (
        open_app(settings, AppMode.HELPER, cloud=cloud) as one,
        open_app(settings, AppMode.HELPER, cloud=cloud) as two,
    ):
        await one.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await asyncio.gather(*(app.login_flow.log_in(newcomer, PASSWORD) for app in (one, two)))
        (his,) = one.profile.other_profiles()
    assert active_profile(settings) == his


async def test_who_comes_back_before_another_s_application_is_opened_stays(tmp_path: Path) -> None:
    settings, cloud = settings_at(tmp_path), server_with_two_users()
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        for email in (EMAIL, NEWCOMER, EMAIL):
            await app.login_flow.log_in(parse_contact(email=email), PASSWORD)
        assert active_profile(settings) == app.profile
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        assert (await app.account.state()).user_id == "user-1"


async def test_what_is_said_after_the_last_look_before_a_removal_is_not_acknowledged(tmp_path: Path) -> None:
    """It would go with the memory (simulation seed 15417). If the removal is refused, everything continues."""
    async with open_app(settings_at(tmp_path), AppMode.HELPER, cloud=server_with_two_users()) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await app.memory_service.update(ExchangeInput("没上传的一句", "好"))
        with pytest.raises(NotSynced):
            await app.login_flow.log_out(remove=True)
        await app.memory_service.update(ExchangeInput("再说一句", "好"))
        await app.login_flow.log_out(remove=True, even_unsent=True)
        with pytest.raises(StorageBusy):
            await app.memory_service.update(ExchangeInput("太晚的一句", "好"))


async def test_of_a_guest_s_two_at_once_the_second_leaves_for_a_profile_of_his_own(tmp_path: Path) -> None:
    settings, cloud = settings_at(tmp_path), server_with_two_users()
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        states = await asyncio.gather(
            *(app.login_flow.log_in(parse_contact(email=email), PASSWORD) for email in (EMAIL, NEWCOMER))
        )
        assert {state.user_id for state in states} == {"user-1", "user-2"}
        (other,) = app.profile.other_profiles()
    assert active_profile(settings) == other


@contextmanager
def exclusive_lock(database: Path) -> Iterator[None]:
    """Another process holds it."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("pragma locking_mode = exclusive")
        connection.execute("begin exclusive")
        yield


async def two_profiles(settings: Settings, cloud: SpyCloud) -> Profile:
    """Of the first user, with words that were never sent, and of the newcomer, who is logged in; the first's."""
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await app.memory_service.update(ExchangeInput("没上传的一句", "好"))
        await app.login_flow.log_in(parse_contact(email=NEWCOMER), PASSWORD)
        return app.profile


@pytest.mark.parametrize("is_guest", [False, True], ids=["while another is logged in", "while nobody is"])
async def test_no_second_profile_is_created_while_the_user_s_own_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_guest: bool
) -> None:
    monkeypatch.setattr("sync.accounts.profiles.OWNER_READ_TIMEOUT", 0.05)
    settings, cloud = settings_at(tmp_path), SpyCloud(server_with_two_users())
    his = await two_profiles(settings, cloud)
    if is_guest:
        async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
            await app.login_flow.log_out(remove=True, even_unsent=True)
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        profiles, before = his.other_profiles(), open_installation(settings.data_dir, lambda: None)
        state, cloud.calls[:] = await app.account.state(), []
        with exclusive_lock(his.database), pytest.raises(StorageBusy) as refused:
            await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        assert refused.value.retryable
        assert (his.other_profiles(), open_installation(settings.data_dir, lambda: None)) == (profiles, before)
        assert (await app.account.state(), app.login_flow.profile_left.is_set()) == (state, False)
        assert cloud.calls[-1] == "sign_out", "a session that nobody uses is not left open"
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
    assert active_profile(settings) == his
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        assert "没上传的一句" in (await app.document.view()).text


async def test_another_user_s_damaged_profile_blocks_no_login(tmp_path: Path) -> None:
    settings, cloud = settings_at(tmp_path), SpyCloud(server_with_two_users())
    damaged = await two_profiles(settings, cloud)
    damaged.database.write_bytes(b"this is no database, and longer than a header" * 10)
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        await app.login_flow.log_in(parse_contact(email=THIRD), PASSWORD)
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        assert (await app.account.state()).user_id == "user-3"
    assert damaged.database.read_bytes().startswith(b"this is no database"), "for who can still make something of it"


async def logged_in(app: App) -> None:
    """With one exchange that the cloud has, and the file too."""
    await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
    await app.memory_service.update(ExchangeInput("云端有的一句", "好"))
    await synced(app)


async def synced(app: App) -> None:
    await app.reconcile_memory_file()
    assert app.replicator is not None
    await app.replicator.sync_now()


def with_typed_line(text: str, line: str) -> bytes:
    return text.replace("### 工作习惯\n", f"### 工作习惯\n{line}\n", 1).encode()


@pytest.mark.parametrize(
    ("saved", "looked"),
    [
        (lambda text: with_typed_line(text, "- 刚刚打的一行"), False),
        (lambda text: with_typed_line(text, f"- {'很长的一行' * 5_000}"), True),
        (lambda text: with_typed_line(text, "- 打坏了的一行\0"), True),
        (lambda text: with_typed_line(re.sub("- (用户问|AI 答).*\n", "", text), "- 只剩这一行"), True),
    ],
    ids=["not taken in yet", "too large for an event", "not understood", "looks lost"],
)
async def test_a_removal_is_refused_while_the_file_holds_what_no_event_does(
    tmp_path: Path, saved: Callable[[str], bytes], *, looked: bool
) -> None:
    settings = settings_at(tmp_path)
    async with open_app(settings, AppMode.HELPER, cloud=server_with_two_users()) as app:
        await logged_in(app)
        for number in range(8):
            await app.memory_service.update(ExchangeInput(f"第 {number} 句", "好"))
        await synced(app)
        settings.memory_file.write_bytes(saved(settings.memory_file.read_text("utf-8")))
        if looked:
            await synced(app)
        before = settings.memory_file.read_bytes()
        with pytest.raises(NotSynced) as refused:
            await app.login_flow.log_out(remove=True)
        assert "--even-unsent" in refused.value.hint
        assert (await app.account.state()).state == "logged_in"
        assert settings.memory_file.read_bytes() == before
        assert (await app.login_flow.log_out(remove=True, even_unsent=True)).state == "guest"


async def test_parked_documents_are_not_removed_without_confirmation(tmp_path: Path) -> None:
    async with open_app(settings_at(tmp_path), AppMode.HELPER, cloud=server_with_two_users()) as app:
        await logged_in(app)
        park_copy(app.profile.parked_folder, "- 替他收好的一行\n".encode())
        with pytest.raises(NotSynced, match="parked"):
            await app.login_flow.log_out(remove=True)


@pytest.mark.parametrize(
    "saved",
    [lambda text: with_typed_line(text, "- 手机 13812345678"), lambda _: b"\n"],
    ids=["redacted in the cloud", "emptied"],
)
async def test_what_the_cloud_has_as_far_as_it_may_goes_without_a_question(
    tmp_path: Path, saved: Callable[[str], bytes]
) -> None:
    settings = settings_at(tmp_path)
    async with open_app(settings, AppMode.HELPER, cloud=server_with_two_users()) as app:
        await logged_in(app)
        settings.memory_file.write_bytes(saved(settings.memory_file.read_text("utf-8")))
        await synced(app)
        assert (await app.login_flow.log_out(remove=True)).state == "guest"


async def test_a_line_that_was_saved_just_before_the_call_is_taken_in_by_it_and_waits_for_the_cloud(
    tmp_path: Path,
) -> None:
    settings, cloud = settings_at(tmp_path), server_with_two_users()
    async with open_app(settings, AppMode.HELPER, cloud=cloud) as app:
        await logged_in(app)
        settings.memory_file.write_bytes(with_typed_line(settings.memory_file.read_text("utf-8"), "- 刚刚打的一行"))
        door = Context[AppProvider](OpenAppProvider(app))
        with pytest.raises(NotSynced, match="1 events"):
            await METHOD_TABLE.call("auth/logout", door, {"localCopy": "remove"})
        await synced(app)
        await METHOD_TABLE.call("auth/logout", door, {"localCopy": "remove"})
    async with open_app(settings, AppMode.HELPER, cloud=cloud):
        assert not settings.memory_file.exists()
