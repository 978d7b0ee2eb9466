"""The account's devices as a person sees them: listed, named, revoked, hidden.

Decisions
    Renaming and revoking ask the server first and then record an event. The server decides (it may refuse, and a
    revoked device must not be able to say so itself); the event carries the name to the labels of every device, also
    of those that are offline when they ask. Repeating either after a crash between the two is harmless.
    The server's list is kept in a private file, so that a list can be given offline; events newer than it win.
    Hiding concerns this device alone: an event that never leaves it, so it needs no network and survives a restart.
"""

import asyncio
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from sync import __version__
from sync.clock import Clock, timestamp
from sync.cloud import store
from sync.cloud.account import Account
from sync.cloud.authorized import authorized
from sync.cloud.logins import Session
from sync.cloud.port import DeviceRow, EndedSessions
from sync.device import NAME_LENGTH
from sync.document.others import ABOUT_DEVICES, HIDDEN, MOST_EVENTS, REGISTERED, RENAMED, REVOKED, About, about_devices
from sync.errors import CloudError, DeviceRevoked, DeviceUnknown, InvalidInput
from sync.files import probe, write_private
from sync.log.envelope import UNDECODABLE
from sync.log.log import Log
from sync.log.model import Draft, Origin
from sync.redaction import Redactor
from sync.settings import Settings

Logins = Literal["ended", "unknown", "open"]
"""What became of the logins of a device that was just revoked.

`unknown`: the server knows none of it (it has not called since the project was updated). `open`: the project does not
let them be ended; the device can refresh its token, and the server refuses its calls.
"""


@dataclass(frozen=True, slots=True)
class KnownDevice:
    """One device. What only the server knows is None where it was never asked."""

    device_id: str
    name: str | None
    platform: str | None
    app_version: str | None
    public_key: str | None
    last_seen_at: str | None
    revoked: bool
    revoked_at: str | None
    hidden: bool
    this_device: bool


@dataclass(frozen=True, slots=True)
class DeviceList:
    """`source`: cloud where the server answered just now. `as_of`: when it last did, None where it never has."""

    source: Literal["cloud", "local"]
    as_of: str | None
    devices: tuple[KnownDevice, ...]
    logins: Logins | None = None


class _Kept(msgspec.Struct, frozen=True):
    """The server's last list, as it lies in the profile's folder."""

    as_of: str | None = None
    rows: tuple[DeviceRow, ...] = ()


