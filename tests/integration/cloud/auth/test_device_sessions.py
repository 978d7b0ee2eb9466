"""A login belongs to the device that registered with it; revoking the device ends it everywhere."""

from uuid import uuid4

import httpx
import pytest
from msgspec.structs import replace

from sync.cloud.auth_port import AuthSession
from sync.cloud.port import Cloud, DeviceFacts, EndedSessions, SyncRequest
from sync.errors import DeviceConflict, DeviceRevoked, LoginRequired
from tests.cloud.fixtures import Cloud as LocalCloud
from tests.contract.cloud_backends import AccountHolder, supabase_cloud
from tests.contract.test_cloud_port import key
from tests.support import event


def facts(replica: str, number: int) -> DeviceFacts:
    return DeviceFacts(replica, "书房", "Linux", "1", public_key=key(number), proof=f"{number:064x}")


async def logged_in_twice(local: LocalCloud) -> tuple[Cloud, AuthSession, AuthSession]:
    person = AccountHolder(f"{uuid4().hex}@example.com", uuid4().hex, "")
    local.sign_up(person.contact.value, person.password)
    cloud = supabase_cloud(local)
    first, second = [await cloud.auth.sign_in_with_password(person.contact, person.password) for _ in range(2)]
    return cloud, first, second


async def test_the_login_of_a_revoked_device_is_over_and_those_of_the_others_go_on(local_cloud: LocalCloud) -> None:
    cloud, mine, stolen = await logged_in_twice(local_cloud)
    await cloud.register_device(mine, "device-a", facts("rep_a", 1))
    await cloud.register_device(stolen, "device-b", facts("rep_b", 2))
    await cloud.sync(mine, SyncRequest("device-a", "rep_a", (event(1, replica="rep_a", device="device-a"),)))
    assert await cloud.revoke_device(mine, "device-b") == EndedSessions(known=1, ended=1)
    for attempt in (
        cloud.register_device(stolen, "device-c", facts("rep_c", 3)),
        cloud.register_device(stolen, "device-a", replace(facts("rep_c", 3), takeover="rep_a")),
        cloud.sync(stolen, SyncRequest("device-a", "rep_a")),
        cloud.list_devices(stolen),
    ):
        with pytest.raises(DeviceRevoked):
            await attempt
    with pytest.raises(LoginRequired):
        await cloud.auth.refresh_session(stolen)
    headers = {"apikey": local_cloud.publishable_key, "authorization": f"Bearer {stolen.access_token}"}
    async with httpx.AsyncClient(base_url=local_cloud.url, headers=headers, trust_env=False) as thief:
        for table in ("ai_memory", "ai_memory_devices", "ai_memory_heads"):
            assert (await thief.get(f"/rest/v1/{table}")).json() == []
    assert (await cloud.sync(await cloud.auth.refresh_session(mine), SyncRequest("device-a", "rep_a"))).head == 1
    await cloud.close()


async def test_a_login_of_another_device_does_not_speak_for_this_one(local_cloud: LocalCloud) -> None:
    cloud, mine, other = await logged_in_twice(local_cloud)
    await cloud.register_device(mine, "device-a", facts("rep_a", 1))
    await cloud.register_device(other, "device-b", facts("rep_b", 2))
    with pytest.raises(DeviceConflict):
        await cloud.sync(other, SyncRequest("device-a", "rep_a"))
    await cloud.register_device(other, "device-a", facts("rep_a", 1))  # a new login of the same installation
    assert (await cloud.sync(other, SyncRequest("device-a", "rep_a"))).head == 0
    await cloud.close()


def test_a_token_names_its_login_and_other_text_none() -> None:
    token = "e30.eyJzZXNzaW9uX2lkIjoicyJ9.e30"
    logins = [AuthSession("u", "l", text, None, 0).login_id for text in (token, "a.b", "a.%%.c", "", "e30.W10.x")]
    assert logins == ["s", "", "", "", ""]
