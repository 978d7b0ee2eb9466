"""Pure decisions of replication: what to send, and what an answer means."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.cloud.port import SyncAnswer
from sync.errors import CloudUnavailable
from sync.log.envelope import to_wire
from sync.log.model import Event, RefusedEvent, RemoteCursor

MAX_REPORTED_CODES: Final = 50  # the server's limit
PUSH_BYTES: Final = 1024 * 1024  # half of the server's limit


def next_batch(pending: Sequence[Event], *, most_events: int, most_bytes: int = PUSH_BYTES) -> tuple[Event, ...]:
    """The oldest pending events of one device that fit into one request; at least one if any is pending.

    A device's id can change (the app sets it); earlier events keep the id that they were recorded under.
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
    """Split a refused batch in two; the first part is not the smaller one."""
    middle = (len(events) + 1) // 2
    return tuple(events[:middle]), tuple(events[middle:])


def count_by_code(refusals: Sequence[RefusedEvent]) -> dict[str, int]:
    """Count quarantined events by code; administrators see nothing else of them."""
    counts = Counter(refusal.code if refusal.code.isalnum() else "other" for refusal in refusals)
    return dict(counts.most_common(MAX_REPORTED_CODES))


class PageVerdict(msgspec.Struct, frozen=True):
    """Whether to clear the server's numbers (`reset`) or apply the answer, and the cursor after it."""

    reset: bool
    cursor: RemoteCursor
    caught_up: bool


def check_page(cursor: RemoteCursor, answer: SyncAnswer) -> PageVerdict:
    """Compare the cursor with an answer.

    Raises CloudUnavailable if the numbers have a gap: a cursor never passes an event that it has not seen (I6), so the
    page is requested again.
    """
    if answer.reset or (cursor.epoch is not None and cursor.epoch != answer.epoch):
        start = RemoteCursor(epoch=answer.epoch, seq=answer.floor, head=answer.head, synced_at=answer.server_time)
        return PageVerdict(reset=True, cursor=start, caught_up=False)
    seq, event_id = cursor.seq, cursor.event_id
    for event in answer.events:
        if event.server_seq != seq + 1:
            raise CloudUnavailable(f"the server's events have a hole after {seq}")
        seq, event_id = event.server_seq, event.event_id
    moved = replace(
        cursor, epoch=answer.epoch, seq=seq, event_id=event_id, head=answer.head, synced_at=answer.server_time
    )
    return PageVerdict(reset=False, cursor=moved, caught_up=seq >= answer.head)
