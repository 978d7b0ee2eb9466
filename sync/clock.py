"""Time, order and identity as arguments: no other module reads the machine's clock.

Glossary
    wall time   what a clock on the wall shows; may jump, may be years off.
    HLC         hybrid logical clock (Kulkarni et al. 2014): wall time that never goes back, with a counter for
                equal milliseconds. Written as 12 hex digits of milliseconds, '-', 4 hex digits of counter, so that
                text order is time order: ``0193a5b2c3d4-0000``.
    event id    ``evt_`` + UUIDv7 (RFC 9562): minted once, before anything is sent; the idempotency key.
"""

import os
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol

MAX_HLC_COUNTER: Final = 0xFFFF  # four hex digits; a burst beyond it borrows the next millisecond
HLC: Final = re.compile("[0-9a-f]{12}-[0-9a-f]{4}")  # as the server checks it: any other spelling would sort wrongly
_PROCESS_SESSION_ID: Final = re.compile("sess_[0-9]{8}_[0-9a-f]{8}")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
CALENDAR_START: Final = datetime.min.replace(tzinfo=UTC)  # moment of the calendar
CALENDAR_END: Final = datetime.max.replace(tzinfo=UTC)  # likewise
MAX_CLOCK_DRIFT: Final = timedelta(hours=24)  # how far ahead of the server's time a clock may order its events


class Clock(Protocol):
    """What the program knows about time and chance. A test hands in its own."""

    def now(self) -> datetime:
        """The current instant, timezone-aware, in the zone of the person (local date and offset derive from it)."""
        ...

    def local(self, moment: datetime) -> datetime:
        """A moment in the user's zone, with the offset of its own day; without a zone it is the user's wall time.

        Raises OverflowError at either end of the calendar.
        """
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; for deadlines and intervals only."""
        ...

    def random_bytes(self, count: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's own clock. `zone` overrides the system's time zone."""

    zone: tzinfo | None = None

    def now(self) -> datetime:
        instant = datetime.now(UTC)
        try:
            return instant.astimezone(self.zone)
        except ValueError:  # TZ=UTC+25: Python has no offset of a day or more
            return instant

    def local(self, moment: datetime) -> datetime:
        return in_zone(moment, self.zone)

    def monotonic(self) -> float:
        return time.monotonic()

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)


UTC_CLOCK: Final = SystemClock(UTC)


def in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    """What `Clock.local` says, for a zone; None is the system's."""
    if moment.tzinfo is None and zone is not None:
        return moment.replace(tzinfo=zone)
    try:
        return moment.astimezone(zone)
    except (ValueError, OSError) as error:  # the system's own functions have calendars of their own
        if zone is None and SystemClock().now().tzinfo is UTC:  # no time at all has a place in the system's zone
            return in_zone(moment, UTC)
        raise OverflowError(f"{moment} is out of the calendar") from error


def to_unix_ms(instant: datetime) -> int:
    """Unix milliseconds of an aware datetime, cut as `timestamp` cuts them; a float would lose some."""
    return (instant - EPOCH) // timedelta(milliseconds=1)


def local_day_and_offset(instant: datetime, clock: Clock) -> tuple[str, int] | None:
    """The person's day of a time and the minutes east of Greenwich there; None at either end of the calendar."""
    try:
        local = clock.local(instant)
    except OverflowError:
        return None
    return local.date().isoformat(), utc_offset_minutes(local)


def from_unix_ms(unix_ms: int) -> datetime:
    """Unix milliseconds as a time in UTC; the calendar's first or last one where another program's clock was beyond."""
    try:
        return EPOCH + timedelta(milliseconds=unix_ms)
    except OverflowError:
        return CALENDAR_START if unix_ms < 0 else CALENDAR_END


def timestamp(instant: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and ``Z``, as an event has it in `ts`: ``2026-02-02T10:00:00.000Z``."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_offset_minutes(instant: datetime) -> int:
    """Minutes east of Greenwich of an aware datetime."""
    offset = instant.utcoffset()
    return 0 if offset is None else int(offset.total_seconds() // 60)


def format_hlc(wall_ms: int, counter: int = 0) -> str:
    return f"{max(wall_ms, 0):012x}-{counter:04x}"  # a clock before 1970 says nothing worth a sign


def parse_hlc(hlc: str) -> tuple[int, int]:
    """(milliseconds, counter) of an HLC text; ValueError if it is none."""
    if not HLC.fullmatch(hlc):
        raise ValueError("an HLC is 12 hex digits, '-', 4 hex digits")
    wall, _, counter = hlc.partition("-")
    return int(wall, 16), int(counter, 16)


def next_hlc(previous: str | None, wall_ms: int) -> str:
    """The HLC of an event at `wall_ms`, strictly after `previous`."""
    if previous is None:
        return format_hlc(wall_ms)
    last_ms, counter = parse_hlc(previous)
    if wall_ms > last_ms:
        return format_hlc(wall_ms)
    if counter < MAX_HLC_COUNTER:
        return format_hlc(last_ms, counter + 1)
    return format_hlc(last_ms + 1)


def merge_hlc(previous: str | None, remote: str, wall_ms: int) -> str | None:
    """`previous` moved up to an HLC seen from elsewhere, unless that one runs more than a day ahead of our wall."""
    seen_ms, _ = parse_hlc(remote)
    if seen_ms > wall_ms + int(MAX_CLOCK_DRIFT.total_seconds() * 1000):
        return previous
    return remote if previous is None or remote > previous else previous


def uuid7(wall_ms: int, random_bytes: Callable[[int], bytes]) -> uuid.UUID:
    """A UUIDv7 from given milliseconds and given randomness."""
    random = int.from_bytes(random_bytes(10), "big")
    value = (wall_ms & ((1 << 48) - 1)) << 80
    value |= 0x7 << 76 | (random >> 68 & 0xFFF) << 64
    value |= 0b10 << 62 | random & ((1 << 62) - 1)
    return uuid.UUID(int=value)


def new_event_id(clock: Clock) -> str:
    return f"evt_{uuid7(to_unix_ms(clock.now()), clock.random_bytes)}"


def new_session_id(clock: Clock) -> str:
    """That of a process: what is recorded without a session belongs to it."""
    now = clock.now()
    return f"sess_{now:%Y%m%d}_{uuid7(to_unix_ms(now), clock.random_bytes).hex[-8:]}"


def is_process_session(session_id: str) -> bool:
    """Whether `new_session_id` made it, and no host."""
    return _PROCESS_SESSION_ID.fullmatch(session_id) is not None
