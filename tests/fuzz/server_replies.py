"""Answers that no Supabase gives: every status with every kind of body, cut, reset, trickled, silent or endless.

The real client talks through the fault proxy to a server that says what a case wants. Whatever comes, a call ends in
time with an error of ours, takes nothing for an acknowledgement that is none, sends its token nowhere else, and the
next good answer is understood.
"""

import asyncio
import gzip
import json
import random
import resource
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final

from sync.clock import SystemClock
from sync.cloud.auth_port import AuthSession
from sync.cloud.contact import Contact
from sync.cloud.port import DeviceFacts, SyncAnswer, SyncRequest
from sync.cloud.supabase import schema_version
from sync.cloud.supabase.cloud import SupabaseCloud
from sync.errors import XiaobaiError
from tests.cloud.http_server import CHUNK, LoopbackPort, reset
from tests.cloud.prerequisites import LOOPBACK
from tests.cloud.proxy.fault_proxy import FaultProxy
from tests.fuzz.campaign import Campaign, FuzzCases
from tests.support import event

GENEROUS, HURRIED = 10.0, 0.15  # seconds that a call may take, with and without a response
BOMB: Final = 600_000_000  # bytes of a small answer when it is unpacked
TRIES: Final = 50  # of a client in a hurry
LATE: Final = 5.0  # seconds a call may overrun its deadline on a busy machine
MOST_MEMORY: Final = 400 * 1024 * 1024  # bytes a campaign may add to the process at its highest
TOKEN: Final = "token-of-a-person"
SESSION: Final = AuthSession("user-1", "a@example.com", TOKEN, "refresh-token", 9e9)
PERSON: Final = Contact("email", "a@example.com")
ONE: Final = SyncRequest("device-a", "rep_a", events=(event(1),))
USER: Final = {
    "id": "6f1d2f0e-6d0b-4f6e-9d5a-2f4a3c9b7e10", "aud": "authenticated", "email": "a@example.com", "app_metadata": {},
    "user_metadata": {}, "created_at": "2026-02-02T10:00:00Z", "role": "authenticated",
}  # fmt: skip
SIGNED_IN: Final = {
    "access_token": "new", "refresh_token": "newer", "token_type": "bearer", "expires_in": 3600, "user": USER,
}  # fmt: skip
SYNCED: Final = {
    "epoch": "e1", "head": 1, "floor": 0, "reset": False, "events": [], "acked": [[ONE.events[0].event_id, 1]],
    "server_time": "2026-02-02T10:00:00.000Z",
}  # fmt: skip
REGISTERED: Final = {"device_id": "device-a", "schema_version": schema_version.REQUIRED_VERSION, "error": None}


@dataclass(frozen=True)
class ClientCall:
    """One call of the client, and the answer it hopes for."""

    make: Callable[[SupabaseCloud], Awaitable[object]]
    good: object  # None: no content


CALLS: Final[dict[str, ClientCall]] = {
    "sync": ClientCall(lambda cloud: cloud.sync(SESSION, ONE), SYNCED),
    "register": ClientCall(
        lambda cloud: cloud.register_device(SESSION, "device-a", DeviceFacts("r", "n", "p", "1")), REGISTERED
    ),
    "devices": ClientCall(lambda cloud: cloud.list_devices(SESSION), []),
    "rename": ClientCall(lambda cloud: cloud.rename_device(SESSION, "device-a", "书房"), None),
    "revoke": ClientCall(
        lambda cloud: cloud.revoke_device(SESSION, "device-b"), {"known": 1, "ended": 1, "error": None}
    ),
    "sign in": ClientCall(lambda cloud: cloud.auth.sign_in_with_password(PERSON, "a long password"), SIGNED_IN),
    "refresh": ClientCall(lambda cloud: cloud.auth.refresh_session(SESSION), SIGNED_IN),
    "verify": ClientCall(lambda cloud: cloud.auth.verify_code(PERSON, "123456"), SIGNED_IN),
    "identify": ClientCall(lambda cloud: cloud.auth.identify_user(TOKEN), USER),
    "sign out": ClientCall(lambda cloud: cloud.auth.sign_out(SESSION), None),
}
WITHOUT_TOKEN: Final = {"sign in", "refresh", "verify"}

