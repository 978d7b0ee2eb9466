"""Devices find each other by multicast DNS on the loopback interface; a stranger's announcements are bounded."""

import asyncio
import socket
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest
from zeroconf import DNSOutgoing, DNSPointer, IPVersion  # type: ignore[attr-defined]
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from sync.lan.discovery.beacon import MAX_CANDIDATES, DiscoveryIds, announcement
from sync.lan.discovery.browser import MAX_NAMES, MAX_RESOLVING, NO_ANSWER, Discovery
from sync.runtime.change_counter import ChangeCounter
from tests.integration.lan.nodes import Node, nodes, until, until_async
from tests.support import LoopClock, background_task, draft, new_server

RESPONSE, PTR, INTERNET = 0x8400, 12, 1  # of multicast DNS
SILENT = 8  # a port at which nobody answers
SEEDS = count(1)


@pytest.fixture
async def stranger() -> AsyncIterator[AsyncZeroconf]:
    announcing = AsyncZeroconf(interfaces=["127.0.0.1"], ip_version=IPVersion.V4Only)
    yield announcing
    await announcing.async_unregister_all_services()
    await announcing.async_close()


def fake_peer(
    seen: Discovery, number: int, properties: dict[str, str] | None = None, *, port: int = 9
) -> AsyncServiceInfo:
    service_type = seen._name.partition(".")[2]
    return AsyncServiceInfo(
        service_type,
        f"{number:016x}.{service_type}",
        addresses=[socket.inet_aton("127.0.0.1")],
        port=port,
        properties=properties or {"v": "1", "h": f"fake{number}"},
        server=f"{number:016x}.local.",
    )


def discovery(account: str, dialed: list[tuple[str, int]], *, only_address: str = "127.0.0.1") -> Discovery:
    async def read_ids() -> DiscoveryIds:
        return DiscoveryIds(account, frozenset({account}))

    async def dial(host: str, port: int) -> bool:
        dialed.append((host, port))
        if port == SILENT:
            await asyncio.Event().wait()
        return True

    clock = LoopClock(seed=next(SEEDS))
    return Discovery(read_ids, dial, ChangeCounter(), clock, only_address=only_address)


async def test_two_devices_of_one_account_find_each_other_and_get_level(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", account=str(uuid4())) as (a, b):
        await a.device.record_notes("甲")
        await until(lambda: a.service.peers() and b.service.peers())
        await until_async(lambda: _has_text(b, "甲"), b.device.log.changed)
        assert a.service.candidate_count() == b.service.candidate_count() == 1
        assert [(one.address, one.problem) for one in a.service.interfaces()] == [("127.0.0.1", None)]


@pytest.mark.proof
async def test_eight_devices_that_find_each_other_have_everything_once(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), *"abcdefgh", account=str(uuid4())) as eight:
        for node in eight:
            await node.device.log.append([draft(f"{node.port} 的第 {number} 条") for number in range(500)])
        await until(lambda: all(len(node.service.peers()) == 7 for node in eight))
        for node in eight:
            await until_async(lambda: _has_all(node, 4_000), node.device.log.changed)  # noqa: B023 - called at once
        await until(lambda: all(peer.level for node in eight for peer in node.service.peers()))
        causes = {cause for node in eight for cause in node.causes()}
        assert causes <= {"too_many_connections"}, "all nodes have one address"


async def _has_all(node: Node, count: int) -> bool:
    rows = await node.device.rows("select count(*), count(distinct event_id) from events")
    return rows == [(count, count)]


async def _has_text(node: Node, text: str) -> bool:
    return text in await node.texts()


