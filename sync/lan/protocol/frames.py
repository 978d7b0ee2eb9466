"""Messages between two devices, and their frames: four bytes of length, then JSON. Pure.

A frame of more than 8 MiB, an unknown message or a damaged one is a ProtocolError; nothing of it is used.
"""

from typing import Annotated, Any, Final

import msgspec

from sync.lan.protocol.ranges import NumberRanges, Range, union

PROTOCOL_VERSION: Final = 1
MAX_FRAME_BYTES: Final = 8 * 1024 * 1024  # as on the local wire
LENGTH_BYTES: Final = 4
MAX_NUMBER: Final = 2**53 - 1  # JSON numbers are exact up to here
MAX_TEXT: Final = 256

ShortText = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Number = Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)]
WireRanges = dict[ShortText, list[tuple[Number, Number]]]


class ProtocolError(Exception):
    """The peer does not speak this protocol."""


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """The first message of each side. The TLS certificate says who it is; this says how it is called.

    `account_id`: whose memory it has; empty for a guest.
    """

    version: int
    device_id: ShortText
    name: ShortText
    app_version: ShortText
    account_id: ShortText = ""
    account_label: ShortText = ""


class Have(msgspec.Struct, frozen=True, tag="have"):
    """What the sender offers: erasure requests and corrections apart from all other events.

    `epoch` names the state of the sender's numbers. Numbers of another epoch mean other events. `last` has the highest
    number of each offered replica with its event id: another id here means that two databases continue one history.
    `proven` has the numbers, also some that are not offered, whose events are proven to be of a device.
    """

    epoch: ShortText
    erasures: WireRanges
    events: WireRanges
    last: dict[ShortText, tuple[Number, ShortText]] = {}
    proven: dict[ShortText, WireRanges] = {}


class Want(msgspec.Struct, frozen=True, tag="want"):
    """The numbers that the sender lacks, out of a `Have` of that epoch."""

    epoch: ShortText
    numbers: WireRanges


class Events(msgspec.Struct, frozen=True, tag="events"):
    """A part of the answer to a `Want`: records as the cloud gets them."""

    epoch: ShortText
    events: list[dict[str, Any]]


class Sent(msgspec.Struct, frozen=True, tag="sent"):
    """The answer to a `Want` is complete. What it lacks, the sender no longer offers."""

    epoch: ShortText


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """A sign of life."""


class Bye(msgspec.Struct, frozen=True, tag="bye"):
    """The sender closes the connection; `cause` says why, in a word of `RefusalCause`."""

    cause: ShortText


Message = Hello | Have | Want | Events | Sent | Ping | Bye

_DECODER: Final = msgspec.json.Decoder(Hello | Have | Want | Events | Sent | Ping | Bye)
_ENCODER: Final = msgspec.json.Encoder()


def encode(message: Message) -> bytes:
    """The frame of a message. Raises ValueError if it is too large; callers send events in parts."""
    body = _ENCODER.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise ValueError("a message does not fit into one frame")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def body_length(header: bytes, limit: int = MAX_FRAME_BYTES) -> int:
    """The length of the body that follows a header. Raises ProtocolError before anything is read of it."""
    length = int.from_bytes(header, "big")
    if not 0 < length <= limit:
        raise ProtocolError("a frame is empty or too large")
    return length


def decode(body: bytes) -> Message:
    """The message of a frame's body. Raises ProtocolError."""
    try:
        message: Message = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError("a message cannot be read") from error
    return message


def to_wire_ranges(numbers: NumberRanges) -> WireRanges:
    return {replica: list(ranges) for replica, ranges in numbers.items()}


def from_wire_ranges(numbers: WireRanges) -> NumberRanges:
    """Ranges as sent by a peer, put in order. Raises ProtocolError for one that ends before it begins."""
    for ranges in numbers.values():
        if any(first > last for first, last in ranges):
            raise ProtocolError("a range ends before it begins")
    sent: dict[str, tuple[Range, ...]] = {replica: tuple(ranges) for replica, ranges in numbers.items() if ranges}
    return union(sent, {})
