"""Restored backups of the server and of a device: each gets back from the other what it lost."""

import shutil
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from sync.cloud.port import SyncAnswer
from sync.errors import CloudUnavailable, DeviceConflict
from sync.log.envelope import to_wire
from tests.fake_cloud.server import LIVE_SECONDS, FakeServer
from tests.support import Device, FakeSessionStorage, FixedClock, draft, event, open_device

USER = "user-1"


def ids_on_server(server: FakeServer) -> list[str]:
    return [found.event_id for found in server.user_logs[USER].events]


async def in_step(device: Device, server: FakeServer) -> bool:
    """The device has the server's numbers, and nothing is pending."""
    numbers = {found.event_id: found.server_seq for found in await device.events()}
    there = {found.event_id: found.server_seq for found in server.user_logs[USER].events}
    cursor = (await device.replicator.status()).cursor
    return numbers == there and (await device.log.outbox()).pending == 0 and cursor.seq == cursor.head == len(there)


async def in_their_places(device: Device, server: FakeServer) -> bool:
    """All events of the server are here, with the server's numbers."""
    numbers = {found.event_id: found.server_seq for found in await device.events() if found.server_seq}
    return numbers == {found.event_id: found.server_seq for found in server.user_logs[USER].events}


async def sends_from(
    folder: Path, server: FakeServer, clock: FixedClock, *said: str, tokens: FakeSessionStorage | None = None
) -> FakeSessionStorage:
    """Open a home, record events and send them; its tokens. Without tokens it logs in first."""
    async with open_device(folder, server, clock=clock, tokens=tokens) as device:
        if tokens is None:
            await device.log_in()
        await device.record_notes(*said)
        await device.replicator.sync_now()
        return device.tokens


@pytest.mark.parametrize("epoch", [None, "another-life"], ids=["same epoch", "another epoch"])
@pytest.mark.parametrize("keep", [0, 2, 4])
async def test_what_a_restored_server_forgot_is_pushed_again(
    device: Device, server: FakeServer, keep: int, epoch: str | None
) -> None:
    ids = await device.record_notes("一", "二", "三", "四", "五")
    await device.replicator.sync_now()
    server.restore(USER, keep, epoch=epoch)
    later = await device.record_notes("六")
    await device.replicator.sync_now()
    assert set(ids_on_server(server)) == {*ids, *later}
    assert len(ids_on_server(server)) == 6
    await device.replicator.sync_now()
    assert await in_step(device, server)
    assert len(await device.events()) == 6


async def test_what_a_restored_server_gets_again_says_nothing_that_was_forgotten_since(
    device: Device, second: Device, server: FakeServer
) -> None:
    (told,) = await device.record_notes("秘密")
    for one in (device, second):
        await one.replicator.sync_now()
    await second.log.append([second.intake.build_erasure([told])])
    await second.replicator.sync_now()
    server.restore(USER, 0)
    for one in (second, device):  # the request is stored first; the event that it names comes from the other device
        await one.replicator.sync_now()
    assert set(ids_on_server(server)) == await device.event_ids()
    assert [found.payload for found in server.user_logs[USER].events if found.event_id == told] == [{}]


async def test_a_server_refilled_past_our_cursor_is_noticed(device: Device, second: Device, server: FakeServer) -> None:
    mine = await device.record_notes("一", "二", "三")
    await device.replicator.sync_now()
    server.restore(USER, 1)
    theirs = await second.record_notes(*(f"{number}" for number in range(8)))
    await second.replicator.sync_now()
    assert len(ids_on_server(server)) == 9
    await device.replicator.sync_now()
    assert set(ids_on_server(server)) == {*mine, *theirs}
    assert await device.event_ids() == {*mine, *theirs}
    for one in (second, device):
        await one.replicator.sync_now()
        assert await in_step(one, server)


