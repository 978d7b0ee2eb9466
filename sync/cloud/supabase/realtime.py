"""The user's private channel on Supabase Realtime: Phoenix messages over one websocket.

A channel is one connection; after any error the caller opens another. There are no redirects: the first message
contains the token. The server answers a join before it follows the database's log, so the channel is `ready` only once
`replication_ready` says so. docs/decisions/004-supabase-clients.md says why the `realtime` package is not used.
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

PROTOCOL_VERSION: Final = "1.0.0"  # of the serializer: one JSON object per message
MAX_MESSAGE_BYTES: Final = 64 * 1024
CLOSE_TIMEOUT: Final = 0.3  # seconds
JOIN_REF: Final = "1"  # the reference of the one join of a connection
# the server's reasons that mean a refused token begin with one of these
TOKEN_REFUSED_PREFIXES: Final = ("InvalidJWT", "JwtSign", "MalformedJWT", "InvalidToken", "Token")
NO_REALTIME_HINT: Final = "Apply sql/migrations; where Realtime came later: select ai_memory_private.allow_realtime();"

# Its DEBUG lines contain the token.
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
    """A joined channel. `receive` raises CloudUnavailable or LoginRequired once it has ended."""

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
        await self._connection.close()  # never raises, and aborts after CLOSE_TIMEOUT

    async def _send(self, message: RealtimeMessage) -> None:
        try:
            await self._connection.send(msgspec.json.encode(message).decode())
        except WebSocketException as error:
            raise CloudUnavailable("the channel was cut") from error


async def join_channel(url: str, key: str, session: AuthSession, *, timeout: float, tls: SSLContext) -> RealtimeChannel:
    """Connect to the project at `url` and join its user's channel, within `timeout` seconds as a whole.

    Raises CloudUnavailable, RateLimited, LoginRequired (the token is refused), Forbidden (users may not join).
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
                ping_interval=None,  # the channel's heartbeat also checks the server behind the gateway
                close_timeout=CLOSE_TIMEOUT,
                compression=None,
            )
            return await _join(connection, session)
    except BaseException as error:
        if connection is not None:
            connection.transport.abort()
        if isinstance(error, InvalidStatus):
            raise _error_of_status(error.response.status_code) from error
        # ImportError: a SOCKS proxy is set and its package is missing; ValueError: the proxy's address is invalid
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
    join = RealtimeMessage(topic, "phx_join", {"config": config, "access_token": session.access_token}, JOIN_REF)
    await connection.send(msgspec.json.encode(join).decode())
    while True:
        answer = _decode_message(await connection.recv())
        if answer is not None and (answer.event, answer.topic, answer.ref) == ("phx_reply", topic, JOIN_REF):
            payload = answer.payload if isinstance(answer.payload, dict) else {}
            if payload.get("status") != "ok":
                raise error_of_refusal(payload.get("response"))
            return RealtimeChannel(connection, topic)


def parse_message(message: RealtimeMessage, topic: str) -> RealtimeNotice:
    """The notice in a message. Raises CloudUnavailable or LoginRequired if the message ends the channel."""
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
    """Translate the server's reason (`Kind: words`). Its words are dropped: they name the topic."""
    reason = str(response.get("reason", "")) if isinstance(response, dict) else ""
    if reason.startswith(TOKEN_REFUSED_PREFIXES):
        return LoginRequired("the channel does not accept the session's token")
    if reason.startswith(("Unauthorized", "You do not have", "You no longer have")):
        return Forbidden("the project does not let users join their channels", hint=NO_REALTIME_HINT)
    return CloudUnavailable("the channel was refused")


def _error_of_status(status: int) -> CloudError:
    if status == 429:
        return RateLimited("the server asks for fewer connections")
    if status in {401, 403, 404}:
        return Forbidden(f"the project has no Realtime for this key ({status})", hint=NO_REALTIME_HINT)
    return CloudUnavailable(f"no channel: the server answered {status}")


def _decode_message(data: str | bytes) -> RealtimeMessage | None:
    """None if the data is not a Phoenix message."""
    with suppress(*DECODE_ERRORS):
        return msgspec.json.decode(data, type=RealtimeMessage)
    return None
