"""Sync rounds on a real database and the fake server: nothing lost, nothing doubled, nothing invented."""

import asyncio
import gc
import itertools
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sync.cloud.port import STALE_DOCUMENT, SnapshotRow, SyncAnswer
from sync.cloud.replication.replicator import BREAKER_BACKOFF, BREAKER_FAILURES
from sync.cloud.status import CloudState, RoundJson
from sync.errors import (
    CloudError,
    CloudUnavailable,
    DeviceConflict,
    DeviceForked,
    Forbidden,
    LoginRequired,
    Rejected,
    SchemaMismatch,
    StorageFull,
)
from sync.log.envelope import to_wire
from sync.runtime.change_counter import wait_for_any_change
from sync.settings.sections import SyncSettings
from tests.fake_cloud.server import FakeServer
from tests.support import BROKEN_AFTER, PASSWORD, REDACTOR, Device, FixedClock, draft, open_device

USER = "user-1"
LIVES = itertools.count()


def ids_on_server(server: FakeServer) -> list[str]:
    """The ids on the server, in its order."""
    return [event.event_id for event in server.user_logs[USER].events]


def document(content: str, through: int = 1) -> SnapshotRow:
    clean = REDACTOR.clean(content)
    return SnapshotRow(clean, sha256(clean.encode()).hexdigest(), through)


async def states(device: Device) -> list[str]:
    return [state for (state,) in await device.rows("select state from deliveries order by position")]


# --- push and pull ------------------------------------------------------------------------------------------


async def test_what_was_recorded_is_pushed_in_order_and_acknowledged(device: Device, server: FakeServer) -> None:
    ids = await device.record_notes("一", "二", "三")
    done = await device.replicator.sync_now()
    assert (done.pushed, done.quarantined) == (3, 0)
    assert ids_on_server(server) == ids
    assert await states(device) == ["acked"] * 3
    assert [event.server_seq for event in await device.events()] == [1, 2, 3]
    assert (await device.log.outbox()).pending == 0
    status = await device.replicator.status()
    assert (status.state, status.cursor.seq, status.last_error) == (CloudState.SYNCED, 3, None)


async def test_a_round_without_news_asks_once(device: Device) -> None:
    await device.replicator.sync_now()
    before = device.cloud.count("sync")
    assert await device.replicator.sync_now() == RoundJson(0, 0, 0)
    assert device.cloud.count("sync") == before + 1


async def test_what_must_not_leave_does_not(device: Device, server: FakeServer) -> None:
    await device.log.append([draft("课", kind="lesson_learned"), draft("可以")])
    await device.replicator.sync_now()
    assert [event.payload["text"] for event in server.user_logs[USER].events] == ["可以"]