STATUSES: Final = (
    200, 200, 200, 200, 201, 202, 203, 204, 205, 206, 226, 299, 300, 301, 302, 303, 304, 305, 307, 308, 400, 401, 402,
    403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423, 425, 426, 428, 429, 431,
    451, 499, 500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 521, 522, 525, 530, 599, 600, 999,
)  # fmt: skip
TYPES: Final = (
    "application/json", "application/json", "application/json; charset=utf-8", "application/json; charset=utf-16",
    "application/problem+json", "text/html", "text/plain", "", "application/octet-stream", "json", "multipart/json; x",
    "application/json; charset=no-such-thing", "application/json\t;;;", "text/json-not",
)  # fmt: skip
ODD_BODIES: Final = (
    b"", b" ", b"null", b"true", b"0", b'""', b"[]", b"{}", b"[[]]", b"[null]", b"[{}]", b"\xff\xfe", b"\xef\xbb\xbf{}",
    b"NaN", b"1e999", b"9" * 5000, b"[" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, b"<html>terms</html>",
    b'{"status":"success"}', b'{"error":{}}', b'{"code":1}', b'{"code":null,"message":null}', b'{"code":"PGRST301"}',
    b'{"message":["x"],"code":{},"hint":[],"details":5}', b'{"code":"42501","details":"{"}', b'{"code":"22P05"}',
    b'{"code":"42501","details":"[1]"}', b'{"error_code":"otp_expired","msg":"no"}', b'{"error_code":7,"msg":7}',
    b'{"error":"invalid_grant","error_description":"x"}', b'{"code":"PGRST202"}', b'{"code":"57014"}', b"\0" * 100,
    '{"code":"42501","message":"密码"}'.encode("utf-16"), b'{"weak_password":{"reasons":7}}', b"{'a':1}",
)  # fmt: skip
FIELDS: Final[tuple[object, ...]] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 10**400, 1.5, 1e308, "", "x", "\0", "e" * 10_000, [], {}, [[]],
    [{}], [["x", "y"]], [["x", 1, 2]], [[1, 1]], {"id": 1}, "9999-99-99", [{"event_id": "x"}], ["x"] * 1000,
)  # fmt: skip


class Delivery(Enum):
    """How an answer is sent."""

    WHOLE = "whole"
    LATE = "late"  # behind a slow network
    CHUNKED = "chunked"
    SHORT = "closed before its announced end"
    CUT = "closed anywhere"
    RESET = "reset anywhere"
    SLOW = "a byte now and then"
    HALF_OPEN = "silent from anywhere on"
    SILENT = "a network that swallows everything"
    REFUSED = "nobody there"
    ENDLESS = "without end"


HANGING: Final = {Delivery.SLOW, Delivery.HALF_OPEN, Delivery.SILENT, Delivery.ENDLESS}
LAST_BYTES: Final = {Delivery.CUT, Delivery.RESET, Delivery.HALF_OPEN}
ARRIVING: Final = {Delivery.WHOLE, Delivery.LATE, Delivery.CHUNKED}
MANNERS: Final = (*[Delivery.WHOLE] * 9, Delivery.LATE, Delivery.CHUNKED, Delivery.SHORT, *list(Delivery)[4:])


@dataclass(frozen=True)
class HostileReply:
    """One response as bytes, and how they are sent. `at`: the byte at which the manner begins."""

    head: bytes
    body: bytes
    delivery: Delivery
    at: int