async def test_the_same_event_under_the_same_number_of_a_refilled_server_is_noticed(
    device: Device, second: Device, server: FakeServer, clock: FixedClock
) -> None:
    """Both cursors are at 四. The server loses everything and gets 四 again as its fourth event."""
    theirs = await second.record_notes("一", "二", "三")
    await second.replicator.sync_now()
    mine = await device.record_notes("四")
    await device.replicator.sync_now()
    await second.replicator.sync_now()
    server.restore(USER, 0)
    clock.advance(60.0)
    later = await device.record_notes("五", "六", "七")
    await device.replicator.sync_now()
    assert ids_on_server(server) == [*later, *mine]
    await second.replicator.sync_now()
    assert set(ids_on_server(server)) == {*theirs, *mine, *later}
    for one in (device, second):
        await one.replicator.sync_now()
        assert await in_step(one, server)


async def test_a_reset_keeps_what_has_never_been_sent(device: Device, server: FakeServer) -> None:
    first = await device.record_notes("一")
    await device.replicator.sync_now()
    server.down = True
    waiting = await device.record_notes("二", "三")
    server.restore(USER, 0, epoch="another-life")
    server.down = False
    await device.replicator.sync_now()
    assert set(ids_on_server(server)) == {*first, *waiting}
    assert len(ids_on_server(server)) == 3


async def test_an_empty_server_never_empties_the_device(device: Device, second: Device, server: FakeServer) -> None:
    await device.record_notes("一", "二")
    await device.replicator.sync_now()
    await second.replicator.sync_now()
    server.restore(USER, 0, epoch="another-life")
    for _ in range(2):
        for one in (second, device):
            await one.replicator.sync_now()
    assert len(await second.events()) == len(await device.events()) == len(ids_on_server(server)) == 2


async def test_a_refetch_that_was_interrupted_goes_on(device: Device, second: Device, server: FakeServer) -> None:
    ids = await second.record_notes(*(f"{number}" for number in range(12)))
    await second.replicator.sync_now()
    own = await device.record_notes("我的")
    await device.replicator.sync_now()
    server.restore(USER, 10, epoch="another-life")
    pages = 0

    def short_pages(limit: int = 3) -> None:
        nonlocal pages
        real = device.cloud.inner.sync

        async def sync(session: object, request: object) -> object:
            nonlocal pages
            pages += 1
            if pages == 3:
                raise ConnectionError("the program dies here")
            return await real(session, replace(request, limit=limit))  # type: ignore[arg-type,type-var]

        device.cloud.inner.sync = sync  # type: ignore[method-assign,assignment]

    short_pages()
    with pytest.raises(ConnectionError):
        await device.replicator.sync_now()
    await device.replicator.sync_now()
    assert set(own) <= set(ids_on_server(server)), "the device pushed again what the server forgot"
    assert set(ids[:10]) <= await device.event_ids()


