"""A signature proves the author of an event and what it says, whatever replica and number brought it."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from sync.log.devices.signing import ALGORITHM_PREFIX, decode_key, signature_field, signed_bytes, signer_of
from sync.log.event_types import PAYLOAD_FORGOTTEN
from sync.log.model import SIGNATURE_FIELD, Event
from tests.support import event

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(32))
KEY = ALGORITHM_PREFIX + base64.b64encode(PRIVATE.public_key().public_bytes_raw()).decode()
OTHER = (
    ALGORITHM_PREFIX
    + base64.b64encode(Ed25519PrivateKey.from_private_bytes(b"1" * 32).public_key().public_bytes_raw()).decode()
)


def signed(one: Event) -> Event:
    signature = base64.b64encode(PRIVATE.sign(signed_bytes(one))).decode()
    return replace(one, extra={**one.extra, SIGNATURE_FIELD: signature_field(one, KEY, signature)})


@pytest.mark.parametrize("event_type", ["entry_added", PAYLOAD_FORGOTTEN])
def test_an_event_is_its_signers_on_any_channel(event_type: str) -> None:
    one = signed(event(1, type=event_type, extra={"door": "hand"}))
    assert signer_of(one, [OTHER, KEY]) == KEY
    renumbered = replace(one, replica_id="rep_z", replica_seq=9, server_seq=4, position=7, server_ts="now")
    assert signer_of(renumbered, [KEY]) == KEY


@pytest.mark.parametrize(
    "change",
    [
        {"event_id": "evt_2"},
        {"device_id": "device-b"},
        {"hlc": "0193a5b2c3d5-0001"},
        {"type": "entry_edited"},
        {"ts": "2020-01-01T00:00:00.000Z"},
        {"session_id": "other"},
        {"origin": "tool"},
        {"local_date": "2020-01-01"},
        {"payload": {"text": "别的"}},
    ],
)
def test_whatever_is_changed_ends_the_proof(change: dict[str, object]) -> None:
    assert signer_of(replace(signed(event(1, type="entry_added")), **change), [KEY]) is None


def test_the_door_is_signed_and_what_only_a_server_adds_is_not() -> None:
    one = signed(event(1, extra={"door": "program"}))
    assert signer_of(replace(one, extra={**one.extra, "door": "hand"}), [KEY]) is None
    assert signer_of(replace(one, extra={**one.extra, "of_tomorrow": 1}), [KEY]) == KEY


@pytest.mark.parametrize("field", [None, "", ":", 7, [], {"key": KEY}, {"key": 1, "value": ""}, "AAAA:!!", "\ud800:x"])
def test_a_field_that_is_no_signature_proves_nothing(field: object) -> None:
    assert signer_of(event(1, extra={SIGNATURE_FIELD: field}), [KEY, "ed25519:", "x"]) is None


@pytest.mark.parametrize("stored", [None, b"", b"ed25519:", b"ed25519:AAAA", b"rsa:AAAA"])
def test_a_damaged_key_is_none(stored: bytes | None) -> None:
    assert decode_key(stored) is None