async def test_a_long_backlog_goes_out_in_bounded_batches(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    options = SyncSettings(push_events=7, timeout_seconds=60)
    async with open_device(tmp_path / "a", server, clock=clock, options=options) as device:
        await device.log_in()
        ids = await device.record_notes(*(f"第 {number} 条" for number in range(50)))
        done = await device.replicator.sync_now()
    assert done.pushed == 50
    assert ids_on_server(server) == ids
    assert max(len(request.events) for request in device.cloud.requests) == 7


async def test_large_events_go_out_in_batches_bounded_by_bytes(device: Device, server: FakeServer) -> None:
    await device.record_notes(*("字" * 18_000 for _ in range(60)))
    await device.replicator.sync_now()
    assert len(ids_on_server(server)) == 60
    assert len(device.cloud.requests) >= 3


async def test_a_device_reads_what_others_wrote_value_for_value(device: Device, second: Device) -> None:
    await device.log.append(
        [draft("甲", kind="from_the_future", extra=REDACTOR.clean_payload({"new_field": {"a": [1, None, "文"]}}))]
    )
    await device.replicator.sync_now()
    assert (await second.replicator.sync_now()).pulled == 1
    (mine,), (theirs,) = await device.events(), await second.events()
    assert to_wire(theirs) == to_wire(mine)
    assert await states(second) == [], "what came from the cloud is not sent back"


async def test_what_was_pulled_twice_is_there_once(device: Device, second: Device) -> None:
    await device.record_notes("一", "二")
    await device.replicator.sync_now()
    await second.replicator.sync_now()
    await second.database.write(lambda connection: connection.exec_driver_sql("delete from cursors"))
    assert (await second.replicator.sync_now()).pulled == 0
    assert len(await second.events()) == 2


async def test_two_devices_come_to_hold_the_same_events(device: Device, second: Device) -> None:
    await asyncio.gather(
        *(one.record_notes(f"{number}") for number in range(20) for one in (device, second)),
        *(one.replicator.sync_now() for one in (device, second)),
    )
    for one in (device, second, device):
        await one.replicator.sync_now()
    mine, theirs = await device.events(), await second.events()
    assert len(mine) == 40
    assert {event.event_id: to_wire(event) for event in mine} == {event.event_id: to_wire(event) for event in theirs}
    assert {event.event_id: event.server_seq for event in mine} == {
        event.event_id: event.server_seq for event in theirs
    }


async def test_what_is_recorded_after_reading_comes_after_what_was_read(
    device: Device, second: Device, clock: FixedClock
) -> None:
    clock.advance(3600)
    await device.record_notes("先说")
    await device.replicator.sync_now()
    await second.replicator.sync_now()
    await second.record_notes("后说")
    first, then = sorted(await second.events(), key=lambda event: event.hlc)
    assert (first.payload["text"], then.payload["text"]) == ("先说", "后说")


async def test_events_of_a_former_device_id_go_out_under_that_id(device: Device, server: FakeServer) -> None:
    await device.record_notes("旧")
    device.log.device_id = "named-by-the-app"
    await device.record_notes("新")
    await device.replicator.sync_now()
    assert [event.device_id for event in server.user_logs[USER].events] == ["device-a", "named-by-the-app"]


# --- lost answers and outages -------------------------------------------------------


async def test_a_lost_answer_is_asked_for_again_and_nothing_is_doubled(device: Device, server: FakeServer) -> None:
    ids = await device.record_notes("一", "二")
    server.answers_to_lose = 1
    with pytest.raises(CloudUnavailable):
        await device.replicator.sync_now()
    assert ids_on_server(server) == ids, "it was committed"
    assert (await device.log.outbox()).pending == 2, "and nobody knows"
    await device.replicator.sync_now()
    assert ids_on_server(server) == ids
    assert await states(device) == ["acked"] * 2
    assert len(await device.events()) == 2


async def test_what_waits_survives_the_end_of_the_program(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    server.down = True
    async with open_device(tmp_path / "a", server, clock=clock) as offline:
        await offline.database.write(lambda _: None)
        ids = await offline.record_notes("一", "二", "三")
        server.down = False
        await offline.log_in()
        server.down = True
        with pytest.raises(CloudUnavailable):
            await offline.replicator.sync_now()
        assert (await offline.replicator.status()).state is CloudState.OFFLINE
        tokens = offline.tokens
    server.down = False
    async with open_device(tmp_path / "a", server, clock=clock, tokens=tokens) as again:
        await again.replicator.sync_now()
        assert again.replica_id == offline.replica_id
    assert ids_on_server(server) == ids


async def test_a_hole_in_an_answer_moves_nothing(device: Device, second: Device) -> None:
    await second.record_notes("一", "二", "三")
    await second.replicator.sync_now()

    def without_the_second(answer: SyncAnswer) -> SyncAnswer:
        return replace(answer, events=answer.events[:1] + answer.events[2:])

    device.cloud.edit_answer = without_the_second
    with pytest.raises(CloudUnavailable):
        await device.replicator.sync_now()
    assert (await device.replicator.status()).cursor.seq == 0
    assert await device.events() == []
    device.cloud.edit_answer = lambda answer: answer
    await device.replicator.sync_now()
    assert len(await device.events()) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: replace(answer, acked=(), events=(), head=0),
        lambda answer: replace(answer, events=(), head=answer.head + 5),
        lambda answer: replace(answer, reset=True, events=()),
        lambda answer: replace(answer, epoch=f"life-{next(LIVES)}"),
    ],
    ids=["never acknowledges", "promises more and gives none", "always resets", "another epoch each time"],
)
async def test_a_server_that_never_gets_done_is_not_asked_for_ever(
    device: Device, change: Callable[[SyncAnswer], SyncAnswer]
) -> None:
    await device.replicator.sync_now()
    await device.record_notes("一")
    device.cloud.edit_answer = change
    with pytest.raises(CloudUnavailable):
        await device.replicator.sync_now()
    assert device.cloud.count("sync") <= 10
    device.cloud.edit_answer = lambda answer: answer
    await device.replicator.sync_now()
    assert await states(device) == ["acked"]


