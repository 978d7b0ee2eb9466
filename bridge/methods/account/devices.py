"""`devices/*`: the account's devices; who may go on, how they are called, which are shown here."""

from typing import Annotated

import msgspec

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, NoParams, Params
from sync.contract.account import DevicesJson, devices_to_json
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


async def list_devices(context: Context[AppProvider], params: NoParams) -> DevicesJson:  # noqa: ARG001 - every row has params
    return devices_to_json(await (await context.app.wait_until_open()).devices.list())


async def rename(context: Context[AppProvider], params: RenameParams) -> DevicesJson:
    return devices_to_json(await (await context.app.wait_until_open()).devices.rename(params.device_id, params.name))


async def revoke(context: Context[AppProvider], params: Revoke) -> DevicesJson:
    return devices_to_json(await (await context.app.wait_until_open()).devices.revoke(params.device_id))


async def hide(context: Context[AppProvider], params: Hide) -> DevicesJson:
    return devices_to_json(
        await (await context.app.wait_until_open()).devices.hide(params.device_id, hidden=params.hidden)
    )