class HostileServer:
    """A server with a given response, which records each request and its token."""

    def __init__(self) -> None:
        self.reply = HostileReply(b"", b"", Delivery.WHOLE, 0)
        self.heard: list[tuple[str, str]] = []  # path, authorization

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _request_head(reader):
            self.heard.append(head)
            if not await self._send_reply(writer):
                return

    async def _send_reply(self, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may be used again."""
        reply = self.reply
        data = reply.head + reply.body
        if reply.delivery in ARRIVING:
            writer.write(data)
            await writer.drain()
            return b"connection: close" not in reply.head
        writer.write(data if reply.delivery is Delivery.SHORT else data[: reply.at])
        await writer.drain()
        if reply.delivery is Delivery.RESET:
            reset(writer)
        if reply.delivery is Delivery.SLOW:
            for at in range(reply.at, len(data)):
                if writer.transport.is_closing():
                    return False
                writer.write(data[at : at + 1])
                await asyncio.sleep(0.01)  # the pace of the fault itself
        if reply.delivery is Delivery.ENDLESS:
            while not writer.transport.is_closing():
                writer.write(b" " * CHUNK)
                await writer.drain()
        if reply.delivery in HANGING:
            await asyncio.Event().wait()
        return False


async def _request_head(reader: asyncio.StreamReader) -> tuple[str, str] | None:
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        await reader.readexactly(int(headers.get("content-length", "0")))
    except asyncio.IncompleteReadError:
        return None  # given up by a client in a hurry
    return lines[0].split(" ")[1].partition("?")[0], headers.get("authorization", "")


# --- what is answered ----------------------------------------------------------------------------------------


def hostile_reply(chance: random.Random, good: object, elsewhere: str) -> HostileReply:
    status = chance.choice(STATUSES)
    body, coding = _content_encoding(_body(chance, good), chance)
    manner = chance.choice(MANNERS)
    kind = chance.choice(TYPES)
    headers = [f"content-type: {kind}"] if kind else []
    headers += [f"content-encoding: {coding}"] if coding else []
    headers += chance.sample(_odd_headers(chance, elsewhere), chance.randrange(3))
    if 300 <= status < 400 and chance.random() < 0.8:
        headers.append(f"location: {elsewhere}/rest/v1/rpc/ai_memory_sync")
    if manner is Delivery.CHUNKED:
        headers.append("transfer-encoding: chunked")
        body = b"%x\r\n%b\r\n" % (len(body), body) + chance.choice([b"0\r\n\r\n", b"0\r\nx: y\r\n\r\n", b"zz\r\n\r\n"])
    elif status not in {204, 304}:
        longer = chance.randrange(1, 50) if manner is Delivery.SHORT else 10**9 if manner is Delivery.ENDLESS else 0
        headers.append(f"content-length: {len(body) + longer}")
    else:
        body = b""
    first = chance.choice(
        [f"HTTP/1.1 {status} x"] * 20 + ["HTTP/1.0 200", "HTTP/9.9 200 OK", "ICY 200 OK", "\0\x16\x03"]
    )
    head = "\r\n".join([first, *headers, "", ""]).encode()
    return HostileReply(head, body, manner, chance.randrange(len(head) + len(body) + 1))


def _body(chance: random.Random, good: object) -> bytes:
    kind = chance.randrange(4)
    if kind == 0:
        return chance.choice(ODD_BODIES)
    whole = json.dumps(good).encode()
    if kind == 1:
        return whole[: chance.randrange(len(whole))] if whole else b"{"
    if kind == 2 and isinstance(good, dict):
        changed = dict(good)
        for name in chance.sample(sorted(changed), min(len(changed), chance.randrange(1, 3))):
            changed[name] = chance.choice(FIELDS)
        return json.dumps(changed).encode()
    return chance.choice([whole, whole + b" " * 17_000_000]) if chance.random() < 0.1 else whole


def _content_encoding(body: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Body and Content-Encoding, mostly none."""
    if chance.random() < 0.8:
        return body, ""
    codings = [
        (gzip.compress(body), "gzip"),
        (gzip.compress(body)[:-9], "gzip"),
        (_bomb(), "gzip"),
        (gzip.compress(_bomb()), "gzip, gzip"),
        (body, "gzip"),
        (body, chance.choice(["br", "zstd", "deflate", "identity", "x-unheard-of", ","])),
    ]
    return chance.choice(codings)


@cache
def _bomb() -> bytes:
    """A good response, followed by more white space than memory."""
    parts = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)
    spaces = b" " * 1_000_000
    packed = [parts.compress(json.dumps(SYNCED).encode()), *(parts.compress(spaces) for _ in range(BOMB // 1_000_000))]
    return b"".join([*packed, parts.flush()])


def _odd_headers(chance: random.Random, elsewhere: str) -> list[str]:
    return [
        f"retry-after: {chance.choice(['7', '-1', 'soon', '9' * 400, 'Mon, 99 Foo 2026', '１'])}",
        f"refresh: 0; url={elsewhere}", f'alt-svc: h2="{elsewhere}"', f"content-location: {elsewhere}", "date: never",
        f"link: <{elsewhere}>; rel=next", "set-cookie: a=b; domain=example.com", "connection: close",
        "x: " + "y" * 5000, "content-range: 0-0/x", "www-authenticate: Basic", f"x-proxy: {elsewhere}", "upgrade: h2c",
        "connection: upgrade",
    ]  # fmt: skip


# --- what must hold ------------------------------------------------------------------------------------------


async def attack_client(cases: FuzzCases, _: Path) -> None:
    async with open_servers() as (stranger, proxy, elsewhere, clients):
        before = _highest()
        for case in cases:
            name = case.chance.choice(sorted(CALLS))
            stranger.reply = hostile_reply(case.chance, CALLS[name].good, elsewhere)
            client = clients[stranger.reply.delivery in HANGING]
            await _set_fault_mode(proxy, stranger.reply.delivery)
            outcome = await _outcome(name, client, HURRIED if stranger.reply.delivery in HANGING else GENEROUS)
            _check(name, outcome, stranger.reply)
            tries = TRIES if stranger.reply.delivery in HANGING else 2
            await proxy.reconnect()
            stranger.reply = _good_reply(CALLS[name].good)
            await _recovered(name, client, tries)
            _check_tokens(stranger)
        assert _highest() - before < MOST_MEMORY


@asynccontextmanager
async def open_servers() -> AsyncIterator[tuple[HostileServer, FaultProxy, str, dict[bool, SupabaseCloud]]]:
    """The server, the network before it, another host that must hear nothing, and two clients: patient and hurried."""
    stranger, visited = HostileServer(), HostileServer()
    door, elsewhere = LoopbackPort(stranger.serve), LoopbackPort(visited.serve)
    await door.open()
    await elsewhere.open()
    async with FaultProxy(LOOPBACK, door.port) as proxy:
        clients = {
            hurried: SupabaseCloud(proxy.url, "sb_publishable_x", timeout=seconds, clock=SystemClock())
            for hurried, seconds in ((False, GENEROUS), (True, HURRIED))
        }
        yield stranger, proxy, elsewhere.url, clients
        for client in clients.values():
            await client.close()
    await door.close()
    await elsewhere.close()
    assert visited.heard == [], "another host was asked"


async def _set_fault_mode(proxy: FaultProxy, delivery: Delivery) -> None:
    if delivery is Delivery.LATE:
        await proxy.delay(0.005)
    if delivery is Delivery.SILENT:
        await proxy.half_open()
    if delivery is Delivery.REFUSED:
        await proxy.disconnect()


async def _outcome(name: str, client: SupabaseCloud, seconds: float) -> object:
    """What the call came to: a value or an error of ours; anything else is raised."""
    try:
        async with asyncio.timeout(seconds + LATE):
            return await CALLS[name].make(client)
    except XiaobaiError as error:
        return error


async def _recovered(name: str, client: SupabaseCloud, tries: int) -> None:
    """A good response is understood: at once, or after the connection with the rest of a bad one is dropped.

    The hurried client may need a few goes on a busy machine.
    """
    for _ in range(tries):
        outcome = await _outcome(name, client, GENEROUS)
        if not isinstance(outcome, XiaobaiError):
            return
    raise AssertionError(f"{name} did not recover: {outcome!r}")


def _check(name: str, outcome: object, reply: HostileReply) -> None:
    """A success is one that the bytes can bear."""
    if isinstance(outcome, XiaobaiError):
        assert outcome.hint
        assert TOKEN not in f"{outcome!r} {outcome.hint}"
        return
    status = reply.head.split(b" ")[1][:3]
    assert _may_arrive(reply), (name, outcome, reply.delivery)
    assert status.startswith(b"2"), (name, outcome, reply.head)
    if name == "sign out":
        return  # the token is discarded anyway
    if CALLS[name].good is None:
        assert _decoded(reply) in (None, False, 0, "", [], {}), (name, reply)
        return
    assert b"json" in reply.head.lower(), (name, outcome, reply.head)
    if isinstance(outcome, SyncAnswer):
        body = _decoded(reply)
        assert outcome.acked == tuple(map(tuple, body["acked"])), (outcome, body)


def _may_arrive(reply: HostileReply) -> bool:
    """Whether all of it was sent: also by what set in behind its end, or only a few bytes before it."""
    behind_its_end = reply.delivery in LAST_BYTES and reply.at == len(reply.head + reply.body)
    nothing_announced = reply.delivery is Delivery.SHORT and b"content-length:" not in reply.head
    return reply.delivery in {*ARRIVING, Delivery.SLOW} or behind_its_end or nothing_announced


def _decoded(reply: HostileReply) -> Any:
    if b" 204 " in reply.head[:16] or not reply.body:
        return None  # the body belongs to no response
    body = reply.body
    if reply.delivery is Delivery.CHUNKED:
        length, _, rest = body.partition(b"\r\n")
        body = rest[: int(length, 16)]
    plain = gzip.decompress(body) if b"content-encoding: gzip" in reply.head else body
    return json.loads(plain) if plain else None  # nothing is nothing, also in a chunk or packed


def _good_reply(good: object) -> HostileReply:
    if good is None:
        return HostileReply(b"HTTP/1.1 204 No Content\r\n\r\n", b"", Delivery.WHOLE, 0)
    body = json.dumps(good).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    return HostileReply(head, body, Delivery.WHOLE, 0)


def _check_tokens(server: HostileServer) -> None:
    """Every request bore the token it was given, and those that log in none."""
    for path, authorization in server.heard:
        logging_in = path in {"/auth/v1/token", "/auth/v1/verify"}
        assert authorization == ("" if logging_in else f"Bearer {TOKEN}"), (path, authorization)
    server.heard.clear()


def _highest() -> int:
    """The most memory this process ever held, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


REPLIES: Final = Campaign("replies", 2_400, 40, attack_client)
