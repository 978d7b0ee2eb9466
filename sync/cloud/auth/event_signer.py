"""Sign this device's events where they leave it, and mark those whose author another channel does not prove."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from sync.cloud.auth import device_key_store
from sync.cloud.auth.device_key import DeviceKey
from sync.db.engine import Transaction
from sync.log.devices import store as registry_store
from sync.log.devices.signing import signature_field, signed_bytes, signer_of
from sync.log.log import EventLog
from sync.log.model import SIGNATURE_FIELD, UNPROVEN_FIELD, Event

DeviceKeys = Mapping[str, frozenset[str]]  # the public keys of each device, former ones too


class EventSigner:
    """Signs and verifies for one profile."""

    def __init__(self, event_log: EventLog, key: DeviceKey) -> None:
        self._log = event_log
        self._key = key

    async def sign(self, events: Sequence[Event]) -> tuple[Event, ...]:
        """Sign the events of this device that have no signature; return all of them in their order."""
        own = self._log.own_device_ids
        unsigned = [event for event in events if event.device_id in own and SIGNATURE_FIELD not in event.extra]
        if not unsigned:
            return tuple(events)
        texts = await asyncio.to_thread(lambda: [signed_bytes(event) for event in unsigned])
        public_key, signatures = await self._key.sign_all(texts)
        fields = {
            event.event_id: signature_field(event, public_key, signature)
            for event, signature in zip(unsigned, signatures, strict=True)
        }
        return tuple(
            replace(event, extra={**event.extra, SIGNATURE_FIELD: fields[event.event_id]})
            if event.event_id in fields
            else event
            for event in events
        )

    async def sign_texts(self, texts: Sequence[bytes]) -> tuple[str, list[str]]:
        """Return the public key, and the signature of each text."""
        return await self._key.sign_all(texts)

    async def mark_unproven(self, events: Sequence[Event], *, channel_device: str) -> list[Event]:
        """Mark the events that neither their channel nor a signature proves.

        `channel_device`: whose events the channel proves, empty if it proves none; never those of this device.
        """
        own = self._log.own_device_ids
        proven_by_channel = frozenset({channel_device}) - own
        if all(event.device_id in proven_by_channel for event in events):
            return list(events)
        keys = await self.device_keys()
        return await asyncio.to_thread(lambda: [_marked(event, proven_by_channel, keys) for event in events])

    async def device_keys(self) -> DeviceKeys:
        """Return the keys that are known for each device: from the server, by pairing, or from proven events."""
        own_key = await self._key.public_key()
        keys = dict(await self._log.database.read(read_device_keys))
        for device_id in self._log.own_device_ids:
            keys[device_id] = keys.get(device_id, frozenset()) | {own_key}
        return keys


def read_device_keys(connection: Transaction) -> DeviceKeys:
    """Read the public keys of each device of the account; those of a revoked one have ended with it."""
    devices = registry_store.read_registry(connection).devices
    keys = {device_id: device.keys for device_id, device in devices.items()}
    listed = device_key_store.read_device_keys(connection).items()
    paired = ((row.public_key, row.device_id) for row in device_key_store.read_paired_devices(connection))
    for key, device_id in (*listed, *paired):
        keys[device_id] = keys.get(device_id, frozenset()) | {key}
    return {name: known for name, known in keys.items() if name not in devices or not devices[name].revoked_at}


def _marked(event: Event, proven_by_channel: Collection[str], keys: DeviceKeys) -> Event:
    if event.device_id in proven_by_channel or signer_of(event, keys.get(event.device_id, ())) in keys.get(
        event.device_id, ()
    ):
        return event
    return replace(event, extra={**event.extra, UNPROVEN_FIELD: True})
