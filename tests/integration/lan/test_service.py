"""Devices on 127.0.0.1 with real sockets and TLS: what travels, and who is refused."""

import asyncio
import socket
import ssl
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from sync.errors import InvalidInput, LanOff, PeerRefused, PeerUnreachable
from sync.lan import service
from sync.lan.exchange import PeerExchange
from sync.lan.pairing.code import Invitation
from sync.lan.protocol import frames
from sync.lan.protocol.frames import Hello
from sync.lan.transport.certificates import tls_context
from sync.lan.transport.channel import BUFFER_BYTES, Deadlines, PeerChannel, accept_tls, connect_tls, connection_failure
from sync.lan.transport.listener import MAX_CONNECTIONS, MAX_PLACES_PER_ADDRESS, is_listening_at, open_listener
from sync.lan.transport.tls_contexts import pairing_context
from sync.runtime.backoff import Backoff
from tests.integration.lan.nodes import HASTY, Node, bare_connection, free_port, nodes, refused_silently, until
from tests.integration.lan.nodes import until_async as eventually
from tests.integration.lan.test_authors import insert
from tests.support import background_task, device_key_in, draft, event, new_server

GREETING = Hello(frames.PROTOCOL_VERSION, "device-b", "书房", "1")


async def level(*all_nodes: Node) -> None:
    counters = [node.device.log.changed for node in all_nodes]

    async def same() -> bool:
        texts = [await node.texts() for node in all_nodes]
        return all(of == texts[0] for of in texts)

    await eventually(same, *counters)


async def drained(node: Node, cause: str) -> None:
    await until(lambda: cause in node.causes(), node.service.changed)


