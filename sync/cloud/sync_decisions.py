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

QUOTA_CODE: Final = "PT429"  # the code of an event that waits because of a limit of the day
BREAKER_FAILURES: Final = 3  # one lost request is bad luck, three are an outage
MAX_BACKOFF: Final = 30.0  # seconds; a person who waits for the network to return should not wait for us
SHORT_OUTAGE_SECONDS: Final = 600.0  # seconds
SHORT_PROBE_PAUSE: Final = 3.0
LONG_PROBE_PAUSE: Final = 30.0
INITIAL_RECONNECT_PAUSE: Final = 1.0
MAX_RECONNECT_PAUSE: Final = 30.0  # seconds; a channel that is back that late has cost one poll
MIN_RECONNECT_PAUSE: Final = 0.2
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


def backoff_after(failures: int, retry_after: float | None) -> float:
    """Seconds to leave a server alone after so many rounds without an answer; what it asked for counts in any case."""
    breaker = 0.0 if failures < BREAKER_FAILURES else min(MAX_BACKOFF, 2.0 ** (failures - BREAKER_FAILURES))
    return max(breaker, retry_after or 0.0)


def probe_pause(outage_seconds: float, random_fraction: float) -> float:
    """Seconds before the next look whether the network is back, after so many without; `chance` from 0 to 1.

    Short enough for ten minutes that nobody notices the way back; then rarer, since a server that is down for everybody
    is looked at by everybody.
    """
    longest = SHORT_PROBE_PAUSE if outage_seconds < SHORT_OUTAGE_SECONDS else LONG_PROBE_PAUSE
    return longest * (0.5 + 0.5 * random_fraction)


def reconnect_pause(failures: int, random_fraction: float) -> float:
    """Seconds before another channel after so many failures in a row; `chance` from 0 to 1. Full jitter."""
    bound = min(MAX_RECONNECT_PAUSE, INITIAL_RECONNECT_PAUSE * 2.0 ** min(failures - 1, 10))
    return max(MIN_RECONNECT_PAUSE, random_fraction * bound)


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