async def test_an_event_that_another_program_wrote_loosely_does_not_stop_the_others(
    device: Device, server: FakeServer
) -> None:
    loose: dict[str, Any] = {"ts": "neulich, gegen Abend", "local_date": "2026-02-02"}
    await device.record_notes("一", "二", "三")
    await device.replicator.sync_now()
    strange = replace(
        server.user_logs[USER].events[0],
        event_id="strange",
        replica_id="rep_other",
        device_id="other",
        server_seq=4,
        **loose,
    )
    server.user_logs[USER].events.append(strange)
    assert (await device.replicator.sync_now()).pulled == 1
    found = {event.event_id: event for event in await device.events()}
    assert found["strange"].ts == loose["ts"]


# --- what the server refuses for good -------------------------------------------------------------------------


async def test_one_bad_event_among_ten_is_set_aside_and_nine_arrive(device: Device, server: FakeServer) -> None:
    ids = await device.record_notes(*(f"{number}" for number in range(10)))
    server.refused_event_ids = {ids[3]}
    done = await device.replicator.sync_now()
    assert done.quarantined == 1
    assert ids_on_server(server) == [event_id for event_id in ids if event_id != ids[3]]
    (refusal,) = await device.log.quarantine.list_refused()
    assert (refusal.event_id, refusal.code) == (ids[3], "22023")
    assert (await device.log.outbox()).pending == 0
    assert (await device.log.outbox()).quarantined == 1
    assert device.replicator.state is CloudState.SYNCED


async def test_the_document_goes_out_in_the_round_that_sets_one_aside(device: Device, server: FakeServer) -> None:
    ids = await device.record_notes("一", "二")
    server.refused_event_ids = {ids[1]}
    device.stored_documents.append(document("# 记忆\n", 2))
    await device.replicator.sync_now()
    assert server.user_logs[USER].documents["device-a"].content == "# 记忆\n"


@pytest.mark.parametrize("bad", [{0}, {9}, {0, 9}, {4, 5}, set(range(10))])
async def test_any_number_of_bad_events_is_found(device: Device, server: FakeServer, bad: set[int]) -> None:
    ids = await device.record_notes(*(f"{number}" for number in range(10)))
    server.refused_event_ids = {ids[number] for number in bad}
    await device.replicator.sync_now()
    assert {refusal.event_id for refusal in await device.log.quarantine.list_refused()} == server.refused_event_ids
    assert ids_on_server(server) == [ids[number] for number in range(10) if number not in bad]


async def test_the_quarantine_is_reported_to_administrators_and_so_is_its_end(
    device: Device, server: FakeServer
) -> None:
    ids = await device.record_notes("一", "二", "三")
    server.refused_event_ids = set(ids[:2])
    await device.replicator.sync_now()
    (memory,) = [memory for memory in server.user_logs.values() if memory.devices]
    told = memory.devices[device.log.device_id]
    assert told.refused == {"22023": 2}
    server.refused_event_ids = set()
    await device.log.quarantine.release(None, "pending")
    await device.replicator.sync_now()
    assert told.refused == {}


