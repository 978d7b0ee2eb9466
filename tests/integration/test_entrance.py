"""Several logins at once, in one program and beside it: each user has one profile on this machine."""

import asyncio
from pathlib import Path

import pytest

from sync.app import Role, open_app
from sync.cloud.contact import contact_of
from sync.cloud.memory import MemoryCloud
from sync.document.capture import Exchange
from sync.errors import NotSynced, StorageBusy
from sync.profiles import Profile, open_installation
from sync.settings import Settings
from tests.support import EMAIL, PASSWORD, new_server

NEWCOMER = "other@example.com"


def at(folder: Path) -> Settings:
    return Settings(
        data_dir=folder / "data", memory_file=folder / "memory.md", device_id="device-a", token_store="file"
    )


def of_two() -> MemoryCloud:
    server = new_server()
    server.add_user(NEWCOMER, PASSWORD)
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
