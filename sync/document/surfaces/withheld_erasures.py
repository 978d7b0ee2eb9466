"""Large erasure requests of other devices: what they would remove, their notices, and the user's answer."""

from collections.abc import Sequence
from typing import Final

from sync.clock import Clock, to_unix_ms
from sync.cloud.replication.erasure_guard import ErasureImpact, count_entries
from sync.db.engine import Transaction
from sync.document import store
from sync.document.erasure import erasure
from sync.document.erasure.related_events import entry_ids_of
from sync.document.surfaces.notices import Notice
from sync.document.versions.writer import EditResult, VersionWriter
from sync.errors import InvalidInput
from sync.log import erased_store
from sync.log import store as log_store
from sync.log.devices.signing import signer_of
from sync.log.devices.store import read_registry
from sync.log.envelope import parse_timestamp_ms
from sync.log.event_types import MEMORY_FACT, PAYLOAD_REDACTED
from sync.log.model import ERASURE_STATE_FIELD, Event, RemoteErasureState, named_event_ids, remote_erasure_state

NOTICE_PERIOD_MS: Final = 7 * 86_400_000  # how long `status` names a request that was applied or refused
NOTICE_BY_STATE: Final = {
    RemoteErasureState.WAITS: Notice.ERASURE_WAITS,
    RemoteErasureState.APPLIED: Notice.ERASURE_APPLIED,
    RemoteErasureState.ACCEPTED: Notice.ERASURE_APPLIED,
    RemoteErasureState.REFUSED: Notice.ERASURE_REFUSED,
}


class WithheldErasures:
    """The large requests for one document: their notices, and the user's answer."""

    def __init__(self, writer: VersionWriter) -> None:
        self._writer = writer

    async def notices(self) -> set[Notice]:
        """What `status` shows of them."""
        clock = self._writer.clock
        return await self._writer.log.database.read(request_notices, clock)

    async def answer(self, *, accept: bool) -> EditResult | None:
        """Erase what other devices asked for, as a request of this one, or keep it; None if none of them waits."""
        log = self._writer.log

        def record_answer(connection: Transaction) -> bool:
            is_waiting = bool(waiting_requests(connection))
            event_ids = answer_requests(connection, accept=accept)
            log.append_in(connection, erasure.request_drafts(event_ids, self._writer.redactor))
            return is_waiting

        if not await self._writer.in_transaction(record_answer):
            return None
        log.changed.increment()
        newest = await log.database.read(store.newest, store.FILE)
        return EditResult((), "" if newest is None else newest.sha256)


def erasure_stake(connection: Transaction, event_ids: Sequence[str]) -> ErasureImpact:
    """How many lines of the document an erasure of these events removes."""
    shown = store.shown_entry_ids(connection)
    held = [event for event_id in event_ids if (event := log_store.find_event(connection, event_id)) is not None]
    lines = shown & {line for event in held for line in entry_ids_of(event)}
    counted = [event for event in held if event.type == MEMORY_FACT or not shown.isdisjoint(entry_ids_of(event))]
    return ErasureImpact(len(lines), len(shown), min(len(lines), count_entries(counted)))


def request_notices(connection: Transaction, clock: Clock) -> set[Notice]:
    """The notices of the requests that wait, and of those that were answered recently."""
    since = to_unix_ms(clock.now()) - NOTICE_PERIOD_MS
    return {
        Notice.CORRECTION_REFUSED if event.type == PAYLOAD_REDACTED else NOTICE_BY_STATE[state]
        for event in erased_store.requests_with_field(connection, ERASURE_STATE_FIELD)
        if (state := remote_erasure_state(event)) and (state is RemoteErasureState.WAITS or _received_ms(event) > since)
    }


def waiting_requests(connection: Transaction) -> list[Event]:
    """The requests that wait for the user."""
    requests = erased_store.requests_with_field(connection, ERASURE_STATE_FIELD)
    return [event for event in requests if remote_erasure_state(event) is RemoteErasureState.WAITS]


def release_admitted(connection: Transaction) -> list[str]:
    """Accept the requests that wait of devices that are admitted by now; the ids of the events to erase."""
    registry = read_registry(connection)
    asked = filter(registry.is_from_admitted, waiting_requests(connection))
    signed = [one for one in asked if signer_of(one) in registry.device(one.device_id).keys]
    return answer_requests(connection, accept=True, waiting=signed)


def answer_requests(connection: Transaction, *, accept: bool, waiting: Sequence[Event] | None = None) -> list[str]:
    """Note the user's answer to all requests that wait, or to these; the ids of the events to erase now."""
    waiting = waiting_requests(connection) if waiting is None else waiting
    answer = str(RemoteErasureState.ACCEPTED if accept else RemoteErasureState.REFUSED)
    for event in waiting:
        erased_store.set_extra_field(connection, event, ERASURE_STATE_FIELD, answer)
    return list(dict.fromkeys(name for event in waiting for name in named_event_ids(event))) if accept else []


def _received_ms(event: Event) -> int:
    try:
        return parse_timestamp_ms(event.server_ts or event.ts)
    except InvalidInput:
        return 0