async def test_what_was_set_aside_does_not_come_back_into_the_way(device: Device, server: FakeServer) -> None:
    (bad,) = await device.record_notes("坏")
    server.refused_event_ids = {bad}
    await device.replicator.sync_now()
    before = device.cloud.count("sync")
    (good,) = await device.record_notes("好")
    await device.replicator.sync_now()
    assert ids_on_server(server) == [good]
    assert device.cloud.count("sync") <= before + 2


async def test_a_refused_document_does_not_hold_up_events(device: Device, server: FakeServer) -> None:
    ids = await device.record_notes("一", "二")
    device.stored_documents.append(replace(document("# 记忆\n"), content_sha256="0" * 64))
    for _ in range(3):
        await device.replicator.sync_now()
        assert ids_on_server(server) == ids
        assert await device.log.quarantine.list_refused() == []
        assert device.replicator.state is CloudState.SYNCED
    device.stored_documents.append(document("# 好的记忆\n"))
    await device.replicator.sync_now()
    assert server.user_logs[USER].documents["device-a"].content == "# 好的记忆\n"


async def test_a_refused_document_does_not_hold_up_reading(device: Device, second: Device) -> None:
    await second.record_notes("一")
    await second.replicator.sync_now()
    device.stored_documents.append(replace(document("# 记忆\n"), content_sha256="0" * 64))
    assert (await device.replicator.sync_now()).pulled == 1


async def test_a_document_is_sent_when_it_changed_and_only_then(device: Device) -> None:
    device.stored_documents.append(document("# 一\n"))
    for _ in range(3):
        await device.replicator.sync_now()
    device.stored_documents.append(document("# 二\n", 2))
    await device.replicator.sync_now()
    sent = [request.snapshot.content for request in device.cloud.requests if request.snapshot is not None]
    assert sent == ["# 一\n", "# 二\n"]


async def test_a_server_that_refuses_everything_fills_no_quarantine(device: Device) -> None:
    """A gateway, a broken migration or a defect here is not the fault of the pending events."""
    await device.record_notes(*(f"{number}" for number in range(10)))
    await device.replicator.sync_now()
    await device.record_notes("十")
    device.cloud.permanent_failure = Rejected("whatever it is", code="PGRST100")
    with pytest.raises(Rejected):
        await device.replicator.sync_now()
    assert (await device.log.outbox()).quarantined == 0
    assert (await device.log.outbox()).pending == 1
    assert device.replicator.state is CloudState.REFUSED
    device.cloud.permanent_failure = None
    await device.replicator.sync_now()
    assert (await device.log.outbox()).pending == 0


async def test_an_event_that_arrived_after_all_leaves_the_quarantine(device: Device, server: FakeServer) -> None:
    (bad,) = await device.record_notes("坏")
    server.refused_event_ids = {bad}
    await device.replicator.sync_now()
    (event,) = await device.events()
    server.user_logs[USER].events.append(replace(event, server_seq=1, position=0))
    await device.replicator.sync_now()
    assert await device.log.quarantine.list_refused() == []
    assert (await device.log.outbox()).quarantined == 0


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Forbidden("revoked"), CloudState.REFUSED),
        (SchemaMismatch("no function"), CloudState.REFUSED),
        (DeviceConflict("another one"), CloudState.REFUSED),
        (CloudUnavailable("no answer"), CloudState.OFFLINE),
    ],
)
async def test_whatever_the_cloud_says_no_event_is_lost_and_capture_goes_on(
    device: Device, error: CloudError, state: CloudState
) -> None:
    await device.record_notes("一")
    device.cloud.fail_next("sync", error)
    with pytest.raises(type(error)):
        await device.replicator.sync_now()
    status = await device.replicator.status()
    assert (status.state, status.last_error) == (state, error)
    await device.record_notes("二")
    assert (await device.log.outbox()).pending == 2
    await device.replicator.sync_now()
    assert (await device.replicator.status()).last_error is None
    assert (await device.log.outbox()).pending == 0


