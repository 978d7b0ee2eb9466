"""Whose words may change the facts of other devices, and what such a change is. Pure: decision 042."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol


class ChangingItem(Protocol):
    """A statement or an answer."""

    @property
    def change_id(self) -> str: ...
    @property
    def device_id(self) -> str: ...
    @property
    def hlc(self) -> str: ...
    @property
    def is_proven(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class AdmittedDevices:
    """The admitted devices, each with the HLC of its revocation, and what the user answered about single changes.

    `is_open`: no device is the account's first one yet, so each may change what others said.
    """

    until: Mapping[str, str | None] = field(default_factory=dict)
    answers: Mapping[str, bool] = field(default_factory=dict)
    is_open: bool = False

    def allows(self, item: ChangingItem) -> bool:
        """Return whether an item may change facts of other devices."""
        answer = self.answers.get(item.change_id)
        return self.has(item) if answer is None else answer

    def has(self, item: ChangingItem) -> bool:
        """Return whether an item's device was admitted when the item was recorded."""
        return item.is_proven and self.has_device(item.device_id, item.hlc)

    def has_device(self, device_id: str, hlc: str) -> bool:
        """Return whether a device was admitted at a time."""
        end = self.until.get(device_id)
        return self.is_open or (device_id in self.until and (end is None or hlc < end))

    def refuses(self, item: ChangingItem) -> bool:
        """Return whether the user refused an item, which then has no effect on any device."""
        return self.answers.get(item.change_id) is False


EVERY_DEVICE: Final = AdmittedDevices(is_open=True)


@dataclass(frozen=True, slots=True)
class ForeignChange:
    """What an event of one device does, or would do, to facts of another one.

    `kind`: stated, or the kind of the answer. `fact_id`: the fact of the event itself. `before`: the texts that it ends
    or changes. `after`: the text that holds then; None if none does. `is_vital`: identity, health or safety.
    """

    event_id: str
    device_id: str
    is_proven: bool
    recorded_at: str
    kind: str
    fact_id: str
    before: tuple[str, ...]
    after: str | None
    is_vital: bool
    waits: bool
