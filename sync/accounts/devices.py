"""List, rename, revoke and hide the account's devices.

Renaming and revoking call the server first, which decides, and then record an event, which brings the name to all
devices. Repeating either after a crash in between is harmless. The server's list is stored for use offline; newer
events win. Hiding is a local event: it concerns this device only.
"""

import asyncio
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from sync import __version__
from sync.accounts.paired_devices import PairedDevices
from sync.clock import Clock, timestamp, to_unix_ms
from sync.cloud.auth import device_key_store, owner_store
from sync.cloud.auth.account import Account
from sync.cloud.auth.device_key import DeviceKey
from sync.cloud.auth.device_key_store import PairedDeviceRow
from sync.cloud.auth.token_retry import with_fresh_token
from sync.cloud.auth_port import AuthSession
from sync.cloud.port import DeviceRow, EndedSessions
from sync.errors import CloudError, DeviceRevoked, DeviceUnknown, InvalidInput
from sync.log.authorship import one_line
from sync.log.devices import store as registry_store
from sync.log.devices.device_registry import DeviceRegistry, RegisteredDevice
from sync.log.envelope import DECODE_ERRORS
from sync.log.event_types import (
    DEVICE_ADMITTED,
    DEVICE_HIDDEN,
    DEVICE_REGISTERED,
    DEVICE_RENAMED,
    DEVICE_REVOKED,
)
from sync.log.log import EventLog
from sync.log.model import EventDraft, Origin
from sync.redaction import Redactor
from sync.settings.settings import Settings
from sync.system.files import read_once, write_private
from sync.system.hardware_id import MAX_DEVICE_NAME

NOT_OF_ACCOUNT: Final = "no device of this account has this id"
NOT_ADMITTED: Final = "this device is not admitted itself"
ADMIT_HINT: Final = "Admit it on a device that is admitted, or `devices admit --recover` here if there is none."
RevokedLogins = Literal["ended", "unknown", "open"]
"""The logins of a device that was just revoked.

`unknown`: the server knows no login of it. `open`: the project does not allow ending them; the device can still refresh
its token, and the server refuses its calls.
"""


class KnownDeviceJson(msgspec.Struct, frozen=True, rename="camel"):
    """A device of the account. What only the server knows is null until its first answer.

    `paired`: it was paired with this device by code.
    """

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
    paired: bool


class DevicesJson(msgspec.Struct, frozen=True, rename="camel"):
    """`source`: local if the server did not answer this call; `asOf`: its last answer.

    `logins`: what became of the logins of a device that was just revoked.
    """

    source: Literal["cloud", "local"]
    as_of: str | None
    devices: tuple[KnownDeviceJson, ...]
    logins: RevokedLogins | None


class _StoredDeviceList(msgspec.Struct, frozen=True):
    """The server's last list, stored in the profile's folder."""

    as_of: str | None = None
    rows: tuple[DeviceRow, ...] = ()


