"""`lan/*`: devices of the account that sync directly, on the local network."""

from typing import Annotated

import msgspec

from bridge.api.method_table import Params
from sync.app import App
from sync.errors import InvalidInput
from sync.lan.model import LanPairedDevicesJson, LanPairingJson, LanPeerJson, LanPeersJson, LanStatusJson

Host = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]


class Connect(Params, frozen=True):
    host: Host
    port: Port


class Pair(Params, frozen=True):
    """`code`: eight digits or the text of a QR code. `host` and `port`: of the device that shows it."""

    code: Annotated[str, msgspec.Meta(min_length=1, max_length=512)] | None = None
    host: Host | None = None
    port: Port | None = None


class ForgetPairing(Params, frozen=True):
    device_id: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


async def status(app: App) -> LanStatusJson:
    """Where this device listens, who is connected, and which connections were refused and why."""
    return await app.lan.status()


async def list_peers(app: App) -> LanPeersJson:
    """The devices that are connected on the local network."""
    return LanPeersJson(app.lan.peers())


async def connect(app: App, params: Connect) -> LanPeerJson:
    """Connect to a device of the account by its address, and again whenever the connection ends."""
    return await app.lan.connect(params.host, params.port)


async def pair(app: App, params: Pair) -> LanPairingJson:
    """Show a pairing code, or pair with the device that shows `code`."""
    if (params.host is None) != (params.port is None):
        raise InvalidInput("an address has a host and a port", field="port")
    if params.code is not None:
        return await app.lan.enter_code(params.code, params.host, params.port)
    if params.host is not None:
        raise InvalidInput("an address belongs to a code", field="code")
    return await app.lan.show_code()


async def cancel_pairing(app: App) -> LanStatusJson:
    """End the pairing code that is shown here; what it has paired stays paired."""
    app.lan.cancel_pairing()
    return await app.lan.status()


async def forget(app: App, params: ForgetPairing) -> LanPairedDevicesJson:
    """End a pairing, and the connection, at once."""
    return await app.lan.forget(params.device_id)
