"""The meaning of messages of the realtime channel. Only a number is ever taken from one."""

from typing import Any

import pytest

from sync.cloud.port import RealtimeNotice
from sync.cloud.supabase.realtime import RealtimeMessage, error_of_refusal, parse_message
from sync.errors import CloudError, CloudUnavailable, Forbidden, LoginRequired

TOPIC = "realtime:ai_memory:1"
READY = {"extension": "system", "status": "ok", "message": "Replication connection established"}


def broadcast(inner: Any) -> RealtimeMessage:
    return RealtimeMessage(TOPIC, "broadcast", {"type": "broadcast", "event": "head", "payload": inner})


@pytest.mark.parametrize(
    ("inner", "head"),
    [
        ({"head": 12, "id": "an id"}, 12),
        ({"head": "12"}, None),
        ({"head": True}, None),
        ({"head": -1}, None),
        ({"head": 1.5}, None),
        ({}, None),
        ("text", None),
        (None, None),
    ],
)
def test_a_broadcast_is_a_poke_whatever_it_holds(inner: Any, head: int | None) -> None:
    assert parse_message(broadcast(inner), TOPIC) == RealtimeNotice(poke=True, head=head)


@pytest.mark.parametrize("payload", [None, [], "text", {}, {"payload": []}])
def test_a_broadcast_of_no_known_form_is_a_poke_without_a_number(payload: Any) -> None:
    assert parse_message(RealtimeMessage(TOPIC, "broadcast", payload), TOPIC) == RealtimeNotice(poke=True)


@pytest.mark.parametrize(
    "message",
    [
        RealtimeMessage("phoenix", "phx_reply", {"status": "ok"}, "beat"),
        RealtimeMessage("realtime:ai_memory:2", "broadcast", {"payload": {"head": 99}}),
        RealtimeMessage("realtime:ai_memory:2", "phx_close"),
        RealtimeMessage(TOPIC, "presence_state"),
        RealtimeMessage(TOPIC, "an event of next year", [1]),
        RealtimeMessage(TOPIC, "system", {"extension": "postgres_changes", "status": "ok"}),
    ],
)
def test_anything_else_is_a_sign_of_life_and_no_more(message: RealtimeMessage) -> None:
    assert parse_message(message, TOPIC) == RealtimeNotice()


def test_the_server_says_from_when_on_no_poke_is_missed() -> None:
    assert parse_message(RealtimeMessage(TOPIC, "system", READY), TOPIC) == RealtimeNotice(ready=True)


@pytest.mark.parametrize("event", ["phx_close", "phx_error"])
def test_a_closed_channel_is_over(event: str) -> None:
    with pytest.raises(CloudUnavailable):
        parse_message(RealtimeMessage(TOPIC, event), TOPIC)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Token has expired 3 seconds ago", LoginRequired),
        ("InvalidJWTToken: Token has expired 3 seconds ago", LoginRequired),
        ("JwtSignatureError: Failed to validate JWT signature", LoginRequired),
        ("MalformedJWT: The token provided is not a valid JWT", LoginRequired),
        ("Unauthorized: You do not have permissions to read from this Channel topic: ai_memory:1", Forbidden),
        ("You no longer have permission to read from this Channel topic: ai_memory:1", Forbidden),
        ("ConnectionRateLimitReached: Too many connected users", CloudUnavailable),
        ("Realtime is restarting, please standby", CloudUnavailable),
        ("", CloudUnavailable),
        (None, CloudUnavailable),
    ],
)
def test_why_a_channel_is_refused_decides_what_is_done_about_it(reason: object, kind: type[CloudError]) -> None:
    told = error_of_refusal({"reason": reason})
    assert type(told) is kind
    assert "ai_memory:1" not in told.message


def test_a_refusal_that_says_nothing_is_tried_again() -> None:
    refusals: list[object] = [None, [], "text"]
    for nothing in refusals:
        assert type(error_of_refusal(nothing)) is CloudUnavailable


def test_a_system_error_ends_the_channel_with_its_reason() -> None:
    with pytest.raises(LoginRequired):
        parse_message(
            RealtimeMessage(TOPIC, "system", {"status": "error", "message": "Token has expired 0 seconds ago"}), TOPIC
        )
