"""Account limits: what is sent later, what does not block the rest, and which error the user sees."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from sync.cloud.auth_port import AuthSession
from sync.cloud.port import QUOTA_CODE, Cloud, DeviceFacts, SyncAnswer, SyncRequest
from sync.cloud.replication.sync_round import QUOTA_RETRY_AFTER
from sync.errors import Forbidden, QuotaExceeded, Rejected
from sync.log.event_types import PAYLOAD_FORGOTTEN
from sync.log.model import EventDraft
from tests.cloud.fixtures import Cloud as LocalCloud
from tests.contract.cloud_backends import AccountHolder, supabase_cloud
from tests.fake_cloud.server import FakeCloud
from tests.support import REDACTOR, event, new_server, open_device


@contextmanager
def limited(local: LocalCloud, name: str, value: int) -> Iterator[None]:
    """A project with a low limit, used by one test at a time."""
    with psycopg.connect(local.database_url, autocommit=True) as admin:
        row = admin.execute("select ai_memory_admin_set_limit(%s, %s)", (name, value)).fetchone()
        assert row is not None
        try:
            yield
        finally:
            admin.execute("select ai_memory_admin_set_limit(%s, %s)", (name, row[0]))


async def registered(local: LocalCloud) -> tuple[Cloud, AuthSession]:
    person = AccountHolder(f"{uuid4().hex}@example.com", uuid4().hex, "")
    local.sign_up(person.contact.value, person.password)
    cloud = supabase_cloud(local)
    session = await cloud.auth.sign_in_with_password(person.contact, person.password)
    await cloud.register_device(session, "device-a", DeviceFacts("rep_a", "书房", "Linux", "1"))
    return cloud, session


@pytest.mark.parametrize("name", ["events_a_day", "bytes_a_day"])
async def test_what_is_beyond_a_daily_limit_is_reported_as_that_and_kept(local_cloud: LocalCloud, name: str) -> None:
    cloud, session = await registered(local_cloud)
    later = "0fffffffffff-{:04}".format  # than the registration: history does not count
    request = SyncRequest("device-a", "rep_a", (event(1, hlc=later(1)), event(2, hlc=later(2))))
    with limited(local_cloud, name, 1), pytest.raises(QuotaExceeded, match=name):
        await cloud.sync(session, request)
    assert len((await cloud.sync(session, request)).acked) == len(request.events)
    await cloud.close()


async def test_an_erasure_beyond_the_limit_is_refused_alone(local_cloud: LocalCloud) -> None:
    cloud, session = await registered(local_cloud)
    request = event(1, type=PAYLOAD_FORGOTTEN, payload={"event_ids": ["evt_1", "evt_2"]})
    with limited(local_cloud, "erasures_a_day", 1):
        with pytest.raises(Rejected) as refused:
            await cloud.sync(session, SyncRequest("device-a", "rep_a", (request,)))
        assert refused.value.code == QUOTA_CODE
        assert (await cloud.sync(session, SyncRequest("device-a", "rep_a", (event(2),)))).head == 1
    await cloud.close()


async def test_one_device_too_many_is_forbidden_in_words(local_cloud: LocalCloud) -> None:
    cloud, session = await registered(local_cloud)
    with limited(local_cloud, "devices", 1), pytest.raises(Forbidden, match="too many devices"):
        await cloud.register_device(session, "device-b", DeviceFacts("rep_b", "书房", "Linux", "1"))
    await cloud.close()


class NoMoreErasures(FakeCloud):
    """The fake server, with no erasures left for today."""

    lasts = True

    async def sync(self, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        if self.lasts and any(sent.type == PAYLOAD_FORGOTTEN for sent in request.events):
            raise Rejected("no more today", code=QUOTA_CODE)
        return await super().sync(session, request)


async def test_what_a_limit_set_aside_goes_out_later_and_holds_nothing_up(tmp_path: Path) -> None:
    server = new_server()
    async with open_device(tmp_path, server) as device:
        device.cloud.inner = cloud = NoMoreErasures(server)
        await device.log_in()
        await device.log.append(
            [EventDraft(PAYLOAD_FORGOTTEN, REDACTOR.clean_payload_with_ids("event_ids", ["evt_1"], {}))]
        )
        await device.record_notes("之后")
        for _ in range(2):
            await device.replicator.sync_now()
            assert [sent.type for sent in server.user_logs["user-1"].events] == ["note_taken"]
        cloud.lasts = False
        device.clock.advance(QUOTA_RETRY_AFTER.total_seconds() + 1)
        await device.replicator.sync_now()
        assert [sent.type for sent in server.user_logs["user-1"].events] == ["note_taken", PAYLOAD_FORGOTTEN]
        assert await device.log.quarantine.list_refused() == []
