"""A sample of the hostile answers, and what fuzzing has found; `make fuzz` has them all."""

import gzip
import json
import time
from pathlib import Path

import pytest

from sync.cloud.supabase.auth import MAX_TOKEN_SECONDS
from sync.errors import CloudUnavailable
from tests.fuzz.server_replies import CALLS, LATE, REPLIES, SESSION, SIGNED_IN, Delivery, HostileReply, open_servers


async def test_a_bad_response_is_no_acknowledgement_and_the_next_good_one_is_understood(
    tmp_path: Path,
) -> None:
    await REPLIES.probe(tmp_path)


def json_reply(body: bytes, *headers: str) -> HostileReply:
    lines = ("HTTP/1.1 200 OK", "content-type: application/json", f"content-length: {len(body)}", *headers, "", "")
    return HostileReply("\r\n".join(lines).encode(), body, Delivery.WHOLE, 0)


def lasting(seconds: int) -> HostileReply:
    return json_reply(json.dumps({**SIGNED_IN, "expires_in": seconds}).encode())


PACKED = gzip.compress(b"[]")


@pytest.mark.parametrize(
    ("call", "reply"),
    [
        ("sync", json_reply(b"[" * 100_000)),
        ("sync", json_reply(gzip.compress(gzip.compress(b"{}")), "content-encoding: gzip, gzip")),
        ("devices", json_reply(PACKED[:-4], "content-encoding: gzip")),
        ("revoke", json_reply(b'{"status": "success"}')),
        ("rename", json_reply(b"true")),
        ("refresh", lasting(-(10**400))),
    ],
    ids=[
        "too deep",
        "packed twice",
        "packed and cut",
        "a portal's yes to a revocation",
        "a portal's yes to a name",
        "a session of before the world",
    ],
)
async def test_is_an_outage_and_nothing_else(call: str, reply: HostileReply) -> None:
    async with open_servers() as (stranger, _, _, clients):
        stranger.reply = reply
        with pytest.raises(CloudUnavailable):
            await CALLS[call].make(clients[False])


@pytest.mark.parametrize("seconds", [10**400, 2**63, 0, -1])
async def test_a_session_of_any_length_is_kept_and_asked_for_again_within_a_week(seconds: int) -> None:
    async with open_servers() as (stranger, _, _, clients):
        stranger.reply = lasting(seconds)
        session = await clients[False].auth.refresh_session(SESSION)
    assert (session.access_token, session.refresh_token) == ("new", "newer")
    assert -LATE < session.expires_at - time.time() <= MAX_TOKEN_SECONDS


async def test_a_compressed_response_is_understood() -> None:
    async with open_servers() as (stranger, _, _, clients):
        stranger.reply = json_reply(PACKED, "content-encoding: gzip")
        assert await CALLS["devices"].make(clients[False]) == ()
