"""Carrying out what `payload_forgotten` events ask: payloads, lines and older versions that hold the text go.

Decisions
    A wish is an event like any other: it is durable before anything is taken away, waits in the outbox while there is
    no network, is carried out by the server when it arrives there, and by every device that pulls it. A device that
    was killed half-way finds the wish again, because its watermark moves in the transaction that carries it out.
    Here it is carried out with the document, not where it is pulled: which lines came from an event stands in its
    payload, and the lines, the versions and the payload have to go together.
    The row of an event stays, blank, under its number. Versions keep their hash, because it names what lay on disk; the
    forgotten lines are taken out of their bytes. An editor that still shows such a line and saves it says it anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from sync.clock import Clock
from sync.document import store
from sync.document.capture import ADDED, EDITED, EXCHANGE, exchange_ids, preferences_of, repeated_by
from sync.document.clean_up import DAY_FOLDED, folded_ids
from sync.document.edit import remove_entry
from sync.document.model import Plan, Snapshot, Version
from sync.document.plan import plan
from sync.log import store as log_store
from sync.log.intake import Intake
from sync.log.log import Log
from sync.log.model import FORGOTTEN, Event, Query, Reach, forgotten_by

FORGETTER: Final = "document.forgotten"  # how far the log's wishes are carried out


@dataclass(frozen=True, slots=True)
class Wish:
    """What has to go: payloads of events, and the lines that came from them."""

    event_ids: frozenset[str]
    entry_ids: frozenset[str]
    position: int


def wish(connection: Connection) -> Wish | None:
    """What the log asks for and was not carried out yet; None where there is nothing."""
    mark = log_store.watermark(connection, FORGETTER)
    page = log_store.read(connection, Query(types=(FORGOTTEN,), after=mark))
    if not page.events:
        return None
    named = frozenset(event_id for event in page.events for event_id in forgotten_by(event))
    held = [event for event_id in named if (event := log_store.find(connection, event_id)) is not None]
    lines = frozenset(entry_id for event in held for entry_id in _lines_of(event))
    return Wish(named, lines, page.next_offset)


async def ask(events: Log, intake: Intake, event_ids: Sequence[str]) -> list[str]:
    """Record the wish; which of the events we hold with a payload that may have left this device.

    With them go those that say the same again: repeats of an exchange, and the line of a day that names it.
    """

    def looking(connection: Connection) -> list[str]:
        named = dict.fromkeys((*event_ids, *_saying_again(connection, frozenset(event_ids))))
        held = [log_store.find(connection, event_id) for event_id in named]
        return [event.event_id for event in held if event is not None and _is_forgettable(event)]

    found = await events.database.read(looking)
    if found:
        await events.record([intake.forgotten(found)])
    return found


def planned(asked: Wish, current: Version | None, new_id: Callable[[], str]) -> Plan | None:
    """How the lines leave the document: as removals. None where it has none of them."""
    if current is None or asked.entry_ids.isdisjoint(current.snapshot.ids):
        return None
    return plan(current, current, _without(current.snapshot, asked.entry_ids).document, new_id)


def carry_out(connection: Connection, asked: Wish, clock: Clock) -> None:
    """Blank the payloads, clear the versions, and note that it is done."""
    log_store.blank(connection, asked.event_ids)
    store.clear(
        connection,
        lambda ids: not asked.entry_ids.isdisjoint(ids),
        lambda snapshot: _without(snapshot, asked.entry_ids),
    )
    log_store.set_watermark(connection, FORGETTER, asked.position, clock)


def _saying_again(connection: Connection, event_ids: frozenset[str]) -> list[str]:
    """Events that hold words of these exchanges a second time."""
    lines = {f"{event_id}.q" for event_id in event_ids}
    again = [
        event.event_id
        for event in log_store.of_types(connection, [EXCHANGE], after=0)
        if repeated_by(event) in event_ids
    ]
    folded = list(log_store.of_types(connection, [DAY_FOLDED], after=0))
    days = {event.payload.get("entry_id") for event in folded if lines & set(folded_ids(event))}
    return [*again, *(event.event_id for event in folded if event.payload.get("entry_id") in days)]


def _lines_of(event: Event) -> tuple[str, ...]:
    if event.type == EXCHANGE:
        return *exchange_ids(event), *(entry.entry_id for entry in preferences_of(event))
    entry_id = event.payload.get("entry_id") if event.type in {ADDED, EDITED, DAY_FOLDED} else None
    return (entry_id,) if isinstance(entry_id, str) else ()


def _without(snapshot: Snapshot, entry_ids: frozenset[str]) -> Snapshot:
    for entry_id in entry_ids.intersection(snapshot.ids):
        snapshot = remove_entry(snapshot, entry_id)
    return snapshot


def _is_forgettable(event: Event) -> bool:
    return bool(event.payload) and event.reach is Reach.CLOUD and event.type != FORGOTTEN
