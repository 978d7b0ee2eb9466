"""`devices/*`, `changes/*`: the account's devices, and what they change in facts of others."""

from typing import Annotated

import msgspec

from bridge.api.method_table import Params
from sync.accounts.devices import DevicesJson
from sync.app import App
from sync.log.devices.changes_json import ChangesJson
from sync.log.model import MAX_EVENT_ID_LENGTH
from sync.system.hardware_id import MAX_DEVICE_NAME

DeviceId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
ChangeName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_EVENT_ID_LENGTH)]


class RenameParams(Params, frozen=True):
    device_id: DeviceId
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_DEVICE_NAME)]


class Revoke(Params, frozen=True):
    device_id: DeviceId


class Admission(Params, frozen=True):
    """`recover`: this device admits itself, if no admitted one has been used for 14 days."""

    device_id: DeviceId | None = None
    recover: bool = False


class ChangeNames(Params, frozen=True):
    """`ids`: of changes, or of devices for all of theirs that wait; none for all that wait."""

    ids: Annotated[list[ChangeName], msgspec.Meta(max_length=1_000)] = msgspec.field(default_factory=list)


class Hide(Params, frozen=True):
    device_id: DeviceId
    hidden: bool = True


async def list_devices(app: App) -> DevicesJson:
    """The devices of the account; those known here if the server does not answer."""
    return await app.devices.list()


async def rename(app: App, params: RenameParams) -> DevicesJson:
    """Give a device a name, for all devices."""
    return await app.devices.rename(await app.devices.find_id(params.device_id), params.name)


async def revoke(app: App, params: Revoke) -> DevicesJson:
    """Exclude a device from the account for good."""
    return await app.devices.revoke(await app.devices.find_id(params.device_id))


async def admit(app: App, params: Admission) -> DevicesJson:
    """Say that a device is the user's too: what it changes in the facts of other devices holds from now on."""
    device_id = await app.devices.find_id(params.device_id or app.log.device_id)
    return await app.devices.admit(device_id, recover=params.recover)


async def refuse(app: App, params: Revoke) -> DevicesJson:
    """Refuse all changes of a device that wait, and exclude it from the account for good."""
    device_id = await app.devices.find_id(params.device_id)
    await app.facts().changes.refuse_device(device_id)
    return await app.devices.revoke(device_id)


async def list_changes(app: App) -> ChangesJson:
    """The devices that wait to be admitted, and the changes of one device in facts of another."""
    return await app.facts().changes.list()


async def accept_changes(app: App, params: ChangeNames) -> ChangesJson:
    """Make changes hold on all devices; those of identity, health and safety only if they are named themselves."""
    return await app.facts().changes.answer(params.ids, accepted=True)


async def refuse_changes(app: App, params: ChangeNames) -> ChangesJson:
    """Undo changes, or keep them from holding, on all devices."""
    return await app.facts().changes.answer(params.ids, accepted=False)


async def hide(app: App, params: Hide) -> DevicesJson:
    """Hide a device in the digest of this one, or show it again."""
    return await app.devices.hide(await app.devices.find_id(params.device_id), hidden=params.hidden)
