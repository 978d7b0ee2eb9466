"""`lan/*`: devices of the account that sync directly, on the local network."""

from typing import Annotated

import msgspec

from bridge.api.method_table import Params
from sync.app import App
from sync.lan.model import LanPeerJson, LanPeersJson, LanStatusJson


class Connect(Params, frozen=True):
    host: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    port: Annotated[int, msgspec.Meta(ge=1, le=65_535)]


async def status(app: App) -> LanStatusJson:
    """Where this device listens, who is connected, and which connections were refused and why."""
    return await app.lan.status()


async def list_peers(app: App) -> LanPeersJson:
    """The devices that are connected on the local network."""
    return LanPeersJson(app.lan.peers())


async def connect(app: App, params: Connect) -> LanPeerJson:
    """Connect to a device of the account by its address, and again whenever the connection ends."""
    return await app.lan.connect(params.host, params.port)
