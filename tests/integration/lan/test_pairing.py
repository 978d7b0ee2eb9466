"""Devices without an account on 127.0.0.1 that pair by code, with real sockets, TLS and databases."""

import asyncio
import hashlib
import logging
import os
import ssl
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from sync.cloud.auth import owner_store
from sync.errors import PeerRefused, PeerUnreachable
from sync.lan.model import LanPairingJson
from sync.lan.pairing.code import Invitation, parse_invitation
from sync.lan.pairing.pairing_messages import PairRefused, decode_message, frame_of
from sync.lan.pairing.port import AccountClaim
from sync.lan.pairing.protocol import EnteringSide
from sync.lan.transport.channel import Deadlines, connect_tls
from sync.lan.transport.tls_contexts import pairing_context
from tests.integration.lan.nodes import HASTY, Node, nodes, refused_silently, until, until_async
from tests.integration.lan.test_service import drained, level
from tests.support import new_server


async def strangers(*found: Node) -> None:
    """Nodes trust nobody but whom they pair with."""
    for node in found:
        node.keys.clear()


async def invite(node: Node) -> Invitation:
    shown = await node.service.show_code()
    assert shown.uri is not None
    return parse_invitation(shown.uri)


async def pair(showing: Node, entering: Node) -> LanPairingJson:
    return await entering.service.enter_code(await invite(showing))


