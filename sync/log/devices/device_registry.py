"""The account's devices as the replicated events describe them: names, keys, who is admitted, who is revoked. Pure.

Every device that holds the same events computes the same registry. Admission is a closure from the account's first
device, so the order of arrival does not matter: docs/decisions/042-authorship.md.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final, Self

import msgspec
from msgspec.structs import replace

from sync.clock import parse_hlc
from sync.log.authorship import one_line, short_name
from sync.log.envelope import bounded_hlc
from sync.log.event_catalogue import DECISION_TYPES
from sync.log.event_types import DEVICE_ADMITTED, DEVICE_HIDDEN, DEVICE_REGISTERED, DEVICE_RENAMED, DEVICE_REVOKED
from sync.log.model import Event, text_in

RECOVERY_SILENCE: Final = timedelta(days=14)  # of all admitted devices, after which a device may admit itself
_NEW_DEVICE: Final = {"zh": "新设备", "en": "new device"}
_RECOVERY_MS: Final = RECOVERY_SILENCE // timedelta(milliseconds=1)
_Recoveries = tuple[Mapping[str, str], Mapping[str, str]]  # their HLCs by event; the last HLC of each device


class RegisteredDevice(msgspec.Struct, frozen=True):
    """One device. `given_name`: from the user; `own_name`: from the device. `since`: when it registered.

    `revoked_at`: the HLC of its end. `was_admitted`: what it said before its revocation counts as said by an admitted
    device. `is_hidden`: the user does not want to see its lines on this device.
    """

    given_name: str | None = None
    own_name: str | None = None
    platform: str | None = None
    app_version: str | None = None
    keys: frozenset[str] = frozenset()
    since: str | None = None
    was_admitted: bool = False
    revoked_at: str | None = None
    is_hidden: bool = False

    @property
    def name(self) -> str | None:
        return one_line(self.given_name or self.own_name or "") or None

    @property
    def is_admitted(self) -> bool:
        return self.was_admitted and self.revoked_at is None


class DeviceRegistry(msgspec.Struct, frozen=True):
    """The devices by id. `has_first`: a device has registered with a key; until then all are admitted.

    `has_recovery`: a device admitted itself, which depends on when others spoke, and on what the server has.
    """

    devices: Mapping[str, RegisteredDevice] = {}
    has_first: bool = False
    has_recovery: bool = False

    @classmethod
    def of(cls, events: Iterable[Event], last_spoken: Mapping[str, str] | None = None, local_hlc: str = "") -> Self:
        """Build the registry from events of `DEVICE_EVENT_TYPES`, in any order.

        `last_spoken`: the HLC of the last event of each device; `local_hlc`: that of this replica. Recovery needs both.
        """
        known = [event for event in events if event.is_proven]
        known.sort(key=lambda event: (bounded_hlc(event), event.hlc, event.event_id))
        admitted, ends = _admitted_and_revoked(known, (_recovery_times(known, local_hlc), last_spoken or {}))
        devices = {name: RegisteredDevice(was_admitted=True) for name in admitted}
        devices |= {name: replace(devices.get(name, RegisteredDevice()), revoked_at=end) for name, end in ends.items()}
        registry = cls(devices, has_first=bool(admitted), has_recovery=any(map(is_recovery, known)))
        for event in known:
            _describe(devices, event, counts=not admitted or registry.is_from_admitted(event))
        return registry

    def device(self, device_id: str) -> RegisteredDevice:
        return self.devices.get(device_id, RegisteredDevice())

    def is_admitted(self, device_id: str) -> bool:
        """Return whether a device may change what others said. Without a first device, each of them may."""
        device = self.device(device_id)
        return device.is_admitted or not self.has_first

    def is_from_admitted(self, event: Event) -> bool:
        """Return whether an admitted device said it, before its revocation."""
        return event.is_proven and self.was_admitted_at(event.device_id, bounded_hlc(event))

    def was_admitted_at(self, device_id: str, hlc: str) -> bool:
        """Return whether a device was admitted, and not yet revoked, at a bounded HLC."""
        device = self.device(device_id)
        return device.was_admitted and (device.revoked_at is None or hlc < device.revoked_at)

    def is_unauthorised(self, request: Event, named: Event) -> bool:
        """Return whether an erasure request takes a decision of another device that only an admitted one may take.

        A device takes back its own decisions, but not its registration, from which the order of devices is known.
        """
        is_own = request.device_id == named.device_id and named.type != DEVICE_REGISTERED and request.is_proven
        is_decision = named.type in DECISION_TYPES and bool(named.payload)
        return is_decision and not is_own and not self.is_from_admitted(request)

    def recovery_at(self, last_spoken: Mapping[str, str]) -> int:
        """Return from when on, in Unix milliseconds, a device may admit itself: no admitted one spoke for so long."""
        last = max((last_spoken.get(name, "") for name, one in self.devices.items() if one.was_admitted), default="")
        return parse_hlc(last)[0] + _RECOVERY_MS if last else 0

    def name_of(self, device_id: str, *, is_english: bool = False) -> str | None:
        """Return how a text names a device, whose own name proves nothing before it is admitted; None if unknown."""
        device = self.device(device_id)
        return new_device_name(device_id, is_english=is_english) if self.is_new(device_id) else device.name

    def is_new(self, device_id: str) -> bool:
        """Return whether a device has not been admitted yet."""
        return self.has_first and not self.device(device_id).was_admitted

    @property
    def hidden(self) -> frozenset[str]:
        """The devices whose lines the user does not want to see here."""
        return frozenset(device_id for device_id, device in self.devices.items() if device.is_hidden)

    def waiting(self) -> list[str]:
        """Return the devices that are neither admitted nor revoked."""
        known = self.devices.items() if self.has_first else ()
        return sorted(name for name, device in known if not device.is_admitted and device.revoked_at is None)


def new_device_name(device_id: str, *, is_english: bool = False) -> str:
    """Return how a text names a device that is not admitted."""
    return f"{_NEW_DEVICE['en' if is_english else 'zh']} {short_name(None, device_id)}"


def admitted_ids(event: Event) -> tuple[str, ...]:
    """Return the devices that an event admits."""
    named = event.payload.get("device_ids")
    return tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else ()


def is_recovery(event: Event) -> bool:
    """Return whether a device admits itself because no admitted one has spoken for `RECOVERY_SILENCE`."""
    return event.type == DEVICE_ADMITTED and event.payload.get("recovery") is True


def _describe(devices: dict[str, RegisteredDevice], event: Event, *, counts: bool) -> None:
    """Add what an event says of a device; of another one than its own only if `counts`."""
    device_id = event.device_id if event.type == DEVICE_REGISTERED else text_in(event, "device_id")
    if device_id is None or not (counts or device_id == event.device_id or event.type == DEVICE_HIDDEN):
        return
    device = devices.get(device_id, RegisteredDevice())
    if event.type == DEVICE_REGISTERED:
        key = text_in(event, "public_key")
        device = replace(
            device,
            own_name=text_in(event, "name"),
            platform=text_in(event, "platform"),
            app_version=text_in(event, "app_version"),
            keys=device.keys | {key} if key else device.keys,
            since=device.since or event.ts,
        )
    elif event.type == DEVICE_RENAMED:
        device = replace(device, given_name=text_in(event, "name"))
    elif event.type == DEVICE_HIDDEN:
        device = replace(device, is_hidden=event.payload.get("hidden") is True)
    devices[device_id] = device


def _recovery_times(events: Sequence[Event], local_hlc: str) -> dict[str, str]:
    """Return the HLCs of the recoveries that may count.

    The local clock bounds one that no server did; in an account with a server it counts once the server has it.
    """
    return {
        event.event_id: bounded_hlc(event) if event.server_ts else min(event.hlc, local_hlc)
        for event in events
        if is_recovery(event) and admitted_ids(event) == (event.device_id,)
        if event.server_seq is not None or all(one.server_seq is None for one in events)
    }


def _admitted_and_revoked(events: Sequence[Event], recoveries: _Recoveries) -> tuple[frozenset[str], dict[str, str]]:
    """Return the admitted devices, and the end of each revoked one.

    Revocations count in the server's order: of a device that is admitted after those before it, and after this one.
    """
    ends: dict[str, str] = {}
    admitted = _admitted_devices(events, ends, recoveries)
    for event in sorted((event for event in events if event.type == DEVICE_REVOKED), key=_server_order):
        revoked = text_in(event, "device_id")
        if (
            revoked is None
            or {revoked, event.device_id} & ends.keys()
            or (admitted and event.device_id not in admitted)
        ):
            continue
        changed = {**ends, revoked: bounded_hlc(event)}
        after = _admitted_devices(events, changed, recoveries)
        if event.device_id in after or not after:
            admitted, ends = after, changed
    return admitted, ends


def _admitted_devices(events: Sequence[Event], ends: Mapping[str, str], recoveries: _Recoveries) -> frozenset[str]:
    """Return the closure of the admissions from the first device; a revoked device admits no other afterwards.

    The first is that of the first registration with a key, in the server's order; an erased registration counts as one,
    so that who erases it does not become the first. Devices that had registered without a key before it are those of an
    account from before admissions.
    """
    registered = [event for event in events if event.type == DEVICE_REGISTERED]
    with_key = [event for event in registered if text_in(event, "public_key") or not event.payload]
    if not with_key:
        return frozenset()
    first = min(with_key, key=_server_order)
    admitted = {event.device_id for event in registered if _server_order(event) <= _server_order(first)}
    admissions = [event for event in events if event.type == DEVICE_ADMITTED]
    while True:
        counting = (event for event in admissions if _counts(event, admitted, ends, recoveries))
        found = {name for event in counting for name in admitted_ids(event)}
        if found <= admitted:
            return frozenset(admitted)
        admitted |= found


def _server_order(event: Event) -> tuple[int, str, str]:
    return event.server_seq or 2**63, bounded_hlc(event), event.event_id


def _counts(event: Event, admitted: Collection[str], ends: Mapping[str, str], recoveries: _Recoveries) -> bool:
    end, (hlcs, last_spoken) = ends.get(event.device_id), recoveries
    last = max((last_spoken.get(name, "") for name in admitted), default="")
    if at := hlcs.get(event.event_id):
        return not last or parse_hlc(at)[0] - parse_hlc(last)[0] >= _RECOVERY_MS
    return event.device_id in admitted and (end is None or bounded_hlc(event) < end)
