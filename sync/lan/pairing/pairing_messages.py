"""Messages of a pairing, as JSON in the frames of devices. Pure. At most 4 KiB each: the sender may be a stranger."""

from typing import Annotated, Final

import msgspec

from sync.lan.protocol.frames import LENGTH_BYTES, ProtocolError, ShortText

PAIRING_VERSION: Final = 1
MAX_MESSAGE_BYTES: Final = 4096

Base64Share = Annotated[str, msgspec.Meta(max_length=128)]
Base64Sealed = Annotated[str, msgspec.Meta(max_length=3072)]


class PairShare(msgspec.Struct, frozen=True, tag="pair_share"):
    """Each side's first message: its share of the key exchange (SPAKE2), in base64. It tells nothing of the code."""

    version: int
    share: Base64Share


class PairCard(msgspec.Struct, frozen=True, tag="pair_card"):
    """Who the sender is, sealed under the common key: only who has the code can make one, or read it."""

    sealed: Base64Sealed


class PairRefused(msgspec.Struct, frozen=True, tag="pair_refused"):
    """The sender ends the pairing; `cause` is a word of `PairingCause`."""

    cause: ShortText


PairMessage = PairShare | PairCard | PairRefused

_DECODER: Final = msgspec.json.Decoder(PairShare | PairCard | PairRefused)
_ENCODER: Final = msgspec.json.Encoder()


def encode_message(message: PairMessage) -> bytes:
    """The body of a message's frame."""
    return _ENCODER.encode(message)


def frame_of(message: PairMessage) -> bytes:
    body = encode_message(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def decode_message(body: bytes) -> PairMessage:
    """Raises ProtocolError."""
    try:
        message: PairMessage = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError("a message of a pairing cannot be read") from error
    return message
