"""The devices of an account on the fake server, with the rules of `ai_memory_devices`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from sync.clock import timestamp
from sync.cloud.port import DeviceRow
from sync.errors import DeviceKeyInUse, DeviceRevoked, DeviceUnknown, Rejected

PUBLIC_KEY: Final = re.compile("ed25519:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=")


@dataclass
class FakeDevice:
    replica_id: str
    last_seen: float
    created: float
    name: str | None = None
    is_named_by_user: bool = False
    platform: str | None = None
    app_version: str | None = None
    public_key: str | None = None
    proof_hash: str | None = None  # the SHA-256 of the secret
    revoked_at: float | None = None
    refused: dict[str, int] = field(default_factory=dict)


def active_device(devices: Mapping[str, FakeDevice], device_id: str) -> FakeDevice:
    """The device. Raises DeviceUnknown, DeviceRevoked."""
    device = devices.get(device_id)
    if device is None:
        raise DeviceUnknown("this device is not registered")
    if device.revoked_at is not None:
        raise DeviceRevoked("this device was revoked")
    return device


def check_public_key(devices: Mapping[str, FakeDevice], device_id: str, public_key: str | None) -> None:
    """Raise an error unless the key is valid and belongs to no other device, revoked or not."""
    if public_key is None:
        return
    if not PUBLIC_KEY.fullmatch(public_key):
        raise Rejected("the public key is not acceptable", code="22023")
    for other_id, other in devices.items():
        if other_id != device_id and other.public_key == public_key:
            if other.revoked_at is not None:
                raise DeviceRevoked("this key belongs to a revoked device")
            raise DeviceKeyInUse("this key belongs to another device of the account")


def proof_hash(proof: str | None) -> str | None:
    """The SHA-256 of a proof, which is what the server stores."""
    return None if proof is None else sha256(proof.encode()).hexdigest()


def device_row(device_id: str, device: FakeDevice) -> DeviceRow:
    """The device as the server lists it."""
    return DeviceRow(
        device_id=device_id,
        name=device.name,
        platform=device.platform,
        app_version=device.app_version,
        public_key=device.public_key,
        created_at=_iso_time(device.created),
        last_seen_at=_iso_time(device.last_seen),
        revoked_at=None if device.revoked_at is None else _iso_time(device.revoked_at),
    )


def _iso_time(seconds: float) -> str:
    return timestamp(datetime.fromtimestamp(seconds, UTC))