class DeviceService:
    """The devices of one profile's account. `list_file` stores the server's last list; `paired` are not all on it."""

    def __init__(
        self,
        events: EventLog,
        account: Account,
        redactor: Redactor,
        paired: PairedDevices,
        key: DeviceKey,
        *,
        list_file: Path,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._log = events
        self._account = account
        self.account_changed = account.changed
        self._redactor = redactor.for_egress()
        self.paired = paired
        paired.after_pairing = self._on_pairing
        self._key = key
        self._list_file = list_file
        self._clock = clock
        self._own_name = settings.device_name
        self._timeout = settings.sync.timeout_seconds

    async def list(self) -> DevicesJson:
        """Every device of the account, revoked ones too; from local data if the cloud cannot be reached."""
        try:
            rows = await with_fresh_token(self._account, self._fetch_rows, timeout=self._timeout)
        except DeviceRevoked:  # the server refuses the device's login and shows no list
            known = await self._local_list()
            own = self._log.device_id
            marked = (replace(device, revoked=device.revoked or device.device_id == own) for device in known.devices)
            return replace(known, devices=tuple(marked))
        except CloudError:  # no login, no network, an older project
            return await self._local_list()
        kept = _StoredDeviceList(timestamp(self._clock.now()), rows)
        await asyncio.to_thread(write_private, self._list_file, msgspec.json.encode(kept))
        about, paired = (await self.registry()).devices, await self.paired.read()
        devices = merge_device_rows(rows, about, paired, self._log.device_id)
        return DevicesJson("cloud", kept.as_of, devices, logins=None)

    async def find_id(self, shown: str) -> str:
        """Return the id that lists show so, on one line; `shown` itself if no device is shown so."""
        known = [device.device_id for device in (await self._local_list()).devices]
        return shown if shown in known else next((name for name in known if one_line(name) == shown), shown)

    async def rename(self, device_id: str, name: str) -> DevicesJson:
        """Give a device a name, for all devices. DeviceUnknown, DeviceRevoked, LoginRequired, CloudUnavailable."""
        clean = self._redactor.clean(name.replace("\0", "").strip())
        if not 0 < len(clean) <= MAX_DEVICE_NAME:
            raise InvalidInput(f"a name has 1 to {MAX_DEVICE_NAME} characters", field="name")

        async def rename(session: AuthSession) -> None:
            await self._account.cloud.rename_device(session, device_id, clean)

        registry = await self.registry()
        if registry.is_new(self._log.device_id) and device_id in registry.devices.keys() - self._log.own_device_ids:
            raise InvalidInput(NOT_ADMITTED, field="deviceId", hint=ADMIT_HINT)
        try:
            await with_fresh_token(self._account, rename, timeout=self._timeout)
        except DeviceUnknown:  # the server says it as of the device that calls
            raise DeviceUnknown(NOT_OF_ACCOUNT) from None
        await self._record_event(DEVICE_RENAMED, {"device_id": device_id, "name": clean})
        return await self.list()

    async def revoke(self, device_id: str) -> DevicesJson:
        """Exclude a device from the account for ever. Raises as `rename`; not for a device that is only paired."""

        async def revoke(session: AuthSession) -> EndedSessions:
            return await self._account.cloud.revoke_device(session, device_id)

        logins: RevokedLogins | None = None
        try:
            ended = await with_fresh_token(self._account, revoke, timeout=self._timeout)
            logins = "open" if ended.refused else "ended" if ended.known else "unknown"
        except CloudError as error:
            if not await self._is_only_paired(device_id):
                raise DeviceUnknown(NOT_OF_ACCOUNT) if isinstance(error, DeviceUnknown) else error from None
        if device_id != self._log.device_id:  # an event of a revoked device would wait for ever
            await self._record_event(DEVICE_REVOKED, {"device_id": device_id})
        return replace(await self.list(), logins=logins)

    async def _is_only_paired(self, device_id: str) -> bool:
        """Whether no server knows this device, as far as is known here, and it is paired with this one."""
        listed = await asyncio.to_thread(_read_stored_list, self._list_file)
        is_paired = any(row.device_id == device_id for row in await self.paired.read())
        return is_paired and all(row.device_id != device_id for row in listed.rows)

    async def hide(self, device_id: str, *, hidden: bool) -> DevicesJson:
        """Hide a device from this device's digest, or show it again. Raises DeviceUnknown."""
        if device_id == self._log.device_id:
            raise InvalidInput("this device's own memory is its document, not a digest", field="deviceId")
        before = await self._local_list()
        if all(device.device_id != device_id for device in before.devices):
            raise DeviceUnknown("no device of this id is known here")
        await self._record_event(DEVICE_HIDDEN, {"device_id": device_id, "hidden": hidden})
        return await self._local_list()

    async def keys_and_revocations(self) -> tuple[dict[str, str], dict[str, str | None]]:
        """The known public keys, each with its device, and the revoked devices with their keys, as far as known.

        From local data: pairings, the last sync, the last list of the server, and the events since.
        """
        keys = {row.public_key: row.device_id for row in await self.paired.read()}
        keys |= await self._log.database.read(device_key_store.read_device_keys)
        known = await self._local_list()
        return keys, {device.device_id: device.public_key for device in known.devices if device.revoked}

    async def account_id(self) -> str | None:
        """The account's id; None for a guest."""
        owner = await self._log.database.read(owner_store.read_owner)
        return None if owner is None else owner.user_id or None

    async def record_own_name(self) -> None:
        """Record this device's name and key if they are new; other devices label its memory with it.

        A guest has no other devices, so nothing is recorded until the first login or pairing.
        """
        if await self.account_id() is None and not await self.paired.read():
            return
        known = (await self.registry()).device(self._log.device_id)
        name, key = self._redactor.clean(self._own_name), await self._key.public_key()
        if known.own_name == name and key in known.keys:
            return
        about = {"name": name, "platform": platform.system(), "app_version": __version__}
        payload = self._redactor.clean_payload_with_ids("public_key", key, about)  # a rule would take it for a secret
        await self._log.append([EventDraft(DEVICE_REGISTERED, payload, origin=Origin.TOOL)])

    async def registry(self) -> DeviceRegistry:
        """The account's devices as the replicated events describe them."""
        return await self._log.database.read(registry_store.read_registry)

    async def admit(self, device_id: str, *, recover: bool = False) -> DevicesJson:
        """Say that a device is the user's too: what it changes in the facts of others holds. Raises InvalidInput.

        `recover`: this device admits itself, because no admitted one has spoken for long enough.
        """
        own, registry = self._log.device_id, await self.registry()
        if recover:
            await self._check_recovery(registry)
        elif not registry.is_admitted(own):
            raise InvalidInput(NOT_ADMITTED, field="deviceId", hint=ADMIT_HINT)
        elif device_id not in registry.devices or registry.device(device_id).revoked_at is not None:
            raise DeviceUnknown(NOT_OF_ACCOUNT)
        if not registry.is_admitted(device_id):
            await self.record_admission(device_id, **({"recovery": True} if recover else {}))
        return await self.list()

    async def record_admission(self, device_id: str, **fields: bool) -> None:
        """Record that a device is admitted."""
        await self._record_event(DEVICE_ADMITTED, {"device_ids": [device_id], **fields})

    async def _check_recovery(self, registry: DeviceRegistry) -> None:
        last_spoken = await self._log.database.read(registry_store.read_last_spoken)
        allowed = registry.recovery_at(last_spoken)
        if to_unix_ms(self._clock.now()) < allowed and not registry.is_admitted(self._log.device_id):
            day = timestamp(datetime.fromtimestamp(allowed / 1000, UTC))
            hint = f"Admit it on one of them, or try again after {day} if none of them is used until then."
            raise InvalidInput("an admitted device of the account was used lately", field="recover", hint=hint)

    async def admit_successor(self, device_id: str) -> None:
        """Admit the id that this device has from now on, if its present one is admitted."""
        if (await self.registry()).device(self._log.device_id).is_admitted:
            await self.record_admission(device_id)

    async def _on_pairing(self, device_id: str) -> None:
        """Admit a device that was paired by code: on both screens a person said that it is theirs."""
        await self.record_own_name()
        if not (await self.registry()).device(device_id).is_admitted:
            await self.record_admission(device_id)

    async def _fetch_rows(self, session: AuthSession) -> tuple[DeviceRow, ...]:
        return await self._account.cloud.list_devices(session)

    async def _local_list(self) -> DevicesJson:
        kept = await asyncio.to_thread(_read_stored_list, self._list_file)
        about, paired = (await self.registry()).devices, await self.paired.read()
        devices = merge_device_rows(kept.rows, about, paired, self._log.device_id)
        return DevicesJson("local", kept.as_of, devices, logins=None)

    async def _record_event(self, event_type: str, facts: Mapping[str, object]) -> None:
        await self._log.append(
            [EventDraft(type=event_type, payload=self._redactor.clean_payload(dict(facts)), origin=Origin.TOOL)]
        )


def merge_device_rows(
    rows: Sequence[DeviceRow],
    facts: Mapping[str, RegisteredDevice],
    paired: Sequence[PairedDeviceRow],
    own_id: str,
) -> tuple[KnownDeviceJson, ...]:
    """Merge the server's list, facts from events and pairings: this device first, then in the server's order.

    Any login can give a device another name on the server, so the name that the events say comes first.
    """
    of_server = {row.device_id: row for row in rows}
    by_code = {row.device_id: row for row in paired}
    order = dict.fromkeys((own_id, *of_server, *by_code, *sorted(facts)))
    return tuple(
        _merge_device(
            of_server.get(device_id) or DeviceRow(device_id, None, None, None, None, "", "", None),
            facts.get(device_id, RegisteredDevice()),
            by_code.get(device_id),
            this_device=device_id == own_id,
        )
        for device_id in order
    )


def _merge_device(
    row: DeviceRow,
    facts: RegisteredDevice,
    pairing: PairedDeviceRow | None,
    *,
    this_device: bool,
) -> KnownDeviceJson:
    paired_name, paired_key = (pairing.name, pairing.public_key) if pairing else (None, None)
    return KnownDeviceJson(
        device_id=row.device_id,
        name=one_line(facts.name or row.name or paired_name or "") or None,
        platform=one_line(row.platform or facts.platform or "") or None,
        app_version=one_line(row.app_version or facts.app_version or "") or None,
        public_key=row.public_key or paired_key,
        last_seen_at=row.last_seen_at or None,
        revoked=facts.revoked_at is not None or row.revoked_at is not None,
        revoked_at=row.revoked_at,
        hidden=facts.is_hidden,
        this_device=this_device,
        paired=pairing is not None,
    )


def _read_stored_list(path: Path) -> _StoredDeviceList:
    found = read_once(path)
    try:
        return _StoredDeviceList() if found is None else msgspec.json.decode(found.data, type=_StoredDeviceList)
    except DECODE_ERRORS:
        return _StoredDeviceList()  # a damaged copy is no copy; the next answer of the server replaces it
