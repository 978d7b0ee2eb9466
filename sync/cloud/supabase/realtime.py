"""The user's private channel on Supabase Realtime: Phoenix channel messages over one websocket.

Decisions
    `websockets` with the four messages we need, instead of the `realtime` package, which speaks through it: that client
    gives up for good after five attempts (a 25 s outage), rejoins by timers of its own with whatever token it holds,
    and takes no notice of heartbeats that nobody answers. All of that is `listener.py`'s to decide, so what would be
    left of the package is JSON.
    One channel is one connection, made anew after anything went wrong. No redirects: the token goes into the first
    message, and must not reach another host. What arrives is capped: our messages are a hundred bytes.
    A server answers a join before it follows the database's log; what is committed between is lost. `replication_ready`
    asks it to say when it does, and only then the channel is `ready`. An older server never says so: its pokes are
    heard all the same, but nobody takes its silence for news.
"""

import asyncio
import logging
from contextlib import suppress
from ssl import SSLContext
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from sync.cloud.auth_port import AuthSession
from sync.cloud.port import RealtimeNotice
from sync.errors import CloudError, CloudUnavailable, Forbidden, LoginRequired, RateLimited
from sync.log.envelope import DECODE_ERRORS

PROTOCOL_VERSION: Final = "1.0.0"  # of the serializer: one JSON object a message
MAX_MESSAGE_BYTES: Final = 64 * 1024
CLOSE_TIMEOUT: Final = 0.3  # seconds; a server that is gone need not hear a goodbye
JOIN_REF: Final = "1"  # the reference of the one join of a connection
# how the server begins its reason when it is the token that it does not accept
TOKEN_REFUSED_PREFIXES: Final = ("InvalidJWT", "JwtSign", "MalformedJWT", "InvalidToken", "Token")
NO_REALTIME_HINT: Final = "Apply sql/migrations; where Realtime came later: select ai_memory_private.allow_realtime();"

# Their DEBUG lines hold whole messages, the token among them.
logging.getLogger("websockets").setLevel(logging.WARNING)


class RealtimeMessage(msgspec.Struct):
    """One message of a Phoenix channel."""

    topic: str
    event: str
    payload: Any = {}
    ref: str | None = None


