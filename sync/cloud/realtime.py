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

from sync.cloud.logins import Session
from sync.cloud.port import Heard
from sync.errors import CloudError, CloudUnavailable, Forbidden, LoginRequired, RateLimited
from sync.log.envelope import UNDECODABLE

PROTOCOL: Final = "1.0.0"  # of the serializer: one JSON object a message
MESSAGE_BYTES: Final = 64 * 1024
CLOSING_WITHIN: Final = 0.3  # seconds; a server that is gone need not hear a goodbye
JOIN: Final = "1"  # the reference of the one join of a connection
# how the server begins its reason when it is the token that it does not accept
TOKEN_REFUSED: Final = ("InvalidJWT", "JwtSign", "MalformedJWT", "InvalidToken", "Token")
NO_REALTIME: Final = "Apply sql/migrations; where Realtime came later: select ai_memory_private.allow_realtime();"

# Their DEBUG lines hold whole messages, the token among them.
logging.getLogger("websockets").setLevel(logging.WARNING)


class Message(msgspec.Struct):
    """One message of a Phoenix channel."""

    topic: str
    event: str
    payload: Any = {}
    ref: str | None = None


class _Straight(connect):
    """A connection that follows no redirect."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class RealtimeChannel:
    """A joined channel. `hear` raises CloudUnavailable or LoginRequired once it is over."""

    def __init__(self, connection: ClientConnection, topic: str) -> None:
        self._connection = connection
        self._topic = topic

    async def hear(self) -> Heard:
        while True:
            try:
                message = _decoded(await self._connection.recv())
            except WebSocketException as error:
                raise CloudUnavailable("the channel was cut") from error
            if message is not None:
                return understand(message, self._topic)

    async def beat(self) -> None:
        await self._say(Message("phoenix", "heartbeat", {}, "beat"))

    async def renew(self, session: Session) -> None:
        await self._say(Message(self._topic, "access_token", {"access_token": session.access_token}))

    async def close(self) -> None:
        await self._connection.close()  # which never raises, and aborts after CLOSING_WITHIN

    async def _say(self, message: Message) -> None:
        try:
            await self._connection.send(msgspec.json.encode(message).decode())
        except WebSocketException as error:
            raise CloudUnavailable("the channel was cut") from error


async def join(url: str, key: str, session: Session, *, timeout: float, tls: SSLContext) -> RealtimeChannel:
    """Connect to the project at `url` and join its user's channel, within `timeout` seconds as a whole.

    Raises CloudUnavailable, RateLimited, LoginRequired (the token is refused), Forbidden (nobody may listen there).
    """
    address = f"ws{url.removeprefix('http')}/realtime/v1/websocket?{urlencode({'apikey': key, 'vsn': PROTOCOL})}"
    connection: ClientConnection | None = None
    try:
        async with asyncio.timeout(timeout):
            connection = await _Straight(
                address,
                ssl=tls if address.startswith("wss:") else None,
                max_size=MESSAGE_BYTES,
                ping_interval=None,  # the channel's own heartbeat says more: that the server behind the gateway lives
                close_timeout=CLOSING_WITHIN,
                compression=None,
            )
            return await _joined(connection, session)
    except BaseException as error:
        if connection is not None:
            connection.transport.abort()
        if isinstance(error, InvalidStatus):
            raise _refusal(error.response.status_code) from error
        # ImportError: a SOCKS proxy is set, and the package that speaks to it is not there; ValueError: an address of a
        # proxy that is none
        if isinstance(error, TimeoutError | OSError | WebSocketException | ImportError | ValueError):
            raise CloudUnavailable(f"no channel ({type(error).__name__})") from error
        raise


async def _joined(connection: ClientConnection, session: Session) -> RealtimeChannel:
    topic = f"realtime:ai_memory:{session.user_id}"
    config = {
        "private": True,
        "broadcast": {"ack": False, "self": False, "replication_ready": True},
        "presence": {"key": "", "enabled": False},
        "postgres_changes": [],
    }
    asked = Message(topic, "phx_join", {"config": config, "access_token": session.access_token}, JOIN)
    await connection.send(msgspec.json.encode(asked).decode())
    while True:
        answer = _decoded(await connection.recv())
        if answer is not None and (answer.event, answer.topic, answer.ref) == ("phx_reply", topic, JOIN):
            said = answer.payload if isinstance(answer.payload, dict) else {}
            if said.get("status") != "ok":
                raise why_refused(said.get("response"))
            return RealtimeChannel(connection, topic)


def understand(message: Message, topic: str) -> Heard:
    """What a message of a joined channel means. Raises CloudUnavailable or LoginRequired where it ends the channel."""
    payload = message.payload if isinstance(message.payload, dict) else {}
    if message.topic != topic:
        return Heard()
    if message.event == "broadcast":
        inner = payload.get("payload")
        head = inner.get("head") if isinstance(inner, dict) else None
        return Heard(poke=True, head=head if type(head) is int and head >= 0 else None)
    if message.event in {"phx_close", "phx_error"}:
        raise CloudUnavailable("the server closed the channel")
    if message.event == "system" and payload.get("status") == "error":
        raise why_refused({"reason": payload.get("message")})
    return Heard(ready=message.event == "system" and payload.get("extension") == "system")


def why_refused(response: object) -> CloudError:
    """The server's reason (`Kind: words`) as an error of ours. Its words are not repeated: they name the topic."""
    reason = str(response.get("reason", "")) if isinstance(response, dict) else ""
    if reason.startswith(TOKEN_REFUSED):
        return LoginRequired("the channel does not accept the session's token")
    if reason.startswith(("Unauthorized", "You do not have", "You no longer have")):
        return Forbidden("the project lets nobody listen to his channel", hint=NO_REALTIME)
    return CloudUnavailable("the channel was refused")


def _refusal(status: int) -> CloudError:
    if status == 429:
        return RateLimited("the server asks for fewer connections")
    if status in {401, 403, 404}:
        return Forbidden(f"the project has no Realtime for this key ({status})", hint=NO_REALTIME)
    return CloudUnavailable(f"no channel: the server answered {status}")


def _decoded(data: str | bytes) -> Message | None:
    """None for what is no message of a channel."""
    with suppress(*UNDECODABLE):
        return msgspec.json.decode(data, type=Message)
    return None
