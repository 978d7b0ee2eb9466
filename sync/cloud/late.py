"""The Supabase port, imported when it is first needed: its libraries take 300 ms that no answer waits for."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping

from sync.clock import Clock
from sync.cloud.contact import Contact
from sync.cloud.logins import Logins, Session
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


class LateCloud:
    """Stands for `SupabaseCloud` until the first call."""

    def __init__(self, url: str, key: str, *, timeout: float, clock: Clock) -> None:
        self._arguments = (url, key)
        self._timeout = timeout
        self._clock = clock
        self._real: Cloud | None = None
        self._loading = asyncio.Lock()
        self.logins: Logins = _LateLogins(self._cloud)

    async def register_device(self, session: Session, device_id: str, facts: DeviceFacts) -> None:
        await (await self._cloud()).register_device(session, device_id, facts)

    async def devices(self, session: Session) -> tuple[DeviceRow, ...]:
        return await (await self._cloud()).devices(session)

    async def rename_device(self, session: Session, device_id: str, name: str) -> None:
        await (await self._cloud()).rename_device(session, device_id, name)

    async def revoke_device(self, session: Session, device_id: str) -> EndedSessions:
        return await (await self._cloud()).revoke_device(session, device_id)

    async def report(self, session: Session, device_id: str, refused: Mapping[str, int]) -> None:
        await (await self._cloud()).report(session, device_id, refused)

    async def sync(self, session: Session, request: SyncRequest) -> SyncAnswer:
        return await (await self._cloud()).sync(session, request)

    async def listen(self, session: Session) -> Channel:
        return await (await self._cloud()).listen(session)

    async def read_document(self, session: Session, device_id: str) -> StoredDocument | None:
        return await (await self._cloud()).read_document(session, device_id)

    async def reachable(self) -> bool:
        return await (await self._cloud()).reachable()

    async def close(self) -> None:
        if self._real is not None:
            await self._real.close()

    async def _cloud(self) -> Cloud:
        async with self._loading:
            if self._real is None:
                module = await asyncio.to_thread(importlib.import_module, "sync.cloud.supabase")
                self._real = module.SupabaseCloud(*self._arguments, timeout=self._timeout, clock=self._clock)
        return self._real


class _LateLogins:
    """The login half of whatever `cloud` answers."""

    def __init__(self, cloud: Callable[[], Awaitable[Cloud]]) -> None:
        self._cloud = cloud

    async def start(self, contact: Contact) -> None:
        await (await self._cloud()).logins.start(contact)

    async def verify(self, contact: Contact, code: str) -> Session:
        return await (await self._cloud()).logins.verify(contact, code)

    async def sign_in(self, contact: Contact, password: str) -> Session:
        return await (await self._cloud()).logins.sign_in(contact, password)

    async def refresh(self, session: Session) -> Session:
        return await (await self._cloud()).logins.refresh(session)

    async def identify(self, access_token: str) -> tuple[str, str]:
        return await (await self._cloud()).logins.identify(access_token)

    async def sign_out(self, session: Session) -> None:
        await (await self._cloud()).logins.sign_out(session)
