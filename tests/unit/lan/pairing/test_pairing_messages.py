import pytest

from sync.lan.pairing.pairing_messages import (
    PairCard,
    PairMessage,
    PairRefused,
    PairShare,
    decode_message,
    encode_message,
)
from sync.lan.protocol.frames import ProtocolError


@pytest.mark.parametrize("message", [PairShare(1, "QUI="), PairCard("QUI="), PairRefused("wrong_code")])
def test_a_message_is_read_as_it_was_written(message: PairMessage) -> None:
    assert decode_message(encode_message(message)) == message


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"\xff", b'{"type":"hello","version":1}', b"[" * 4000, b'{"type":"pair_share","version":1}']
)  # fmt: skip
def test_a_damaged_message_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_message(body)


def test_a_share_that_is_too_long_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError):
        decode_message(encode_message(PairShare(1, "A" * 129)))
