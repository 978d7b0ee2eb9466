"""The account's devices as one of them sees them: whose events change what others recorded, and under which label.

Pure: decision 042.
"""

from typing import Final

import msgspec

from sync.log.authorship import Author, Authorship, view_label
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.model import Event


class DeviceView(msgspec.Struct, frozen=True):
    """What a device says holds there at once; elsewhere it changes nothing of others until the device is admitted."""

    registry: DeviceRegistry = DeviceRegistry()
    own_device_ids: frozenset[str] = frozenset()

    def is_trusted(self, event: Event) -> bool:
        """Return whether this device recorded an event, or one that was admitted then."""
        is_own = event.device_id in self.own_device_ids
        is_open = is_own or not self.registry.has_first
        return (event.is_proven and is_open) or self.registry.is_from_admitted(event)

    def may_change(self, event: Event, author: Authorship | None) -> bool:
        """Return whether an event may change what an author, if it is known, recorded."""
        is_authors = author is not None and (event.device_id, event.is_proven) == (author.device_id, author.is_proven)
        return is_authors or self.is_trusted(event)

    def label_of(self, event: Event) -> str | None:
        """Return the label of what an event recorded; None for what this device did."""
        written = Authorship(Author.USER, event.device_id, is_proven=event.is_proven)
        return view_label(written, self.own_device_ids, self.registry.name_of)


EVERY_DEVICE: Final = DeviceView()  # of an account without a first device: each may change what others recorded
