"""The changes of one device in facts of another, as JSON."""

import msgspec


class ForeignChangeJson(msgspec.Struct, frozen=True, rename="camel"):
    """`before`: the texts that it ends or changes; `after`: what holds then. `vital`: identity, health or safety.

    `waits`: it has no effect here until it is accepted, or its device admitted; else `changes/refuse` undoes it.
    """

    event_id: str
    kind: str
    before: tuple[str, ...]
    after: str | None
    at: str
    vital: bool
    waits: bool


class ChangingDeviceJson(msgspec.Struct, frozen=True, rename="camel"):
    """`deviceId` is empty for changes whose device nothing proves. `since`: when it registered."""

    device_id: str
    name: str | None
    since: str | None
    admitted: bool
    this_device: bool
    changes: tuple[ForeignChangeJson, ...]


class ChangesJson(msgspec.Struct, frozen=True, rename="camel"):
    """The devices that wait to be admitted, and those whose changes wait or are named; none with one device.

    `answered`: the changes that this call answered.
    """

    devices: tuple[ChangingDeviceJson, ...] = ()
    answered: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """The names of the warnings in `status`."""
        changes = [change for device in self.devices for change in device.changes]
        waiting = [device for device in self.devices if not device.admitted and device.device_id]
        warnings = {
            "device_waits": any(not device.this_device for device in waiting),
            "device_not_admitted": any(device.this_device for device in waiting),
            "foreign_changes_wait": any(change.waits for change in changes),
            "foreign_changes": any(not change.waits for change in changes),
        }
        return [name for name, holds in warnings.items() if holds]
