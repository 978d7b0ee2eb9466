"""Realtime's broadcasts: Phoenix channels over a websocket, authorised and fed by the database.

As on a hosted project, a private topic is joined with the user's role and claims: a probe row is inserted, selected as
that user, and rolled back. Sending is checked the same way. A channel ends with its token.
Missing: presence, database changes, replay, rate limits, the binary serializer.
"""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg.types.json import Jsonb
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.server import ServerProtocol

from tests.cloud.http_server import CHUNK, Request

PATH: Final = "/realtime/v1/websocket"
SILENCE: Final = 60.0  # seconds; a client without heartbeats is dropped
PREFIX: Final = "realtime:"
PROBE: Final = "insert into realtime.messages (topic, extension, private, payload) values (%s, 'broadcast', true, %s)"

Json = dict[str, Any]


class RefusedError(Exception):
    """The reason, as a hosted server words it."""


@dataclass
class Membership:
    """One joined topic of one socket."""

    topic: str
    private: bool
    claims: Json
    end: asyncio.TimerHandle | None = None


@dataclass
class Socket:
    """One client."""

    protocol: ServerProtocol
    writer: asyncio.StreamWriter
    joined: dict[str, Membership] = field(default_factory=dict)

    def send(self, topic: str, event: str, payload: Json, ref: str | None = None) -> None:
        self.protocol.send_text(json.dumps({"topic": topic, "event": event, "payload": payload, "ref": ref}).encode())
        self.flush()

    def reply(self, request: Json, status: str, response: Json) -> None:
        self.send(request["topic"], "phx_reply", {"status": status, "response": response}, request.get("ref"))

    def leave(self, topic: str, why: str) -> None:
        member = self.joined.pop(topic, None)
        if member is None:
            return
        if member.end is not None:
            member.end.cancel()
        if why:
            told = {"extension": "system", "status": "error", "message": why, "channel": member.topic}
            self.send(topic, "system", told)
        self.send(topic, "phx_close", {})

    def flush(self) -> None:
        for data in self.protocol.data_to_send():
            if data:
                self.writer.write(data)


