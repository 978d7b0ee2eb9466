"""What to send and what an answer means: the decisions of replication, as functions of values."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from sync.cloud.port import SyncAnswer
from sync.errors import CloudUnavailable
from sync.log.envelope import to_wire
from sync.log.model import Event, RefusedEvent, RemoteCursor

MAX_REPORTED_CODES: Final = 50  # what the server takes in one report
PUSH_BYTES: Final = 1024 * 1024  # half of what the server takes in one call


def next_batch(pending: Sequence[Event], *, most_events: int, most_bytes: int = PUSH_BYTES) -> tuple[Event, ...]:
    """The oldest pending events of one device that fit into one request; at least one where there is one.

    A device's id can change (the app names it): what was recorded before goes out under the id it has.
    """
    chosen: list[Event] = []
    size = 0
    for event in pending[:most_events]:
        size += len(msgspec.json.encode(to_wire(event)))
        if chosen and (size > most_bytes or event.device_id != chosen[0].device_id):
            break
        chosen.append(event)
    return tuple(chosen)


def split_batch(events: Sequence[Event]) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """Two parts of a refused batch, the first not smaller: one of them holds the culprit."""
    middle = (len(events) + 1) // 2
    return tuple(events[:middle]), tuple(events[middle:])


def count_by_code(refusals: Sequence[RefusedEvent]) -> dict[str, int]:
    """How many events stand in quarantine, by their code: what an administrator may know of them."""
    counted = Counter(refusal.code if refusal.code.isalnum() else "other" for refusal in refusals)
    return dict(counted.most_common(MAX_REPORTED_CODES))


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """What to do with an answer: forget the server's numbers first (`reset`), or apply and move to `cursor`."""

    reset: bool
    cursor: RemoteCursor
    caught_up: bool


def check_page(cursor: RemoteCursor, answer: SyncAnswer) -> PageVerdict:
    """Compare where we stand with what the server says.

    Raises CloudUnavailable where the numbers have a hole: a cursor never passes an event it has not seen (I6), so the
    answer is not used and asked for again.
    """
    if answer.reset or (cursor.epoch is not None and cursor.epoch != answer.epoch):
        start = RemoteCursor(epoch=answer.epoch, seq=answer.floor, head=answer.head, synced_at=answer.server_time)
        return PageVerdict(reset=True, cursor=start, caught_up=False)  # nothing below can be served
    seq, event_id = cursor.seq, cursor.event_id
    for event in answer.events:
        if event.server_seq != seq + 1:
            raise CloudUnavailable(f"the server's events have a hole after {seq}")
        seq, event_id = event.server_seq, event.event_id
    moved = replace(
        cursor, epoch=answer.epoch, seq=seq, event_id=event_id, head=answer.head, synced_at=answer.server_time
    )
    return PageVerdict(reset=False, cursor=moved, caught_up=seq >= answer.head)
