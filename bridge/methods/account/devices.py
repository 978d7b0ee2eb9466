"""`devices/*`: the account's devices; list, rename, revoke and hide them."""

from typing import Annotated

import msgspec

from bridge.api.method_table import Params
from sync.accounts.devices import DevicesJson
from sync.app import App
from sync.system.hardware_id import MAX_DEVICE_NAME

DeviceId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class RenameParams(Params, frozen=True):
    device_id: DeviceId
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_DEVICE_NAME)]


class Revoke(Params, frozen=True):
    device_id: DeviceId


class Hide(Params, frozen=True):
    device_id: DeviceId
    hidden: bool = True


async def list_devices(app: App) -> DevicesJson:
    """The devices of the account; those known here if the server does not answer."""
    return await app.devices.list()


async def rename(app: App, params: RenameParams) -> DevicesJson:
    """Give a device a name, for all devices."""
    return await app.devices.rename(params.device_id, params.name)


async def revoke(app: App, params: Revoke) -> DevicesJson:
    """Exclude a device from the account for good."""
    return await app.devices.revoke(params.device_id)


async def hide(app: App, params: Hide) -> DevicesJson:
    """Hide a device in the digest of this one, or show it again."""
    return await app.devices.hide(params.device_id, hidden=params.hidden)
