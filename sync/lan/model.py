"""What `lan/*` answers. Imported without TLS or discovery."""

from typing import Literal

import msgspec


class LanPeerJson(msgspec.Struct, frozen=True, rename="camel"):
    """A connected device. `level`: this device lacks nothing that the peer offers. Counts are of this connection."""

    device_id: str
    name: str
    address: str
    port: int
    direction: Literal["incoming", "outgoing"]
    since: str
    level: bool
    sent: int
    received: int


class LanRefusalJson(msgspec.Struct, frozen=True, rename="camel"):
    """Connections that were refused for one cause. `deviceId` is empty for a stranger."""

    cause: str
    address: str
    device_id: str
    count: int
    last_at: str
    hint: str


class LanInterfaceJson(msgspec.Struct, frozen=True, rename="camel"):
    """An address of this machine at which it announces itself; `problem` says why it does not."""

    address: str
    problem: str | None


class LanPairingJson(msgspec.Struct, frozen=True, rename="camel"):
    """A pairing. `waiting`: a code is shown here, which `code` and `uri` (for a QR code) have in the first answer only.

    `paired`: with this device; both screens show the same `words`. `failed`: `cause` says why.
    """

    state: Literal["waiting", "paired", "failed"]
    code: str | None = None
    uri: str | None = None
    expires_at: str | None = None
    tries_left: int | None = None
    cause: str | None = None
    device_id: str | None = None
    name: str | None = None
    words: tuple[str, ...] = ()


class LanPairedJson(msgspec.Struct, frozen=True, rename="camel"):
    """A device that was paired with this one by code."""

    device_id: str
    name: str
    paired_at: str
    connected: bool


class LanPairedDevicesJson(msgspec.Struct, frozen=True, rename="camel"):
    paired: tuple[LanPairedJson, ...]


class LanStatusJson(msgspec.Struct, frozen=True, rename="camel"):
    """`state`: `alone` while the account has no second device, `failed` if the port cannot be opened (`problem`).

    `trusted` counts the other devices of the account that may connect, `found` those that are announced on the network.
    `pairing`: the code that is shown here, or what became of the last one.
    """

    enabled: Literal["auto", "on", "off"]
    state: Literal["off", "alone", "listening", "failed"]
    address: str | None
    port: int | None
    problem: str | None
    trusted: int
    found: int
    interfaces: tuple[LanInterfaceJson, ...]
    peers: tuple[LanPeerJson, ...]
    refusals: tuple[LanRefusalJson, ...]
    paired: tuple[LanPairedJson, ...] = ()
    pairing: LanPairingJson | None = None


class LanPeersJson(msgspec.Struct, frozen=True, rename="camel"):
    peers: tuple[LanPeerJson, ...]
