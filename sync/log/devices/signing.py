"""Sign events with the device key, and verify what another channel than the server's brings. Pure.

An event is signed when it leaves its device, not when it is recorded. The signature covers all of the envelope but the
replica and its number, which are transport. An erasure request has the signature of decision 002, which older devices
verify.
"""

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Final

from sync.log.event_types import PAYLOAD_FORGOTTEN
from sync.log.model import CLIENT_ID_FIELD, DOOR_FIELD, IMPORTED_FROM_FIELD, SIGNATURE_FIELD, Event

ALGORITHM_PREFIX: Final = "ed25519:"  # before the base64 of the 32 bytes of either half of a key
KEY_BYTES: Final = 32
KEY_ID_LENGTH: Final = 8  # characters of the public key that name it in a signature
_SIGNED_FIELDS: Final = (
    *("event_id", "device_id", "hlc", "type", "ts", "session_id", "project_id", "project_path", "origin"),
    *("local_date", "utc_offset"),
)
_SIGNED_EXTRA: Final = (DOOR_FIELD, CLIENT_ID_FIELD, IMPORTED_FROM_FIELD)


def signed_bytes(event: Event) -> bytes:
    """Return the bytes that the author of an event signs."""
    if event.type == PAYLOAD_FORGOTTEN:
        signed: list[object] = [
            "xiaobai-memory erasure 1",
            event.event_id,
            event.device_id,
            event.type,
            dict(event.payload),
        ]
    else:
        envelope = [getattr(event, name) for name in _SIGNED_FIELDS]
        extra = [event.extra.get(name) for name in _SIGNED_EXTRA]
        signed = ["xiaobai-memory event 1", envelope, extra, dict(event.payload)]
    return json.dumps(signed, sort_keys=True, separators=(",", ":")).encode()


def signature_field(event: Event, public_key: str, signature: str) -> object:
    """Return the envelope field of a signature; short, because each event has one."""
    if event.type == PAYLOAD_FORGOTTEN:
        return {"key": public_key, "value": signature}
    return f"{_key_id(public_key)}:{signature.rstrip('=')}"


def signer_of(event: Event, known_keys: Iterable[str] = ()) -> str | None:
    """Return the public key that signed an event; None without a valid signature.

    A request to erase names its key; every other event is verified with those of `known_keys` that it may mean.
    """
    field = event.extra.get(SIGNATURE_FIELD)
    if isinstance(field, dict):
        key, value = field.get("key"), field.get("value")
        candidates = [key] if isinstance(key, str) else []
    elif isinstance(field, str):
        key_id, _, value = field.partition(":")
        candidates = [key for key in known_keys if _key_id(key) == key_id]
    else:
        return None
    if not isinstance(value, str) or not candidates:
        return None
    data = signed_bytes(event)
    return next((key for key in candidates if verify_signature(key, value, data)), None)


def verify_signature(public_key: str, signature: str, data: bytes) -> bool:
    """Return whether a signature, in base64, signs these bytes with this public key (`ed25519:` and base64)."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - 30 ms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    raw = decode_key(public_key.encode("utf-8", "replace"))
    if raw is None:
        return False
    padded = signature + "=" * (-len(signature) % 4)
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(padded, validate=True), data)
    except (InvalidSignature, ValueError):  # binascii.Error is a ValueError
        return False
    return True


def decode_key(encoded: bytes | None) -> bytes | None:
    """Return the 32 bytes of a stored half of a key; None if it is missing or damaged."""
    if encoded is None or not encoded.startswith(ALGORITHM_PREFIX.encode()):
        return None
    try:
        raw = base64.b64decode(encoded[len(ALGORITHM_PREFIX) :].strip(), validate=True)
    except binascii.Error:
        return None
    return raw if len(raw) == KEY_BYTES else None


def _key_id(public_key: str) -> str:
    return public_key.removeprefix(ALGORITHM_PREFIX)[:KEY_ID_LENGTH]