async def test_a_device_that_forks_twice_in_one_round_stops_and_says_so(device: Device) -> None:
    await device.record_notes("一")
    device.cloud.fail_next("sync", DeviceForked("a copy"), DeviceForked("still a copy"))
    with pytest.raises(DeviceForked):
        await device.replicator.sync_now()
    assert device.replicator.state is CloudState.REFUSED
    await device.replicator.sync_now()
    assert (await device.log.outbox()).pending == 0


async def test_a_caller_that_asks_often_lets_a_dead_server_rest(device: Device, clock: FixedClock) -> None:
    device.cloud.permanent_failure = CloudUnavailable("no answer")
    for _ in range(10):
        with pytest.raises(CloudUnavailable):
            await device.replicator.sync_unless_backing_off()
    assert device.cloud.count("register_device") + device.cloud.count("sync") == BREAKER_FAILURES
    device.cloud.permanent_failure = None
    clock.advance(BREAKER_BACKOFF.limit)
    assert (await device.replicator.sync_unless_backing_off()).pushed == 0
    assert device.replicator.state is CloudState.SYNCED


async def test_an_explicit_sync_runs_at_once_also_during_the_backoff(device: Device) -> None:
    device.cloud.permanent_failure = CloudUnavailable("no answer")
    for _ in range(BREAKER_FAILURES):
        with pytest.raises(CloudUnavailable):
            await device.replicator.sync_unless_backing_off()
    device.cloud.permanent_failure = None
    await device.replicator.sync_now()
    assert device.replicator.state is CloudState.SYNCED


async def test_a_device_that_an_administrator_removed_registers_again(device: Device, server: FakeServer) -> None:
    await device.replicator.sync_now()
    server.user_logs[USER].devices.clear()
    await device.record_notes("一")
    with pytest.raises(Forbidden):
        await device.replicator.sync_now()
    await device.replicator.sync_now()
    assert len(ids_on_server(server)) == 1


# --- logins ---------------------------------------------------------------------------------------------------