class _NoRedirectConnection(connect):
    """A connection that follows no redirect."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class RealtimeChannel:
    """A joined channel. `hear` raises CloudUnavailable or LoginRequired once it is over."""

    def __init__(self, connection: ClientConnection, topic: str) -> None:
        self._connection = connection
        self._topic = topic

    async def receive(self) -> RealtimeNotice:
        while True:
            try:
                message = _decode_message(await self._connection.recv())
            except WebSocketException as error:
                raise CloudUnavailable("the channel was cut") from error
            if message is not None:
                return parse_message(message, self._topic)

    async def send_heartbeat(self) -> None:
        await self._send(RealtimeMessage("phoenix", "heartbeat", {}, "beat"))

    async def update_token(self, session: AuthSession) -> None:
        await self._send(RealtimeMessage(self._topic, "access_token", {"access_token": session.access_token}))

    async def close(self) -> None:
        await self._connection.close()  # which never raises, and aborts after CLOSING_WITHIN

    async def _send(self, message: RealtimeMessage) -> None:
        try:
            await self._connection.send(msgspec.json.encode(message).decode())
        except WebSocketException as error:
            raise CloudUnavailable("the channel was cut") from error


async def join_channel(url: str, key: str, session: AuthSession, *, timeout: float, tls: SSLContext) -> RealtimeChannel:
    """Connect to the project at `url` and join its user's channel, within `timeout` seconds as a whole.

    Raises CloudUnavailable, RateLimited, LoginRequired (the token is refused), Forbidden (nobody may listen there).
    """
    address = (
        f"ws{url.removeprefix('http')}/realtime/v1/websocket?{urlencode({'apikey': key, 'vsn': PROTOCOL_VERSION})}"
    )
    connection: ClientConnection | None = None
    try:
        async with asyncio.timeout(timeout):
            connection = await _NoRedirectConnection(
                address,
                ssl=tls if address.startswith("wss:") else None,
                max_size=MAX_MESSAGE_BYTES,
                ping_interval=None,  # the channel's own heartbeat says more: that the server behind the gateway lives
                close_timeout=CLOSE_TIMEOUT,
                compression=None,
            )
            return await _join(connection, session)
    except BaseException as error:
        if connection is not None:
            connection.transport.abort()
        if isinstance(error, InvalidStatus):
            raise _error_of_status(error.response.status_code) from error
        # ImportError: a SOCKS proxy is set, and the package that speaks to it is not there; ValueError: an address of a
        # proxy that is none
        if isinstance(error, TimeoutError | OSError | WebSocketException | ImportError | ValueError):
            raise CloudUnavailable(f"no channel ({type(error).__name__})") from error
        raise


async def _join(connection: ClientConnection, session: AuthSession) -> RealtimeChannel:
    topic = f"realtime:ai_memory:{session.user_id}"
    config = {
        "private": True,
        "broadcast": {"ack": False, "self": False, "replication_ready": True},
        "presence": {"key": "", "enabled": False},
        "postgres_changes": [],
    }
    asked = RealtimeMessage(topic, "phx_join", {"config": config, "access_token": session.access_token}, JOIN_REF)
    await connection.send(msgspec.json.encode(asked).decode())
    while True:
        answer = _decode_message(await connection.recv())
        if answer is not None and (answer.event, answer.topic, answer.ref) == ("phx_reply", topic, JOIN_REF):
            said = answer.payload if isinstance(answer.payload, dict) else {}
            if said.get("status") != "ok":
                raise error_of_refusal(said.get("response"))
            return RealtimeChannel(connection, topic)


def parse_message(message: RealtimeMessage, topic: str) -> RealtimeNotice:
    """What a message of a joined channel means. Raises CloudUnavailable or LoginRequired where it ends the channel."""
    payload = message.payload if isinstance(message.payload, dict) else {}
    if message.topic != topic:
        return RealtimeNotice()
    if message.event == "broadcast":
        inner = payload.get("payload")
        head = inner.get("head") if isinstance(inner, dict) else None
        return RealtimeNotice(poke=True, head=head if type(head) is int and head >= 0 else None)
    if message.event in {"phx_close", "phx_error"}:
        raise CloudUnavailable("the server closed the channel")
    if message.event == "system" and payload.get("status") == "error":
        raise error_of_refusal({"reason": payload.get("message")})
    return RealtimeNotice(ready=message.event == "system" and payload.get("extension") == "system")


def error_of_refusal(response: object) -> CloudError:
    """The server's reason (`Kind: words`) as an error of ours. Its words are not repeated: they name the topic."""
    reason = str(response.get("reason", "")) if isinstance(response, dict) else ""
    if reason.startswith(TOKEN_REFUSED_PREFIXES):
        return LoginRequired("the channel does not accept the session's token")
    if reason.startswith(("Unauthorized", "You do not have", "You no longer have")):
        return Forbidden("the project lets nobody listen to his channel", hint=NO_REALTIME_HINT)
    return CloudUnavailable("the channel was refused")


def _error_of_status(status: int) -> CloudError:
    if status == 429:
        return RateLimited("the server asks for fewer connections")
    if status in {401, 403, 404}:
        return Forbidden(f"the project has no Realtime for this key ({status})", hint=NO_REALTIME_HINT)
    return CloudUnavailable(f"no channel: the server answered {status}")


def _decode_message(data: str | bytes) -> RealtimeMessage | None:
    """None for what is no message of a channel."""
    with suppress(*DECODE_ERRORS):
        return msgspec.json.decode(data, type=RealtimeMessage)
    return None
