"""Events as records of a peer: checked as the server checks those that a device pushes. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from sync.errors import InvalidInput
from sync.lan.protocol.frames import ProtocolError
from sync.lan.protocol.ranges import NumberRanges, contains
from sync.log.envelope import check_name, from_wire, to_wire
from sync.log.model import MAX_EVENT_ID_LENGTH, MAX_NAME_LENGTH, Event

MAX_RECORD_BYTES: Final = 64 * 1024  # the server's limit
PART_BYTES: Final = 1024 * 1024  # events of one frame
MAX_NUMBER: Final = 2**53 - 1
MAX_TIME_LENGTH: Final = 64
MAX_UTC_OFFSET: Final = 1440  # minutes
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # in JSON; a backslash before it makes it a text about NUL


def parse_records(records: Sequence[Mapping[str, Any]], asked: NumberRanges) -> list[Event]:
    """The events of a frame, without bad ones: one that a device once took in must not keep all others from a peer.

    Raises ProtocolError for an event that was not asked for.
    """
    parsed = (_parse(record, asked) for record in records)
    return [event for event in parsed if event is not None]


def _parse(record: Mapping[str, Any], asked: NumberRanges) -> Event | None:
    """The event of a record; None for one that the server would refuse."""
    try:
        event = from_wire(record)
        check_name(event.event_id, field="event_id", max_length=MAX_EVENT_ID_LENGTH)
        for field in ("device_id", "replica_id", "type", "project_id", "origin"):
            check_name(getattr(event, field), field=field)
    except InvalidInput:
        return None
    if not contains(asked, event.replica_id, event.replica_seq):
        raise ProtocolError("an event came that was not asked for")
    encoded = msgspec.json.encode(record)
    is_bounded = (
        len(encoded) <= MAX_RECORD_BYTES
        and max(event.replica_seq, abs(event.schema_version)) <= MAX_NUMBER
        and max(len(event.ts), len(event.local_date)) <= MAX_TIME_LENGTH
        and len(event.session_id) <= MAX_NAME_LENGTH
        and abs(event.utc_offset) <= MAX_UTC_OFFSET
        and not (b"\\u0000" in encoded and _NUL.search(encoded))
    )
    return event if is_bounded else None


def parts_of(events: Sequence[Event]) -> Iterator[list[dict[str, Any]]]:
    """Events as records, in parts that fit into a frame each."""
    part: list[dict[str, Any]] = []
    size = 0
    for event in events:
        record = to_wire(event)
        length = len(msgspec.json.encode(record))
        if part and size + length > PART_BYTES:
            yield part
            part, size = [], 0
        part.append(record)
        size += length
    if part:
        yield part
