"""`devices/*`: the account's devices; who may go on, how they are called, which are shown here."""

from typing import Annotated, Any, Final

import msgspec

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, NoParams, Params
from sync import contract, published
from sync.device import NAME_LENGTH

DeviceId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class Rename(Params, frozen=True):
    device_id: DeviceId
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH)]


class Revoke(Params, frozen=True):
    device_id: DeviceId


class Hide(Params, frozen=True):
    device_id: DeviceId
    hidden: bool = True


async def show(context: Context[Door], params: NoParams) -> published.DevicesJson:  # noqa: ARG001 - every row has params
    return contract.devices(await (await context.app.opened()).devices.list())


async def rename(context: Context[Door], params: Rename) -> published.DevicesJson:
    return contract.devices(await (await context.app.opened()).devices.rename(params.device_id, params.name))


async def revoke(context: Context[Door], params: Revoke) -> published.DevicesJson:
    return contract.devices(await (await context.app.opened()).devices.revoke(params.device_id))


async def hide(context: Context[Door], params: Hide) -> published.DevicesJson:
    return contract.devices(await (await context.app.opened()).devices.hide(params.device_id, hidden=params.hidden))


METHODS: Final[list[Method[Door, Any]]] = [
    Method("devices/list", NoParams, show, "The account's devices; without an answer of the cloud, those known here."),
    Method("devices/rename", Rename, rename, "Give a device a name, for all devices."),
    Method("devices/revoke", Revoke, revoke, "Shut a device out of the account's cloud, for ever."),
    Method("devices/hide", Hide, hide, "Leave a device out of this device's digest, or take it in again."),
]
