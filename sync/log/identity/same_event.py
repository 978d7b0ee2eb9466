"""Decide whether two events are the same, and which of two under one id a log keeps. Pure.

See docs/decisions/039-identity-of-events.md.
"""

from hashlib import sha256

from msgspec.structs import replace

from sync.log.model import ERASURE_STATE_FIELD, UNPROVEN_FIELD, Event, Origin
from sync.log.retractions import is_redacted


def client_event_id(device_id: str, client_id: str) -> str:
    """Return the id of an event that a program named; two devices have different ones for the same name."""
    return "evt_" + sha256(f"client\n{device_id}\n{client_id}".encode(errors="surrogatepass")).hexdigest()[:32]


def client_record_id(device_id: str, client_id: str) -> str:
    """Return the id of a daily record that a program named: no program takes the id of the user's next record."""
    return "rec_" + sha256(f"program\n{device_id}\n{client_id}".encode(errors="surrogatepass")).hexdigest()[:32]


def is_same_event(one: Event, other: Event) -> bool:
    """Return whether two events are one event; replica and number are transport, and a payload may be erased."""
    return _has_same_author(one, other) and (not one.payload or not other.payload or one.payload == other.payload)


def winner_at_server(held: Event, sent: Event, *, is_own: bool) -> Event | None:
    """Return what the log keeps of an event that the server has as `sent`; None for a clash, which keeps `held`.

    `is_own`: this device records and sends it. Two devices may import the same file: then the server's copy wins. A
    payload is taken from the server only if there is none here.
    """
    if UNPROVEN_FIELD in held.extra and not is_own:  # the server lets a device speak for itself only
        return _in_place_of(held, replace(sent, extra=_local(held, sent)))
    if is_same_event(held, sent):
        if is_own:
            return held if held.payload else replace(held, payload=sent.payload, extra=_local(held, sent))
        payload = held.payload or sent.payload
        extra = held.extra if held.payload and not sent.payload else _local(held, sent)
        return _in_place_of(held, replace(sent, payload=payload, extra=extra))
    is_replaceable = is_from_file(held) if is_own else not _has_same_author(held, sent)
    return _in_place_of(held, replace(sent, extra=_local(held, sent))) if is_replaceable else None


def winner_without_server(held: Event, sent: Event) -> Event:
    """Return which of two events under one id stays until a server decides: a proven one, or the earlier import."""
    if sent.is_proven and not held.is_proven:
        return replace(sent, position=held.position)
    is_earlier = (sent.hlc, sent.device_id) < (held.hlc, held.device_id)
    if is_from_file(held) and is_from_file(sent) and held.type == sent.type and held.server_seq is None and is_earlier:
        return _in_place_of(held, sent)
    return held


def is_clash(held: Event, sent: Event) -> bool:
    """Return whether two events claim one id; what an unproven one only words differently is not its author's."""
    if is_from_file(held) and is_from_file(sent):
        return False
    if not held.is_proven or not sent.is_proven:
        return held.device_id != sent.device_id
    before, after = dict(held.payload), dict(sent.payload)  # a correction may come before or after its event
    is_corrected = is_redacted(before, after) or is_redacted(after, before)
    return not (is_same_event(held, sent) or (_has_same_author(held, sent) and is_corrected))


def is_from_file(event: Event) -> bool:
    """Return whether a device made the event out of a file, so that another may have made the same."""
    return event.origin == Origin.IMPORTED


def _has_same_author(one: Event, other: Event) -> bool:
    fields = (one.event_id, one.device_id, one.hlc, one.type)
    return fields == (other.event_id, other.device_id, other.hlc, other.type)


def _local(held: Event, sent: Event) -> dict[str, object]:
    """Return the fields that came, with this log's own mark of a large erasure request."""
    mark = held.extra.get(ERASURE_STATE_FIELD)
    return {**sent.extra} if mark is None else {**sent.extra, ERASURE_STATE_FIELD: mark}


def _in_place_of(held: Event, event: Event) -> Event:
    """Return an event for the row of the held one; it has the held one's numbers unless it is another device's."""
    numbers = {"replica_id": held.replica_id, "replica_seq": held.replica_seq}
    moved = {} if event.device_id != held.device_id else numbers
    return replace(event, position=held.position, server_seq=held.server_seq, server_ts=held.server_ts, **moved)