async def test_a_guests_events_go_to_the_first_account_with_their_ids(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    async with open_device(tmp_path / "a", server, clock=clock) as device:
        ids = await device.record_notes("客人说的")
        with pytest.raises(LoginRequired):
            await device.replicator.sync_now()
        assert device.replicator.state is CloudState.SIGNED_OUT
        assert device.cloud.calls == []
        await device.log_in()
        await device.replicator.sync_now()
    assert ids_on_server(server) == ids


async def test_a_different_user_gets_nothing_of_it(device: Device, server: FakeServer) -> None:
    other = server.add_user("other@example.com", PASSWORD)
    await device.record_notes("只给我")
    with pytest.raises(CloudError):
        await device.log_in("other@example.com", PASSWORD)
    await device.replicator.sync_now()
    assert server.user_logs[other].events == []
    assert len(ids_on_server(server)) == 1


async def test_a_token_that_expires_on_the_way_is_refreshed_once_and_the_call_repeated(
    device: Device, server: FakeServer
) -> None:
    await device.replicator.sync_now()
    ids = await device.record_notes("一", "二")
    server.accounts.expire_tokens()
    await device.replicator.sync_now()
    assert device.cloud.count("refresh") == 1
    assert ids_on_server(server) == ids


async def test_a_token_that_is_refused_at_the_registration_is_refreshed_as_well(
    device: Device, server: FakeServer
) -> None:
    """The first call after a start on a machine whose clock is slow."""
    ids = await device.record_notes("一")
    server.accounts.expire_tokens()
    await device.replicator.sync_now()
    assert device.cloud.count("refresh") == 1
    assert ids_on_server(server) == ids


async def test_a_revoked_session_asks_for_a_login_and_capture_goes_on(device: Device, server: FakeServer) -> None:
    await device.replicator.sync_now()
    server.accounts.revoke_sessions()
    await device.record_notes("一")
    for _ in range(3):
        with pytest.raises(LoginRequired):
            await device.replicator.sync_now()
    assert device.replicator.state is CloudState.SIGNED_OUT
    assert device.cloud.count("refresh") == 1
    ids = [*(await device.event_ids()), *(await device.record_notes("二"))]
    await device.log_in()
    await device.replicator.sync_now()
    assert set(ids_on_server(server)) == set(ids)


async def test_a_round_that_outlives_its_login_does_not_answer_later_callers(device: Device) -> None:
    await device.replicator.sync_now()
    device.cloud.pause_calls()
    asked = asyncio.create_task(device.replicator.sync_now())
    await device.cloud.wait_for_call()
    leaving = asyncio.create_task(device.account.log_out())
    for _ in iter(lambda: device.account.is_logged_in, False):
        await asyncio.sleep(0)
    device.cloud.gate.set()
    with pytest.raises(LoginRequired):
        await asked
    await leaving
    assert device.replicator.state is CloudState.SIGNED_OUT


# --- several callers, one round -------------------------------------------------------------------------------


async def test_callers_at_the_same_time_share_one_round(device: Device) -> None:
    await device.record_notes("一")
    device.cloud.pause_calls()
    calls = [asyncio.create_task(device.replicator.sync_now()) for _ in range(10)]
    await device.cloud.wait_for_call()
    device.cloud.gate.set()
    rounds = await asyncio.gather(*calls)
    assert len({id(done) for done in rounds}) == 1
    assert device.cloud.count("register_device") == 1


async def test_a_cancelled_caller_does_not_cancel_the_round(device: Device, server: FakeServer) -> None:
    ids = await device.record_notes("一")
    device.cloud.pause_calls()
    leaving = asyncio.create_task(device.replicator.sync_now())
    staying = asyncio.create_task(device.replicator.sync_now())
    await device.cloud.wait_for_call()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    device.cloud.gate.set()
    assert (await staying).pushed == 1
    assert ids_on_server(server) == ids


async def test_a_failure_after_its_caller_has_gone_is_not_logged_as_unhandled(
    device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    device.cloud.pause_calls()
    leaving = asyncio.create_task(device.replicator.sync_now())
    await device.cloud.wait_for_call()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    del leaving
    device.cloud.fail_next("register_device", CloudUnavailable("no answer"))
    device.cloud.gate.set()
    assert await wait_for_any_change(BROKEN_AFTER, (device.replicator.state_changed, 0))
    device.replicator._round = None
    gc.collect()
    await asyncio.sleep(0)
    assert "never retrieved" not in caplog.text


async def test_stopping_in_the_middle_loses_nothing(device: Device, server: FakeServer) -> None:
    ids = await device.record_notes("一")
    device.cloud.pause_calls()
    waiting = asyncio.create_task(device.replicator.sync_now())
    await device.cloud.wait_for_call()
    await device.replicator.stop()
    assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], asyncio.CancelledError)
    device.cloud.gate.set()
    await device.replicator.sync_now()
    assert ids_on_server(server) == ids


async def test_an_answer_that_the_disk_has_no_room_for_moves_nothing(device: Device, second: Device) -> None:
    await second.record_notes("很长" * 8000)
    await second.replicator.sync_now()
    await device.replicator.sync_now()
    await second.record_notes("很长" * 8000)
    await second.replicator.sync_now()
    cursor = (await device.replicator.status()).cursor

    def full(connection: Any) -> None:
        pages = connection.exec_driver_sql("pragma page_count").scalar_one()
        connection.exec_driver_sql(f"pragma max_page_count = {pages}")

    await device.database.write(full)
    with pytest.raises(StorageFull):
        await device.replicator.sync_now()
    assert (await device.replicator.status()).cursor == cursor
    await device.database.write(lambda connection: connection.exec_driver_sql("pragma max_page_count = 1000000"))
    assert (await device.replicator.sync_now()).pulled == 1


async def test_followers_are_woken_by_what_comes_and_not_by_what_does_not(device: Device, second: Device) -> None:
    await device.replicator.sync_now()
    seen = device.log.changed.count
    await device.replicator.sync_now()
    assert device.log.changed.count == seen
    await second.record_notes("一")
    await second.replicator.sync_now()
    await device.replicator.sync_now()
    assert device.log.changed.count == seen + 1