async def test_events_travel_both_ways_over_one_connection(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await a.device.record_notes("甲")
        await b.device.record_notes("乙")
        peer = await a.connect(b)
        assert (peer.device_id, peer.name, peer.direction) == ("device-b", "name of device-b", "outgoing")
        await level(a, b)
        assert await b.texts() == ["乙", "甲"]
        await b.device.record_notes("后来")
        await level(a, b)
        assert "后来" in await a.texts()
        await until(lambda: all(node.service.peers()[0].level for node in (a, b)))
        assert [peer.device_id for peer in b.service.peers()] == ["device-a"]


async def test_an_ipv4_address_is_shown_as_one_also_by_a_socket_for_both_versions(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", listens_at="") as (a, b):
        with bare_connection(b) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            await drained(b, "tls_failed")
        await a.connect(b)
        await until(b.service.peers, b.service.changed)
        assert [peer.address for peer in b.service.peers()] == ["127.0.0.1"]
        assert [refusal.address for refusal in b.service.refusals.newest_first()] == ["127.0.0.1"]


async def test_a_device_passes_on_what_came_from_another(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        await a.connect(b)
        await b.connect(c)
        await a.device.record_notes("甲")
        await level(a, b, c)
        assert await c.texts() == ["甲"]


async def test_ten_thousand_events_arrive(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await a.device.log.append([draft(f"第 {number} 条") for number in range(10_000)])
        await b.connect(a)
        await eventually(lambda: _count(b, 10_000), b.device.log.changed)


async def _count(node: Node, wanted: int) -> bool:
    return await node.device.rows("select count(*) from events") == [(wanted,)]


async def test_connecting_again_keeps_the_one_connection(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        first = await a.connect(b)
        assert (await a.connect(b)).since == first.since
        await b.connect(a)
        await until(lambda: len(a.service.peers()) == len(b.service.peers()) == 1)
        await a.device.record_notes("甲")
        await level(a, b)


async def test_two_devices_that_connect_to_each_other_at_once_get_level(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await asyncio.gather(a.connect(b), b.connect(a), return_exceptions=True)
        await a.device.record_notes("甲")
        await level(a, b)
        await until(lambda: len(a.service.peers()) == len(b.service.peers()) == 1)


async def test_a_connection_that_broke_is_made_again(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await a.connect(b)
        await until(b.service.peers)
        b.service._active[a.public_key].channel.abort()
        await until(lambda: not b.service.peers(), b.service.changed)
        await b.device.record_notes("断线时")
        await level(a, b)


async def test_a_connection_that_a_person_makes_before_the_next_try_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "REDIAL_BACKOFF", Backoff(base=600.0, limit=600.0))
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await a.connect(b)
        await until(b.service.peers)
        b.service._active[a.public_key].channel.abort()
        await until(lambda: not a.service.peers() and not b.service.peers())
        await b.device.record_notes("断线时")
        await a.connect(b)
        await level(a, b)


async def test_a_device_that_was_connected_already_is_kept_connected_from_here_too(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await b.connect(a)
        await until(a.service.peers, a.service.changed)
        await a.connect(b)
        for connector in b.service._connectors.values():
            connector.cancel()
        await until(lambda: [peer.direction for peer in a.service.peers()] == ["outgoing"], a.service.changed)
        await b.device.record_notes("之后")
        await level(a, b)


async def test_a_silent_connection_gives_way_to_a_new_one_whoever_made_it(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        first, second = (a, b) if a.public_key < b.public_key else (b, a)
        await first.connect(second)
        kept = first.service._active[second.public_key]
        await until(lambda: all([peer.level for peer in node.service.peers()] == [True] for node in (a, b)))
        for channel in (kept.channel, second.service._active[first.public_key].channel):
            channel._last_received = float("-inf")
        await second.connect(first)
        await until(lambda: first.service._active.get(second.public_key) not in (None, kept))
        await first.device.record_notes("之后")
        await level(a, b)


@pytest.mark.proof
async def test_a_connection_that_nobody_reads_does_not_hold_up_its_successor(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", deadlines=Deadlines(frame=600.0, failed=0.0)) as (a, b):
        channel, exchange = await fill_unread_connection(b, a, count=400)
        await until(lambda: exchange.sent)
        await b.connect(a)
        await a.device.record_notes("之后")
        await eventually(lambda: _count(b, 401), b.device.log.changed)
        channel.abort()


# --- who is refused -------------------------------------------------------------------------------------------


async def test_a_stranger_is_refused_and_learns_no_greeting(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        del b.keys[a.public_key]
        channel = await a.raw_channel(b)
        assert await refused_silently(channel)
        await drained(b, "stranger")
        assert b.service.peers() == ()


async def test_a_stranger_without_a_certificate_is_refused(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a") as (a,):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        assert await refused_silently(await connect_tls("127.0.0.1", a.port, context, Deadlines()))
        await drained(a, "stranger")


async def test_an_unknown_device_at_the_address_is_refused_by_the_caller(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        del a.keys[c.public_key]  # the pin is b's
        with pytest.raises(PeerRefused) as refused:
            await a.connect(c)
        assert refused.value.cause == "stranger"
        assert a.causes() == ["stranger"]
        assert b.service.peers() == c.service.peers() == ()


@pytest.mark.parametrize("by_caller", [True, False])
async def test_a_revoked_device_is_refused_by_name(tmp_path: Path, *, by_caller: bool) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        refusing, other = (a, b) if by_caller else (b, a)
        refusing.revoked[other.device.log.device_id] = None
        with pytest.raises(PeerRefused) as refused:
            await a.connect(b)
        assert refused.value.cause == "revoked"
        (refusal,) = refusing.service.refusals.newest_first()
        assert (refusal.cause, refusal.device_id) == ("revoked", other.device.log.device_id)


async def test_a_device_that_is_revoked_while_connected_is_cut_off(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await a.connect(b)
        await until(b.service.peers)
        b.revoked["device-a"] = a.public_key
        await b.device.record_notes("不给甲")
        await drained(b, "revoked")
        await drained(a, "revoked")
        assert "不给甲" not in await a.texts()


async def test_a_connection_that_is_ended_for_lack_of_trust_is_not_tried_again_at_once(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await a.connect(b)
        await until(lambda: all([peer.level for peer in node.service.peers()] == [True] for node in (a, b)))
        b.revoked["device-a"] = a.public_key
        await b.service.end_untrusted()
        await until(lambda: not a.service.peers() and not b.service.peers())
        assert a.service._peers.connection_lost.count == b.service._peers.connection_lost.count == 0


async def test_a_device_that_is_revoked_while_it_cannot_be_reached_is_not_dialled_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "REDIAL_BACKOFF", Backoff(base=0.01, limit=0.01))
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await a.connect(b)
        await until(b.service.peers)
        del b.keys[a.public_key]
        b.service._active[a.public_key].channel.abort()
        await drained(b, "stranger")
        a.revoked["device-b"] = b.public_key
        (connector,) = a.service._connectors.values()
        await until(connector.done)


async def test_a_device_that_is_revoked_while_it_takes_its_time_to_greet_gets_nothing(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await b.device.record_notes("不给甲")
        channel = await a.raw_channel(b)
        assert isinstance(await channel.receive(), frames.Hello)  # b has looked at the key by now
        b.revoked["device-a"] = a.public_key
        await channel.send(frames.Hello(frames.PROTOCOL_VERSION, "device-a", "甲", "1"))
        assert await channel.receive() == frames.Bye("revoked")
        channel.close()


async def test_a_copied_home_is_refused_as_a_copy(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        seed = await device_key_in(a.device.folder).private_half()
        context = tls_context(seed, [a.public_key], b.device.folder, server=False)
        channel = await connect_tls("127.0.0.1", a.port, context, Deadlines())
        assert await refused_silently(channel)
        await drained(a, "copy_of_this_device")


async def test_two_databases_that_continue_one_history_end_the_connection_with_the_cause(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "b", "c") as (b, c):
        await b.device.record_notes("甲")
        lost = event(1, replica=b.device.replica_id, device="device-b", payload={"text": "恢复前"})
        await insert(c.device, lost)
        await b.connect(c)
        await drained(c, "copied_database")
        await drained(b, "copied_database")
        assert await c.texts() == ["恢复前"]
        await until(lambda: not b.service.peers())
        assert b.service._peers.connection_lost.count == c.service._peers.connection_lost.count == 0, (
            "not tried at once"
        )


async def test_a_device_whose_disk_is_full_says_so_and_is_not_tried_again_at_once(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await b.device.database.write(lambda connection: connection.exec_driver_sql("pragma max_page_count = 1"))
        await a.device.log.append([draft("长" * 15_000)] * 20)
        await a.connect(b)
        await drained(a, "storage_failed")
        await drained(b, "storage_failed")
        await until(lambda: not a.service.peers() and not b.service.peers())
        assert a.service._peers.connection_lost.count == b.service._peers.connection_lost.count == 0
        assert await b.texts() == []


async def test_an_older_tls_version_is_refused(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        seed = await device_key_in(b.device.folder).private_half()
        context = tls_context(seed, [a.public_key, b.public_key], b.device.folder, server=False)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(OSError):  # noqa: PT011 - an alert or a reset connection
            await connect_tls("127.0.0.1", a.port, context, Deadlines())
        await drained(a, "tls_failed")


async def test_what_is_no_tls_is_refused(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a") as (a,):
        with bare_connection(a) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            await drained(a, "tls_failed")


async def test_recorded_bytes_that_are_sent_again_are_refused(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        recorded = bytearray()

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_connection("127.0.0.1", b.port)

            async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter, *, record: bool) -> None:
                while piece := await source.read(65_536):
                    recorded.extend(piece if record else b"")
                    target.write(piece)

            await asyncio.gather(pump(reader, back, record=True), pump(there, writer, record=False))

        proxy = await asyncio.start_server(carry, "127.0.0.1", 0)
        await a.device.record_notes("甲")
        peer = await a.service.connect("127.0.0.1", proxy.sockets[0].getsockname()[1])
        assert peer.device_id == "device-b"
        await level(a, b)
        assert "甲".encode() not in recorded
        assert b"device-a" not in recorded
        with bare_connection(b) as connection:
            connection.sendall(bytes(recorded))
            await drained(b, "tls_failed")
        proxy.close()


async def test_a_frame_that_is_too_large_ends_the_connection_unread(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        channel = await b.raw_channel(a)
        await channel.send(GREETING)
        await until(a.service.peers, a.service.changed)
        channel._writer.write((frames.MAX_FRAME_BYTES + 1).to_bytes(4, "big") + b"x" * 100)
        await drained(a, "protocol_error")
        assert a.service.peers() == ()


async def test_little_is_read_ahead_of_a_peer_that_nobody_reads(tmp_path: Path) -> None:
    context = tls_context(bytes(32), [], tmp_path, server=True)
    context.verify_mode = ssl.CERT_NONE
    with open_listener("127.0.0.1", 0) as listening:
        calling = asyncio.create_task(
            connect_tls("127.0.0.1", listening.getsockname()[1], pairing_context(), Deadlines())
        )
        connection, _ = await asyncio.get_running_loop().sock_accept(listening)
        channel, caller = await accept_tls(connection, context, Deadlines()), await calling
        with background_task(caller.send_frame(bytes(32 * BUFFER_BYTES))):
            await until(lambda: channel._reader._paused)  # type: ignore[attr-defined]
            assert len(channel._reader._buffer) < 8 * BUFFER_BYTES  # type: ignore[attr-defined]
        channel.abort()
        caller.abort()


async def test_a_first_message_that_is_no_greeting_ends_the_connection(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        channel = await b.raw_channel(a)
        await channel.send(frames.Want("e", {"rep_a": [(1, 5)]}))
        await drained(a, "protocol_error")


async def test_another_protocol_version_is_refused_by_name(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        channel = await b.raw_channel(a)
        await channel.send(Hello(99, "device-b", "书房", "9"))
        await drained(a, "other_version")


@pytest.mark.parametrize("sent", [b"", b"\x16"], ids=["nothing", "one byte"])
async def test_a_handshake_that_does_not_go_on_ends_at_its_deadline(tmp_path: Path, sent: bytes) -> None:
    async with nodes(tmp_path, new_server(), "a", deadlines=HASTY) as (a,):
        with bare_connection(a) as connection:
            connection.sendall(sent)
            await drained(a, "too_slow")


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\1\0{"], ids=["half open", "half a header", "half a frame"])
async def test_a_peer_that_falls_silent_is_dropped_at_a_deadline(tmp_path: Path, sent: bytes) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", deadlines=HASTY) as (a, b):
        channel = await b.raw_channel(a)
        await channel.send(GREETING)
        channel._writer.write(sent)
        await drained(a, "too_slow")
        await until(lambda: not a.service.peers(), a.service.changed)


async def test_a_peer_that_sends_a_frame_byte_by_byte_is_dropped_at_the_frames_deadline(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", deadlines=HASTY) as (a, b):
        channel = await b.raw_channel(a)
        await channel.send(GREETING)

        async def dribble() -> None:
            channel._writer.write((1_000_000).to_bytes(4, "big"))
            while True:
                channel._writer.write(b" ")
                await asyncio.sleep(0.01)

        with background_task(dribble()):
            await drained(a, "too_slow")
        await until(lambda: not a.service.peers(), a.service.changed)


async def test_a_peer_that_requests_and_does_not_read_gets_one_answer_into_memory(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        count, replica = 400, a.device.replica_id
        channel, exchange = await fill_unread_connection(b, a, count=count)
        for _ in range(100):
            await channel.send(frames.Want(replica, {replica: [(1, count)]}))
            await until(lambda: exchange.sent)
        await channel.send(frames.Have("rep_c", {}, {}))
        await until(lambda: _peer_epoch(exchange) == "rep_c")
        assert exchange.sent == count
        channel.abort()


async def fill_unread_connection(caller: Node, node: Node, *, count: int) -> tuple[PeerChannel, PeerExchange]:
    """Request 18 MB, more than sockets hold, and read none of it."""
    replica = node.device.replica_id
    await node.device.log.append([draft("长" * 15_000)] * count)
    channel = await caller.raw_channel(node)
    cast("asyncio.Transport", channel._writer.transport).pause_reading()
    await channel.send(GREETING)
    await until(node.service.peers, node.service.changed)
    exchange = node.service._active[caller.public_key].exchange
    await channel.send(frames.Have("rep_b", {}, {}))
    await channel.send(frames.Want(replica, {replica: [(1, count)]}))
    return channel, exchange


def _peer_epoch(exchange: PeerExchange) -> str | None:
    """The epoch of the last `Have` that was handled; those before it were too."""
    assert exchange._conversation is not None
    peer = exchange._conversation._peer
    return None if peer is None else peer.epoch


async def test_a_peer_that_never_greets_is_dropped(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", deadlines=HASTY) as (a, b):
        channel = await b.raw_channel(a)
        await drained(a, "too_slow")
        channel.close()


async def test_one_address_cannot_take_all_places_and_a_device_still_gets_in(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", deadlines=HASTY) as (a, b):
        held = [bare_connection(a) for _ in range(MAX_CONNECTIONS * 2)]
        await drained(a, "too_many_connections")
        assert a.service.peers() == ()
        for connection in held:
            connection.close()
        await eventually(lambda: _connects(b, a))
    assert MAX_PLACES_PER_ADDRESS < MAX_CONNECTIONS


async def test_strangers_with_many_addresses_keep_no_device_out(tmp_path: Path) -> None:
    """On Linux each of 127.0.0.0/8 is an address of this machine."""
    async with nodes(tmp_path, new_server(), "a", "b", deadlines=Deadlines(handshake=600.0, failed=600.0)) as (a, b):
        addresses = [f"127.0.0.{number}" for number in range(2, 2 + MAX_CONNECTIONS)]
        for address in addresses:
            with bare_connection(a, address) as connection:
                await send_no_tls(connection)
        await b.connect(a)
        await until(a.service.peers, a.service.changed)
        a.service._active[b.public_key].channel.abort()
        assert a.causes().count("tls_failed") == MAX_CONNECTIONS
        assert "too_many_connections" not in a.causes()
        held = [bare_connection(a, address) for address in addresses for _ in range(2)]
        await drained(a, "too_many_connections")
        assert (await b.connect(a)).device_id == "device-a"
        await until(a.service.peers, a.service.changed)
        for connection in held:
            connection.close()


async def test_a_handshake_that_failed_keeps_its_place_for_a_while(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", deadlines=replace(HASTY, failed=600.0)) as (a,):
        for _ in range(MAX_PLACES_PER_ADDRESS + 1):
            with bare_connection(a) as connection:
                await send_no_tls(connection)
        assert a.causes() == ["too_many_connections", "tls_failed"]


async def test_who_shows_no_certificate_while_a_code_is_shown_takes_a_place_until_admitted(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", deadlines=replace(Deadlines(), failed=600.0)) as (a,):
        await a.service.show_code()
        for _ in range(MAX_PLACES_PER_ADDRESS):
            (await connect_tls("127.0.0.1", a.port, pairing_context(), Deadlines())).close()
        with pytest.raises(OSError) as refused:  # noqa: PT011 - closed, or reset
            await connect_tls("127.0.0.1", a.port, pairing_context(), Deadlines())
        assert "few connections in quick succession" in str(connection_failure(refused.value).hint)
        assert "too_many_connections" in a.causes()


async def send_no_tls(connection: socket.socket) -> None:
    """Fail a handshake, and wait until the other side has ended it."""
    connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with suppress(ConnectionError):
        await asyncio.to_thread(connection.recv, 1_024)


async def _connects(node: Node, other: Node) -> bool:
    try:
        await node.connect(other)
    except (PeerUnreachable, PeerRefused):
        return False
    return True


def _is_counted(node: Node, count: int) -> bool:
    return [refusal.count for refusal in node.service.refusals.newest_first()] == [count]


async def test_a_refusal_is_logged_once_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with nodes(tmp_path, new_server(), "a") as (a,):
        for count in range(1, 4):
            with bare_connection(a) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
                await until(partial(_is_counted, a, count))
        assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
            "a connection on the local network was refused: tls_failed"
        ]


async def test_nobody_at_the_address_is_an_error_that_says_so(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a") as (a,):
        with pytest.raises(PeerUnreachable):
            await a.service.connect("127.0.0.1", free_port())


@pytest.mark.parametrize("listens_at", ["127.0.0.1", ""])
async def test_the_address_of_this_device_itself_is_an_error_and_no_copy(tmp_path: Path, listens_at: str) -> None:
    async with nodes(tmp_path, new_server(), "a", listens_at=listens_at) as (a,):
        with pytest.raises(InvalidInput, match="itself"):
            await a.connect(a)
        with pytest.raises(InvalidInput, match="itself"):
            await a.service.enter_code(Invitation("12345678", (("localhost", a.port),)))
        assert a.causes() == []
        assert not await is_listening_at(("::", a.port), "192.0.2.1", a.port)


async def test_a_code_is_entered_although_one_address_of_the_invitation_is_an_own_one_too(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        code = (await b.service.show_code()).code
        assert code is not None
        paired = await a.service.enter_code(
            Invitation(code.replace(" ", ""), (("127.0.0.1", a.port), ("127.0.0.1", b.port)))
        )
        assert paired.device_id == "device-b"
        assert a.service.refusals.newest_first() == []


async def test_something_else_at_the_address_is_an_error(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", deadlines=HASTY) as (a,):
        with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(PeerUnreachable):
            await a.service.connect("127.0.0.1", silent.getsockname()[1])


async def test_without_listening_nothing_connects(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        stopped = type(a.service)(a.device.log, a.service._device, clock=a.device.clock, settings=a.service._settings)
        with pytest.raises(LanOff):
            await stopped.connect("127.0.0.1", b.port)


async def test_the_private_key_is_left_in_no_file(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await a.connect(b)
        assert not list(tmp_path.rglob(".lan.*"))
        assert not list(tmp_path.rglob("*.tmp"))