async def test_a_device_restored_from_a_backup_does_not_write_over_its_own_numbers(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    tokens = await sends_from(tmp_path / "a", server, clock, "一")
    shutil.copytree(tmp_path / "a", tmp_path / "backup")
    await sends_from(tmp_path / "a", server, clock, "二", "三", tokens=tokens)
    async with open_device(tmp_path / "backup", server, clock=clock, tokens=tokens) as restored:
        await restored.replicator.sync_now()
        assert len(await restored.events()) == 3, "the cloud gives back what the backup lacks"
        (four,) = await restored.record_notes("四")
        await restored.replicator.sync_now()
        assert four in ids_on_server(server)
        numbers = {(found.replica_id, found.replica_seq) for found in await restored.events()}
        assert len(numbers) == 4


async def test_what_came_back_to_a_restored_device_is_sent_again_by_it_when_the_server_forgets_it(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    async with open_device(tmp_path / "a", server, clock=clock) as before:
        await before.log_in()
        tokens = before.tokens
    shutil.copytree(tmp_path / "a", tmp_path / "backup")
    async with open_device(tmp_path / "a", server, clock=clock, tokens=tokens) as lost:
        await lost.replicator.sync_now()
        ids = await lost.record_notes("一", "二")
        await lost.replicator.sync_now()
    async with open_device(tmp_path / "backup", server, clock=clock, tokens=tokens) as restored:
        await restored.replicator.sync_now()
        assert await restored.log.find_problems() == []
        server.restore(USER, 0)
        await restored.replicator.sync_now()
        assert set(ids) <= set(ids_on_server(server))


async def test_a_number_acknowledged_ahead_of_the_cursor_does_not_outlive_the_server_that_gave_it(
    device: Device, second: Device, server: FakeServer
) -> None:
    """The parts of a split batch are acknowledged one by one; the following pull is lost."""
    known = await device.record_notes("零")
    await device.replicator.sync_now()  # caught up once: from now on only such a number makes it look again
    bad, good = await device.record_notes("一", "二")
    server.refused_event_ids.add(bad)
    answers = count(1)

    def third_is_lost(answer: SyncAnswer) -> SyncAnswer:
        if next(answers) == 3:
            raise CloudUnavailable("lost")
        return answer

    device.cloud.edit_answer = third_is_lost
    with pytest.raises(CloudUnavailable):
        await device.replicator.sync_now()
    assert ids_on_server(server) == [*known, good]
    server.restore(USER, 1)
    theirs = await second.record_notes("三")
    await second.replicator.sync_now()
    await device.replicator.sync_now()
    assert set(ids_on_server(server)) == {*known, good, *theirs}


async def test_a_restored_device_that_went_on_by_itself_becomes_a_new_replica_and_loses_nothing(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    async with open_device(tmp_path / "a", server, clock=clock) as before:
        await before.log_in()
        await before.record_notes("一")
        await before.replicator.sync_now()
        tokens = before.tokens
    shutil.copytree(tmp_path / "a", tmp_path / "backup")
    async with open_device(tmp_path / "a", server, clock=clock, tokens=tokens) as lost:
        (two,) = await lost.record_notes("二")
        await lost.replicator.sync_now()
        old = lost.replicator.replica_id
    async with open_device(tmp_path / "backup", server, clock=clock, tokens=tokens) as restored:
        ids = await restored.record_notes("另一个二") + await restored.record_notes("三")
        await restored.replicator.sync_now()
        assert restored.replicator.replica_id != old
        assert set(ids) | {two} <= set(ids_on_server(server))
        assert {two, *ids} <= set(await restored.event_ids())
        assert (await restored.log.outbox()).pending == 0
        assert await restored.log.find_problems() == []
    async with open_device(tmp_path / "backup", server, clock=clock, tokens=tokens) as later:
        (four,) = await later.record_notes("四")
        await later.replicator.sync_now()
        assert four in ids_on_server(server)
        assert len(ids_on_server(server)) == len(set(ids_on_server(server))) == 5


async def test_a_device_restored_from_two_backups_of_one_number_takes_everything_in(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    """A restored home renumbers an event that the server has under another number."""
    tokens = await sends_from(tmp_path / "a", server, clock, "一")
    shutil.copytree(tmp_path / "a", tmp_path / "first")
    await sends_from(tmp_path / "a", server, clock, "二", tokens=tokens)
    async with open_device(tmp_path / "first", server, clock=clock, tokens=tokens) as restored:
        await restored.record_notes("三")
        shutil.copytree(tmp_path / "first", tmp_path / "second")
        await restored.replicator.sync_now()
    clock.advance(LIVE_SECONDS + 1)
    async with open_device(tmp_path / "second", server, clock=clock, tokens=tokens) as again:
        await again.replicator.sync_now()
        assert await in_their_places(again, server)
        assert await again.log.find_problems() == []
        there = {event.event_id: event.replica_key for event in server.user_logs[USER].events}
        assert {event.event_id: event.replica_key for event in await again.events()} == there


async def test_an_event_from_elsewhere_under_a_number_of_ours_makes_us_a_new_replica(
    device: Device, server: FakeServer
) -> None:
    """Number one was not sent from here, and a clone of this database has sent its own number one."""
    await device.replicator.sync_now()
    (lesson,) = await device.log.append([draft("课", kind="lesson_learned")])
    clash = event(1, replica=device.replica_id, device="device-c", server_seq=1, server_ts="2026-02-02T10:00:00.000Z")
    server.user_logs[USER].events.append(clash)
    await device.replicator.sync_now()
    assert {clash.event_id, lesson.event.event_id} <= set(await device.event_ids())
    assert (await device.replicator.status()).cursor.seq == 1
    assert await device.log.find_problems() == []


async def test_events_under_a_former_replica_s_numbers_do_not_cause_endless_forks(
    device: Device, server: FakeServer
) -> None:
    """A restored server has lost the event, and a copy of this device has used its number since."""
    (one,) = await device.record_notes("一")
    await device.replicator.sync_now()
    (was,) = [found for found in server.user_logs[USER].events if found.event_id == one]

    def copy_says(number: int) -> None:
        seq = len(server.user_logs[USER].events) + 1
        said = event(number, replica=was.replica_id, device="device-c", server_seq=seq, server_ts=was.server_ts)
        server.user_logs[USER].events.append(said)

    copy_says(was.replica_seq + 1)
    await device.record_notes("二")
    await device.replicator.sync_now()
    assert device.replicator.replica_id != was.replica_id
    server.restore(USER, 0)
    answers = count(1)

    def copy_is_first(answer: SyncAnswer) -> SyncAnswer:
        if next(answers) == 2:  # this device has caught up and is about to send the lost events again
            copy_says(was.replica_seq)
        return answer

    device.cloud.edit_answer = copy_is_first
    await device.replicator.sync_now()
    assert next(answers) > 2
    assert one in ids_on_server(server)
    assert await device.log.find_problems() == []
    assert set(ids_on_server(server)) <= set(await device.event_ids())


async def test_copies_of_a_home_whose_numbers_never_meet_become_two_replicas(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    """One machine has sent the number after the next; the copy sends the next one, recorded later."""
    async with open_device(tmp_path / "a", server, clock=clock) as before:
        await before.log_in()
        await before.replicator.sync_now()
        tokens = before.tokens
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    async with (
        open_device(tmp_path / "a", server, clock=clock, tokens=tokens) as first,
        open_device(tmp_path / "copy", server, device_id="device-c", clock=clock, tokens=tokens) as copy,
    ):
        await first.log.append([draft("课", kind="lesson_learned")])
        ids = await first.record_notes("一")
        clock.advance(60)
        ids += await copy.record_notes("二")
        for one in (first, copy, first):
            await one.replicator.sync_now()
        assert first.replicator.replica_id != copy.replicator.replica_id
        assert ids_on_server(server) == ids
        for one in (first, copy):
            assert set(ids) <= await one.event_ids()
            assert await one.log.find_problems() == []


async def test_a_copy_is_not_held_up_by_what_bears_the_id_of_the_original_which_is_alive(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    async with open_device(tmp_path / "a", server, clock=clock) as before:
        await before.log_in()
        await before.replicator.sync_now()
        tokens = before.tokens
        unsent = await before.record_notes("一")
    (tmp_path / "a").rename(tmp_path / "copy")
    clock.advance(LIVE_SECONDS + 1)
    async with (
        open_device(tmp_path / "a", server, clock=clock) as anew,
        open_device(tmp_path / "copy", server, device_id="device-c", clock=clock, tokens=tokens) as copy,
    ):
        await anew.log_in()
        theirs = await anew.record_notes("二")
        await anew.replicator.sync_now()
        own = await copy.record_notes("三")
        with pytest.raises(DeviceConflict):
            await copy.replicator.sync_now()
        assert {*theirs, *own} <= set(ids_on_server(server))
        assert await in_their_places(copy, server)
        clock.advance(LIVE_SECONDS + 1)
        await copy.replicator.sync_now()
        assert {*theirs, *own, *unsent} <= set(ids_on_server(server))
        assert (await copy.log.outbox()).pending == 0


async def test_two_live_installations_of_one_device_conflict_and_take_turns_when_one_falls_silent(
    tmp_path: Path, device: Device, server: FakeServer, clock: FixedClock
) -> None:
    await device.record_notes("一")
    await device.replicator.sync_now()
    async with open_device(tmp_path / "twin", server, clock=clock) as twin:
        await twin.log_in()
        ids = await twin.record_notes("二")
        with pytest.raises(DeviceConflict):
            await twin.replicator.sync_now()
        assert (await twin.log.outbox()).pending == 1
        clock.advance(LIVE_SECONDS + 1)
        await twin.replicator.sync_now()
        assert set(ids) <= set(ids_on_server(server))
        assert {to_wire(found)["event_id"] for found in await twin.events()} == set(ids_on_server(server))