async def test_what_another_program_wrote_is_taken_in_before_ours_goes_over_it(
    device: Device, server: FakeServer
) -> None:
    device.stored_documents.append(document("# 一\n"))
    await device.replicator.sync_now()
    server.write_document(USER, "device-a", "# 别的程序\n")
    await device.replicator.sync_now()
    assert device.foreign_documents == ["# 别的程序\n"]
    assert server.user_logs[USER].documents["device-a"].content == "# 一\n"
    calls = len(device.cloud.calls)
    await device.replicator.sync_now()
    assert (device.foreign_documents, device.cloud.calls[calls:]) == (["# 别的程序\n"], ["sync"])


async def test_what_it_writes_between_our_look_and_our_write_is_taken_in_as_well(
    device: Device, server: FakeServer
) -> None:
    device.stored_documents.append(document("# 一\n"))
    server.write_document(USER, "device-a", "# 先\n")
    later = ["# 后\n"]

    def meanwhile(answer: SyncAnswer) -> SyncAnswer:
        if device.foreign_documents and later:
            server.write_document(USER, "device-a", later.pop())
        return answer

    device.cloud.edit_answer = meanwhile
    for _ in range(3):
        await device.replicator.sync_now()
    assert device.foreign_documents == ["# 先\n", "# 后\n"]
    assert server.user_logs[USER].documents["device-a"].content == "# 一\n"


async def test_a_foreign_document_stays_as_long_as_ours_cannot_replace_it(device: Device, server: FakeServer) -> None:
    server.write_document(USER, "device-a", "# 别的程序\n")
    for _ in range(2):
        await device.record_notes("一")
        await device.replicator.sync_now()
    assert server.user_logs[USER].documents["device-a"].content == "# 别的程序\n"
    assert (await device.log.outbox()).pending == 0


async def test_a_document_that_changes_without_an_event_goes_over_the_one_it_was(
    device: Device, server: FakeServer
) -> None:
    """Such as one that loses an erased line of another device."""
    for content in ("# 一二\n", "# 一\n", "# 一三\n"):
        device.stored_documents.append(document(content, 1))
        await device.replicator.sync_now()
        assert server.user_logs[USER].documents["device-a"].content == content
    assert "read_document" not in device.cloud.calls
    assert device.foreign_documents == []


async def test_after_a_restart_it_reads_the_stored_document_and_replaces_it(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    for content in ("# 一二\n", "# 一\n"):
        async with open_device(tmp_path / "a", server, clock=clock) as device:
            await device.log_in()
            device.stored_documents.append(document(content, 1))
            await device.replicator.sync_now()
            assert server.user_logs[USER].documents["device-a"].content == content
            assert device.foreign_documents == []
    assert device.cloud.count("read_document") == 1


async def test_what_another_program_writes_before_that_look_is_taken_in(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    def meanwhile(answer: SyncAnswer) -> SyncAnswer:
        if answer.snapshot == STALE_DOCUMENT:
            server.write_document(USER, "device-a", "# 别的程序\n")
        return answer

    for content in ("# 一二\n", "# 一\n"):
        async with open_device(tmp_path / "a", server, clock=clock) as device:
            await device.log_in()
            device.cloud.edit_answer = meanwhile
            device.stored_documents.append(document(content, 1))
            await device.replicator.sync_now()
    assert device.foreign_documents == ["# 别的程序\n"]
    assert server.user_logs[USER].documents["device-a"].content == "# 一\n"


async def test_an_older_server_that_keeps_the_document_is_not_asked_again(device: Device) -> None:
    device.cloud.edit_answer = lambda answer: replace(answer, snapshot=answer.snapshot and "kept")
    device.stored_documents.append(document("# 一\n", 1))
    for _ in range(3):
        await device.replicator.sync_now()
    assert [request.snapshot is not None for request in device.cloud.requests] == [True, False, False]
    assert "read_document" not in device.cloud.calls