async def test_two_guests_pair_by_code_and_exchange_in_both_directions(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        await a.device.record_notes("甲")
        await b.device.record_notes("乙")
        paired = await pair(a, b)
        assert (paired.state, paired.device_id, paired.name) == ("paired", "device-a", "name of device-a")
        shown = a.service.pairing_state()
        assert shown is not None
        assert (shown.state, shown.device_id, shown.words) == ("paired", "device-b", paired.words)
        assert len(paired.words) == 4
        await level(a, b)
        assert await a.texts() == ["乙", "甲"]
        assert await a.device.rows("select count(*), count(distinct event_id) from events") == [(2, 2)]


async def test_a_wrong_code_is_refused_logged_once_and_the_right_one_still_pairs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        invitation = await invite(a)
        wrong = Invitation(f"{(int(invitation.code) + 1) % 10**8:08d}", invitation.addresses)
        for _ in range(2):
            with pytest.raises(PeerRefused) as refused:
                await b.service.enter_code(wrong)
            assert refused.value.cause == "wrong_code"
        waiting = a.service.pairing_state()
        assert waiting is not None
        assert (waiting.state, waiting.tries_left, waiting.code) == ("waiting", 3, None)
        assert (await a.pairings.read(), await b.pairings.read()) == ([], [])
        logged = [one.message for one in caplog.records if one.levelno >= logging.WARNING and "wrong" in one.message]
        assert logged == ["a connection on the local network was refused: wrong_code"]
        assert (await b.service.enter_code(invitation)).state == "paired"


async def test_a_code_is_used_once(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        await strangers(a, b, c)
        invitation = await invite(a)
        await b.service.enter_code(invitation)
        with pytest.raises(PeerUnreachable):
            await c.service.enter_code(invitation)
        assert [row.device_id for row in await a.pairings.read()] == ["device-b"]
        assert await c.pairings.read() == []


async def test_a_new_code_ends_the_one_before_also_in_a_connection_that_has_begun(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        before = await invite(a)
        channel = await connect_tls("127.0.0.1", a.port, pairing_context(), Deadlines())
        own = await (await b.service.pairing())._own_device()
        side = EnteringSide(before.code, hashlib.sha256(channel.peer_certificate or b"").digest(), own, os.urandom)
        (share,) = side.start()
        await channel.send_frame(frame_of(share))
        (card,), _ = side.on_message(decode_message(await channel.receive_body()))
        a.service.cancel_pairing()
        assert a.service.pairing_state() == LanPairingJson("failed", cause="code_cancelled")
        after = await invite(a)
        await channel.send_frame(frame_of(card))
        assert decode_message(await channel.receive_body()) == PairRefused("code_used")
        assert await a.pairings.read() == []
        assert (await b.service.enter_code(after)).state == "paired"


async def test_of_two_that_enter_the_code_at_once_one_is_paired(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b", "c") as (a, b, c):
        await strangers(a, b, c)
        invitation = await invite(a)
        results = await asyncio.gather(
            b.service.enter_code(invitation), c.service.enter_code(invitation), return_exceptions=True
        )
        paired = [result for result in results if isinstance(result, LanPairingJson)]
        assert len(paired) == 1, results
        assert len(await a.pairings.read()) == 1
        assert len(await b.pairings.read()) + len(await c.pairings.read()) == 1


async def test_after_five_wrong_codes_no_code_is_shown_any_more(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        invitation = await invite(a)
        wrong = Invitation(f"{(int(invitation.code) + 1) % 10**8:08d}", invitation.addresses)
        for _ in range(5):
            with pytest.raises(PeerRefused):
                await b.service.enter_code(wrong)
        with pytest.raises(PeerUnreachable):
            await b.service.enter_code(invitation)
        assert a.service.pairing_state() == LanPairingJson("failed", cause="too_many_tries")


async def test_a_man_in_the_middle_without_the_code_fails(tmp_path: Path) -> None:
    """He shows a code of his own at an address that he announces, and learns neither code nor name."""
    async with nodes(tmp_path, new_server(), "a", "b", "m") as (a, b, man):
        await strangers(a, b, man)
        invitation, of_man = await invite(a), await invite(man)
        assert invitation.code != of_man.code
        with pytest.raises(PeerRefused) as refused:
            await b.service.enter_code(Invitation(invitation.code, of_man.addresses))
        assert refused.value.cause == "wrong_code"
        assert [await node.pairings.read() for node in (a, b, man)] == [[], [], []]


async def test_devices_that_show_a_code_are_found_on_the_network(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        invitation = await invite(a)
        paired = await b.service.enter_code(Invitation(invitation.code))
        assert paired.device_id == "device-a"
        await a.device.record_notes("甲")
        await level(a, b)


async def test_announcements_that_come_and_go_get_no_more_guesses_than_five(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a") as (a,), AsyncExitStack() as stack:
        search, tried = a.service._search, list[int]()

        async def replaced_by_the_next(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tried.append(writer.get_extra_info("sockname")[1])
            search.remove(str(tried[-1]))
            if rest:
                announce(rest.pop())
            writer.close()

        def announce(port: int) -> None:
            search.note(str(port), ("127.0.0.1",), port, shows=True)

        servers = [await asyncio.start_server(replaced_by_the_next, "127.0.0.1", 0) for _ in range(8)]
        rest = [server.sockets[0].getsockname()[1] for server in servers]
        for server in servers:
            await stack.enter_async_context(server)
        for _ in range(3):
            announce(rest.pop())
        with pytest.raises(PeerUnreachable):
            await a.service.enter_code(Invitation("12345678"))
        assert len(tried) == 5


async def test_paired_guests_find_each_other_again_by_their_secrets(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        await b.service.enter_code(Invitation((await invite(a)).code))  # without an address to connect to again
        await until(lambda: a.service.peers() and b.service.peers(), a.service.changed, b.service.changed)
        assert not b.service._connectors
        a.service._active[b.public_key].channel.abort()
        await a.device.record_notes("之后")
        await level(a, b)
        assert await b.texts() == ["之后"]


async def test_without_a_shown_code_a_device_without_certificate_is_a_stranger(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a") as (a,):
        assert await refused_silently(await connect_tls("127.0.0.1", a.port, pairing_context(), Deadlines()))
        await drained(a, "stranger")


async def test_while_a_code_is_shown_another_certificate_is_still_refused(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        await invite(a)
        assert await refused_silently(await b.raw_channel(a))
        await drained(a, "stranger")


@pytest.mark.parametrize("sent", [b"", b"\0\0\0\1", b"\0\0\x20\0" + b"x" * 100, b"\0\0\0\2{}"])
async def test_a_stranger_who_does_not_speak_the_protocol_is_dropped(tmp_path: Path, sent: bytes) -> None:
    async with nodes(tmp_path, new_server(), "a", deadlines=HASTY) as (a,):
        await invite(a)
        channel = await connect_tls("127.0.0.1", a.port, pairing_context(), Deadlines())
        channel._writer.write(sent)
        with suppress(EOFError, ssl.SSLError, ConnectionError):
            await channel.receive_body()
        await until(lambda: a.causes() in (["too_slow"], ["protocol_error"]))
        state = a.service.pairing_state()
        assert state is not None
        assert (state.state, state.tries_left) == ("waiting", 5)


# --- whose memory it is ---------------------------------------------------------------------------------------


async def test_a_guest_that_pairs_with_a_users_device_becomes_that_users(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        await a.pairings.join(AccountClaim("user-1", "u@example.com"))
        await b.device.record_notes("客人的")
        await pair(a, b)
        assert await b.pairings.owner() == AccountClaim("user-1", "u@example.com")
        await level(a, b)
        assert await a.texts() == ["客人的"]


async def test_memories_of_two_users_are_never_paired(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        await a.pairings.join(AccountClaim("user-1", "u"))
        await b.pairings.join(AccountClaim("user-2", "v"))
        with pytest.raises(PeerRefused) as refused:
            await pair(a, b)
        assert refused.value.cause == "other_account"
        assert (await a.pairings.read(), await b.pairings.read()) == ([], [])


async def test_paired_guests_who_log_in_as_two_users_exchange_nothing_more(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        await pair(a, b)
        await until(lambda: a.service.peers() and b.service.peers(), a.service.changed, b.service.changed)
        for node, user in ((a, "user-1"), (b, "user-2")):  # both, before either is noticed
            await node.device.database.write(owner_store.claim_guest_profile, user, "a user", "2026-02-02T10:00:00Z")
        await a.device.record_notes("甲自己的")
        await b.device.record_notes("乙自己的")
        await until(lambda: "other_account" in a.causes() and "other_account" in b.causes())
        assert (await a.texts(), await b.texts()) == (["甲自己的"], ["乙自己的"])


async def test_of_paired_guests_the_second_follows_the_first_into_its_account(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        await pair(a, b)
        await until(lambda: a.service.peers() and b.service.peers(), a.service.changed, b.service.changed)
        await a.pairings.join(AccountClaim("user-1", "u"))
        await until_async(lambda: _is_of(b, "user-1"), b.device.account.changed)
        await a.device.record_notes("登录后")
        await level(a, b)
        assert await b.texts() == ["登录后"]


async def _is_of(node: Node, account_id: str) -> bool:
    return (await node.pairings.owner()).account_id == account_id


# --- the end of a pairing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_showing", [True, False])
async def test_forgetting_ends_the_connection_at_once_and_the_next_one_is_refused(
    tmp_path: Path, *, by_showing: bool
) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        await pair(a, b)
        await until(lambda: a.service.peers() and b.service.peers(), a.service.changed, b.service.changed)
        forgetting, other = (a, b) if by_showing else (b, a)
        await forgetting.pairings.forget(other.device.log.device_id)
        await forgetting.service.end_untrusted()
        await until(lambda: not forgetting.service.peers() and not other.service.peers(), other.service.changed)
        await drained(other, "pairing_ended")
        with pytest.raises((PeerRefused, PeerUnreachable)):
            await other.connect(forgetting)
        await other.device.record_notes("不再给")
        assert await forgetting.texts() == []


async def test_forgotten_devices_pair_again_with_a_new_code(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        await pair(a, b)
        await a.pairings.forget("device-b")
        await a.service.end_untrusted()
        await pair(b, a)
        await a.device.record_notes("再来")
        await level(a, b)
        assert [len(await node.pairings.read()) for node in (a, b)] == [1, 1]


async def test_a_revoked_device_cannot_be_paired_again(tmp_path: Path) -> None:
    async with nodes(tmp_path, new_server(), "a", "b") as (a, b):
        await strangers(a, b)
        await pair(a, b)
        a.revoked["device-b"] = None
        await a.device.record_notes("看一看")  # the connection notices
        await drained(a, "revoked")
        with pytest.raises(PeerRefused) as refused:
            await pair(a, b)
        assert refused.value.cause == "revoked"