class Devices:
    """The devices of one profile's account. `kept` is a private file for the server's last list."""

    def __init__(
        self, events: Log, account: Account, redactor: Redactor, *, kept: Path, clock: Clock, settings: Settings
    ) -> None:
        self._log = events
        self._account = account
        self._redactor = redactor.for_leaving()
        self._kept = kept
        self._clock = clock
        self._own_name = settings.device_name
        self._timeout = settings.sync.timeout_seconds

    async def list(self) -> DeviceList:
        """Every device of the account, revoked ones too; from what is known here where the cloud cannot be asked."""
        try:
            rows = await authorized(self._account, self._ask, timeout=self._timeout)
        except DeviceRevoked:  # the login is refused with the device: the server shows it no list
            known = await self._known()
            own = self._log.device_id
            marked = (replace(device, revoked=device.revoked or device.device_id == own) for device in known.devices)
            return replace(known, devices=tuple(marked))
        except CloudError:  # nobody is logged in, no network, an older project: `source` says that nobody answered
            return await self._known()
        kept = _Kept(timestamp(self._clock.now()), rows)
        await asyncio.to_thread(write_private, self._kept, msgspec.json.encode(kept))
        about = await self._about()
        return DeviceList("cloud", kept.as_of, merged(rows, about, self._log.device_id, server_is_newest=True))

    async def rename(self, device_id: str, name: str) -> DeviceList:
        """Give a device a name, for all devices. DeviceUnknown, DeviceRevoked, LoginRequired, CloudUnavailable."""
        clean = self._redactor.clean(name.replace("\0", "").strip())
        if not 0 < len(clean) <= NAME_LENGTH:
            raise InvalidInput(f"a name has 1 to {NAME_LENGTH} characters", field="name")

        async def rename(session: Session) -> None:
            await self._account.cloud.rename_device(session, device_id, clean)

        await authorized(self._account, rename, timeout=self._timeout)
        await self._tell(RENAMED, {"device_id": device_id, "name": clean})
        return await self.list()

    async def revoke(self, device_id: str) -> DeviceList:
        """Shut a device out of the account's cloud, for ever. Errors as `rename`."""

        async def revoke(session: Session) -> EndedSessions:
            return await self._account.cloud.revoke_device(session, device_id)

        ended = await authorized(self._account, revoke, timeout=self._timeout)
        if device_id != self._log.device_id:  # an event of a revoked device would wait for ever
            await self._tell(REVOKED, {"device_id": device_id})
        logins: Logins = "open" if ended.refused else "ended" if ended.known else "unknown"
        return replace(await self.list(), logins=logins)

    async def hide(self, device_id: str, *, hidden: bool) -> DeviceList:
        """Leave a device out of this device's digest, or take it in again. DeviceUnknown."""
        if device_id == self._log.device_id:
            raise InvalidInput("this device's own memory is its document, not a digest", field="deviceId")
        before = await self._known()
        if all(device.device_id != device_id for device in before.devices):
            raise DeviceUnknown("no device of this id is known here")
        await self._tell(HIDDEN, {"device_id": device_id, "hidden": hidden})
        return await self._known()

    async def introduce(self) -> None:
        """Record what this device calls itself where that is new; the others label its memory with it.

        Nothing is recorded for a guest: he has no other devices, and his first login introduces this one.
        """
        owner = await self._log.database.read(store.owner)
        if owner is None or not owner.user_id:
            return
        known = (await self._about()).get(self._log.device_id, About())
        name = self._redactor.clean(self._own_name)
        if known.calls_itself == name:
            return
        await self._tell(REGISTERED, {"name": name, "platform": platform.system(), "app_version": __version__})

    async def _ask(self, session: Session) -> tuple[DeviceRow, ...]:
        return await self._account.cloud.devices(session)

    async def _known(self) -> DeviceList:
        kept = await asyncio.to_thread(_read, self._kept)
        about = await self._about()
        return DeviceList("local", kept.as_of, merged(kept.rows, about, self._log.device_id, server_is_newest=False))

    async def _about(self) -> dict[str, About]:
        return about_devices(await self._log.newest(ABOUT_DEVICES, MOST_EVENTS))

    async def _tell(self, kind: str, facts: Mapping[str, object]) -> None:
        await self._log.record([Draft(type=kind, payload=self._redactor.payload(dict(facts)), origin=Origin.TOOL)])


def merged(
    rows: Sequence[DeviceRow], about: Mapping[str, About], own_id: str, *, server_is_newest: bool
) -> tuple[KnownDevice, ...]:
    """The server's list and what events say, this device first, then in the order of the rows, then by id."""
    of_server = {row.device_id: row for row in rows}
    order = dict.fromkeys((own_id, *of_server, *sorted(about)))
    return tuple(
        _one(
            of_server.get(device_id) or DeviceRow(device_id, None, None, None, None, "", "", None),
            about.get(device_id, About()),
            this_device=device_id == own_id,
            server_is_newest=server_is_newest,
        )
        for device_id in order
    )


def _one(row: DeviceRow, known: About, *, this_device: bool, server_is_newest: bool) -> KnownDevice:
    names = (row.name, known.name) if server_is_newest else (known.given, row.name, known.calls_itself)
    return KnownDevice(
        device_id=row.device_id,
        name=next(filter(None, names), None),
        platform=row.platform or known.platform,
        app_version=row.app_version or known.app_version,
        public_key=row.public_key,
        last_seen_at=row.last_seen_at or None,
        revoked=known.revoked or row.revoked_at is not None,
        revoked_at=row.revoked_at,
        hidden=known.hidden,
        this_device=this_device,
    )


def _read(path: Path) -> _Kept:
    found = probe(path)
    try:
        return _Kept() if found is None else msgspec.json.decode(found.data, type=_Kept)
    except UNDECODABLE:
        return _Kept()  # a damaged copy is no copy; the next answer of the server replaces it
