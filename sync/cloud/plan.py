"""What to send and what an answer means: the decisions of replication, as functions of values."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from sync.cloud.port import SyncAnswer
from sync.errors import CloudUnavailable
from sync.log.envelope import to_wire
from sync.log.model import Cursor, Event, Refusal

LIMITED: Final = "PT429"  # the code of an event that waits because of a limit of the day
BREAKER_FAILURES: Final = 3  # one lost request is bad luck, three are an outage
LONGEST_REST: Final = 30.0  # seconds; a person who waits for the network to return should not wait for us
SHORT_OUTAGE: Final = 600.0  # seconds
SHORT_PROBE: Final = 3.0
LONG_PROBE: Final = 30.0
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0  # seconds; a channel that is back that late has cost one poll
SHORTEST_PAUSE: Final = 0.2
REPORTED_CODES: Final = 50  # what the server takes in one report
PUSH_BYTES: Final = 1024 * 1024  # half of what the server takes in one call


def batch(pending: Sequence[Event], *, most_events: int, most_bytes: int = PUSH_BYTES) -> tuple[Event, ...]:
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


def halves(events: Sequence[Event]) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """Two parts of a refused batch, the first not smaller: one of them holds the culprit."""
    middle = (len(events) + 1) // 2
    return tuple(events[:middle]), tuple(events[middle:])


def by_code(refusals: Sequence[Refusal]) -> dict[str, int]:
    """How many events stand in quarantine, by their code: what an administrator may know of them."""
    counted = Counter(refusal.code if refusal.code.isalnum() else "other" for refusal in refusals)
    return dict(counted.most_common(REPORTED_CODES))


def rest_after(failures: int, asked: float | None) -> float:
    """Seconds to leave a server alone after so many rounds without an answer; what it asked for counts in any case."""
    breaker = 0.0 if failures < BREAKER_FAILURES else min(LONGEST_REST, 2.0 ** (failures - BREAKER_FAILURES))
    return max(breaker, asked or 0.0)


def probe_pause(out_for: float, chance: float) -> float:
    """Seconds before the next look whether the network is back, after so many without; `chance` from 0 to 1.

    Short enough for ten minutes that nobody notices the way back; then rarer, since a server that is down for everybody
    is looked at by everybody.
    """
    longest = SHORT_PROBE if out_for < SHORT_OUTAGE else LONG_PROBE
    return longest * (0.5 + 0.5 * chance)


def jittered_pause(failures: int, chance: float) -> float:
    """Seconds before another channel after so many failures in a row; `chance` from 0 to 1. Full jitter."""
    bound = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 10))
    return max(SHORTEST_PAUSE, chance * bound)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with an answer: forget the server's numbers first (`reset`), or apply and move to `cursor`."""

    reset: bool
    cursor: Cursor
    caught_up: bool


def judge(cursor: Cursor, answer: SyncAnswer) -> Verdict:
    """Compare where we stand with what the server says.

    Raises CloudUnavailable where the numbers have a hole: a cursor never passes an event it has not seen (I6), so the
    answer is not used and asked for again.
    """
    if answer.reset or (cursor.epoch is not None and cursor.epoch != answer.epoch):
        start = Cursor(epoch=answer.epoch, seq=answer.floor, head=answer.head, synced_at=answer.server_time)
        return Verdict(reset=True, cursor=start, caught_up=False)  # nothing below can be served
    seq, event_id = cursor.seq, cursor.event_id
    for event in answer.events:
        if event.server_seq != seq + 1:
            raise CloudUnavailable(f"the server's events have a hole after {seq}")
        seq, event_id = event.server_seq, event.event_id
    moved = replace(
        cursor, epoch=answer.epoch, seq=seq, event_id=event_id, head=answer.head, synced_at=answer.server_time
    )
    return Verdict(reset=False, cursor=moved, caught_up=seq >= answer.head)
