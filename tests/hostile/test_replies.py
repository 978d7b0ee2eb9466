"""A sample of the hostile answers, and what fuzzing has found; `make fuzz` has them all."""

import gzip
from pathlib import Path

import pytest

from sync.errors import CloudUnavailable
from tests.hostile.replies import CALLS, REPLIES, Manner, Reply, stage


async def test_no_answer_is_taken_for_an_acknowledgement_that_is_none_and_the_next_good_one_is_understood(
    tmp_path: Path,
) -> None:
    await REPLIES.probe(tmp_path)


def json_reply(body: bytes, *headers: str) -> Reply:
    lines = ("HTTP/1.1 200 OK", "content-type: application/json", f"content-length: {len(body)}", *headers, "", "")
    return Reply("\r\n".join(lines).encode(), body, Manner.WHOLE, 0)


PACKED = gzip.compress(b"[]")


@pytest.mark.parametrize(
    ("call", "reply"),
    [
        ("sync", json_reply(b"[" * 100_000)),
        ("sync", json_reply(gzip.compress(gzip.compress(b"{}")), "content-encoding: gzip, gzip")),
        ("devices", json_reply(PACKED[:-4], "content-encoding: gzip")),
        ("revoke", json_reply(b'{"status": "success"}')),
        ("rename", json_reply(b"true")),
    ],
    ids=["too deep", "packed twice", "packed and cut", "a portal's yes to a revocation", "a portal's yes to a name"],
)
async def test_is_an_outage_and_nothing_else(call: str, reply: Reply) -> None:
    async with stage() as (stranger, _, _, clients):
        stranger.reply = reply
        with pytest.raises(CloudUnavailable):
            await CALLS[call].make(clients[False])


async def test_an_answer_packed_as_we_asked_for_is_understood() -> None:
    async with stage() as (stranger, _, _, clients):
        stranger.reply = json_reply(PACKED, "content-encoding: gzip")
        assert await CALLS["devices"].make(clients[False]) == ()
