"""A cloud that imports `SupabaseCloud` at its first call: the libraries take 300 ms."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping

from sync.clock import Clock
from sync.cloud.auth_port import AuthPort, AuthSession
from sync.cloud.contact import Contact
from sync.cloud.port import (
    Channel,
    Cloud,
    DeviceFacts,
    DeviceRow,
    EndedSessions,
    StoredDocument,
    SyncAnswer,
    SyncRequest,
)


class LazyCloud:
    """Import and build `SupabaseCloud` at the first call, and forward all calls to it."""

    def __init__(self, url: str, key: str, *, timeout: float, clock: Clock) -> None:
        self._arguments = (url, key)
        self._timeout = timeout
        self._clock = clock
        self._loaded: Cloud | None = None
        self._load_lock = asyncio.Lock()
        self.auth: AuthPort = _LazyAuth(self._load)

    async def register_device(self, session: AuthSession, device_id: str, facts: DeviceFacts) -> None:
        await (await self._load()).register_device(session, device_id, facts)

    async def list_devices(self, session: AuthSession) -> tuple[DeviceRow, ...]:
        return await (await self._load()).list_devices(session)

    async def rename_device(self, session: AuthSession, device_id: str, name: str) -> None:
        await (await self._load()).rename_device(session, device_id, name)

    async def revoke_device(self, session: AuthSession, device_id: str) -> EndedSessions:
        return await (await self._load()).revoke_device(session, device_id)

    async def report_refusals(self, session: AuthSession, device_id: str, refused: Mapping[str, int]) -> None:
        await (await self._load()).report_refusals(session, device_id, refused)

    async def sync(self, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        return await (await self._load()).sync(session, request)

    async def open_channel(self, session: AuthSession) -> Channel:
        return await (await self._load()).open_channel(session)

    async def read_document(self, session: AuthSession, device_id: str) -> StoredDocument | None:
        return await (await self._load()).read_document(session, device_id)

    async def is_reachable(self) -> bool:
        return await (await self._load()).is_reachable()

    async def close(self) -> None:
        if self._loaded is not None:
            await self._loaded.close()

    async def _load(self) -> Cloud:
        async with self._load_lock:
            if self._loaded is None:
                module = await asyncio.to_thread(importlib.import_module, "sync.cloud.supabase.cloud")
                self._loaded = module.SupabaseCloud(*self._arguments, timeout=self._timeout, clock=self._clock)
        return self._loaded


class _LazyAuth:
    """The `auth` of a `LazyCloud`."""

    def __init__(self, load: Callable[[], Awaitable[Cloud]]) -> None:
        self._load = load

    async def send_code(self, contact: Contact) -> None:
        await (await self._load()).auth.send_code(contact)

    async def verify_code(self, contact: Contact, code: str) -> AuthSession:
        return await (await self._load()).auth.verify_code(contact, code)

    async def sign_in_with_password(self, contact: Contact, password: str) -> AuthSession:
        return await (await self._load()).auth.sign_in_with_password(contact, password)

    async def refresh_session(self, session: AuthSession) -> AuthSession:
        return await (await self._load()).auth.refresh_session(session)

    async def identify_user(self, access_token: str) -> tuple[str, str]:
        return await (await self._load()).auth.identify_user(access_token)

    async def sign_out(self, session: AuthSession) -> None:
        await (await self._load()).auth.sign_out(session)
