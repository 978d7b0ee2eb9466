"""The account's devices as one of them sees them: whose events change what others recorded, and under which label.

Pure: decision 042.
"""

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from sync.log.authorship import Author, Authorship, view_label
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.envelope import bounded_hlc
from sync.log.model import Event


class RecordedItem(Protocol):
    """What was read in an event, such as a statement. `hlc` begins with the bounded HLC of the event `change_id`."""

    @property
    def change_id(self) -> str: ...
    @property
    def device_id(self) -> str: ...
    @property
    def hlc(self) -> str: ...
    @property
    def is_proven(self) -> bool: ...


class DeviceView(msgspec.Struct, frozen=True):
    """What a device says holds there at once; elsewhere it changes nothing of others until the device is admitted.

    `answers`: what the user answered about single changes, by event.
    """

    registry: DeviceRegistry = DeviceRegistry()
    own_device_ids: frozenset[str] = frozenset()
    answers: Mapping[str, bool] = {}

    def is_trusted(self, item: Event | RecordedItem) -> bool:
        """Return whether this device recorded an event, or one that was admitted then."""
        is_open = item.device_id in self.own_device_ids or not self.registry.has_first
        hlc = bounded_hlc(item) if isinstance(item, Event) else item.hlc
        return item.is_proven and (is_open or self.registry.was_admitted_at(item.device_id, hlc))

    def allows(self, item: RecordedItem) -> bool:
        """Return whether an item may change what other devices said."""
        answer = self.answers.get(item.change_id)
        return self.is_trusted(item) if answer is None else answer

    def refuses(self, item: RecordedItem) -> bool:
        """Return whether the user refused an item, which then has no effect on any device."""
        return self.answers.get(item.change_id) is False

    def may_change(self, event: Event, author: Authorship | None) -> bool:
        """Return whether an event may change what an author, if it is known, recorded."""
        is_authors = author is not None and (event.device_id, event.is_proven) == (author.device_id, author.is_proven)
        return is_authors or self.is_trusted(event)

    def label_of(self, event: Event) -> str | None:
        """Return the label of what an event recorded; None for what this device did."""
        written = Authorship(Author.USER, event.device_id, is_proven=event.is_proven)
        return view_label(written, self.own_device_ids, self.registry.name_of)


EVERY_DEVICE: Final = DeviceView()  # of an account without a first device: each may change what others recorded