class Realtime:
    """Serves websockets while the gateway is open."""

    def __init__(self, database_url: str, *, keys: set[str], jwt_secret: str) -> None:
        self._database = database_url
        self._keys = keys
        self._secret = jwt_secret.encode()
        self._clients: list[Socket] = []
        self._follower: asyncio.Task[None] | None = None

    async def serve(
        self, request: Request, early: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one client from its handshake to its end."""
        socket = Socket(ServerProtocol(), writer)
        lines = [f"{request.method} {request.target} HTTP/1.1".encode()]
        lines += [name + b": " + value for name, value in request.headers]
        socket.protocol.receive_data(b"\r\n".join(lines) + b"\r\n\r\n" + early)
        await self._follow()
        self._clients.append(socket)
        try:
            while True:
                for event in socket.protocol.events_received():
                    await self._receive(socket, event)
                socket.flush()
                await writer.drain()
                if socket.protocol.close_expected():
                    return
                async with asyncio.timeout(SILENCE):
                    data = await reader.read(CHUNK)
                if not data:
                    return
                socket.protocol.receive_data(data)
        except TimeoutError:
            return
        finally:
            self._clients.remove(socket)
            for member in socket.joined.values():
                if member.end is not None:
                    member.end.cancel()

    async def close(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
            self._follower = None

    # --- the database ------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Begin to listen for commits, before a join is answered."""
        if self._follower is None or self._follower.done():
            connection = await psycopg.AsyncConnection.connect(self._database, autocommit=True)
            await connection.execute("listen realtime_messages")
            self._follower = asyncio.create_task(self._deliver_all(connection))

    async def _deliver_all(self, connection: psycopg.AsyncConnection[Any]) -> None:
        async with connection:
            async for note in connection.notifies():
                told = json.loads(note.payload)
                payload = {"id": told["id"], **told["payload"]}
                self._deliver(told["topic"], told["event"], payload, private=told["private"])

    def _deliver(self, topic: str, event: str, payload: Json, *, private: bool, but: Socket | None = None) -> None:
        for socket in self._clients:
            member = socket.joined.get(PREFIX + topic)
            if member is not None and member.private == private and socket is not but:
                socket.send(PREFIX + topic, "broadcast", {"type": "broadcast", "event": event, "payload": payload})

    async def _is_allowed(self, topic: str, claims: Json, *, send: bool) -> bool:
        """Whether the policies on realtime.messages allow this user on this topic."""
        async with (
            await psycopg.AsyncConnection.connect(self._database) as connection,
            connection.transaction(force_rollback=True),
        ):
            if not send:
                await connection.execute(PROBE, [topic, Jsonb({})])
            settings = {"request.jwt.claims": json.dumps(claims), "realtime.topic": topic, "role": claims["role"]}
            for name, value in settings.items():
                await connection.execute("select set_config(%s, %s, true)", [name, value])
            try:
                if send:
                    await connection.execute(PROBE, [topic, Jsonb({})])
                    return True
                found = await connection.execute("select from realtime.messages where topic = %s", [topic])
                return await found.fetchone() is not None
            except psycopg.errors.InsufficientPrivilege:
                return False

    # --- the clients -------------------------------------------------------------------------------------

    async def _receive(self, socket: Socket, event: object) -> None:
        if isinstance(event, Handshake):
            known = any(f"apikey={key}" in event.path for key in self._keys)
            protocol = socket.protocol
            protocol.send_response(protocol.accept(event) if known else protocol.reject(401, "Invalid API key"))
        elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # nonsense is not answered
                await self._handle(socket, json.loads(bytes(event.data)))

    async def _handle(self, socket: Socket, request: Json) -> None:
        topic, event, payload = request["topic"], request["event"], request.get("payload") or {}
        if (topic, event) == ("phoenix", "heartbeat"):
            socket.reply(request, "ok", {})
        elif event == "phx_join":
            await self._join(socket, request, payload)
        elif event == "phx_leave":
            socket.reply(request, "ok", {})
            socket.leave(topic, "")
        elif event == "access_token" and topic in socket.joined:
            member = socket.joined[topic]
            try:
                await self._admit(socket, topic, payload["access_token"], private=member.private)
            except RefusedError as error:
                socket.leave(topic, str(error).partition(": ")[2])
        elif event == "broadcast" and topic in socket.joined:
            member = socket.joined[topic]
            if not member.private or await self._is_allowed(member.topic, member.claims, send=True):
                self._deliver(member.topic, payload["event"], payload["payload"], private=member.private, but=socket)

    async def _join(self, socket: Socket, request: Json, payload: Json) -> None:
        config = payload.get("config") or {}
        try:
            private = bool(config.get("private"))
            await self._admit(socket, request["topic"], str(payload.get("access_token")), private=private)
        except RefusedError as error:
            socket.reply(request, "error", {"reason": str(error)})
            return
        socket.reply(request, "ok", {"postgres_changes": []})
        if (config.get("broadcast") or {}).get("replication_ready"):
            told = {"extension": "system", "status": "ok", "message": "Replication connection established"}
            socket.send(request["topic"], "system", {**told, "channel": request["topic"].removeprefix(PREFIX)})

    async def _admit(self, socket: Socket, name: str, token: str, *, private: bool) -> None:
        """Add the socket as a member, or renew its membership with another token."""
        claims = self._claims(token)
        topic = name.removeprefix(PREFIX)
        if private and not await self._is_allowed(topic, claims, send=False):
            raise RefusedError(f"Unauthorized: You do not have permissions to read from this Channel topic: {topic}")
        old = socket.joined.get(name)
        if old is not None and old.end is not None:
            old.end.cancel()
        over: Callable[[], None] = lambda: socket.leave(name, "Token has expired 0 seconds ago")  # noqa: E731
        end = asyncio.get_running_loop().call_later(claims["exp"] - time.time(), over)
        socket.joined[name] = Membership(topic, private, claims, end)

    def _claims(self, token: str) -> Json:
        """The claims of a valid token of this project."""
        try:
            signed, _, signature = token.rpartition(".")
            right = hmac.digest(self._secret, signed.encode(), hashlib.sha256)
            claims: Json = json.loads(_unpacked(signed.partition(".")[2]))
            genuine = hmac.compare_digest(_unpacked(signature), right)
        except ValueError as error:
            raise RefusedError("MalformedJWT: The token provided is not a valid JWT") from error
        if not genuine:
            raise RefusedError("JwtSignatureError: Failed to validate JWT signature")
        if claims["exp"] <= time.time():
            raise RefusedError("InvalidJWTToken: Token has expired 1 seconds ago")
        return {"is_anonymous": False, **claims}


def _unpacked(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
