"""What devices changed in the facts of others: what waits for the user, what is named, and the user's answers."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from sync.clock import Clock, to_unix_ms
from sync.db.engine import Transaction
from sync.errors import InvalidInput
from sync.log import store as log_store
from sync.log.devices import store as registry_store
from sync.log.devices.changes_json import ChangesJson, ChangingDeviceJson, ForeignChangeJson
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.envelope import parse_timestamp_ms
from sync.log.event_types import FOREIGN_CHANGE_ANSWERED
from sync.log.log import EventLog
from sync.log.model import Door, EventDraft, Origin
from sync.redaction import Redactor
from sync.understanding import store
from sync.understanding.changes.admission import ForeignChange
from sync.understanding.projection import FactProjection, Facts

NAMED_FOR: Final = timedelta(days=7)  # how long `status` names a change of identity, health or safety
IDS_PER_ANSWER: Final = 200
NOT_ADMITTED: Final = "this device is not admitted yet, so what it answers counts on no other device"
ADMIT_HINT: Final = "Run `devices admit` with this device's id on a device that is, or `devices admit --recover` here."


class ForeignChangeService:
    """The changes of one profile."""

    def __init__(self, log: EventLog, redactor: Redactor, clock: Clock, projection: FactProjection) -> None:
        self._log = log
        self._redactor = redactor
        self._clock = clock
        self._projection = projection

    async def list(self) -> ChangesJson:
        """Everything that waits, and what was changed lately of identity, health and safety."""
        return await self._log.database.read(self._read)

    async def count_unproved(self) -> int:
        """Count the active facts that no event with a door states or confirms: recorded before events had doors."""

        def count(connection: Transaction) -> int:
            if not store.has_facts_of_before(connection):
                return 0
            facts = self._projection.read(connection)
            return sum(not any(one.has_door for one in facts.statements_of(fact)) for fact in facts.active)

        return await self._log.database.read(count)

    async def refuse_device(self, device_id: str) -> None:
        """Refuse all changes of a device that wait. Raises InvalidInput if this one is not admitted."""
        if any(one.device_id == device_id and one.changes for one in (await self.list()).devices):
            await self.answer([device_id], accepted=False)

    async def answer(self, names: Sequence[str], *, accepted: bool) -> ChangesJson:
        """Accept or refuse changes, for all devices. Raises InvalidInput.

        `names`: ids of changes, their beginnings, or ids of devices; without any, all that wait. What concerns
        identity, health or safety is accepted only if it is named itself.
        """

        def work(connection: Transaction) -> tuple[str, ...]:
            if not registry_store.read_registry(connection).is_admitted(self._log.device_id):
                raise InvalidInput(NOT_ADMITTED, hint=ADMIT_HINT)
            facts = self._projection.read(connection)
            foreign = [one for one in facts.changes if one.device_id not in self._own or not one.is_proven]
            ids = tuple(dict.fromkeys(_chosen(foreign, facts, names, accepted=accepted)))
            parts = (ids[start : start + IDS_PER_ANSWER] for start in range(0, len(ids), IDS_PER_ANSWER))
            drafts = [self._draft(part, accepted=accepted) for part in parts]
            if drafts:
                self._log.append_in(connection, drafts)
            return ids

        answered = await self._log.database.write(work)
        self._log.changed.increment()
        return msgspec.structs.replace(await self.list(), answered=answered)

    @property
    def _own(self) -> frozenset[str]:
        return self._log.own_device_ids

    def _draft(self, event_ids: Sequence[str], *, accepted: bool) -> EventDraft:
        payload = self._redactor.clean_payload_with_ids("event_ids", event_ids, {"accepted": accepted})
        return EventDraft(FOREIGN_CHANGE_ANSWERED, payload, origin=Origin.USER, door=Door.COMMAND)

    def _read(self, connection: Transaction) -> ChangesJson:
        registry = registry_store.read_registry(connection)
        shown: dict[str, list[ForeignChangeJson]] = {name: [] for name in registry.waiting()}
        for change in self._projection.read(connection).changes:
            device_id = change.device_id if change.is_proven else ""
            if device_id not in self._own and (change.waits or self._is_recent(connection, change)):
                shown.setdefault(device_id, []).append(_to_json(change))
        return ChangesJson(tuple(self._device(registry, name, tuple(shown[name])) for name in sorted(shown)))

    def _device(
        self, registry: DeviceRegistry, device_id: str, changes: tuple[ForeignChangeJson, ...]
    ) -> ChangingDeviceJson:
        device = registry.device(device_id)
        is_admitted = registry.is_admitted(device_id) and bool(device_id)
        return ChangingDeviceJson(device_id, device.name, device.since, is_admitted, device_id in self._own, changes)

    def _is_recent(self, connection: Transaction, change: ForeignChange) -> bool:
        """Whether a change reached the server, or was made, lately; its author may have claimed another time."""
        event = log_store.find_event(connection, change.event_id)
        at = change.recorded_at if event is None else event.server_ts or event.ts
        try:
            return parse_timestamp_ms(at) > to_unix_ms(self._clock.now() - NAMED_FOR)
        except InvalidInput:
            return True


def _chosen(changes: Sequence[ForeignChange], facts: Facts, names: Sequence[str], *, accepted: bool) -> Iterator[str]:
    """The changes that a person names. One that was answered before can be named again, by its whole id."""
    waiting = [one for one in changes if one.waits and not (accepted and _is_vital(one))]
    if not names:
        yield from (one.event_id for one in waiting)
    for name in names:
        if name in {one.device_id for one in changes if one.is_proven}:
            yield from (one.event_id for one in waiting if one.device_id == name and one.is_proven)
            continue
        found = {one.event_id for one in changes if one.event_id.startswith((name, f"evt_{name}"))} if name else set()
        found = {name} if name in found or name in facts.answered else found
        if len(found) != 1:
            message = f"{len(found)} changes have an id that begins like this" if found else "no change has this id"
            raise InvalidInput(message, field="ids", hint="`xiaobai-memory changes list` shows the ids.")
        yield from found


def _is_vital(change: ForeignChange) -> bool:
    """Whether a change is about identity, health or safety: by its facts, or by its own words whatever it claims."""
    from sync.understanding.reading.reader import extract_statements  # noqa: PLC0415 - not before something waits

    return change.is_vital or any(one.is_vital for one in extract_statements(change.after or ""))


def _to_json(change: ForeignChange) -> ForeignChangeJson:
    return ForeignChangeJson(
        change.event_id, change.kind, change.before, change.after, change.recorded_at, _is_vital(change), change.waits
    )