async def test_a_lost_connection_is_made_again_by_discovery(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", account=str(uuid4())) as (a, b):
        await until(lambda: a.service.peers() and b.service.peers())
        first = a.service._active[b.public_key]
        first.channel.abort()
        await until(lambda: _is_new_connection(a, b, first))


def _is_new_connection(a: Node, b: Node, first: object) -> bool:
    now = a.service._active.get(b.public_key)
    return now is not None and now is not first


async def test_a_guest_announces_nothing(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a") as (a,):
        await until(lambda: a.service._discovery is not None)
        assert a.service.interfaces() == ()


async def test_devices_of_two_accounts_do_not_call_each_other() -> None:
    calls: list[tuple[str, int]] = []
    one, other, third = discovery("user-1", calls), discovery("user-2", calls), discovery("user-3", calls)
    with background_task(one.run(1)), background_task(other.run(2)), background_task(third.run(3)):
        await until(lambda: one._interfaces and other._interfaces)
        states = [state for found in (one, other) for state in found._interfaces.values()]
        await until(lambda: all(len(state.names) >= 2 for state in states))
        assert one.candidate_count == other.candidate_count == 0
        assert calls == []


async def test_a_flood_of_a_thousand_fake_peers_is_bounded(stranger: AsyncZeroconf) -> None:
    calls: list[tuple[str, int]] = []
    seen = discovery(str(uuid4()), calls)
    with background_task(seen.run(1)) as running:
        await until(lambda: seen.problems() == {"127.0.0.1": None})
        (state,) = seen._interfaces.values()
        fakes = [fake_peer(seen, number) for number in range(1_000)]
        sends = [stranger.async_register_service(one, cooperating_responders=True) for one in fakes]
        await asyncio.gather(*sends)
        await until(lambda: seen.problems() == {"127.0.0.1": "too many announcements on this network"})
        assert calls == []
        assert len(seen._resolving) <= MAX_RESOLVING
        assert len(state.names) <= MAX_NAMES + 1
        assert state.zeroconf is None, "its cache is dropped"
        assert not running.done()


async def test_fake_peers_with_the_accounts_mark_delay_no_device(stranger: AsyncZeroconf) -> None:
    account, calls = str(uuid4()), list[tuple[str, int]]()
    seen, real = discovery(account, calls), discovery(account, [])
    with background_task(seen.run(1)):
        await until(lambda: seen.problems() == {"127.0.0.1": None})
        mark = announcement(account, seen._clock.now())
        fakes = [fake_peer(seen, number, mark, port=SILENT) for number in range(MAX_CANDIDATES - 1)]
        await asyncio.gather(*(stranger.async_register_service(one, cooperating_responders=True) for one in fakes))
        await until(lambda: calls.count(("127.0.0.1", SILENT)) == len(fakes))
        with background_task(real.run(2)):
            await until(lambda: ("127.0.0.1", 2) in calls)
    assert len(calls) == MAX_CANDIDATES


async def test_an_announcement_of_this_devices_own_port_is_not_tried(stranger: AsyncZeroconf) -> None:
    account, calls = str(uuid4()), list[tuple[str, int]]()
    seen = discovery(account, calls)
    with background_task(seen.run(1)):
        await until(lambda: seen.problems() == {"127.0.0.1": None})
        mark = announcement(account, seen._clock.now())
        for number, port in enumerate((1, 2)):
            await stranger.async_register_service(fake_peer(seen, number, mark, port=port), cooperating_responders=True)
        await until(lambda: calls)
    assert calls == [("127.0.0.1", 2)]


async def test_an_announcement_with_a_name_that_is_none_hides_no_device_and_is_not_logged(
    stranger: AsyncZeroconf, caplog: pytest.LogCaptureFixture
) -> None:
    account, calls = str(uuid4()), list[tuple[str, int]]()
    seen = discovery(account, calls)
    with background_task(seen.run(1)):
        await until(lambda: seen.problems() == {"127.0.0.1": None})
        (state,) = seen._interfaces.values()
        service_type = seen._name.partition(".")[2]
        hostile = {"x._http._tcp.local.", "x" * 62 + "é." + service_type, "\x07." + service_type}
        packet = DNSOutgoing(RESPONSE)
        for name in hostile:
            packet.add_answer_at_time(DNSPointer(service_type, PTR, INTERNET, 120, name), 0.0)
        stranger.zeroconf.async_send(packet)
        await until(lambda: hostile & state.names)
        mark = announcement(account, seen._clock.now())
        await stranger.async_register_service(fake_peer(seen, 1, mark, port=2), cooperating_responders=True)
        await until(lambda: calls)
    assert calls == [("127.0.0.1", 2)]
    assert caplog.records == []


async def test_an_address_without_multicast_is_shown_and_disturbs_nothing() -> None:
    found = discovery(str(uuid4()), [], only_address="192.0.2.77")
    with background_task(found.run(1)) as running:
        await until(lambda: found.problems().get("192.0.2.77"))
        assert "no multicast" in (found.problems()["192.0.2.77"] or "")
        assert not running.done()


async def test_a_machine_that_does_not_hear_its_own_announcement_says_so() -> None:
    seen = discovery(str(uuid4()), [])
    with background_task(seen.run(1)):
        await until(lambda: seen.problems() == {"127.0.0.1": None})
        await seen.probe()
        assert seen.problems() == {"127.0.0.1": None}
        (state,) = seen._interfaces.values()
        assert state.zeroconf is not None
        await state.zeroconf.async_unregister_all_services()
        await seen.probe()
        assert seen.problems() == {"127.0.0.1": NO_ANSWER}
        assert state.info is not None
        await state.zeroconf.async_register_service(state.info, cooperating_responders=True)
        await seen.probe()
        assert seen.problems() == {"127.0.0.1": None}
